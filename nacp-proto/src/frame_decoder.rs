use std::time::{Duration, Instant};

use bytes::buf::Limit;
use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::{FrameError, FrameHeader, Reassembler, ReassemblyLimits};

/// Cuts the byte stream of one peer into frames, and puts them together to messages
/// (specification, section 2).
///
/// Read into [`read_buf`](Self::read_buf), then call [`poll_message`](Self::poll_message) until it
/// returns `None`. A message that lies whole in what was read is a slice of it; the body of a
/// larger one is read straight into the buffer that it will be handed on in. After a fault nothing
/// more is read: every call answers with the same fault.
///
/// ```
/// use std::time::Instant;
/// use bytes::BufMut;
/// use nacp_proto::{FrameDecoder, FrameHeader, MsgId, ReassemblyLimits};
///
/// let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
/// let mut buf = decoder.read_buf();
/// buf.put_slice(&FrameHeader::new(MsgId([7; 16]), 0, 5, 5)?.to_bytes());
/// buf.put_slice(b"hello");
///
/// let now = Instant::now();
/// assert_eq!(decoder.poll_message(now)?.as_deref(), Some(&b"hello"[..]));
/// assert_eq!(decoder.poll_message(now)?, None);
/// # Ok::<_, nacp_proto::FrameError>(())
/// ```
#[derive(Debug)]
pub struct FrameDecoder {
    /// Read and not yet looked at.
    buf: BytesMut,
    reassembler: Reassembler,
    sizing: Sizing,
}

impl FrameDecoder {
    /// A decoder at the start of a stream, its peer not registered. It allocates nothing yet.
    pub fn new(limits: ReassemblyLimits) -> Self {
        Self {
            buf: BytesMut::new(),
            reassembler: Reassembler::new(limits),
            sizing: Sizing::default(),
        }
    }

    /// Room for the next bytes of the stream: at least one byte.
    ///
    /// The room follows what the reads before have brought, from 4 KiB to 64 KiB; inside of a
    /// large body it is twice what has come of the message.
    pub fn read_buf(&mut self) -> Limit<&mut BytesMut> {
        self.make_room();
        let room = self.buf.capacity() - self.buf.len();
        match self.reassembler.body_buf(DIRECT) {
            Some(room) => room,
            None => {
                self.sizing.before_read(self.buf.len(), room);
                (&mut self.buf).limit(room)
            }
        }
    }

    /// The next whole message in what has been read; `None` if more must be read first.
    ///
    /// # Errors
    ///
    /// The fault of the peer, for ever after. Messages that came before it have been returned.
    pub fn poll_message(&mut self, now: Instant) -> Result<Option<Bytes>, FrameError> {
        self.reassembler.check()?;
        self.sizing.after_read(self.buf.len());
        self.reassembler.count_body(now)?;
        loop {
            if self.reassembler.missing().is_some() {
                let taken = self.reassembler.handle_body(now, &self.buf)?;
                self.buf.advance(taken);
                if let Some(message) = self.reassembler.finish_frame() {
                    return Ok(Some(message));
                }
                if self.reassembler.missing().is_some() {
                    return Ok(None);
                }
            }
            let Some(bytes) = self.buf.first_chunk::<{ FrameHeader::LEN }>() else {
                return Ok(None);
            };
            let header = FrameHeader::parse(bytes).or_else(|fault| self.reassembler.fail(fault))?;
            self.buf.advance(FrameHeader::LEN);
            if let Some(message) = self.take_whole(&header)? {
                return Ok(Some(message));
            }
            self.reassembler.start_frame(now, &header)?;
        }
    }

    /// Tells that the stream has ended.
    ///
    /// # Errors
    ///
    /// [`FrameError::Truncated`] if it ended inside a header or a body: the fault of the peer, for
    /// ever after. The end is clean between two frames, also if their message is unfinished.
    pub fn handle_end(&mut self) -> Result<(), FrameError> {
        self.reassembler.check()?;
        if self.buf.is_empty() && self.reassembler.missing().is_none() {
            return Ok(());
        }
        self.reassembler.fail(FrameError::Truncated)
    }

    /// Lifts the limit on bytes received before a register.
    pub const fn handle_registered(&mut self) {
        self.reassembler.handle_registered();
    }

    /// As [`Reassembler::poll_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.reassembler.poll_timeout()
    }

    /// As [`Reassembler::handle_timeout`]. Feed it what has been read first.
    ///
    /// # Errors
    ///
    /// The fault of the peer, for ever after.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), FrameError> {
        self.reassembler.handle_timeout(now)
    }

    /// As [`Reassembler::postpone`].
    pub fn postpone(&mut self, by: Duration) {
        self.reassembler.postpone(by);
    }

    /// As [`Reassembler::take_progress`].
    pub fn take_progress(&mut self) -> u64 {
        self.reassembler.take_progress()
    }

    /// As [`Reassembler::unfinished_messages`].
    #[must_use]
    pub fn unfinished_messages(&self) -> usize {
        self.reassembler.unfinished_messages()
    }

    /// As [`Reassembler::held_bytes`]. The read buffer comes on top.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.reassembler.held_bytes()
    }

    /// The body behind `header`, if it is a whole message and has come.
    fn take_whole(&mut self, header: &FrameHeader) -> Result<Option<Bytes>, FrameError> {
        let len = header.body_len() as usize;
        if self.buf.len() < len || !self.reassembler.is_alone(header) {
            return Ok(None);
        }
        self.reassembler.check_sizes(header, len)?;
        Ok(Some(self.buf.split_to(len).freeze()))
    }

    /// Sees to it that a good part of the room for a read is free behind what is held.
    fn make_room(&mut self) {
        let room = self.sizing.room;
        if self.buf.is_empty() && self.buf.capacity() > 2 * room {
            self.buf = BytesMut::new();
        }
        if self.buf.capacity() - self.buf.len() >= room / 4 || self.buf.try_reclaim(room) {
            return;
        }
        let mut fresh = BytesMut::with_capacity(self.buf.len() + room);
        fresh.extend_from_slice(&self.buf);
        self.buf = fresh;
    }
}

/// From how many missing bytes on a body is read straight into its message.
const DIRECT: usize = 16 << 10;

/// How much room a read gets.
///
/// Twice as much after a read that filled it, half as much after [`Sizing::PATIENCE`] reads in a
/// row that needed less than a quarter: a busy connection reads 64 KiB at a time, an idle one
/// holds a page.
#[derive(Debug)]
struct Sizing {
    room: usize,
    small_reads: u8,
    /// Length held, and room offered, before the read that has not been looked at yet.
    offered: Option<(usize, usize)>,
}

impl Sizing {
    const MIN: usize = 4 << 10;
    const MAX: usize = 64 << 10;
    const PATIENCE: u8 = 8;

    const fn before_read(&mut self, held: usize, room: usize) {
        self.offered = Some((held, room));
    }

    fn after_read(&mut self, held: usize) {
        let Some((before, offered)) = self.offered.take() else {
            return;
        };
        let came = held.saturating_sub(before);
        if came == 0 {
            return;
        }
        if came == offered {
            self.small_reads = 0;
            self.room = (self.room * 2).min(Self::MAX);
        } else if came >= self.room / 4 {
            self.small_reads = 0;
        } else if self.small_reads < Self::PATIENCE {
            self.small_reads += 1;
        } else {
            self.small_reads = 0;
            self.room = (self.room / 2).max(Self::MIN);
        }
    }
}

impl Default for Sizing {
    fn default() -> Self {
        Self {
            room: Self::MIN,
            small_reads: 0,
            offered: None,
        }
    }
}

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::buf::Limit;
use bytes::{BufMut, Bytes, BytesMut};

use crate::{FrameError, FrameHeader, MsgId};

use self::partial::Partial;

mod limits;
mod partial;

pub use self::limits::ReassemblyLimits;

/// Puts the frames of one peer together to messages (specification, section 2).
///
/// Frames may come in any order, and those of several messages mixed. It does no I/O and reads no
/// clock: `now` is an argument, [`poll_timeout`](Self::poll_timeout) says when to call
/// [`handle_timeout`](Self::handle_timeout). After a fault it holds nothing any more and answers
/// everything with that same fault.
///
/// No memory is reserved because a header says so: buffers grow with the bytes that came.
///
/// ```
/// use std::time::Instant;
/// use bytes::Bytes;
/// use nacp_proto::{FrameHeader, MsgId, Reassembler, ReassemblyLimits};
///
/// let now = Instant::now();
/// let mut reassembler = Reassembler::new(ReassemblyLimits::default());
/// let second = FrameHeader::new(MsgId([7; 16]), 3, 6, 3)?;
/// let first = FrameHeader::new(MsgId([7; 16]), 0, 6, 3)?;
/// assert_eq!(reassembler.handle_frame(now, &second, Bytes::from_static(b"def"))?, None);
/// let message = reassembler.handle_frame(now, &first, Bytes::from_static(b"abc"))?;
/// assert_eq!(message.as_deref(), Some(&b"abcdef"[..]));
/// # Ok::<_, nacp_proto::FrameError>(())
/// ```
#[derive(Debug)]
pub struct Reassembler {
    limits: ReassemblyLimits,
    registered: bool,
    /// Messages between two of their frames.
    parked: HashMap<MsgId, Partial>,
    /// What the parked ones hold.
    parked_bytes: usize,
    /// The message whose frame is coming in.
    open: Option<OpenFrame>,
    fresh: u64,
    fault: Option<FrameError>,
}

/// A frame of which the header has come, and a part of the body.
#[derive(Debug)]
struct OpenFrame {
    header: FrameHeader,
    message: Partial,
    /// Length of the message's buffer when its bytes were last counted.
    counted: usize,
    missing: usize,
}

impl Reassembler {
    /// Nothing unfinished, and the peer not registered.
    pub fn new(limits: ReassemblyLimits) -> Self {
        Self {
            limits,
            registered: false,
            parked: HashMap::new(),
            parked_bytes: 0,
            open: None,
            fresh: 0,
            fault: None,
        }
    }

    /// Lifts the limit on bytes received before a register.
    pub const fn handle_registered(&mut self) {
        self.registered = true;
    }

    /// Takes one frame whose body has come whole, and returns the message that it completes.
    ///
    /// The body of a message that has only this frame is handed on without being copied.
    ///
    /// # Errors
    ///
    /// The fault of the peer, for ever after. [`FrameError::SizeMismatch`] if the body is not as
    /// long as its header says.
    pub fn handle_frame(
        &mut self,
        now: Instant,
        header: &FrameHeader,
        body: Bytes,
    ) -> Result<Option<Bytes>, FrameError> {
        self.check()?;
        if body.len() != header.body_len as usize {
            let (declared, actual) = (header.body_len, body.len());
            return self.fail(FrameError::SizeMismatch { declared, actual });
        }
        if self.is_alone(header) {
            self.check_sizes(header, body.len())?;
            return Ok(Some(body));
        }
        self.start_frame(now, header)?;
        self.handle_body(now, &body)?;
        Ok(self.finish_frame())
    }

    /// When [`handle_timeout`](Self::handle_timeout) must be called; `None` if never.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let oldest = self.unfinished().map(|message| message.progress_at).min()?;
        oldest.checked_add(self.limits.timeout)
    }

    /// Ends in [`FrameError::ReassemblyTimeout`] if a message has been without progress for too
    /// long; otherwise does nothing.
    ///
    /// # Errors
    ///
    /// The fault of the peer, for ever after.
    pub fn handle_timeout(&mut self, now: Instant) -> Result<(), FrameError> {
        self.check()?;
        match self.poll_timeout() {
            Some(due) if due <= now => self.fail(FrameError::ReassemblyTimeout),
            _ => Ok(()),
        }
    }

    /// Puts off every timeout: for the time in which we did not read from the peer.
    pub fn postpone(&mut self, by: Duration) {
        for message in self.unfinished_mut() {
            message.progress_at = message
                .progress_at
                .checked_add(by)
                .unwrap_or(message.progress_at);
        }
    }

    /// How many messages are unfinished.
    #[must_use]
    pub fn unfinished_messages(&self) -> usize {
        self.parked.len() + usize::from(self.open.is_some())
    }

    /// Memory that unfinished messages hold, in bytes, with the cost of keeping frames that came
    /// too early.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.parked_bytes + self.open.as_ref().map_or(0, |open| open.message.held())
    }

    /// How many body bytes have come since this was last asked, of messages that are unfinished
    /// now.
    pub fn take_progress(&mut self) -> u64 {
        let fresh = std::mem::take(&mut self.fresh);
        if fresh > 0 {
            self.unfinished_mut().for_each(|message| message.fresh = 0);
        }
        fresh
    }

    /// Whether the frame is the whole of a message of which nothing has come.
    pub(crate) fn is_alone(&self, header: &FrameHeader) -> bool {
        header.is_whole() && (self.parked.is_empty() || !self.parked.contains_key(&header.msg_id))
    }

    /// Whether a whole message may pass of which `came` bytes have come.
    pub(crate) fn check_sizes(
        &mut self,
        header: &FrameHeader,
        came: usize,
    ) -> Result<(), FrameError> {
        if u64::from(header.total_size) > self.limits.max_message_bytes {
            let limit = self.limits.max_message_bytes;
            return self.fail(FrameError::MessageTooLarge { limit });
        }
        if !self.registered && came as u64 > self.limits.max_unregistered_bytes {
            let limit = self.limits.max_unregistered_bytes;
            return self.fail(FrameError::MessageTooLarge { limit });
        }
        Ok(())
    }

    /// Makes ready for the body that belongs to `header`. The frame before must be finished.
    pub(crate) fn start_frame(
        &mut self,
        now: Instant,
        header: &FrameHeader,
    ) -> Result<(), FrameError> {
        self.check_sizes(header, self.held_bytes())?;
        let mut message = match self.parked.remove(&header.msg_id) {
            Some(message) => {
                self.parked_bytes -= message.held();
                message
            }
            None if header.is_whole() || self.parked.len() < self.limits.max_messages => {
                Partial::new(header.total_size, now)
            }
            None => {
                let limit = self.limits.max_messages;
                return self.fail(FrameError::TooManyMessages { limit });
            }
        };
        if message.total_size() != header.total_size {
            let (was, now) = (message.total_size(), header.total_size);
            return self.fail(FrameError::TotalSizeChanged { was, now });
        }
        if let Some(at) = message.overlap(header.offset, header.body_len) {
            return self.fail(FrameError::Overlapping { at });
        }
        let counted = message.buffer(header.offset).len();
        let missing = header.body_len as usize;
        self.open = Some(OpenFrame {
            header: *header,
            message,
            counted,
            missing,
        });
        Ok(())
    }

    /// How many bytes the body of the open frame lacks; `None` if none is open.
    pub(crate) fn missing(&self) -> Option<usize> {
        self.open.as_ref().map(|open| open.missing)
    }

    /// Room for the next bytes of the open body, if it lacks `least` bytes or more.
    pub(crate) fn body_buf(&mut self, least: usize) -> Option<Limit<&mut BytesMut>> {
        let open = self.open.as_mut().filter(|open| open.missing >= least)?;
        let buffer = open.message.room(open.header.offset, open.missing);
        let room = open.missing.min(buffer.capacity() - buffer.len());
        Some(buffer.limit(room))
    }

    /// Takes as much of `bytes` as the open body lacks, and returns how much that was.
    pub(crate) fn handle_body(&mut self, now: Instant, bytes: &[u8]) -> Result<usize, FrameError> {
        let Some(open) = self.open.as_mut() else {
            return Ok(0);
        };
        let taken = bytes.len().min(open.missing);
        open.message
            .buffer(open.header.offset)
            .extend_from_slice(&bytes[..taken]);
        self.count_body(now)?;
        Ok(taken)
    }

    /// Counts what has come into the open body since the last time.
    pub(crate) fn count_body(&mut self, now: Instant) -> Result<(), FrameError> {
        let Some(open) = self.open.as_mut() else {
            return Ok(());
        };
        let len = open.message.buffer(open.header.offset).len();
        let came = len - open.counted;
        if came == 0 {
            return Ok(());
        }
        open.counted = len;
        open.missing -= came;
        open.message.progress_at = now;
        open.message.fresh += came as u64;
        self.fresh += came as u64;
        let header = open.header;
        self.check_sizes(&header, self.held_bytes())
    }

    /// Closes the open frame if its body has come, and returns the message if that completes it.
    pub(crate) fn finish_frame(&mut self) -> Option<Bytes> {
        let OpenFrame {
            header,
            mut message,
            ..
        } = self.open.take_if(|open| open.missing == 0)?;
        message.finish_frame(header.offset, header.body_len);
        if message.is_complete() {
            self.fresh -= message.fresh;
            return Some(message.into_bytes());
        }
        self.parked_bytes += message.held();
        self.parked.insert(header.msg_id, message);
        None
    }

    pub(crate) const fn check(&self) -> Result<(), FrameError> {
        match self.fault {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// Lets go of everything, and answers with this fault from now on.
    pub(crate) fn fail<T>(&mut self, fault: FrameError) -> Result<T, FrameError> {
        self.parked = HashMap::new();
        self.parked_bytes = 0;
        self.open = None;
        self.fresh = 0;
        self.fault = Some(fault);
        Err(fault)
    }

    fn unfinished(&self) -> impl Iterator<Item = &Partial> {
        self.parked
            .values()
            .chain(self.open.iter().map(|open| &open.message))
    }

    fn unfinished_mut(&mut self) -> impl Iterator<Item = &mut Partial> {
        self.parked
            .values_mut()
            .chain(self.open.iter_mut().map(|open| &mut open.message))
    }
}

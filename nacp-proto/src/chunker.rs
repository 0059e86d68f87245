use std::iter::FusedIterator;

use thiserror::Error;

use crate::{Encoded, FrameHeader, MsgId};

/// How large a frame may become, in bytes, its 32-byte header included.
///
/// Smaller chunks let control messages pass sooner; larger ones cost fewer headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChunkSize(u32);

impl ChunkSize {
    /// 33 bytes: a header and one byte of body.
    pub const MIN: Self = Self(FrameHeader::LEN as u32 + 1);
    /// 2^31 bytes, the largest frame there is.
    pub const MAX: Self = Self(1 << 31);
    /// 256 KiB, for native peers and for those of whom nothing is known yet.
    pub const NATIVE: Self = Self(256 << 10);
    /// 100 MiB, for foreign peers: their reassembly clock never restarts.
    pub const FOREIGN: Self = Self(100 << 20);

    /// A chunk size of `bytes`.
    ///
    /// # Errors
    ///
    /// [`ChunkSizeError`] outside of [`ChunkSize::MIN`] to [`ChunkSize::MAX`].
    pub const fn new(bytes: u32) -> Result<Self, ChunkSizeError> {
        if bytes < Self::MIN.0 || bytes > Self::MAX.0 {
            return Err(ChunkSizeError { bytes });
        }
        Ok(Self(bytes))
    }

    /// The size in bytes.
    pub const fn bytes(self) -> u32 {
        self.0
    }

    /// How much of it a body may take.
    const fn max_body(self) -> u32 {
        self.0 - FrameHeader::LEN as u32
    }
}

impl Default for ChunkSize {
    /// [`ChunkSize::NATIVE`].
    fn default() -> Self {
        Self::NATIVE
    }
}

/// A chunk size that leaves no room for a body, or is larger than a frame can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("chunk size of {bytes} bytes, outside of 33 to 2147483648")]
pub struct ChunkSizeError {
    bytes: u32,
}

/// One frame on its way out: a header, and a body that shares the message's bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// What goes before the body.
    pub header: FrameHeader,
    /// The body.
    pub body: Encoded,
}

/// Cuts an encoded message into frames (specification, section 2).
///
/// There is at least one frame; they come in the order of their offsets. Bodies are slices of the
/// message; no byte of it is copied.
///
/// ```
/// use bytes::Bytes;
/// use nacp_proto::{ChunkSize, Chunker, MsgId};
///
/// let message = Bytes::from_static(b"twenty bytes of CBOR").into();
/// let frames = Chunker::new(message, MsgId([7; 16]))?.frames(ChunkSize::new(48)?);
/// let bodies: Vec<_> = frames.map(|frame| frame.body.to_bytes()).collect();
/// assert_eq!(bodies, [&b"twenty bytes of "[..], b"CBOR"]);
/// # Ok::<_, Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct Chunker {
    rest: Encoded,
    msg_id: MsgId,
    total_size: u32,
    /// Where the next frame starts; `None` when the last one has been made.
    offset: Option<u32>,
}

/// A message of 4 GiB or more, which no frame can describe. It comes back.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("message of {} bytes, larger than a frame can describe", .message.len())]
pub struct OversizedMessage {
    message: Encoded,
}

impl OversizedMessage {
    /// The message that was refused.
    pub fn into_message(self) -> Encoded {
        self.message
    }
}

impl Chunker {
    /// Frames of `message` that all carry `msg_id`, which must be unlike that of any other
    /// unfinished message on the same connection.
    ///
    /// # Errors
    ///
    /// [`OversizedMessage`] if the message has more than 2^32-1 bytes.
    pub fn new(message: Encoded, msg_id: MsgId) -> Result<Self, OversizedMessage> {
        match u32::try_from(message.len()) {
            Ok(total_size) => Ok(Self {
                rest: message,
                msg_id,
                total_size,
                offset: Some(0),
            }),
            Err(_) => Err(OversizedMessage { message }),
        }
    }

    /// The next frame, no larger than `chunk_size`; `None` when all have been made.
    ///
    /// The size may be another for each frame.
    pub fn next_frame(&mut self, chunk_size: ChunkSize) -> Option<Frame> {
        let offset = self.offset?;
        let left = self.total_size - offset;
        let body_len = left.min(chunk_size.max_body());
        self.offset = (body_len < left).then_some(offset + body_len);
        let body = match self.offset {
            Some(_) => self.rest.split_to(body_len as usize),
            None => std::mem::take(&mut self.rest),
        };
        let header = FrameHeader {
            msg_id: self.msg_id,
            offset,
            total_size: self.total_size,
            body_len,
        };
        Some(Frame { header, body })
    }

    /// Whether all frames have been made.
    pub const fn is_done(&self) -> bool {
        self.offset.is_none()
    }

    /// All frames that are left, with one chunk size.
    pub fn frames(self, chunk_size: ChunkSize) -> Frames {
        Frames {
            chunker: self,
            chunk_size,
        }
    }
}

/// The frames of one message, from [`Chunker::frames`].
#[derive(Debug, Clone)]
pub struct Frames {
    chunker: Chunker,
    chunk_size: ChunkSize,
}

impl Iterator for Frames {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        self.chunker.next_frame(self.chunk_size)
    }
}

impl FusedIterator for Frames {}

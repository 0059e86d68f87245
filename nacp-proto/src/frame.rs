use std::fmt;

use thiserror::Error;

/// The `msgId` of a frame: the same in all frames of one message (specification, section 2).
///
/// It lives for one transfer over one connection. The id that a message itself carries is
/// [`MessageId`](crate::MessageId).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MsgId(pub [u8; 16]);

impl fmt::Debug for MsgId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MsgId({:032x})", u128::from_be_bytes(self.0))
    }
}

/// The 32 bytes that every NACT frame starts with, all numbers big-endian (specification, section 2).
///
/// ```text
///  0               16       20          24              28      30      31
/// +----------------+--------+-----------+---------------+-------+-------+---------+
/// | msgId          | offset | totalSize | thisFrameSize | blank | magic | version |
/// | 16             | 4      | 4         | 4             | 2: 0  | 0xCF  | 0x01    |
/// +----------------+--------+-----------+---------------+-------+-------+---------+
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrameHeader {
    pub(crate) msg_id: MsgId,
    pub(crate) offset: u32,
    pub(crate) total_size: u32,
    pub(crate) body_len: u32,
}

impl FrameHeader {
    /// Length of a header in bytes.
    pub const LEN: usize = 32;

    const MAX_FRAME_SIZE: u32 = 1 << 31;
    const MAGIC: u8 = 0xCF;
    const VERSION: u8 = 0x01;

    /// A header for `body_len` bytes that start at `offset` of a message of `total_size` bytes.
    ///
    /// # Errors
    ///
    /// [`FrameError::TooLarge`] if the frame would be larger than 2^31 bytes with its header,
    /// [`FrameError::OutOfBounds`] if the body would end behind the message.
    pub fn new(
        msg_id: MsgId,
        offset: u32,
        total_size: u32,
        body_len: u32,
    ) -> Result<Self, FrameError> {
        if body_len > Self::MAX_FRAME_SIZE - Self::LEN as u32 {
            let frame_size = body_len.saturating_add(Self::LEN as u32);
            return Err(FrameError::TooLarge { frame_size });
        }
        let header = Self {
            msg_id,
            offset,
            total_size,
            body_len,
        };
        if header.end() > u64::from(total_size) {
            return Err(FrameError::OutOfBounds {
                end: header.end(),
                total_size,
            });
        }
        Ok(header)
    }

    /// Reads a header.
    ///
    /// The version is looked at first: its place is the only thing that is the same in every
    /// version. The two blank bytes are ignored.
    ///
    /// # Errors
    ///
    /// The first of these rules that the header breaks: [`FrameError::VersionMismatch`],
    /// [`FrameError::BadMagic`], [`FrameError::TooSmall`], [`FrameError::TooLarge`],
    /// [`FrameError::OutOfBounds`].
    pub fn parse(bytes: &[u8; Self::LEN]) -> Result<Self, FrameError> {
        let [.., magic, version] = *bytes;
        if version != Self::VERSION {
            return Err(FrameError::VersionMismatch { version });
        }
        if magic != Self::MAGIC {
            return Err(FrameError::BadMagic { magic });
        }
        let frame_size = number_at(bytes, 24);
        let Some(body_len) = frame_size.checked_sub(Self::LEN as u32) else {
            return Err(FrameError::TooSmall { frame_size });
        };
        let mut msg_id = [0; 16];
        msg_id.copy_from_slice(&bytes[..16]);
        Self::new(
            MsgId(msg_id),
            number_at(bytes, 16),
            number_at(bytes, 20),
            body_len,
        )
    }

    /// The header as it goes over the wire.
    pub fn to_bytes(&self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..16].copy_from_slice(&self.msg_id.0);
        bytes[16..20].copy_from_slice(&self.offset.to_be_bytes());
        bytes[20..24].copy_from_slice(&self.total_size.to_be_bytes());
        bytes[24..28].copy_from_slice(&(self.body_len + Self::LEN as u32).to_be_bytes());
        bytes[30] = Self::MAGIC;
        bytes[31] = Self::VERSION;
        bytes
    }

    /// Which message the frame belongs to.
    pub const fn msg_id(&self) -> MsgId {
        self.msg_id
    }

    /// Where in the message the body starts, in bytes.
    pub const fn offset(&self) -> u32 {
        self.offset
    }

    /// Length of the whole message in bytes.
    pub const fn total_size(&self) -> u32 {
        self.total_size
    }

    /// Length of this frame's body in bytes. May be zero.
    pub const fn body_len(&self) -> u32 {
        self.body_len
    }

    /// Whether the body is the whole message.
    pub const fn is_whole(&self) -> bool {
        self.body_len == self.total_size
    }

    /// Where in the message the body ends.
    const fn end(&self) -> u64 {
        self.offset as u64 + self.body_len as u64
    }
}

fn number_at(bytes: &[u8; FrameHeader::LEN], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// Why the frames of a peer cannot be read any further (specification, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum FrameError {
    /// The version byte is not 1.
    #[error("frame of NACT version {version} instead of 1")]
    VersionMismatch {
        /// The version byte.
        version: u8,
    },
    /// The version is right and the byte before it is not `0xCF`.
    #[error("frame with magic {magic:#04x} instead of 0xcf")]
    BadMagic {
        /// The magic byte.
        magic: u8,
    },
    /// `thisFrameSize` has no room for the header.
    #[error("frame of {frame_size} bytes, smaller than its header")]
    TooSmall {
        /// `thisFrameSize`.
        frame_size: u32,
    },
    /// `thisFrameSize` is above 2^31.
    #[error("frame of {frame_size} bytes, larger than 2^31")]
    TooLarge {
        /// `thisFrameSize`.
        frame_size: u32,
    },
    /// A frame that came as one piece is longer or shorter than it says.
    #[error("frame with a body of {actual} bytes that says {declared}")]
    SizeMismatch {
        /// The body length that its header tells.
        declared: u32,
        /// The body length that it has.
        actual: usize,
    },
    /// The body reaches past the end of the message.
    #[error("frame that ends at byte {end} of a message of {total_size}")]
    OutOfBounds {
        /// Where the body would end.
        end: u64,
        /// Length of the message.
        total_size: u32,
    },
    /// The body covers bytes that have already come.
    #[error("frame that covers byte {at} again")]
    Overlapping {
        /// Where the frame's body starts in its message.
        at: u32,
    },
    /// Two frames of one message disagree on its length.
    #[error("message of {was} bytes that became one of {now}")]
    TotalSizeChanged {
        /// `totalSize` of the message's first frame.
        was: u32,
        /// `totalSize` of the later frame.
        now: u32,
    },
    /// The message is larger than we take, or more came than we take before a register.
    #[error("message larger than the limit of {limit} bytes")]
    MessageTooLarge {
        /// The limit that it broke.
        limit: u64,
    },
    /// One more message was begun than may be unfinished at once.
    #[error("more than {limit} unfinished messages")]
    TooManyMessages {
        /// How many may be unfinished.
        limit: usize,
    },
    /// A message stayed unfinished for too long without a new byte.
    #[error("message that stayed unfinished without progress")]
    ReassemblyTimeout,
    /// The stream ended inside a header or a body.
    #[error("stream that ended inside a frame")]
    Truncated,
}

impl FrameError {
    /// The reason in the words of the specification, as it is reported with `nact:peer:error`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::VersionMismatch { .. } => "version-mismatch",
            Self::BadMagic { .. } => "bad-magic",
            Self::TooSmall { .. } => "frame-too-small",
            Self::TooLarge { .. } => "frame-too-large",
            Self::SizeMismatch { .. } => "frame-size-mismatch",
            Self::OutOfBounds { .. } => "frame-out-of-bounds",
            Self::Overlapping { .. } => "overlapping-frame",
            Self::TotalSizeChanged { .. } => "total-size-changed",
            Self::MessageTooLarge { .. } => "message-too-large",
            Self::TooManyMessages { .. } => "limit-reached",
            Self::ReassemblyTimeout => "reassembly-timeout",
            Self::Truncated => "transport-error",
        }
    }
}

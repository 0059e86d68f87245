use std::time::Duration;

/// What a [`Reassembler`](super::Reassembler) takes from one peer (specification, section 2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    pub(super) max_message_bytes: u64,
    pub(super) max_unregistered_bytes: u64,
    pub(super) max_messages: usize,
    pub(super) timeout: Duration,
}

impl ReassemblyLimits {
    /// The largest message, in bytes; 2 GiB by default.
    ///
    /// A frame of a larger one is a fault, whatever has come of it. No message is larger than
    /// 2^32-1 bytes, so any greater value is as good as that.
    #[must_use]
    pub const fn max_message_bytes(self, bytes: u64) -> Self {
        Self {
            max_message_bytes: bytes,
            ..self
        }
    }

    /// How many bytes may be held, and how long a message may become, before the peer has
    /// registered; 1 MiB by default.
    ///
    /// What counts is bytes that came, not sizes that were declared.
    #[must_use]
    pub const fn max_unregistered_bytes(self, bytes: u64) -> Self {
        Self {
            max_unregistered_bytes: bytes,
            ..self
        }
    }

    /// How many messages may be unfinished at a time; 64 by default.
    ///
    /// A message in one frame does not count. With zero, every message must be one frame.
    #[must_use]
    pub const fn max_messages(self, count: usize) -> Self {
        Self {
            max_messages: count,
            ..self
        }
    }

    /// How long a message may be unfinished without a new body byte; 30 s by default.
    ///
    /// [`Duration::MAX`] is never.
    #[must_use]
    pub const fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self {
            max_message_bytes: 2 << 30,
            max_unregistered_bytes: 1 << 20,
            max_messages: 64,
            timeout: Duration::from_secs(30),
        }
    }
}

use std::io;
use std::time::Duration;

use nacp_proto::{DecodeError, FrameError};
use thiserror::Error;

/// Why a connection ended otherwise than by a clean close (specification, section 2).
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum Fault {
    /// The peer broke a rule of the framing, or a limit of ours for it.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// The peer sent a message that is none.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// The operating system reported an error: a reset, a route that is gone.
    #[error("connection lost")]
    Io(#[source] io::Error),
    /// The peer has taken no byte for as long as is allowed, while there was something to write.
    #[error("peer that took no byte for {limit:?}")]
    WriteStalled {
        /// The limit that ran out.
        limit: Duration,
    },
    /// The memory for unfinished messages of all connections together is used up.
    #[error("unfinished messages of all peers that need more than {limit} bytes")]
    MemoryExhausted {
        /// Size of the [`MemoryBudget`](crate::MemoryBudget).
        limit: u64,
    },
}

impl Fault {
    /// The reason in the words of the specification, as it is reported with `nact:peer:error`.
    pub const fn reason(&self) -> &'static str {
        match self {
            Self::Frame(error) => error.reason(),
            Self::Decode(error) => error.reason(),
            Self::Io(_) => "transport-error",
            Self::WriteStalled { .. } => "write-stalled",
            Self::MemoryExhausted { .. } => "limit-reached",
        }
    }
}

use std::fmt;

/// Why a send or a call ended without reaching the other side (specification, section 5).
///
/// "Undelivered" is not "never handled": a message that was on its way when its waiter ended may
/// still arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Undelivered {
    /// It was addressed to this node.
    SelfAddressed,
    /// There is neither a link to its app nor a gateway.
    NoRoute,
    /// The transport could not send it.
    SendFailed,
    /// It is a notify and met a full backlog.
    Refused,
    /// It was evicted from a full backlog, or its ACK waiter from a full ack-pending table.
    Evicted,
    /// The link was dropped: its grace ended, or one side said good-bye.
    PeerGone,
    /// This node ended.
    Terminated,
    /// The call's own limit passed.
    Timeout,
    /// It is larger than the other side takes.
    TooLarge,
    /// Three tries through a gateway stayed without an ACK, or two end-to-end beats without an answer.
    UnroutableRelay,
    /// The other side came back without what it knew of this link.
    SessionLost,
    /// The connection broke each time that it was sent alone.
    Poisoned,
    /// It answers something that was answered before.
    Discarded,
}

impl Undelivered {
    /// The specification's name of the reason.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SelfAddressed => "self-addressed",
            Self::NoRoute => "no-route",
            Self::SendFailed => "send-failed",
            Self::Refused => "refused",
            Self::Evicted => "evicted",
            Self::PeerGone => "peer-gone",
            Self::Terminated => "terminated",
            Self::Timeout => "timeout",
            Self::TooLarge => "too-large",
            Self::UnroutableRelay => "unroutable-relay",
            Self::SessionLost => "session-lost",
            Self::Poisoned => "poisoned",
            Self::Discarded => "discarded",
        }
    }
}

impl fmt::Display for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::error::Error for Undelivered {}

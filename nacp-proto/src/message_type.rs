use std::fmt;

/// The type of a message, without its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the protocol has these nine types")]
#[expect(missing_docs, reason = "they are the variants of `Body`")]
pub enum MessageType {
    Register,
    Unregister,
    Subscribe,
    Unsubscribe,
    Request,
    Response,
    Signal,
    Notify,
    Ack,
}

impl MessageType {
    /// All nine, in the order of the specification's table.
    pub const ALL: [Self; 9] = [
        Self::Register,
        Self::Unregister,
        Self::Subscribe,
        Self::Unsubscribe,
        Self::Request,
        Self::Response,
        Self::Signal,
        Self::Notify,
        Self::Ack,
    ];

    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Register => "register",
            Self::Unregister => "unregister",
            Self::Subscribe => "subscribe",
            Self::Unsubscribe => "unsubscribe",
            Self::Request => "request",
            Self::Response => "response",
            Self::Signal => "signal",
            Self::Notify => "notify",
            Self::Ack => "ack",
        }
    }

    /// Whether such a message is ACKed and deduplicated: every type but notify and ack.
    pub const fn is_reliable(self) -> bool {
        !matches!(self, Self::Notify | Self::Ack)
    }

    pub(crate) fn from_wire(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"register" => Self::Register,
            b"unregister" => Self::Unregister,
            b"subscribe" => Self::Subscribe,
            b"unsubscribe" => Self::Unsubscribe,
            b"request" => Self::Request,
            b"response" => Self::Response,
            b"signal" => Self::Signal,
            b"notify" => Self::Notify,
            b"ack" => Self::Ack,
            _ => return None,
        })
    }
}

impl fmt::Display for MessageType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

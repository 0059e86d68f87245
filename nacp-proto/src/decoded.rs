use smol_str::SmolStr;

use crate::{AppId, Message, MessageId, MessageType};

/// What every message has, whatever its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Envelope {
    /// The message's own id.
    pub id: MessageId,
    /// Who sent it.
    pub from: AppId,
    /// Whom it is for.
    pub to: AppId,
    /// Milliseconds since 1970.
    pub time: Option<f64>,
}

/// An [`Envelope`] where it lies.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(clippy::exhaustive_structs, reason = "the fields of every message")]
pub struct EnvelopeRef<'a> {
    /// The message's own id.
    pub id: &'a MessageId,
    /// Who sent it.
    pub from: &'a AppId,
    /// Whom it is for.
    pub to: &'a AppId,
    /// Milliseconds since 1970.
    pub time: Option<f64>,
}

/// What came out of the bytes of one whole message with a usable envelope.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "good, bad, or unknown: there is no fourth"
)]
pub enum Decoded {
    /// A good message.
    Message(Message),
    /// A known type with a bad meta or payload.
    Malformed(Malformed),
    /// A type that this version does not know.
    Unknown {
        /// The envelope.
        envelope: Envelope,
        /// The type as it was written.
        type_name: SmolStr,
    },
}

/// A message whose meta or payload does not fit its type.
#[derive(Debug, Clone, PartialEq)]
pub struct Malformed {
    /// The envelope.
    pub envelope: Envelope,
    /// The type whose rules were broken.
    pub message_type: MessageType,
    /// `true` for a subscribe without a usable name.
    pub bad_target_sub_name: bool,
}

impl Decoded {
    /// Id, sender, destination and time: there whatever else is wrong.
    pub const fn envelope(&self) -> EnvelopeRef<'_> {
        match self {
            Self::Message(Message {
                id, from, to, time, ..
            })
            | Self::Malformed(Malformed {
                envelope: Envelope { id, from, to, time },
                ..
            })
            | Self::Unknown {
                envelope: Envelope { id, from, to, time },
                ..
            } => EnvelopeRef {
                id,
                from,
                to,
                time: *time,
            },
        }
    }

    /// The type, `None` of an unknown one.
    pub const fn message_type(&self) -> Option<MessageType> {
        match self {
            Self::Message(message) => Some(message.message_type()),
            Self::Malformed(malformed) => Some(malformed.message_type),
            Self::Unknown { .. } => None,
        }
    }

    /// The good message, if it is one.
    pub fn into_message(self) -> Option<Message> {
        match self {
            Self::Message(message) => Some(message),
            Self::Malformed(_) | Self::Unknown { .. } => None,
        }
    }
}

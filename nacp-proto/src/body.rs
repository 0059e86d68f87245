use std::fmt;

use smol_str::SmolStr;

use crate::{AppId, Envelope, Instance, MessageId, MessageType, Payload, Register};

/// One NACP message (specification, section 3).
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    /// The message's own id, echoed unchanged by whoever answers it.
    pub id: MessageId,
    /// Who sent it.
    pub from: AppId,
    /// Whom it is for. [`AppId::any`] only in a register that means "whoever you are".
    pub to: AppId,
    /// Milliseconds since 1970, informative; `None` if the sender left it out.
    pub time: Option<f64>,
    /// What it says.
    pub body: Body,
}

/// The nine message types with exactly the fields that each may have.
#[derive(Debug, Clone, PartialEq)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the protocol has these nine types; a tenth is a new protocol version"
)]
pub enum Body {
    /// Asks to be bound to the connection it came on.
    Register(Box<Register>),
    /// Says good-bye.
    Unregister,
    /// Listens on the receiver's bus. The message's id becomes the subscription's id.
    Subscribe {
        /// The pattern to listen for; not empty.
        target_sub_name: SmolStr,
    },
    /// Ends a subscription.
    Unsubscribe {
        /// The subscription's id: the id of the message that made it.
        target_sub_id: MessageId,
    },
    /// Calls an ability, or starts an event with its process stream.
    Request {
        /// Which of the two.
        kind: RequestKind,
        /// The name of the ability or event.
        target: Option<SmolStr>,
        /// The argument.
        payload: Payload,
    },
    /// Answers a register, unregister, subscribe, unsubscribe or request.
    Response(Response),
    /// Tells a running event something.
    Signal {
        /// The id of the request that started the event.
        parent_id: MessageId,
        /// What it is told.
        signal: Signal,
    },
    /// One hit of a subscription, or one process item of an event.
    Notify {
        /// The subscription's id, or the id of the request.
        parent_id: MessageId,
        /// The pattern subscribed to.
        target_sub_name: SmolStr,
        /// The name that hit it.
        hit_sub_name: SmolStr,
        /// The event's value.
        payload: Payload,
        /// Place in the stream, from 0; `None` from a peer that does not count.
        seq: Option<u64>,
    },
    /// Acknowledges a reliable message.
    Ack {
        /// The id of the message acknowledged.
        parent_id: MessageId,
    },
}

/// The two kinds of request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(clippy::exhaustive_enums, reason = "the wire knows these two")]
pub enum RequestKind {
    /// Has a process stream beside its response.
    Event,
    /// Has a response only.
    Ability,
}

/// What a signal tells a running event.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "the wire knows these four")]
pub enum Signal {
    /// Input, with a value.
    Normal(Payload),
    /// Stop for a while.
    Pause,
    /// Go on.
    Resume,
    /// End.
    Abort,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Response {
    /// The id of what it answers.
    pub parent_id: MessageId,
    /// Whether it went well.
    pub outcome: Outcome,
    /// The kind of the request that it answers; `None` for every other answer.
    pub kind: Option<RequestKind>,
    /// The result.
    pub payload: Payload,
    /// How many process items there were before it; `None` from a peer that does not count.
    pub seq: Option<u64>,
    /// The answering instance, in the answer to an end-to-end beat.
    pub instance: Option<Instance>,
}

/// `isOk` with its `whyNotOk`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a boolean on the wire")]
pub enum Outcome {
    /// `isOk` is true.
    Ok,
    /// `isOk` is false.
    NotOk {
        /// `whyNotOk`, if it was given.
        why: Option<SmolStr>,
    },
}

impl Body {
    /// The type of a message that says this.
    pub const fn message_type(&self) -> MessageType {
        match self {
            Self::Register(_) => MessageType::Register,
            Self::Unregister => MessageType::Unregister,
            Self::Subscribe { .. } => MessageType::Subscribe,
            Self::Unsubscribe { .. } => MessageType::Unsubscribe,
            Self::Request { .. } => MessageType::Request,
            Self::Response(_) => MessageType::Response,
            Self::Signal { .. } => MessageType::Signal,
            Self::Notify { .. } => MessageType::Notify,
            Self::Ack { .. } => MessageType::Ack,
        }
    }
}

impl Message {
    /// A message without a time.
    pub const fn new(id: MessageId, from: AppId, to: AppId, body: Body) -> Self {
        Self {
            id,
            from,
            to,
            time: None,
            body,
        }
    }

    /// The type, without the content.
    pub const fn message_type(&self) -> MessageType {
        self.body.message_type()
    }

    /// Takes the message apart.
    pub fn into_parts(self) -> (Envelope, Body) {
        let Self {
            id,
            from,
            to,
            time,
            body,
        } = self;
        (Envelope { id, from, to, time }, body)
    }

    /// A message with this envelope.
    pub fn from_parts(envelope: Envelope, body: Body) -> Self {
        let Envelope { id, from, to, time } = envelope;
        Self {
            id,
            from,
            to,
            time,
            body,
        }
    }
}

impl RequestKind {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Event => "event",
            Self::Ability => "ability",
        }
    }

    pub(crate) fn from_wire(name: &[u8]) -> Option<Self> {
        match name {
            b"event" => Some(Self::Event),
            b"ability" => Some(Self::Ability),
            _ => None,
        }
    }
}

impl fmt::Display for RequestKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Signal {
    /// Its kind's name on the wire.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Normal(_) => "normal",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Abort => "abort",
        }
    }
}

impl Response {
    /// An answer that went well, with nothing optional in it.
    pub const fn ok(parent_id: MessageId, payload: Payload) -> Self {
        Self {
            parent_id,
            outcome: Outcome::Ok,
            kind: None,
            payload,
            seq: None,
            instance: None,
        }
    }

    /// An answer that says no, with an empty payload and nothing optional in it.
    pub fn not_ok(parent_id: MessageId, why: impl Into<SmolStr>) -> Self {
        let outcome = Outcome::NotOk {
            why: Some(why.into()),
        };
        Self {
            outcome,
            ..Self::ok(parent_id, Payload::empty())
        }
    }
}

impl Outcome {
    /// Whether it went well.
    pub const fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}

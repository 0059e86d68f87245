use smol_str::SmolStr;

use crate::{AppId, Instance, MessageId, Payload, Register};

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
#[expect(clippy::exhaustive_enums, reason = "the protocol has these nine types; a tenth is a new protocol version")]
pub enum Body {
    /// Asks to be bound to the connection it came on.
    Register(Box<Register>),
    /// Says good-bye.
    Unregister,
    /// Listens on the receiver's bus. The message's id becomes the subscription's id.
    Subscribe {
        /// The pattern to listen for.
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

/// What came out of the bytes of one whole message with a usable envelope.
#[derive(Debug, Clone, PartialEq)]
#[expect(clippy::exhaustive_enums, reason = "good, bad, or unknown: there is no fourth")]
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

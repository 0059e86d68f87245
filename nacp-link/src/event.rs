use nacp_proto::{AppId, MessageId, Payload, PeerInfo, RequestKind, Response, Signal};
use smol_str::SmolStr;

use crate::report::Report;
use crate::{DialError, PeerId, RunningId, StreamId, SubscriptionId, Token, Undelivered};

/// What the node tells its driver, from [`Node::poll_event`](crate::Node::poll_event).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Event {
    /// A send or call has ended; the last that is heard of its token.
    Settled {
        /// The token given with the call.
        token: Token,
        /// How it ended.
        settlement: Settlement,
    },
    /// The policy must say whether a register may come in: answer with
    /// [`Node::handle_authorized`](crate::Node::handle_authorized).
    Authorize(Box<Authorize>),
    /// A request for a handler. It has been acknowledged; answer it with
    /// [`Node::respond`](crate::Node::respond), exactly once.
    Request(Requested),
    /// A signal for a running event.
    Signal {
        /// The request that started the event.
        running: RunningId,
        /// What it is told.
        signal: Signal,
    },
    /// The handler of a request is no longer wanted: its link is dropped, its session lost, or the
    /// node ends. An answer given later settles with the same reason.
    Cancelled {
        /// The request.
        running: RunningId,
        /// Why.
        reason: Undelivered,
    },
    /// One process item of an event request of ours.
    Process {
        /// The request.
        request: MessageId,
        /// The token given with the request.
        token: Option<Token>,
        /// The item.
        payload: Payload,
        /// How many items before it did not arrive; `None` if the peer does not count.
        missed: Option<u64>,
    },
    /// One hit of a subscription of ours.
    Notified {
        /// The subscription.
        stream: StreamId,
        /// The app that it is held at.
        from: AppId,
        /// The name that hit the pattern.
        hit_sub_name: SmolStr,
        /// The event's value.
        payload: Payload,
        /// How many hits before it did not arrive; `None` if the peer does not count.
        missed: Option<u64>,
    },
    /// A subscription of ours has ended, and was not asked to.
    StreamEnded {
        /// The subscription.
        stream: StreamId,
        /// Why.
        reason: StreamEnd,
    },
    /// A remote app listens on our bus from now on.
    Subscribed {
        /// Its subscription, to be given with each hit to [`Node::notify`](crate::Node::notify).
        subscription: SubscriptionId,
        /// The app.
        app: AppId,
        /// What it listens for.
        pattern: SmolStr,
    },
    /// A remote app no longer listens.
    Unsubscribed {
        /// Its subscription.
        subscription: SubscriptionId,
    },
    /// A link has changed its state.
    Link(LinkChange),
    /// Something to report, of those that were asked for (specification, section 13).
    Report(Report),
    /// The node has ended: nothing follows.
    Terminated,
}

/// How a send or call ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Settlement {
    /// A send reached the other side; a notify was accepted by the provider.
    Delivered,
    /// A send did not, or a call ended without an answer.
    Undelivered(Undelivered),
    /// A call was answered, well or not.
    Answered(Answered),
    /// A dial ended with the app online.
    Connected(AppId),
    /// A dial failed.
    DialFailed(DialError),
}

/// The answer to a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered {
    /// The response as it came.
    pub response: Response,
    /// For an event: how many process items did not arrive; `None` if the peer does not count.
    pub missed: Option<u64>,
}

/// Why a subscription of ours ended.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum StreamEnd {
    /// Its link ended, or it could not be made again in time.
    Undelivered(Undelivered),
    /// The other side refused to make it again.
    Refused {
        /// `whyNotOk`, if it was given.
        why: Option<SmolStr>,
    },
}

/// What a policy gets to see of a register.
#[derive(Debug, Clone, PartialEq)]
pub struct Authorize {
    /// The connection it came on.
    pub peer: PeerId,
    /// Who wants to register.
    pub app: AppId,
    /// What it tells of itself.
    pub info: PeerInfo,
    /// Its credential.
    pub auth: Option<Payload>,
    /// Whether the connection is loopback or carries a verified certificate.
    pub trust: crate::Trust,
}

/// A request for a handler of ours.
#[derive(Debug, Clone, PartialEq)]
pub struct Requested {
    /// Names it in every later call.
    pub running: RunningId,
    /// Who asks.
    pub from: AppId,
    /// The request's message id.
    pub id: MessageId,
    /// Ability or event.
    pub kind: RequestKind,
    /// The name asked for.
    pub target: Option<SmolStr>,
    /// The argument.
    pub payload: Payload,
}

/// A change of a link's state.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkChange {
    /// The remote app.
    pub app: AppId,
    /// Its link's state from now on.
    pub state: LinkState,
    /// Why, in the specification's word: `bound`, `offline`, `dropped`.
    pub cause: Cause,
    /// For a bind: whether it went on where an earlier one had stopped.
    pub resumed: Option<bool>,
    /// Whether the app is a gateway.
    pub is_gateway: bool,
}

/// The state of a link (specification, section 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(
    clippy::exhaustive_enums,
    reason = "the specification has these three states"
)]
pub enum LinkState {
    /// Bound to a peer and reachable.
    Online,
    /// Unreachable, kept for the grace period.
    Offline,
    /// Forgotten.
    Dropped,
}

/// What moved a link from one state to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Cause {
    /// A register went well.
    Registered,
    /// Its peer disconnected.
    Disconnected,
    /// A message was not acknowledged in time.
    AckTimeout,
    /// A beat was not answered before the next was due.
    BeatTimeout,
    /// Another connection took its app over.
    TakenOver,
    /// The grace ended.
    GraceEnded,
    /// The other side said good-bye.
    Unregistered,
    /// We said good-bye.
    Disconnecting,
    /// This node ended.
    Terminated,
}

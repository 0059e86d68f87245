use std::collections::VecDeque;
use std::time::Instant;

use hashbrown::{HashMap, HashSet};
use nacp_proto::{AppId, Encoded, Instance, MessageId, PeerInfo, RequestKind, Session};
use smol_str::SmolStr;

use crate::blocked::Blocked;
use crate::ids::LinkId;
use crate::instances::Instances;
use crate::load::Load;
use crate::record::Items;
use crate::timers::TimerHandle;
use crate::{LinkState, PeerId, RunningId, StreamId, SubscriptionId, Token, Undelivered};

/// A subscription of ours that was ended lately.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(crate) app: AppId,
    pub(crate) id: MessageId,
    /// Until it is answered.
    pub(crate) unsubscribe: Option<MessageId>,
}

/// Where a link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Online(PeerId),
    Offline,
}

/// What a node remembers of one remote app that it is directly bound to.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) app: AppId,
    pub(crate) place: Place,
    pub(crate) info: PeerInfo,
    /// Whether we dialled the peer that it is, or was last, bound to.
    pub(crate) dialled: bool,
    /// A plain link although its app is a gateway.
    pub(crate) downgraded: bool,
    /// Its first bind among all binds of the node: the smaller, the longer linked.
    pub(crate) order: u64,
    /// Its last one.
    pub(crate) bind: u64,
    pub(crate) session: Sessions,
    pub(crate) instances: Instances,
    pub(crate) grace: TimerHandle,
    /// The grace has ended while our own register was unanswered.
    pub(crate) grace_over: bool,
    pub(crate) acks: TimerHandle,
    pub(crate) beat: Beat,
    pub(crate) deferred: Deferred,
    pub(crate) replay: Replay,
    /// A register that waits for this link's peer to show whether it lives.
    pub(crate) contender: Option<PeerId>,
    pub(crate) leaving: Option<Leaving>,
    /// Records of calls that were given up while on their way.
    pub(crate) withdrawn: HashSet<MessageId>,
    /// Subscribes that went out and were given up: should one succeed, it is ended again.
    pub(crate) given_up: VecDeque<(AppId, MessageId)>,
    pub(crate) endings: VecDeque<Ending>,
    pub(crate) streams: HashMap<MessageId, StreamId>,
    pub(crate) subscriptions: HashMap<(AppId, MessageId), SubscriptionId>,
    pub(crate) running: HashMap<(AppId, MessageId), RunningId>,
    /// Apps behind this gateway that something waits for.
    pub(crate) remotes: HashMap<AppId, Remote>,
    pub(crate) blocked: Blocked,
    /// Everything of it between admission and its end.
    pub(crate) outstanding: Load,
    /// Own records beyond the caps, under `Wait`.
    pub(crate) excess: usize,
    pub(crate) foreign: Foreign,
    pub(crate) counts: LinkCounts,
}

impl Link {
    pub(crate) const fn state(&self) -> LinkState {
        match self.place {
            Place::Online(_) => LinkState::Online,
            Place::Offline => LinkState::Offline,
        }
    }

    pub(crate) const fn peer(&self) -> Option<PeerId> {
        match self.place {
            Place::Online(peer) => Some(peer),
            Place::Offline => None,
        }
    }

    pub(crate) const fn is_native(&self) -> bool {
        self.info.instance.is_some()
    }

    pub(crate) fn max_message_bytes(&self) -> u64 {
        self.info.max_message_bytes.unwrap_or(u64::MAX)
    }
}

/// The sessions of one link.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    pub(crate) current: Option<Session>,
    /// The one that the register of this bind named, and those made between the two, the oldest
    /// first. Answered to until our answer is ACKed.
    pub(crate) resumed: Vec<Session>,
    /// Those that the other side has left for a later one, the oldest first.
    pub(crate) superseded: Vec<Session>,
    /// Our answer to the register, until it is ACKed.
    pub(crate) answer: Option<MessageId>,
}

impl Sessions {
    /// What the link answers to, the newest first.
    pub(crate) fn list(&self) -> Vec<Session> {
        let earlier = self.resumed.iter().rev().copied();
        let earlier = earlier.filter(|_| self.answer.is_some());
        self.current.into_iter().chain(earlier).collect()
    }

    /// Another side has accepted our register.
    pub(crate) fn follow(&mut self, made: Option<Session>) {
        self.resumed.extend(self.current);
        self.superseded.append(&mut self.resumed);
        self.start(made);
    }

    /// A register that named `held` is accepted: what is older than that has been left.
    pub(crate) fn resume(&mut self, held: Option<Session>, made: Option<Session>) {
        self.resumed.extend(self.current);
        let at = self
            .resumed
            .iter()
            .position(|earlier| Some(*earlier) == held);
        let left = self.resumed.drain(..at.unwrap_or(self.resumed.len()));
        self.superseded.extend(left);
        if self.resumed.len() > MAX_EARLIER {
            self.resumed.remove(1);
        }
        self.start(made);
    }

    /// A register that named none of ours is accepted.
    pub(crate) fn begin(&mut self, made: Option<Session>) {
        self.resumed.clear();
        self.superseded.clear();
        self.start(made);
    }

    fn start(&mut self, made: Option<Session>) {
        let excess = self.superseded.len().saturating_sub(MAX_EARLIER);
        self.superseded.drain(..excess);
        self.current = made;
        self.answer = None;
    }
}

/// Earlier sessions of one kind that a link remembers.
const MAX_EARLIER: usize = 8;

/// The heartbeat of one link.
#[derive(Debug, Default)]
pub(crate) struct Beat {
    pub(crate) next: TimerHandle,
    pub(crate) outstanding: Option<OutstandingBeat>,
    /// A beat beside the rhythm, that asks for a sign of life.
    pub(crate) probe: Option<OutstandingBeat>,
    /// An ACK limit that waits for a large message.
    pub(crate) deferred_limit: TimerHandle,
    pub(crate) round_trip: Option<std::time::Duration>,
}

impl Beat {
    pub(crate) fn unanswered(&mut self) -> impl Iterator<Item = &mut OutstandingBeat> {
        self.outstanding.iter_mut().chain(&mut self.probe)
    }
}

#[derive(Debug)]
pub(crate) struct OutstandingBeat {
    pub(crate) id: MessageId,
    pub(crate) sent_at: Instant,
    /// It is accepted once the control lane has come so far.
    pub(crate) control: u64,
    pub(crate) acked: bool,
    /// The limit of its ACK, from its acceptance.
    pub(crate) limit: TimerHandle,
}

/// Limits that fell due while a large message kept coming in.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Deferred {
    pub(crate) acks: bool,
    pub(crate) beat: bool,
    pub(crate) beat_ack: bool,
}

/// How a backlog goes out again.
#[derive(Debug, Default)]
pub(crate) struct Replay {
    /// Records up to this place were in the backlog when the link was bound.
    pub(crate) until: u64,
    /// Disconnects in a row without an ACK of a replayable record.
    pub(crate) row: u32,
    /// One record at a time.
    pub(crate) alone: bool,
    /// Waits for room in ack-pending.
    pub(crate) starving: bool,
}

/// Our own good-bye.
#[derive(Debug)]
pub(crate) struct Leaving {
    pub(crate) tokens: Vec<Token>,
    pub(crate) unregister: Option<MessageId>,
    pub(crate) limit: TimerHandle,
}

/// What only a foreign peer needs.
#[derive(Debug, Default)]
pub(crate) struct Foreign {
    /// A subscription that the peer still knows unless it has restarted.
    pub(crate) sentinel: Option<MessageId>,
    /// The question for it, until it is answered: at the next peer it is the same one, for another
    /// would find the subscription ended.
    pub(crate) question: Option<(MessageId, Encoded)>,
    /// Relayed records wait for the ACK of our answer to its register.
    pub(crate) holds_relayed: bool,
    /// Requests that are lost if the peer has restarted.
    pub(crate) suspects: Vec<MessageId>,
}

/// An app behind a gateway.
#[derive(Debug, Default)]
pub(crate) struct Remote {
    /// Calls and streams that depend on it.
    pub(crate) uses: usize,
    /// Whether it has ever been asked for its instance.
    pub(crate) asked: bool,
    pub(crate) timer: TimerHandle,
    pub(crate) outstanding: Option<MessageId>,
    pub(crate) unanswered: u8,
    pub(crate) instance: Option<Instance>,
    /// What the node had served when that instance answered last.
    pub(crate) served: Served,
}

/// Totals of one link.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LinkCounts {
    pub(crate) messages_in: u64,
    pub(crate) messages_out: u64,
    pub(crate) replayed: u64,
}

/// A request that a handler of ours runs.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) link: LinkId,
    pub(crate) app: AppId,
    pub(crate) id: MessageId,
    pub(crate) kind: RequestKind,
    /// Process items so far.
    pub(crate) items: u64,
    /// Why nobody waits for the answer any more.
    pub(crate) cancelled: Option<Undelivered>,
    pub(crate) since: Served,
}

/// A subscription that a remote app holds here.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) link: LinkId,
    pub(crate) app: AppId,
    pub(crate) id: MessageId,
    pub(crate) pattern: SmolStr,
    /// Hits so far.
    pub(crate) items: u64,
    pub(crate) since: Served,
}

/// How many requests and subscribes a node has taken on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Served(pub(crate) u64);

impl Served {
    /// Whatever may ever be served.
    pub(crate) const ALL: Self = Self(u64::MAX);
}

/// A subscription of ours at a remote app.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) link: LinkId,
    pub(crate) to: AppId,
    pub(crate) pattern: SmolStr,
    /// Changes when it is made again.
    pub(crate) id: MessageId,
    pub(crate) items: Items,
    /// Whether its first subscribe has been answered: only then does its end concern the user.
    pub(crate) live: bool,
}

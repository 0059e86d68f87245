//! One running node, and what its application knows of it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use nacp_link::{
    Cause, LinkState, Node, PeerId, Reason, RunningId, StreamId, SubscriptionId, Undelivered,
};
use nacp_proto::MessageId;

use super::plan::Knobs;

/// A node from its start to its end. An app that restarts is another life.
#[derive(Debug)]
pub(crate) struct Life {
    pub(crate) app: usize,
    pub(crate) node: Node,
    pub(crate) knobs: Knobs,
    pub(crate) is_alive: bool,
    /// It has been told to end.
    pub(crate) is_ending: bool,
    pub(crate) has_ended: bool,
    pub(crate) peers: BTreeMap<PeerId, (usize, usize)>,
    /// The connections that the next binds are on.
    pub(crate) bindings: VecDeque<(usize, usize)>,
    pub(crate) wake: Option<Duration>,
    pub(crate) late_until: Duration,
    pub(crate) late_by: Duration,
    pub(crate) links: BTreeMap<usize, LinkModel>,
    /// Apps that we said good-bye to, until their links are dropped.
    pub(crate) leaving: BTreeSet<usize>,
    /// Tokens that have not settled.
    pub(crate) waiting: BTreeSet<u64>,
    /// Of them, those with a response waiter, and attempts to connect.
    pub(crate) calls: usize,
    pub(crate) waiting_dials: usize,
    pub(crate) running: BTreeMap<RunningId, Run>,
    pub(crate) subscriptions: BTreeMap<SubscriptionId, Subscription>,
    pub(crate) streams: BTreeMap<StreamId, Stream>,
    /// Requests of ours that are unanswered.
    pub(crate) requests: BTreeMap<u64, Asked>,
    pub(crate) disconnects: BTreeMap<usize, u32>,
    /// When it last sent something that is not of the control lane.
    pub(crate) last_bulk: Duration,
    /// Lives that a bind of ours has proven.
    pub(crate) proven: BTreeSet<usize>,
    /// Apps whose links were dropped or whose sessions were lost: their dedup windows are gone.
    pub(crate) forgot: BTreeSet<usize>,
    /// Apps that an answer or an unsubscribe to was lost, with a reason.
    pub(crate) answers_lost: BTreeSet<usize>,
    pub(crate) batch: Batch,
}

/// A link as its reports tell it.
#[derive(Debug, Clone)]
pub(crate) struct LinkModel {
    pub(crate) state: LinkState,
    pub(crate) cause: Cause,
    pub(crate) since: Duration,
    pub(crate) life: usize,
    pub(crate) conn: usize,
    /// Binds that resume each other are of one kin.
    pub(crate) kin: u64,
}

/// A request that a handler of ours runs.
#[derive(Debug, Clone)]
pub(crate) struct Run {
    pub(crate) uid: u64,
    pub(crate) from: usize,
    pub(crate) is_event: bool,
    pub(crate) cancelled: Option<Undelivered>,
    pub(crate) items: u64,
    pub(crate) items_left: usize,
    pub(crate) is_twice: bool,
    pub(crate) is_paced: bool,
    /// The item whose acceptance is waited for.
    pub(crate) pacing: Option<u64>,
}

/// A subscription that somebody holds here.
#[derive(Debug, Clone)]
pub(crate) struct Subscription {
    /// The subscribe that made it.
    pub(crate) uid: u64,
    pub(crate) hits: u64,
    /// Tells it from others made by the same subscribe.
    pub(crate) serial: u64,
}

/// A subscription of ours.
#[derive(Debug, Clone)]
pub(crate) struct Stream {
    pub(crate) uid: u64,
    pub(crate) to: usize,
    pub(crate) is_live: bool,
    pub(crate) serial: u64,
    pub(crate) next: u64,
}

/// A request of ours.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) id: MessageId,
    pub(crate) to: usize,
    pub(crate) is_event: bool,
    pub(crate) items: u64,
    pub(crate) next: u64,
}

/// What one turn of the node has told, for reasons that are judged at its end.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) excuses: Vec<(u64, Undelivered)>,
    pub(crate) dropped: BTreeSet<usize>,
    pub(crate) lost: BTreeSet<usize>,
    /// Peers that the node was told to have ended, and connections that it closed.
    pub(crate) ended: BTreeMap<PeerId, (usize, usize)>,
    pub(crate) closed: BTreeSet<(usize, usize)>,
    /// Requests that were answered in the middle of the turn.
    pub(crate) answered: BTreeSet<RunningId>,
    /// `nacp:internal:napp:success`, until its change of a link is told.
    pub(crate) reports: VecDeque<(usize, Reason)>,
}

impl Life {
    pub(crate) fn new(app: usize, node: Node, knobs: Knobs) -> Self {
        Self {
            app,
            node,
            knobs,
            is_alive: true,
            is_ending: false,
            has_ended: false,
            peers: BTreeMap::new(),
            bindings: VecDeque::new(),
            wake: None,
            late_until: Duration::ZERO,
            late_by: Duration::ZERO,
            links: BTreeMap::new(),
            leaving: BTreeSet::new(),
            waiting: BTreeSet::new(),
            calls: 0,
            waiting_dials: 0,
            running: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            streams: BTreeMap::new(),
            requests: BTreeMap::new(),
            disconnects: BTreeMap::new(),
            last_bulk: Duration::ZERO,
            proven: BTreeSet::new(),
            forgot: BTreeSet::new(),
            answers_lost: BTreeSet::new(),
            batch: Batch::default(),
        }
    }

    pub(crate) fn state(&self, app: usize) -> Option<LinkState> {
        self.links.get(&app).map(|link| link.state)
    }

    pub(crate) fn is_online(&self, app: usize) -> bool {
        self.state(app) == Some(LinkState::Online)
    }
}

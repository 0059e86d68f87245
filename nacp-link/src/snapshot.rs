//! What a node holds and has done, read without allocating in it (specification, section 13).

use std::time::Duration;

use nacp_proto::{AppId, Decoded, MessageType};

use crate::LinkState;
use crate::ids::LinkId;
use crate::link::{Link, LinkCounts};
use crate::load::Load;
use crate::node::Node;
use crate::record::{Call, Class};
use crate::report::Reason;

/// Records of a table and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Table {
    /// Records.
    pub count: usize,
    /// Their encoded bytes.
    pub bytes: u64,
}

/// The node as a whole.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeSnapshot {
    /// Connections.
    pub peers: usize,
    /// Of them, those without an app.
    pub unregistered_peers: usize,
    /// Links, offline ones included.
    pub links: usize,
    /// Waiting to be submitted.
    pub backlog: Table,
    /// Submitted and not accepted, of those that are acknowledged.
    pub submitted: Table,
    /// Accepted and not acknowledged.
    pub ack_pending: Table,
    /// Sends that wait for room.
    pub blocked: usize,
    /// Calls without an answer.
    pub calls: usize,
    /// Requests that handlers run.
    pub running: usize,
    /// Subscriptions that others hold here.
    pub subscriptions: usize,
    /// Subscriptions of ours.
    pub streams: usize,
    /// Deadlines that are armed.
    pub timers: usize,
}

/// One link.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LinkSnapshot<'a> {
    /// The remote app.
    pub app: &'a AppId,
    /// Its state.
    pub state: LinkState,
    /// Whether the app is a gateway.
    pub is_gateway: bool,
    /// Whether the app speaks our dialect.
    pub is_native: bool,
    /// What the app declares.
    pub decl: &'a nacp_proto::Decl,
    /// Waiting to be submitted.
    pub backlog: Table,
    /// Submitted and not accepted.
    pub submitted: Table,
    /// Accepted and not acknowledged.
    pub ack_pending: Table,
    /// Sends that wait for room.
    pub blocked: usize,
    /// Requests that handlers run for it.
    pub running: usize,
    /// Subscriptions that it holds here.
    pub subscriptions: usize,
    /// Subscriptions of ours there.
    pub streams: usize,
    /// From the last beat to its answer.
    pub round_trip: Option<Duration>,
    /// Messages that came from it.
    pub messages_in: u64,
    /// Messages submitted to it, replays included, control messages not.
    pub messages_out: u64,
    /// Messages replayed.
    pub replayed: u64,
}

/// What a node has done since it was built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    received: [u64; 10],
    sent: [u64; 10],
    reasons: [u64; Reason::COUNT],
    pub(crate) replayed: u64,
}

/// Where messages of an unknown type are counted, and relayed ones.
const OTHER: usize = 9;

impl Default for Totals {
    fn default() -> Self {
        Self {
            received: [0; 10],
            sent: [0; 10],
            reasons: [0; Reason::COUNT],
            replayed: 0,
        }
    }
}

impl Totals {
    /// Messages received of a type; `None` for those of an unknown type.
    pub fn received_of(&self, message_type: Option<MessageType>) -> u64 {
        self.received
            .get(message_type.map_or(OTHER, |known| known as usize))
            .copied()
            .unwrap_or(0)
    }

    /// Messages submitted of a type, replays included; `None` for relayed ones.
    pub fn sent_of(&self, message_type: Option<MessageType>) -> u64 {
        self.sent
            .get(message_type.map_or(OTHER, |known| known as usize))
            .copied()
            .unwrap_or(0)
    }

    /// How often a report had this reason.
    pub fn count_of(&self, reason: Reason) -> u64 {
        self.reasons.get(reason as usize).copied().unwrap_or(0)
    }

    /// Every reason that has occurred, with how often it did.
    pub fn reasons(&self) -> impl Iterator<Item = (Reason, u64)> + '_ {
        Reason::ALL
            .into_iter()
            .map(|reason| (reason, self.count_of(reason)))
            .filter(|(_, count)| *count > 0)
    }

    /// Messages replayed after a link came back.
    pub const fn replayed(&self) -> u64 {
        self.replayed
    }

    pub(crate) fn received(&mut self, decoded: &Decoded) {
        self.received[decoded.message_type().map_or(OTHER, |known| known as usize)] += 1;
    }

    pub(crate) const fn sent_control(&mut self, message_type: MessageType) {
        self.sent[message_type as usize] += 1;
    }

    pub(crate) const fn sent(&mut self, class: Class) {
        let index = match class {
            Class::Call(Call::Request) => MessageType::Request as usize,
            Class::Call(Call::Subscribe | Call::Sentinel(crate::record::Sentinel::Set)) => {
                MessageType::Subscribe as usize
            }
            Class::Call(Call::Unsubscribe | Call::Sentinel(crate::record::Sentinel::Check)) => {
                MessageType::Unsubscribe as usize
            }
            Class::Call(Call::Unregister) => MessageType::Unregister as usize,
            Class::Response => MessageType::Response as usize,
            Class::Signal => MessageType::Signal as usize,
            Class::Notify => MessageType::Notify as usize,
            Class::Relayed { .. } => OTHER,
        };
        self.sent[index] += 1;
    }

    pub(crate) const fn count(&mut self, reason: Reason) {
        self.reasons[reason as usize] += 1;
    }
}

impl Node {
    /// What the node holds now.
    pub fn snapshot(&self) -> NodeSnapshot {
        NodeSnapshot {
            peers: self.peers.len(),
            unregistered_peers: self.strangers,
            links: self.links.len(),
            backlog: Table {
                count: self.backlog.len(),
                bytes: self.backlog.bytes(),
            },
            submitted: self.submitted.into(),
            ack_pending: Table {
                count: self.pending.len(),
                bytes: self.pending.bytes(),
            },
            blocked: self.links.values().map(|link| link.blocked.len()).sum(),
            calls: self.waiters.len(),
            running: self.links.values().map(|link| link.running.len()).sum(),
            subscriptions: self.subscriptions.len(),
            streams: self.streams.len(),
            timers: self.timers.len(),
        }
    }

    /// The links now, in no particular order.
    pub fn links(&self) -> impl Iterator<Item = LinkSnapshot<'_>> {
        self.links
            .iter()
            .map(|(id, link)| self.link_snapshot(id, link))
    }

    /// The link to one app.
    pub fn link(&self, app: &AppId) -> Option<LinkSnapshot<'_>> {
        let id = *self.by_app.get(app)?;
        self.links.get(id).map(|link| self.link_snapshot(id, link))
    }

    /// What the node has done since it was built.
    pub const fn totals(&self) -> &Totals {
        &self.totals
    }

    fn link_snapshot<'a>(&'a self, id: LinkId, link: &'a Link) -> LinkSnapshot<'a> {
        let peer = link.peer().and_then(|peer| self.peers.get(peer));
        let LinkCounts {
            messages_in,
            messages_out,
            replayed,
        } = link.counts;
        LinkSnapshot {
            app: &link.app,
            state: link.state(),
            is_gateway: link.info.is_gateway,
            is_native: link.is_native(),
            decl: &link.info.decl,
            backlog: Table {
                count: self.backlog.len_of(&id),
                bytes: self.backlog.bytes_of(&id),
            },
            submitted: peer.map_or_else(Table::default, |peer| Table {
                count: peer.submitted.len(),
                bytes: peer.submitted_bytes,
            }),
            ack_pending: Table {
                count: self.pending.len_of(&id),
                bytes: self.pending.bytes_of(&id),
            },
            blocked: link.blocked.len(),
            running: link.running.len(),
            subscriptions: link.subscriptions.len(),
            streams: link.streams.len(),
            round_trip: link.beat.round_trip,
            messages_in,
            messages_out,
            replayed,
        }
    }
}

impl From<Load> for Table {
    fn from(load: Load) -> Self {
        Self {
            count: load.count,
            bytes: load.bytes,
        }
    }
}

//! Connections: how they come and go, and what that means for whoever uses them.

use std::time::Instant;

use crate::dial::DialError;
use crate::node::Node;
use crate::peer::{Peer, Stage};
use crate::report::Reason;
use crate::timers::Timer;
use crate::{Cause, Close, DialId, PeerId, Transmit, Undelivered};

/// What is known of a connection beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "it is or it is not")]
pub enum Trust {
    /// Anyone may be at its other end.
    Unproven,
    /// It is loopback, or carries a verified certificate.
    Proven,
}

/// How a connection came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::exhaustive_enums, reason = "a connection has two ends")]
pub enum Origin {
    /// The other side dialled.
    Accepted,
    /// We dialled, for this attempt.
    Dialled(DialId),
}

impl Node {
    /// A connection has been made. One over a limit is closed at once.
    pub fn handle_connected(&mut self, now: Instant, origin: Origin, trust: Trust) -> PeerId {
        let is_over = self.peers.len() >= self.config.max_peers
            || (origin == Origin::Accepted && self.strangers >= self.config.max_unregistered_peers);
        let id = self.peers.insert(Box::new(Peer::new(Stage::Fresh, trust)));
        self.strangers += 1;
        self.report_connect(id);
        if is_over || self.is_ended() || (origin == Origin::Accepted && !self.is_running()) {
            if is_over {
                self.report_peer_error(id, Reason::LimitReached.as_str());
            }
            if let Origin::Dialled(dial) = origin {
                self.fail_dial(now, dial, DialError::TransportClosed);
            }
            self.close_peer(id, Close::Abort);
            return id;
        }
        match origin {
            Origin::Accepted => {
                let timer =
                    self.timers
                        .arm(now, self.config.handshake_timeout, Timer::Handshake(id));
                if let Some(peer) = self.peers.get_mut(id) {
                    peer.timer = timer;
                }
            }
            Origin::Dialled(dial) => self.send_register(now, id, dial),
        }
        id
    }

    /// A connection has ended, by either side; one that the node has closed itself is known to have.
    /// `fault` is the transport's reason if it closed it for one.
    pub fn handle_disconnected(&mut self, now: Instant, peer: PeerId, fault: Option<&'static str>) {
        if !self.peers.contains_key(peer) {
            return;
        }
        if let Some(reason) = fault {
            self.report_peer_error(peer, reason);
        }
        self.peer_ended(now, peer, Cause::Disconnected);
        self.settle_room();
    }

    /// Closes a peer for a reason of ours, with all that follows for its app.
    pub(crate) fn lose_peer(&mut self, now: Instant, peer: PeerId, cause: Cause, how: Close) {
        self.transmit(Transmit::Close { peer, how });
        self.peer_ended(now, peer, cause);
    }

    /// What the end of a peer means for its app.
    fn peer_ended(&mut self, now: Instant, id: PeerId, cause: Cause) {
        let Some(mut peer) = self.forget_peer(id) else {
            return;
        };
        match &peer.stage {
            Stage::Fresh => {}
            Stage::Registering { dial, .. } => {
                self.fail_dial(now, *dial, DialError::TransportClosed)
            }
            Stage::Deciding(_) => {}
            Stage::Held(applicant) => self.forget_contender(&applicant.app, id),
            Stage::Bound(link) => {
                let link = *link;
                self.go_offline(now, link, peer, cause);
            }
            Stage::Leaving { link, .. } => {
                let link = *link;
                self.settle_records(link, peer.take_back(), Undelivered::PeerGone);
                self.drop_link(now, link, Cause::Unregistered);
            }
        }
    }

    /// Takes a peer out of the books.
    pub(crate) fn forget_peer(&mut self, id: PeerId) -> Option<Peer> {
        let mut peer = *self.peers.remove(id)?;
        self.timers.disarm(&mut peer.timer);
        self.report_disconnect(id);
        match &peer.stage {
            Stage::Bound(_) | Stage::Leaving { .. } => return Some(peer),
            Stage::Deciding(applicant) => self.forget_deciding(&applicant.app, id),
            Stage::Fresh | Stage::Registering { .. } | Stage::Held(_) => {}
        }
        self.strangers -= 1;
        Some(peer)
    }

    pub(crate) fn close_peer(&mut self, id: PeerId, how: Close) {
        if self.forget_peer(id).is_some() {
            self.transmit(Transmit::Close { peer: id, how });
        }
    }

    pub(crate) fn handshake_timed_out(&mut self, now: Instant, peer: PeerId) {
        self.report_peer_error(peer, "handshake-timeout");
        self.lose_peer(now, peer, Cause::Disconnected, Close::Abort);
    }
}

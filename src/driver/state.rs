use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Instant;

use nacp_bus::{EventBus, Key, Matcher, Pattern};
use nacp_link::{
    Accepted, DialError, Event, Lane, LinkChange, Node, PeerId, RunningId, Settlement, StreamId,
    SubscriptionId, Token, Transmit,
};
use nacp_proto::{AppId, ChunkSize, Encoded};
use slotmap::{SecondaryMap, SlotMap};

use super::after::{After, Flush};
use super::notices::Notices;
use super::peer::PeerIo;
use super::redial::Keeper;
use super::{Parts, WaiterKey};
use crate::job::JobState;
use crate::links::WatchQueue;
use crate::run::Run;
use crate::slot::Slot;
use crate::subscription::StreamState;
use crate::{ConnectError, Value, report};

/// What the lock protects: the node, and what its names stand for out here.
pub(crate) struct State {
    pub(crate) node: Node,
    pub(super) peers: SecondaryMap<PeerId, PeerEntry>,
    /// Peers that have ended while requests of theirs wait to be started.
    pub(super) gone: Vec<(PeerId, Arc<PeerIo>)>,
    pub(crate) waiters: SlotMap<WaiterKey, Waiter>,
    pub(crate) streams: SecondaryMap<StreamId, Arc<StreamState>>,
    pub(super) runs: SecondaryMap<RunningId, Arc<Run>>,
    /// What remote apps listen for on our bus.
    pub(crate) remote: Matcher<Remote>,
    remote_keys: SecondaryMap<SubscriptionId, Key>,
    pub(crate) watches: Vec<Weak<WatchQueue>>,
    pub(super) keepers: HashMap<AppId, Keeper>,
    pub(super) notices: Notices,
    /// Until when the timer task sleeps; `None` while it does not.
    pub(super) armed: Option<Instant>,
    /// The node has ended, and whoever watches it was told so.
    pub(crate) has_ended: bool,
    /// Why the dial failed whose end is being told.
    pub(super) dial_fault: Option<ConnectError>,
    known_listeners: u64,
    /// How many remote subscriptions there are, for who does not hold the lock.
    remotes: Arc<AtomicUsize>,
}

/// A remote app's subscription.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    pub(crate) subscription: SubscriptionId,
    pub(crate) app: AppId,
}

pub(super) struct PeerEntry {
    pub(super) io: Arc<PeerIo>,
    pub(super) remote: Option<String>,
    /// Whether it is in the list of those to be flushed.
    pub(super) is_listed: bool,
    /// Bulk messages given to the node's peer so far, and which of them could not be queued.
    sent: u64,
    failed: Vec<u64>,
}

/// Who waits for a token.
#[derive(Debug)]
pub(crate) enum Waiter {
    Settlement(Arc<Slot<Settlement>>),
    Job(Arc<JobState>),
    Connect(Arc<Slot<Result<AppId, ConnectError>>>),
}

impl State {
    pub(super) fn new(node: Node, remotes: Arc<AtomicUsize>) -> Self {
        Self {
            node,
            remotes,
            peers: SecondaryMap::new(),
            gone: Vec::new(),
            waiters: SlotMap::with_key(),
            streams: SecondaryMap::new(),
            runs: SecondaryMap::new(),
            remote: Matcher::new(),
            remote_keys: SecondaryMap::new(),
            watches: Vec::new(),
            keepers: HashMap::new(),
            notices: Notices::default(),
            armed: None,
            has_ended: false,
            dial_fault: None,
            known_listeners: 0,
        }
    }

    /// Tells the node which reports are wanted, if the listeners have changed.
    pub(super) fn note_interest(&mut self, bus: &EventBus<Value>, parts: &Parts) {
        let version = bus.version();
        if self.known_listeners == version {
            return;
        }
        self.known_listeners = version;
        let is_heard = report::listened_to(bus);
        let exposes = parts.exposes_internal_events;
        let interest =
            report::interest(|name| is_heard(name) || (exposes && self.remote.has_match(name)));
        self.node.set_interest(interest);
    }

    /// Takes out of the node what it has to say: bytes go to their senders, results to their
    /// waiters, and what must not be done under the lock into `after`.
    pub(super) fn drain(&mut self, parts: &Parts, after: &mut After) {
        loop {
            while let Some(transmit) = self.node.poll_transmit() {
                self.transmit(transmit, after);
            }
            let Some(event) = self.node.poll_event() else {
                break;
            };
            self.tell(event, parts, after);
        }
        self.dial_fault = None;
        for flush in after.flushes.iter().skip(after.listed) {
            if let Some(entry) = self.peers.get_mut(flush.peer) {
                entry.is_listed = false;
            }
        }
        after.list_flushes();
        after.notices |= !self.notices.is_empty();
        let next = self.node.poll_timeout();
        after.rearm |= match (next, self.armed) {
            (Some(next), Some(armed)) => next < armed,
            (Some(_), None) => true,
            (None, _) => false,
        };
    }

    fn transmit(&mut self, transmit: Transmit, after: &mut After) {
        match transmit {
            Transmit::Send {
                peer,
                lane,
                encoded,
            } => self.send(peer, lane, encoded, after),
            Transmit::Registered { peer, native } => {
                if let Some(entry) = self.peers.get(peer) {
                    let chunk = if native {
                        ChunkSize::NATIVE
                    } else {
                        ChunkSize::FOREIGN
                    };
                    entry.io.sender.set_chunk_size(chunk);
                    entry.io.registered();
                }
            }
            Transmit::Pause { peer } => self.set_paused(peer, true),
            Transmit::Resume { peer } => self.set_paused(peer, false),
            Transmit::Close { peer, how } => {
                if let Some(entry) = self.peers.get(peer) {
                    after.closes.push((Arc::clone(&entry.io), how));
                }
            }
            _ => {}
        }
    }

    fn set_paused(&self, peer: PeerId, paused: bool) {
        if let Some(entry) = self.peers.get(peer) {
            entry.io.set_paused(paused);
        }
    }

    fn send(&mut self, peer: PeerId, lane: Lane, encoded: Encoded, after: &mut After) {
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        if entry.queue(lane, encoded).is_err() {
            entry.failed.push(entry.sent);
            self.node.handle_send_failed(peer, entry.sent);
        }
        entry.sent += u64::from(lane == Lane::Bulk);
        if !entry.is_listed {
            entry.is_listed = true;
            after.flushes.push(Flush {
                peer,
                io: Arc::clone(&entry.io),
            });
        }
    }

    fn tell(&mut self, event: Event, parts: &Parts, after: &mut After) {
        match event {
            Event::Settled { token, settlement } => self.settle(token, settlement, after),
            Event::Process {
                token: Some(token),
                payload,
                missed,
                ..
            } => {
                if let Some(Waiter::Job(job)) = self.waiters.get(WaiterKey::of(token)) {
                    job.push(payload, missed, &mut self.notices, after);
                }
            }
            Event::Notified {
                stream,
                from,
                hit_sub_name,
                payload,
                missed,
            } => {
                if let Some(stream) = self.streams.get(stream) {
                    stream.push(
                        (from, hit_sub_name, payload, missed),
                        &mut self.notices,
                        after,
                    );
                }
            }
            Event::StreamEnded { stream, reason } => {
                if let Some(stream) = self.streams.remove(stream) {
                    after.wake(stream.end(reason));
                }
            }
            Event::Request(requested) => {
                let run = Arc::new(Run::new(&requested));
                self.runs.insert(requested.running, Arc::clone(&run));
                after.requests.push((requested, run));
            }
            Event::Signal { running, signal } => {
                if let Some(run) = self.runs.get(running) {
                    self.notices.signal(&run.id, &signal);
                    run.signal(signal, parts.stream_capacity);
                }
            }
            Event::Cancelled { running, reason } => {
                if let Some(run) = self.runs.get(running) {
                    run.cancel(reason);
                }
            }
            Event::Subscribed {
                subscription,
                app,
                pattern,
            } => self.subscribed(Remote { subscription, app }, &pattern),
            Event::Unsubscribed { subscription } => {
                if let Some(key) = self.remote_keys.remove(subscription) {
                    self.remote.remove(key);
                    self.remotes_changed();
                }
            }
            Event::Link(change) => self.link_changed(change, after),
            Event::Report(report) => self.notices.report(report),
            Event::Authorize(authorize) => {
                let entry = self.peers.get(authorize.peer);
                let remote = entry.and_then(|entry| entry.remote.clone());
                after.applicants.push((authorize, remote));
            }
            Event::Terminated => self.terminated(after),
            Event::Process { token: None, .. } | _ => {}
        }
    }

    fn settle(&mut self, token: Token, settlement: Settlement, after: &mut After) {
        let waker = match self.waiters.remove(WaiterKey::of(token)) {
            None => None,
            Some(Waiter::Settlement(slot)) => slot.settle(settlement),
            Some(Waiter::Job(job)) => {
                job.settle(settlement, after);
                None
            }
            Some(Waiter::Connect(slot)) => slot.settle(match settlement {
                Settlement::Connected(app) => Ok(app),
                Settlement::DialFailed(error) => Err(self.connect_error(error)),
                Settlement::Delivered
                | Settlement::Undelivered(_)
                | Settlement::Answered(_)
                | _ => Err(ConnectError::Handshake(DialError::Terminated)),
            }),
        };
        after.wake(waker);
    }

    fn connect_error(&self, error: DialError) -> ConnectError {
        match (&self.dial_fault, error) {
            (Some(fault), DialError::TransportClosed) => fault.clone(),
            (_, error) => ConnectError::Handshake(error),
        }
    }

    fn subscribed(&mut self, remote: Remote, pattern: &str) {
        // The node has checked the length.
        let Ok(pattern) = Pattern::parse_within(pattern, usize::MAX) else {
            return;
        };
        let subscription = remote.subscription;
        let key = self.remote.insert(&pattern, remote);
        self.remote_keys.insert(subscription, key);
        self.remotes_changed();
    }

    fn remotes_changed(&mut self) {
        self.remotes.store(self.remote.len(), Ordering::Release);
        self.known_listeners = 0;
    }

    fn link_changed(&mut self, change: LinkChange, after: &mut After) {
        self.watches.retain(|watch| match watch.upgrade() {
            Some(watch) => {
                after.wake(watch.push(change.clone()));
                true
            }
            None => false,
        });
        self.keep(&change, after);
    }

    /// The node has ended, and all its waiters have settled.
    fn terminated(&mut self, after: &mut After) {
        self.has_ended = true;
        self.keepers.clear();
        for watch in self.watches.drain(..).filter_map(|watch| watch.upgrade()) {
            after.wake(watch.end());
        }
        after.ended = true;
    }

    /// The remote subscriptions that an event hits, of one app or of all.
    pub(crate) fn hits(&self, name: &str, only: Option<&AppId>) -> Vec<SubscriptionId> {
        let mut hits = Vec::new();
        self.remote.for_each_match(name, |_, remote| {
            if only.is_none_or(|app| *app == remote.app) {
                hits.push(remote.subscription);
            }
        });
        hits
    }

    /// A provider has taken so much.
    pub(super) fn accepted(&mut self, now: Instant, peer: PeerId) {
        let Some(entry) = self.peers.get_mut(peer) else {
            return;
        };
        if let Some(accepted) = entry.accepted() {
            self.node.handle_accepted(now, peer, accepted);
        }
    }

    /// A connection has ended. Only the first to say so counts.
    pub(super) fn disconnected(&mut self, now: Instant, peer: PeerId, fault: Option<&'static str>) {
        self.accepted(now, peer);
        if let Some(entry) = self.peers.remove(peer) {
            if !entry.io.starts.is_empty() {
                self.gone.push((peer, entry.io));
            }
            self.dial_fault = fault.map(|reason| ConnectError::Fault { reason });
            self.node.handle_disconnected(now, peer, fault);
        }
    }
}

impl PeerEntry {
    pub(super) const fn new(io: Arc<PeerIo>, remote: Option<String>) -> Self {
        Self {
            io,
            remote,
            is_listed: false,
            sent: 0,
            failed: Vec::new(),
        }
    }

    /// Fails if the message can never be sent.
    fn queue(&self, lane: Lane, encoded: Encoded) -> Result<(), nacp_transport_tcp::Refusal> {
        use nacp_transport_tcp::{Lane as Way, Refusal};
        let lane = match lane {
            Lane::Control => Way::Control,
            Lane::Bulk => Way::Bulk,
        };
        match self.io.sender.queue(lane, encoded) {
            Err(error) if error.refusal == Refusal::Oversized => Err(error.refusal),
            // A connection that is closing ends; what was given to it goes back then.
            Err(_) | Ok(()) => Ok(()),
        }
    }

    /// What has been accepted, if that is more than before. Messages that were never queued are
    /// taken for accepted in their turn.
    fn accepted(&mut self) -> Option<Accepted> {
        let taken = self.io.sender.accepted();
        if !self.io.is_news(taken) {
            return None;
        }
        let skipped = self.failed.iter().enumerate();
        let bulk = taken.bulk
            + skipped
                .take_while(|(before, index)| taken.bulk + *before as u64 >= **index)
                .count() as u64;
        Some(Accepted {
            control: taken.control,
            bulk,
        })
    }
}

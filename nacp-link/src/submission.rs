//! From the backlog to the provider, to the ACK, and back to the backlog (specification, section 5).

use std::time::Instant;

use nacp_proto::{AppId, MessageId};

use crate::ids::LinkId;
use crate::instances::Takers;
use crate::link::Link;
use crate::node::Node;
use crate::peer::{Stage, Submitted};
use crate::record::{Call, Class, Key, Record};
use crate::report::{MessageReport, Reason};
use crate::timers::Timer;
use crate::{Accepted, Lane, OverflowPolicy, PeerId, Settlement, Transmit, Undelivered};

impl Node {
    /// Whether a record may leave at once, as far as its peer is concerned.
    pub(crate) fn may_submit(&self, peer: PeerId, record: &Record) -> bool {
        let Some(link) = self.links.get(record.link) else {
            return false;
        };
        let is_held = link.foreign.holds_relayed && matches!(record.class, Class::Relayed { .. });
        let waits_alone = link.replay.alone && self.has_reliable_in_flight(record.link, peer);
        !is_held && !waits_alone && self.has_window(peer, record.bytes)
    }

    fn has_window(&self, peer: PeerId, bytes: u64) -> bool {
        self.peers.get(peer).is_some_and(|peer| {
            peer.has_window(
                bytes,
                self.config.submit_max_count,
                self.config.submit_max_bytes,
            )
        })
    }

    fn has_reliable_in_flight(&self, link: LinkId, peer: PeerId) -> bool {
        self.pending.len_of(&link) > 0 || self.peers.get(peer).is_some_and(|peer| peer.reliable > 0)
    }

    /// Hands a record to the provider.
    pub(crate) fn submit(&mut self, peer: PeerId, mut record: Record) {
        record.was_submitted = true;
        self.report_outbound(Some(peer), &record);
        self.totals.sent(record.class);
        if record.is_acknowledged() {
            self.submitted.add(record.bytes);
        }
        if let Some(link) = self.links.get_mut(record.link) {
            link.counts.messages_out += 1;
        }
        self.transmit(Transmit::Send {
            peer,
            lane: Lane::Bulk,
            encoded: record.encoded.clone(),
        });
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.push_submitted(record);
        }
    }

    /// Submits of a link's backlog what its window, its replay and ack-pending take.
    pub(crate) fn pump(&mut self, id: LinkId) {
        while let Some(peer) = self.peer_of(id) {
            let Some(record) = self.backlog.peek(&id) else {
                self.finish_replay(id);
                break;
            };
            let is_replay = self
                .links
                .get(id)
                .is_some_and(|link| record.seq <= link.replay.until);
            if !is_replay {
                self.finish_replay(id);
            }
            let Some(record) = self.backlog.peek(&id) else {
                break;
            };
            if !self.may_submit(peer, record) {
                break;
            }
            if is_replay
                && record.is_acknowledged()
                && !self.has_pending_room(id, peer, record.bytes)
            {
                self.starve(id);
                break;
            }
            let Some(record) = self.backlog.pop(&id) else {
                break;
            };
            if is_replay {
                self.totals.replayed += 1;
                if let Some(link) = self.links.get_mut(id) {
                    link.counts.replayed += 1;
                }
            }
            self.submit(peer, record);
        }
        // Under `Wait` the room is everyone's, and given in turn.
        if self.config.overflow == OverflowPolicy::Evict {
            self.unblock(id);
        }
    }

    /// The backlog found at the bind is through, once its last record is ACKed.
    fn finish_replay(&mut self, id: LinkId) {
        let is_done = |link: &Link| link.replay.until == 0 && !link.replay.alone;
        if self.links.get(id).is_none_or(|link| is_done(link)) {
            return;
        }
        let peer = self.peer_of(id);
        let in_flight = peer.is_some_and(|peer| self.has_reliable_in_flight(id, peer));
        if let Some(link) = self.links.get_mut(id)
            && !(link.replay.alone && in_flight)
        {
            link.replay.until = 0;
            link.replay.alone = false;
        }
    }

    fn starve(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id)
            && !link.replay.starving
        {
            link.replay.starving = true;
            self.starving.push_back(id);
        }
    }

    /// Whether a replayed record would find room in ack-pending; one a link always does.
    fn has_pending_room(&self, link: LinkId, peer: PeerId, bytes: u64) -> bool {
        if !self.has_reliable_in_flight(link, peer) {
            return true;
        }
        let (count, held) = (
            self.pending.len() + self.submitted.count,
            self.pending.bytes() + self.submitted.bytes,
        );
        count < self.config.queue_max_count
            && held.saturating_add(bytes) <= self.config.queue_max_bytes
            && self.pending.len_of(&link) < self.config.link_queue_max_count
            && self.pending.bytes_of(&link).saturating_add(bytes)
                <= self.config.link_queue_max_bytes
    }

    /// The provider has accepted so many messages of each lane in all.
    ///
    /// Reports may come late, early or again; only a higher total counts.
    pub fn handle_accepted(&mut self, now: Instant, peer: PeerId, accepted: Accepted) {
        self.accept_control(now, peer, accepted.control);
        self.accept_bulk(now, peer, accepted.bulk);
        self.settle_room();
    }

    fn accept_bulk(&mut self, now: Instant, id: PeerId, total: u64) {
        let Some(peer) = self.peers.get(id) else {
            return;
        };
        let (bulk, link) = (total.min(peer.sent.bulk), peer.bound_link());
        while let Some(entry) = self
            .peers
            .get_mut(id)
            .and_then(|peer| peer.next_accepted(bulk))
        {
            if let Submitted::Waiting(record) = entry {
                self.record_accepted(now, record);
            }
        }
        if let Some(link) = link {
            self.pump(link);
        }
    }

    fn accept_control(&mut self, now: Instant, id: PeerId, total: u64) {
        let Some(peer) = self.peers.get_mut(id) else {
            return;
        };
        peer.accepted.control = peer.accepted.control.max(total.min(peer.sent.control));
        let accepted = peer.accepted.control;
        self.turn_reading(id);
        match self.peers.get(id).map(|peer| &peer.stage) {
            Some(Stage::Bound(link)) => self.beat_accepted(now, *link, accepted),
            Some(Stage::Leaving { control, .. }) if accepted >= *control => {
                self.farewell_done(now, id)
            }
            Some(_) | None => {}
        }
    }

    pub(crate) fn turn_reading(&mut self, id: PeerId) {
        match self.peers.get_mut(id).and_then(|peer| peer.turn_reading()) {
            Some(true) => self.transmit(Transmit::Pause { peer: id }),
            Some(false) => self.transmit(Transmit::Resume { peer: id }),
            None => {}
        }
    }

    fn record_accepted(&mut self, now: Instant, mut record: Record) {
        if !record.is_acknowledged() {
            self.count_out(&record);
            self.settle(record.token, Settlement::Delivered);
            return;
        }
        self.submitted.remove(record.bytes);
        record.takers |= self.taker(record.link);
        let (id, deadline) = (record.link, now.checked_add(self.config.ack_timeout));
        // Keys are unique, so nothing is refused.
        let evicted: Vec<_> = self
            .pending
            .insert(record, deadline)
            .map(Iterator::collect)
            .unwrap_or_default();
        for overflow in evicted {
            self.report_record(
                MessageReport::AckWarning,
                &overflow,
                Reason::PendingOverflow,
            );
            self.count_out(&overflow);
            self.take_withdrawn(overflow.link, &overflow);
            self.settle_undelivered(overflow.token, Undelivered::Evicted);
            // Nothing else would release a record that waits for this one's ACK.
            self.pump(overflow.link);
        }
        self.arm_acks(id);
    }

    /// The instance that a link's app is now, as who takes a record.
    pub(crate) fn taker(&self, link: LinkId) -> Takers {
        let link = self.links.get(link);
        link.map_or(0, |link| link.instances.taker())
    }

    /// Arms a link's ACK deadline unless it is armed. One that comes early finds nothing due.
    pub(crate) fn arm_acks(&mut self, id: LinkId) {
        let oldest = self.pending.oldest(&id).and_then(|(_, deadline)| deadline);
        if let (Some(link), Some(at)) = (self.links.get_mut(id), oldest)
            && link.acks.is_none()
        {
            link.acks = self.timers.arm_at(at, Timer::Acks(id));
        }
    }

    /// The provider could not send one message of the bulk lane: the one so many were sent before.
    pub fn handle_send_failed(&mut self, peer: PeerId, index: u64) {
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        let Some(at) = index
            .checked_sub(known.accepted.bulk)
            .and_then(|at| usize::try_from(at).ok())
        else {
            return;
        };
        if let Some(record) = known.settle_submitted(at) {
            if record.is_acknowledged() {
                self.submitted.remove(record.bytes);
            }
            self.report_record(MessageReport::RouteError, &record, Reason::SendFailed);
            self.fail(record, Undelivered::SendFailed);
        }
        self.settle_room();
    }

    /// Settles the record that an ACK from `from` names; `false` if there is none.
    pub(crate) fn settle_acked(&mut self, peer: PeerId, from: &AppId, id: &MessageId) -> bool {
        let key = Self::own_key(id);
        let is_pending = self
            .pending
            .get(&key)
            .is_some_and(|record| record.to == *from);
        let record = if is_pending {
            self.pending.settle(&key)
        } else if self
            .backlog
            .get(&key)
            .is_some_and(|record| record.to == *from)
        {
            self.backlog.remove(&key)
        } else {
            self.take_submitted(peer, from, &key)
        };
        let Some(record) = record else { return false };
        self.count_out(&record);
        if let Some(link) = self.links.get_mut(record.link) {
            // Of a poisoned message it says nothing that a sentinel went well.
            if !matches!(record.class, Class::Call(Call::Sentinel(_))) {
                link.replay.row = 0;
            }
            link.withdrawn.remove(id);
        }
        self.settle(record.token, Settlement::Delivered);
        self.pump(record.link);
        true
    }

    fn take_submitted(&mut self, peer: PeerId, from: &AppId, key: &Key) -> Option<Record> {
        let peer = self.peers.get_mut(peer)?;
        let record = peer.take_submitted(|record| record.key == *key && record.to == *from)?;
        if record.is_acknowledged() {
            self.submitted.remove(record.bytes);
        }
        Some(record)
    }

    /// What was on its way over a peer goes back to the head of its link's backlog, in order.
    pub(crate) fn put_back(&mut self, id: LinkId, unaccepted: Vec<Record>) {
        let mut records: Vec<Record> = self.pending.drain(&id).map(|(record, _)| record).collect();
        for record in &unaccepted {
            if record.is_acknowledged() {
                self.submitted.remove(record.bytes);
            }
        }
        records.extend(unaccepted);
        records.sort_by_key(|record| record.seq);
        let (gone, kept): (Vec<_>, Vec<_>) = records.into_iter().partition(|record| {
            matches!(record.class, Class::Call(Call::Sentinel(_)))
                || self.take_withdrawn(id, record)
        });
        for record in gone {
            self.fail(record, Undelivered::Timeout);
        }
        self.put_at_head(kept);
        self.queue_blocked(id);
    }

    pub(crate) fn put_at_head(&mut self, records: Vec<Record>) {
        let evicted = self.backlog.put_back(records).collect();
        self.settle_evicted(evicted);
    }

    /// Whether a record's call was given up while it was on its way; that is forgotten with it.
    pub(crate) fn take_withdrawn(&mut self, link: LinkId, record: &Record) -> bool {
        let Some(id) = record.own_id() else {
            return false;
        };
        self.links
            .get_mut(link)
            .is_some_and(|link| link.withdrawn.remove(id))
    }
}

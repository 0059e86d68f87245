//! The way out: admission, submission, acceptance, ACK, and the way back into the backlog.

use std::time::Instant;

use nacp_proto::{AppId, Body, Encoded, Message, MessageId};
use nacp_queue::Evicted;

use crate::ids::LinkId;
use crate::link::Place;
use crate::load::Load;
use crate::node::Node;
use crate::peer::{Stage, Submitted};
use crate::record::{Call, Class, Key, Record};
use crate::report::{MessageReport, Reason};
use crate::timers::Timer;
use crate::{
    Accepted, Cause, Close, Content, Lane, OverflowPolicy, PeerId, Settlement, Token, Transmit,
    Undelivered,
};

/// Own records that may pass the caps of `Wait`, a link.
const MAX_EXCESS: usize = 1024;

/// What a record does that finds no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Urgency {
    /// Its caller waits.
    Waits,
    /// It is refused.
    Refused,
    /// It makes room: what the node sends by itself.
    Forced,
}

impl Node {
    /// Encodes and sends one message of ours to an app. `None`: it settled at once.
    pub(crate) fn dispatch(
        &mut self,
        now: Instant,
        to: &AppId,
        content: (Class, Body),
        token: Option<Token>,
        urgency: Urgency,
    ) -> Result<MessageId, Undelivered> {
        let (class, body) = content;
        let id = self.fresh_id();
        let message = self.message(now, id.clone(), to.clone(), body);
        let record = match self.address(&message, None, class, token) {
            Ok(record) => record,
            Err(reason) => {
                self.report_route_error(&message, reason);
                self.settle_undelivered(token, reason);
                return Err(reason);
            }
        };
        self.admit(now, record, urgency).map(|()| id)
    }

    /// Finds the next hop of a message, unless it is given, and encodes it.
    pub(crate) fn address(
        &mut self,
        message: &Message,
        via: Option<LinkId>,
        class: Class,
        token: Option<Token>,
    ) -> Result<Record, Undelivered> {
        let link = via.map_or_else(|| self.route(&message.to), Ok)?;
        let encoded = message.encode();
        let bytes = encoded.len() as u64;
        let limit = self
            .links
            .get(link)
            .map_or(u64::MAX, |link| link.max_message_bytes());
        if bytes > limit {
            return Err(Undelivered::TooLarge);
        }
        let (key, to) = (Key::Own(message.id.clone()), message.to.clone());
        Ok(self.record(link, key, to, class, encoded, token))
    }

    pub(crate) fn record(
        &mut self,
        link: LinkId,
        key: Key,
        to: AppId,
        class: Class,
        encoded: Encoded,
        token: Option<Token>,
    ) -> Record {
        Record {
            key,
            link,
            to,
            class,
            bytes: encoded.len() as u64,
            encoded,
            seq: self.next_seq(),
            token,
            tries: 0,
            strikes: 0,
            was_accepted: false,
        }
    }

    /// Takes a record in, under the rules of sections 5 and 6. An error is settled already.
    pub(crate) fn admit(
        &mut self,
        now: Instant,
        record: Record,
        urgency: Urgency,
    ) -> Result<(), Undelivered> {
        if !self.has_budget(&record) {
            return match urgency {
                Urgency::Waits => self.block(record),
                Urgency::Refused => self.refuse(record),
                Urgency::Forced => self.exceed(now, record),
            };
        }
        let Some(link) = self.links.get(record.link) else {
            self.settle_undelivered(record.token, Undelivered::PeerGone);
            return Err(Undelivered::PeerGone);
        };
        match (link.place, urgency) {
            (_, Urgency::Waits) if !link.blocked.is_empty() => self.block(record),
            (_, Urgency::Refused) if !link.blocked.is_empty() => self.refuse(record),
            (Place::Offline, _) => self.queue(record),
            (Place::Online(peer), _) => self.admit_online(peer, record, urgency),
        }
    }

    fn admit_online(
        &mut self,
        peer: PeerId,
        record: Record,
        urgency: Urgency,
    ) -> Result<(), Undelivered> {
        let passes = self.backlog.len_of(&record.link) == 0 && self.may_submit(peer, &record);
        if passes && !self.config.letter.count_pass_through {
            self.count_in(&record);
            self.submit(peer, record);
            return Ok(());
        }
        let evicts = self.config.letter.evict_online || urgency == Urgency::Forced;
        if !passes && !evicts && !self.backlog.has_room_for(&record) {
            return match urgency {
                Urgency::Refused => self.refuse(record),
                Urgency::Waits | Urgency::Forced => self.block(record),
            };
        }
        let link = record.link;
        let queued = self.queue(record);
        self.pump(link);
        queued
    }

    /// Puts a record at the tail of the backlog under the overflow rules.
    fn queue(&mut self, record: Record) -> Result<(), Undelivered> {
        self.count_in(&record);
        let pushed = self.backlog.push(record).map(Iterator::collect::<Vec<_>>);
        match pushed {
            Ok(evicted) => {
                self.settle_evicted(evicted);
                Ok(())
            }
            Err(refused) => {
                self.count_out(&refused.record);
                self.refuse(refused.record)
            }
        }
    }

    fn refuse(&mut self, record: Record) -> Result<(), Undelivered> {
        match record.class {
            Class::Relayed { .. } => {
                self.report_record(MessageReport::GatewayError, &record, Reason::Dropped)
            }
            Class::Call(_) | Class::Response | Class::Signal | Class::Notify => {
                self.report_record(
                    MessageReport::BacklogWarning,
                    &record,
                    Reason::NotifyDropped,
                );
            }
        }
        self.settle_undelivered(record.token, Undelivered::Refused);
        Err(Undelivered::Refused)
    }

    fn block(&mut self, record: Record) -> Result<(), Undelivered> {
        let id = record.link;
        if let Some(link) = self.links.get_mut(id) {
            if link.blocked.is_empty() {
                self.blocked.push_back(id);
            }
            link.blocked.push_back(record);
        }
        Ok(())
    }

    /// Under `Wait`: lets a record of the node itself pass the caps, within a limit of its own.
    fn exceed(&mut self, now: Instant, record: Record) -> Result<(), Undelivered> {
        let id = record.link;
        let Some(link) = self.links.get_mut(id) else {
            return Err(Undelivered::PeerGone);
        };
        link.excess += 1;
        let (is_over, place) = (link.excess > MAX_EXCESS, link.place);
        self.count_in(&record);
        match place {
            Place::Online(peer)
                if self.backlog.len_of(&id) == 0 && self.may_submit(peer, &record) =>
            {
                self.submit(peer, record);
            }
            Place::Online(_) | Place::Offline => {
                self.push_unbounded(record);
                self.pump(id);
            }
        }
        if let (true, Place::Online(peer)) = (is_over, place) {
            self.report_peer_error(peer, Reason::LimitReached.as_str());
            self.lose_peer(now, peer, Cause::Disconnected, Close::Abort);
        }
        Ok(())
    }

    fn push_unbounded(&mut self, record: Record) {
        let evicted = match self.backlog.push(record) {
            Ok(evictions) => evictions.collect(),
            Err(refused) => vec![(refused.record, Evicted::Oldest)],
        };
        self.settle_evicted(evicted);
    }

    /// Under `Wait`, whether the node's caps have room for a record.
    fn has_budget(&self, record: &Record) -> bool {
        self.config.overflow == OverflowPolicy::Evict
            || self.outstanding.fits(
                record.bytes,
                self.config.queue_max_count,
                self.config.queue_max_bytes,
            )
    }

    pub(crate) fn count_in(&mut self, record: &Record) {
        self.outstanding.add(record.bytes);
    }

    pub(crate) fn count_out(&mut self, record: &Record) {
        self.outstanding.remove(record.bytes);
        if self.config.overflow == OverflowPolicy::Wait
            && let Some(link) = self.links.get_mut(record.link)
        {
            link.excess = link.excess.saturating_sub(1);
        }
    }

    fn settle_evicted(&mut self, evicted: Vec<(Record, Evicted)>) {
        for (record, why) in evicted {
            let reason = match why {
                Evicted::Droppable => Reason::NotifyEvicted,
                Evicted::Oldest | Evicted::Duplicate | _ => Reason::FifoEvicted,
            };
            self.report_record(MessageReport::BacklogWarning, &record, reason);
            self.fail(record, Undelivered::Evicted);
        }
    }

    /// Ends a record that reached nobody, with the call that it belongs to.
    pub(crate) fn fail(&mut self, record: Record, reason: Undelivered) {
        self.count_out(&record);
        if let Some(link) = self.links.get_mut(record.link)
            && let Some(id) = record.own_id()
        {
            link.withdrawn.remove(id);
        }
        if let (Class::Call(_), Some(id)) = (record.class, record.own_id()) {
            self.reject_call(&id.clone(), reason);
        }
        self.settle_undelivered(record.token, reason);
    }

    /// Ends a blocked record, which no count knows yet.
    pub(crate) fn fail_blocked(&mut self, record: Record, reason: Undelivered) {
        self.count_in(&record);
        self.fail(record, reason);
    }

    /// Whether a record may leave at once, as far as its peer is concerned.
    fn may_submit(&self, peer: PeerId, record: &Record) -> bool {
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
        self.pending.len_of(&link) > 0
            || self
                .peers
                .get(peer)
                .is_some_and(|peer| peer.submitted_records().any(Record::is_acknowledged))
    }

    /// Hands a record to the provider.
    pub(crate) fn submit(&mut self, peer: PeerId, record: Record) {
        self.report_outbound(Some(peer), &record);
        self.totals.sent(record.class);
        if record.is_acknowledged() {
            self.submitted.add(record.bytes);
        }
        if let Some(link) = self.links.get_mut(record.link) {
            link.counts.messages_out += 1;
        }
        let content = Content::Encoded(record.encoded.clone());
        self.transmit(Transmit::Send {
            peer,
            lane: Lane::Bulk,
            content,
        });
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.sent.bulk += 1;
            peer.submitted_bytes = peer.submitted_bytes.saturating_add(record.bytes);
            peer.submitted.push_back(Submitted::Waiting(record));
        }
    }

    /// Submits of a link's backlog what its window, its replay and ack-pending take.
    pub(crate) fn pump(&mut self, id: LinkId) {
        while let Some(peer) = self.links.get(id).and_then(|link| link.peer()) {
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
        self.unblock(id);
    }

    fn finish_replay(&mut self, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
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
        let Some(bulk) = self
            .peers
            .get(peer)
            .map(|peer| accepted.bulk.min(peer.sent.bulk))
        else {
            return;
        };
        let link = self.peers.get(peer).and_then(|peer| peer.bound_link());
        while let Some(entry) = self
            .peers
            .get_mut(peer)
            .and_then(|peer| peer.next_accepted(bulk))
        {
            if let Submitted::Waiting(record) = entry {
                self.record_accepted(now, record);
            }
        }
        if let Some(link) = link {
            self.pump(link);
        }
        self.settle_room();
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
        record.was_accepted = true;
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
            self.settle_undelivered(overflow.token, Undelivered::Evicted);
        }
        self.arm_acks(id);
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
        let Some(entry) = known.submitted.get_mut(at) else {
            return;
        };
        let bytes = entry.bytes();
        if let Submitted::Waiting(record) = std::mem::replace(entry, Submitted::Settled { bytes }) {
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
            link.replay.row = 0;
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
            matches!(record.class, Class::Call(Call::Sentinel(_))) || self.is_withdrawn(id, record)
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

    /// A link has gone offline: its blocked sends follow, unless they may wait there too.
    fn queue_blocked(&mut self, id: LinkId) {
        if self.config.overflow == OverflowPolicy::Wait {
            return;
        }
        let blocked = self
            .links
            .get_mut(id)
            .map(|link| std::mem::take(&mut link.blocked))
            .unwrap_or_default();
        self.blocked.retain(|other| *other != id);
        for record in blocked {
            if self.is_withdrawn(id, &record) {
                continue;
            }
            // An error is settled already, and nobody else waits for it.
            let _ = self.queue(record);
        }
    }

    pub(crate) fn is_withdrawn(&mut self, link: LinkId, record: &Record) -> bool {
        let Some(id) = record.own_id() else {
            return false;
        };
        self.links
            .get_mut(link)
            .is_some_and(|link| link.withdrawn.remove(id))
    }

    /// Admits blocked sends of one link while there is room.
    fn unblock(&mut self, id: LinkId) {
        while let Some(record) = self
            .links
            .get_mut(id)
            .and_then(|link| link.blocked.pop_front())
        {
            if self.is_withdrawn(id, &record) {
                continue;
            }
            let passes = self.passes(&record);
            let peer = self.links.get(id).and_then(|link| link.peer());
            if !self.has_budget(&record) || !(passes || self.backlog.has_room_for(&record)) {
                if let Some(link) = self.links.get_mut(id) {
                    link.blocked.push_front(record);
                }
                return;
            }
            if let (true, Some(peer)) = (passes, peer) {
                self.count_in(&record);
                self.submit(peer, record);
            } else {
                // It has room, and what went wrong all the same is settled already.
                let _ = self.queue(record);
            }
        }
    }

    fn passes(&self, record: &Record) -> bool {
        let peer = self.links.get(record.link).and_then(|link| link.peer());
        peer.is_some_and(|peer| {
            self.backlog.len_of(&record.link) == 0 && self.may_submit(peer, record)
        })
    }

    /// Gives room that has come free to whoever waits for it: replays first, then blocked sends.
    pub(crate) fn settle_room(&mut self) {
        for _ in 0..self.starving.len() {
            let Some(id) = self.starving.pop_front() else {
                break;
            };
            if let Some(link) = self.links.get_mut(id) {
                link.replay.starving = false;
                self.pump(id);
            }
        }
        for _ in 0..self.blocked.len() {
            let Some(id) = self.blocked.pop_front() else {
                break;
            };
            self.unblock(id);
            if self
                .links
                .get(id)
                .is_some_and(|link| !link.blocked.is_empty())
            {
                self.blocked.push_back(id);
                if self.is_full() {
                    break;
                }
            }
        }
    }

    /// Whether the node's caps leave no room for anyone.
    fn is_full(&self) -> bool {
        let held = match self.config.overflow {
            OverflowPolicy::Evict => Load {
                count: self.backlog.len(),
                bytes: self.backlog.bytes(),
            },
            OverflowPolicy::Wait => self.outstanding,
        };
        held.count >= self.config.queue_max_count || held.bytes >= self.config.queue_max_bytes
    }
}

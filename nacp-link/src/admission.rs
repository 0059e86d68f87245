//! From a send into the backlog, or past it (specification, sections 5 and 6).

use std::collections::VecDeque;
use std::time::Instant;

use nacp_proto::{AppId, Body, Encoded, Message, MessageId};
use nacp_queue::Evicted;

use crate::ids::LinkId;
use crate::link::Place;
use crate::load::Load;
use crate::node::Node;
use crate::record::{Class, Key, Record};
use crate::report::{MessageReport, Reason};
use crate::{Cause, Close, Config, OverflowPolicy, PeerId, Token, Undelivered};

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
            was_submitted: false,
            takers: 0,
            is_excess: false,
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

    /// Ends a record that was not admitted, and that no count knows, with the call that it belongs to.
    fn refuse(&mut self, record: Record) -> Result<(), Undelivered> {
        match record.class {
            Class::Relayed { .. } => {
                self.report_record(MessageReport::GatewayError, &record, Reason::Dropped)
            }
            Class::Notify => self.report_record(
                MessageReport::BacklogWarning,
                &record,
                Reason::NotifyDropped,
            ),
            Class::Call(_) | Class::Response | Class::Signal => {}
        }
        if let Some(id) = record.own_id() {
            self.reject_call(id, Undelivered::Refused);
        }
        self.settle_undelivered(record.token, Undelivered::Refused);
        Err(Undelivered::Refused)
    }

    pub(crate) fn block(&mut self, record: Record) -> Result<(), Undelivered> {
        let id = record.link;
        if let Some(link) = self.links.get_mut(id) {
            if !std::mem::replace(&mut link.blocked.is_listed, true) {
                self.blocked.push_back(id);
            }
            link.blocked.push_back(record);
        }
        Ok(())
    }

    /// Under `Wait`: lets a record of the node itself pass the caps, within a limit of its own.
    fn exceed(&mut self, now: Instant, mut record: Record) -> Result<(), Undelivered> {
        let id = record.link;
        let Some(link) = self.links.get_mut(id) else {
            return Err(Undelivered::PeerGone);
        };
        link.excess += 1;
        record.is_excess = true;
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
        let Config {
            queue_max_count,
            queue_max_bytes,
            link_queue_max_count,
            link_queue_max_bytes,
            ..
        } = self.config;
        let own = self
            .links
            .get(record.link)
            .map_or_else(Load::default, |link| link.outstanding);
        self.config.overflow == OverflowPolicy::Evict
            || (self
                .outstanding
                .fits(record.bytes, queue_max_count, queue_max_bytes)
                && own.fits(record.bytes, link_queue_max_count, link_queue_max_bytes))
    }

    pub(crate) fn count_in(&mut self, record: &Record) {
        self.outstanding.add(record.bytes);
        if let Some(link) = self.links.get_mut(record.link) {
            link.outstanding.add(record.bytes);
        }
    }

    pub(crate) fn count_out(&mut self, record: &Record) {
        self.outstanding.remove(record.bytes);
        if let Key::Relayed(_) = record.key {
            self.relaying.remove(&record.key);
        }
        if let Some(link) = self.links.get_mut(record.link) {
            link.outstanding.remove(record.bytes);
            link.excess -= usize::from(record.is_excess);
        }
    }

    pub(crate) fn settle_evicted(&mut self, evicted: Vec<(Record, Evicted)>) {
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
        let reason = self.reason_now(reason);
        self.count_out(&record);
        self.take_withdrawn(record.link, &record);
        let call = record.own_id().and_then(|id| self.take_waiter(id));
        if let Some(waiter) = call {
            if record.was_submitted {
                self.give_up(&waiter);
            }
            self.reject_waiter(waiter, reason);
        }
        self.settle_undelivered(record.token, reason);
    }

    /// Ends a blocked record, which no count knows yet.
    pub(crate) fn fail_blocked(&mut self, record: Record, reason: Undelivered) {
        self.count_in(&record);
        self.fail(record, reason);
    }

    /// A link has gone offline: its blocked sends follow, unless they may wait there too.
    pub(crate) fn queue_blocked(&mut self, id: LinkId) {
        if self.config.overflow == OverflowPolicy::Wait {
            return;
        }
        for record in self.take_blocked(id, |_| true) {
            if self.take_withdrawn(id, &record) {
                continue;
            }
            // An error is settled already, and nobody else waits for it.
            let _ = self.queue(record);
        }
    }

    /// Takes some of a link's records out of the backlog; the others keep their places.
    pub(crate) fn take_queued(
        &mut self,
        id: LinkId,
        is_meant: impl Fn(&Self, &Record) -> bool,
    ) -> Vec<Record> {
        let queued = self
            .backlog
            .iter(&id)
            .filter(|record| is_meant(self, record));
        let keys: Vec<Key> = queued.map(|record| record.key.clone()).collect();
        keys.iter()
            .filter_map(|key| self.backlog.remove(key))
            .collect()
    }

    /// Takes a blocked record out; `false` if it is not there.
    pub(crate) fn remove_blocked(&mut self, id: LinkId, message: &MessageId) -> bool {
        let link = self.links.get_mut(id);
        link.is_some_and(|link| link.blocked.remove(message).is_some())
    }

    /// Takes some of a link's blocked sends out; the others keep their places.
    pub(crate) fn take_blocked(
        &mut self,
        id: LinkId,
        goes: impl Fn(&Record) -> bool,
    ) -> VecDeque<Record> {
        let Some(link) = self.links.get_mut(id) else {
            return VecDeque::new();
        };
        let gone = link.blocked.take(goes);
        if link.blocked.is_empty() && std::mem::take(&mut link.blocked.is_listed) {
            self.blocked.retain(|other| *other != id);
        }
        gone
    }

    /// Admits blocked sends of one link while there is room.
    pub(crate) fn unblock(&mut self, id: LinkId) {
        while self.unblock_one(id) {}
    }

    /// Admits the first blocked send of a link; `false` if there is none or no room for it.
    fn unblock_one(&mut self, id: LinkId) -> bool {
        let Some(record) = self.next_blocked(id) else {
            return false;
        };
        let passes = self.passes(&record);
        if !self.has_budget(&record) || !(passes || self.backlog.has_room_for(&record)) {
            if let Some(link) = self.links.get_mut(id) {
                link.blocked.push_front(record);
            }
            return false;
        }
        if let (true, Some(peer)) = (passes, self.peer_of(id)) {
            self.count_in(&record);
            self.submit(peer, record);
        } else {
            // It has room, and what went wrong all the same is settled already.
            let _ = self.queue(record);
        }
        true
    }

    /// The first blocked send of a link that its caller has not given up.
    fn next_blocked(&mut self, id: LinkId) -> Option<Record> {
        loop {
            let record = self.links.get_mut(id)?.blocked.pop_front()?;
            if !self.take_withdrawn(id, &record) {
                return Some(record);
            }
        }
    }

    fn passes(&self, record: &Record) -> bool {
        self.peer_of(record.link).is_some_and(|peer| {
            self.backlog.len_of(&record.link) == 0 && self.may_submit(peer, record)
        })
    }

    /// Gives room that has come free to whoever waits for it: replays first, then blocked sends,
    /// one a link in turn.
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
        let mut in_vain = 0;
        while in_vain < self.blocked.len() {
            let Some(id) = self.blocked.pop_front() else {
                break;
            };
            let is_admitted = self.unblock_one(id);
            let Some(link) = self.links.get_mut(id) else {
                continue;
            };
            if link.blocked.is_empty() {
                link.blocked.is_listed = false;
                continue;
            }
            if !is_admitted && self.is_full() {
                self.blocked.push_front(id);
                break;
            }
            in_vain = if is_admitted { 0 } else { in_vain + 1 };
            self.blocked.push_back(id);
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

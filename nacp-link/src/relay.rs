//! Routing, gateways, and apps behind them (specification, section 9).

use std::time::Instant;

use nacp_proto::{AppId, Decoded, MessageType, Response};

use crate::ids::LinkId;
use crate::incoming::Source;
use crate::link::Link;
use crate::node::{Node, half};
use crate::outgoing::Urgency;
use crate::peer::Inbound;
use crate::record::{Class, Key, Record};
use crate::report::{MessageReport, Reason};
use crate::timers::Timer;
use crate::{Cause, Content, Undelivered};

/// How often a message is sent through a gateway, in all.
const MAX_RELAY_TRIES: u8 = 3;

/// End-to-end beats in a row that may stay unanswered.
const MAX_UNANSWERED_BEATS: u8 = 2;

/// Apps behind one gateway that are remembered although nothing waits for them.
const MAX_IDLE_REMOTES: usize = 1024;

impl Node {
    /// The next hop to an app.
    pub(crate) fn route(&self, to: &AppId) -> Result<LinkId, Undelivered> {
        if *to == self.config.app_id {
            return Err(Undelivered::SelfAddressed);
        }
        if let Some(id) = self.by_app.get(to) {
            let is_leaving = self
                .links
                .get(*id)
                .is_none_or(|link| link.leaving.is_some());
            return if is_leaving {
                Err(Undelivered::PeerGone)
            } else {
                Ok(*id)
            };
        }
        self.gateway.ok_or(Undelivered::NoRoute)
    }

    pub(crate) fn is_second_gateway(&self, app: &AppId, is_gateway: bool) -> bool {
        let own = self.gateway.and_then(|id| self.links.get(id));
        is_gateway && own.is_some_and(|gateway| gateway.app != *app)
    }

    /// Makes a gateway this node's own if it has none; a second one stays a plain link.
    pub(crate) fn adopt(&mut self, id: LinkId) {
        let is_second = match self.links.get(id) {
            Some(link) if link.info.is_gateway => self.is_second_gateway(&link.app, true),
            Some(_) | None => return,
        };
        if !is_second {
            self.gateway = Some(id);
        }
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_new = is_second && !link.downgraded;
        link.downgraded = is_second;
        if is_new {
            let app = link.app.clone();
            self.report_downgrade(&app);
        }
    }

    /// The gateway is gone: the one that is linked longest takes its place.
    pub(crate) fn adopt_next(&mut self) {
        let candidates = self
            .links
            .iter()
            .filter(|(_, link)| link.info.is_gateway && link.leaving.is_none());
        self.gateway = candidates
            .min_by_key(|(_, link)| link.order)
            .map(|(id, _)| id);
        if let Some(link) = self.gateway.and_then(|id| self.links.get_mut(id)) {
            link.downgraded = false;
        }
    }

    /// A message for somebody else: forwarded byte for byte, or dropped.
    pub(crate) fn relay(&mut self, now: Instant, source: Source, inbound: Inbound) {
        let Inbound { bytes, decoded } = inbound;
        let envelope = decoded.envelope();
        let (from, to, id) = (
            envelope.from.clone(),
            envelope.to.clone(),
            envelope.id.clone(),
        );
        let message_type = decoded.message_type();
        let next = self
            .by_app
            .get(&to)
            .copied()
            .filter(|next| *next != source.link && self.config.is_gateway);
        let next = next.filter(|next| {
            let fits = self
                .links
                .get(*next)
                .is_some_and(|link| bytes.len() as u64 <= link.max_message_bytes());
            fits && message_type != Some(MessageType::Register)
        });
        let Some(next) = next else {
            return self.report_subject(
                MessageReport::GatewayError,
                Some(source.peer),
                &decoded,
                Reason::Dropped,
            );
        };
        if message_type == Some(MessageType::Ack) {
            return self.relay_ack(next, source, &decoded, Content::Encoded(bytes.into()));
        }
        let key = Key::Relayed(Box::new((from, id)));
        if self.is_relaying(next, &key) {
            return;
        }
        let droppable = message_type == Some(MessageType::Notify);
        let record = self.record(
            next,
            key,
            to,
            Class::Relayed { droppable },
            bytes.into(),
            None,
        );
        if self.admit(now, record, Urgency::Refused).is_ok() {
            self.report_forwarded(next, &decoded);
        }
    }

    fn relay_ack(&mut self, next: LinkId, source: Source, decoded: &Decoded, content: Content) {
        match self.links.get(next).and_then(Link::peer) {
            Some(peer) => {
                self.push_control(peer, content);
                self.report_forwarded(next, decoded);
            }
            None => self.report_subject(
                MessageReport::GatewayError,
                Some(source.peer),
                decoded,
                Reason::Dropped,
            ),
        }
    }

    /// Whether a copy of a relayed message is still on its way out.
    fn is_relaying(&self, next: LinkId, key: &Key) -> bool {
        if self.backlog.contains(key) {
            return true;
        }
        let peer = self
            .links
            .get(next)
            .and_then(Link::peer)
            .and_then(|peer| self.peers.get(peer));
        peer.is_some_and(|peer| peer.submitted_records().any(|record| record.key == *key))
    }

    /// The oldest un-ACKed record of a link may be due.
    pub(crate) fn acks_due(&mut self, now: Instant, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.acks = None;
            link.deferred.acks = false;
        }
        while let Some(record) = self.due_record(now, id) {
            let is_relayed = self.links.get(id).is_some_and(|link| link.app != record.to);
            if is_relayed {
                self.retry_relayed(now, id);
                continue;
            }
            if let Some(at) = self.deferred_until(now, id) {
                let acks = self.timers.arm_at(at, Timer::Acks(id));
                if let Some(link) = self.links.get_mut(id) {
                    link.acks = acks;
                    link.deferred.acks = true;
                }
                return;
            }
            if let Some(record) = self.due_record(now, id).cloned() {
                self.report_record(MessageReport::AckWarning, &record, Reason::Timeout);
            }
            return self.condemn(now, id, Cause::AckTimeout);
        }
        self.arm_acks(id);
        self.pump(id);
    }

    fn due_record(&self, now: Instant, id: LinkId) -> Option<&Record> {
        let (record, deadline) = self.pending.oldest(&id)?;
        deadline.is_some_and(|at| at <= now).then_some(record)
    }

    /// An ACK that did not come through a gateway: once more, but not for ever.
    fn retry_relayed(&mut self, now: Instant, id: LinkId) {
        let Some((oldest, _)) = self.pending.oldest(&id) else {
            return;
        };
        let key = oldest.key.clone();
        let Some(mut record) = self.pending.settle(&key) else {
            return;
        };
        record.tries += 1;
        if self.is_withdrawn(id, &record) {
            return self.fail(record, Undelivered::Timeout);
        }
        if record.tries >= MAX_RELAY_TRIES {
            self.report_record(MessageReport::AckWarning, &record, Reason::UnroutableRelay);
            return self.fail(record, Undelivered::UnroutableRelay);
        }
        self.report_record(MessageReport::AckWarning, &record, Reason::RelayRetry);
        record.seq = self.next_seq();
        self.count_out(&record);
        // What fails here has settled its waiter.
        let _ = self.admit(now, record, Urgency::Forced);
    }

    /// Something waits for an app behind a gateway: it is beaten end to end.
    pub(crate) fn use_remote(&mut self, now: Instant, id: LinkId, app: &AppId) {
        let Some(link) = self.links.get_mut(id).filter(|link| link.app != *app) else {
            return;
        };
        let remote = link.remotes.entry(app.clone()).or_default();
        remote.uses += 1;
        if remote.uses > 1 || remote.timer.is_some() {
            return;
        }
        self.arm_remote_beat(now, id, app);
    }

    fn arm_remote_beat(&mut self, now: Instant, id: LinkId, app: &AppId) {
        let Some(interval) = self.config.heartbeat_interval else {
            return;
        };
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_online = link.peer().is_some();
        let Some(remote) = link.remotes.get_mut(app).filter(|_| is_online) else {
            return;
        };
        if remote.asked {
            remote.timer = self
                .timers
                .arm(now, half(interval), Timer::RemoteBeat(id, app.clone()));
        } else {
            self.send_remote_beat(now, id, app);
        }
    }

    pub(crate) fn release_remote(&mut self, id: LinkId, app: &AppId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_crowded = link.remotes.len() > MAX_IDLE_REMOTES;
        let Some(remote) = link.remotes.get_mut(app) else {
            return;
        };
        remote.uses = remote.uses.saturating_sub(1);
        if remote.uses > 0 {
            return;
        }
        self.timers.disarm(&mut remote.timer);
        remote.unanswered = 0;
        if is_crowded {
            link.remotes.remove(app);
        }
    }

    /// The gateway is back: what waits behind it is beaten again.
    pub(crate) fn resume_remote_beats(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let mut used: Vec<AppId> = link
            .remotes
            .iter()
            .filter(|(_, remote)| remote.uses > 0)
            .map(|(app, _)| app.clone())
            .collect();
        used.sort_unstable();
        for app in used {
            self.arm_remote_beat(now, id, &app);
        }
    }

    fn send_remote_beat(&mut self, now: Instant, id: LinkId, app: &AppId) {
        let Some(peer) = self.links.get(id).and_then(Link::peer) else {
            return;
        };
        let beat = self.beat_to(now, id, peer, Some(app));
        let interval = self.config.heartbeat_interval;
        let timer = interval.and_then(|interval| {
            self.timers
                .arm(now, interval, Timer::RemoteBeat(id, app.clone()))
        });
        if let Some(remote) = self
            .links
            .get_mut(id)
            .and_then(|link| link.remotes.get_mut(app))
        {
            remote.asked = true;
            remote.outstanding = beat;
            remote.timer = timer;
        }
    }

    pub(crate) fn remote_beat_due(&mut self, now: Instant, id: LinkId, app: &AppId) {
        let Some(remote) = self
            .links
            .get_mut(id)
            .and_then(|link| link.remotes.get_mut(app))
        else {
            return;
        };
        remote.timer = None;
        if remote.outstanding.take().is_some() {
            remote.unanswered += 1;
        }
        if remote.unanswered < MAX_UNANSWERED_BEATS {
            return self.send_remote_beat(now, id, app);
        }
        remote.unanswered = 0;
        self.end_remote(id, app, Undelivered::UnroutableRelay);
    }

    /// Ends what waits for an app behind a gateway.
    pub(crate) fn end_remote(&mut self, id: LinkId, app: &AppId, reason: Undelivered) {
        let calls: Vec<_> = self
            .waiters
            .iter(&id)
            .filter(|(waiter, _)| waiter.to == *app)
            .map(|(waiter, _)| waiter.id.clone())
            .collect();
        for call in calls {
            self.reject_call(&call, reason);
        }
        self.end_streams(id, Some(app), reason);
    }

    /// `true` if the response is to an end-to-end beat. It tells the app's instance.
    pub(crate) fn remote_beat_answered(
        &mut self,
        now: Instant,
        source: Source,
        from: &AppId,
        response: &Response,
    ) -> bool {
        let Some(link) = self.links.get_mut(source.link) else {
            return false;
        };
        let Some(remote) = link.remotes.get_mut(from) else {
            return false;
        };
        if remote
            .outstanding
            .take_if(|id| *id == response.parent_id)
            .is_none()
        {
            return false;
        }
        remote.unanswered = 0;
        let before = remote.instance;
        remote.instance = response.instance.or(before);
        if before.is_some() && response.instance.is_some() && before != response.instance {
            self.lose_remote_session(now, source.link, from);
        }
        true
    }

    /// An app that was reached through a gateway is bound directly: what waits for it moves along.
    pub(crate) fn move_in(&mut self, id: LinkId) {
        let Some(app) = self.links.get(id).map(|link| link.app.clone()) else {
            return;
        };
        let behind: Vec<LinkId> = self
            .links
            .iter()
            .filter(|(other, link)| *other != id && link.info.is_gateway)
            .map(|(other, _)| other)
            .collect();
        for gateway in behind {
            self.move_records(gateway, id, &app);
            self.move_waiters(gateway, id, &app);
            self.move_tables(gateway, id, &app);
        }
    }

    fn move_records(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let is_meant =
            |record: &Record| record.to == *app && !matches!(record.class, Class::Relayed { .. });
        let (mut moved, pending): (Vec<_>, Vec<_>) = self
            .pending
            .drain(&gateway)
            .partition(|(record, _)| is_meant(record));
        for (record, deadline) in pending {
            // They have just been there, so they fit.
            let _ = self.pending.insert(record, deadline);
        }
        let peer = self.links.get(gateway).and_then(Link::peer);
        while let Some(record) = peer
            .and_then(|peer| self.peers.get_mut(peer))
            .and_then(|peer| peer.take_submitted(is_meant))
        {
            if record.is_acknowledged() {
                self.submitted.remove(record.bytes);
            }
            moved.push((record, None));
        }
        let (queued, stays): (Vec<_>, Vec<_>) = self.backlog.drain(&gateway).partition(is_meant);
        self.backlog.put_back(stays).for_each(drop);
        let mut records: Vec<Record> = moved
            .into_iter()
            .map(|(record, _)| record)
            .chain(queued)
            .collect();
        records.sort_by_key(|record| record.seq);
        for record in &mut records {
            record.link = id;
            record.tries = 0;
        }
        self.put_at_head(records);
    }

    fn move_waiters(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let (moved, stays): (Vec<_>, Vec<_>) = self
            .waiters
            .drain(&gateway)
            .partition(|(waiter, _)| waiter.to == *app);
        for (mut waiter, _) in moved {
            waiter.link = id;
            self.wait_for(waiter);
        }
        for (waiter, _) in stays {
            self.wait_for(waiter);
        }
    }

    fn move_tables(&mut self, gateway: LinkId, id: LinkId, app: &AppId) {
        let Some([from, to]) = self.links.get_disjoint_mut([gateway, id]) else {
            return;
        };
        if let Some(mut remote) = from.remotes.remove(app) {
            self.timers.disarm(&mut remote.timer);
        }
        to.subscriptions
            .extend(from.subscriptions.extract_if(|key, _| key.0 == *app));
        to.running
            .extend(from.running.extract_if(|key, _| key.0 == *app));
        let streams = &self.streams;
        let is_meant =
            |id: &crate::StreamId| streams.get(*id).is_some_and(|stream| stream.to == *app);
        to.streams
            .extend(from.streams.extract_if(|_, stream| is_meant(stream)));
        for subscription in to.subscriptions.values() {
            if let Some(subscription) = self.subscriptions.get_mut(*subscription) {
                subscription.link = id;
            }
        }
        for running in to.running.values() {
            if let Some(running) = self.running.get_mut(*running) {
                running.link = id;
            }
        }
        for stream in to.streams.values() {
            if let Some(stream) = self.streams.get_mut(*stream) {
                stream.link = id;
            }
        }
    }
}

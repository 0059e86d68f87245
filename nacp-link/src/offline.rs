//! What ends a bind, and what ends a link (specification, sections 4.3 and 4.5).

use std::time::Instant;

use nacp_proto::AppId;

use crate::ids::LinkId;
use crate::lifecycle::{self, Step};
use crate::link::{Place, Served};
use crate::node::{Node, Phase};
use crate::peer::Peer;
use crate::record::{Call, Record};
use crate::report::{MessageReport, Reason};
use crate::timers::Timer;
use crate::{Cause, Close, Event, LinkChange, LinkState, StreamEnd, Undelivered};

impl Node {
    /// A bound peer is no more. Its link waits for the app to come back.
    pub(crate) fn go_offline(&mut self, now: Instant, id: LinkId, mut peer: Peer, cause: Cause) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        if lifecycle::step(Some(link.state()), cause) != Ok(Step::Move(LinkState::Offline)) {
            return;
        }
        if link.leaving.is_some() {
            self.settle_records(id, peer.take_back(), Undelivered::PeerGone);
            return self.drop_link(now, id, Cause::Disconnecting);
        }
        link.place = Place::Offline;
        let contender = link.contender;
        self.stop_link_timers(id);
        let unaccepted = peer.take_back();
        if cause == Cause::Disconnected {
            self.count_disconnect(id, &unaccepted);
        }
        self.forget_sentinel(id);
        self.put_back(id, unaccepted);
        let grace = self
            .timers
            .arm(now, self.config.reconnect_grace, Timer::Grace(id));
        if let Some(link) = self.links.get_mut(id) {
            link.grace = grace;
        }
        self.announce(id, LinkState::Offline, cause, Reason::Offline);
        if let Some(contender) = contender {
            self.accept_held(now, contender);
        }
    }

    fn stop_link_timers(&mut self, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        self.timers.disarm(&mut link.acks);
        self.timers.disarm(&mut link.beat.next);
        self.timers.disarm(&mut link.beat.deferred_limit);
        for beat in link.beat.unanswered() {
            self.timers.disarm(&mut beat.limit);
        }
        link.beat.outstanding = None;
        link.beat.probe = None;
        link.deferred = crate::link::Deferred::default();
        for remote in link.remotes.values_mut() {
            self.timers.disarm(&mut remote.timer);
            remote.outstanding = None;
        }
    }

    /// A sentinel call belongs to its peer and ends with it.
    fn forget_sentinel(&mut self, id: LinkId) {
        let calls: Vec<_> = self
            .waiters
            .iter(&id)
            .filter(|(waiter, _)| matches!(waiter.call, Call::Sentinel(_)))
            .map(|(waiter, _)| waiter.id.clone())
            .collect();
        for call in calls {
            drop(self.take_waiter(&call));
        }
    }

    /// The poison rule: a record that was alone when the connection broke is suspected.
    fn count_disconnect(&mut self, id: LinkId, unaccepted: &[Record]) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.replay.row = link.replay.row.saturating_add(1);
        let is_alone = link.replay.alone
            && self.pending.len_of(&id) == 1
            && !unaccepted.iter().any(Record::is_acknowledged);
        if !is_alone {
            return;
        }
        let Some((mut record, deadline)) = self.pending.drain(&id).next() else {
            return;
        };
        record.strikes = record.strikes.saturating_add(1);
        if record.strikes >= self.config.poison_limit {
            self.report_record(MessageReport::BacklogWarning, &record, Reason::Poisoned);
            return self.fail(record, Undelivered::Poisoned);
        }
        // It has just been there, so it fits.
        let _ = self.pending.insert(record, deadline);
    }

    pub(crate) fn grace_ended(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.grace = None;
        let dial = self
            .dial_of
            .get(&link.app)
            .and_then(|dial| self.dials.get(*dial));
        if dial.is_some_and(|dial| dial.peer.is_some()) {
            link.grace_over = true;
            return;
        }
        self.drop_link(now, id, Cause::GraceEnded);
    }

    /// Our own register has failed after the grace had ended.
    pub(crate) fn end_late_grace(&mut self, now: Instant, app: &AppId) {
        let Some(id) = self.by_app.get(app).copied() else {
            return;
        };
        if self
            .links
            .get(id)
            .is_some_and(|link| link.grace_over && link.place == Place::Offline)
        {
            self.drop_link(now, id, Cause::GraceEnded);
        }
    }

    /// Forgets a link and settles everything that waits for it.
    pub(crate) fn drop_link(&mut self, now: Instant, id: LinkId, cause: Cause) {
        self.drop_link_and_close(now, id, cause, Close::Flush);
    }

    pub(crate) fn drop_link_and_close(
        &mut self,
        now: Instant,
        id: LinkId,
        cause: Cause,
        how: Close,
    ) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        if lifecycle::step(Some(link.state()), cause).is_err() {
            return;
        }
        let reason = self.reason_now(Undelivered::PeerGone);
        let unaccepted = self.detach_peer(id, cause, how);
        self.stop_link_timers(id);
        self.settle_records(id, unaccepted, reason);
        self.end_calls(id, reason);
        self.end_streams(id, None, reason);
        self.end_served(id, None, Served::ALL, reason);
        self.announce(id, LinkState::Dropped, cause, Reason::Dropped);
        self.remove_link(now, id);
    }

    /// Closes the peer of a link; what was submitted to it comes back.
    fn detach_peer(&mut self, id: LinkId, cause: Cause, how: Close) -> Vec<Record> {
        let Some(peer) = self.peer_of(id) else {
            return Vec::new();
        };
        let contender = self
            .links
            .get_mut(id)
            .and_then(|link| link.contender.take());
        let unaccepted = self
            .peers
            .get_mut(peer)
            .map(|peer| peer.take_back())
            .unwrap_or_default();
        self.close_peer(peer, how);
        if let Some(contender) = contender
            && cause != Cause::Terminated
        {
            self.held_after_drop.push(contender);
        }
        unaccepted
    }

    /// Settles what is on its way to an app, and what waits for it.
    pub(crate) fn settle_records(
        &mut self,
        id: LinkId,
        unaccepted: Vec<Record>,
        reason: Undelivered,
    ) {
        for record in &unaccepted {
            if record.is_acknowledged() {
                self.submitted.remove(record.bytes);
            }
        }
        let mut records: Vec<Record> = self.pending.drain(&id).map(|(record, _)| record).collect();
        records.extend(unaccepted);
        records.extend(self.backlog.drain(&id));
        for record in records {
            self.fail(record, reason);
        }
        for record in self.take_blocked(id, |_| true) {
            self.fail_blocked(record, reason);
        }
    }

    fn end_calls(&mut self, id: LinkId, reason: Undelivered) {
        let waiters: Vec<_> = self.waiters.drain(&id).map(|(waiter, _)| waiter).collect();
        for mut waiter in waiters {
            self.timers.disarm(&mut waiter.timer);
            self.reject_waiter(waiter, reason);
        }
    }

    /// Ends the user's subscriptions at an app, or at all apps of a link.
    pub(crate) fn end_streams(&mut self, id: LinkId, only: Option<&AppId>, reason: Undelivered) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let mut ids: Vec<_> = link.streams.values().copied().collect();
        ids.retain(|id| {
            self.streams
                .get(*id)
                .is_some_and(|stream| only.is_none_or(|app| stream.to == *app))
        });
        ids.sort_unstable();
        for stream in ids {
            if let Some(ended) = self.remove_stream(stream) {
                self.release_remote(ended.link, &ended.to);
            }
            self.tell(Event::StreamEnded {
                stream,
                reason: StreamEnd::Undelivered(reason),
            });
        }
    }

    fn remove_link(&mut self, now: Instant, id: LinkId) {
        let Some(mut link) = self.links.remove(id) else {
            return;
        };
        self.timers.disarm(&mut link.grace);
        for remote in link.remotes.values_mut() {
            self.timers.disarm(&mut remote.timer);
        }
        self.by_app.remove(&link.app);
        self.received.forget_source(&link.app);
        self.backlog.set_destination_caps(&id, None).for_each(drop);
        drop(self.pending.set_destination_caps(&id, None));
        self.gateways.retain(|gateway| *gateway != id);
        if self.gateway == Some(id) {
            self.adopt_next();
        }
        if let Some(mut leaving) = link.leaving {
            self.timers.disarm(&mut leaving.limit);
            for token in leaving.tokens {
                self.settle_delivered(Some(token));
            }
        }
        for contender in std::mem::take(&mut self.held_after_drop) {
            self.accept_held(now, contender);
        }
        if matches!(self.phase, Phase::Terminating { .. }) && self.links.is_empty() {
            self.finish_termination(now, Close::Flush);
        }
    }

    /// Tells of a link's new state, once.
    pub(crate) fn announce(&mut self, id: LinkId, state: LinkState, cause: Cause, reason: Reason) {
        let Some(link) = self.links.get(id) else {
            return;
        };
        let (app, is_gateway) = (link.app.clone(), link.info.is_gateway);
        self.report_app(&app, reason, None, None);
        self.tell(Event::Link(LinkChange {
            app,
            state,
            cause,
            resumed: None,
            is_gateway,
        }));
    }
}

//! Apps behind a gateway, beaten end to end while something waits for them (specification, section 5).

use std::time::Instant;

use nacp_proto::{AppId, Response};

use crate::Undelivered;
use crate::ids::LinkId;
use crate::incoming::Source;
use crate::node::{Node, half};
use crate::timers::Timer;

/// End-to-end beats in a row that may stay unanswered.
const MAX_UNANSWERED_BEATS: u8 = 2;

/// Apps behind one gateway that are remembered although nothing waits for them.
const MAX_IDLE_REMOTES: usize = 1024;

impl Node {
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
        let Some(peer) = self.peer_of(id) else {
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
            if let Some(waiter) = self.take_waiter(&call) {
                self.withdraw_call(&waiter);
                self.reject_waiter(waiter, reason);
            }
        }
        for stream in self.live_streams(id, Some(app)) {
            if let Some(stream) = self.streams.get(stream).map(|stream| stream.id.clone()) {
                self.remember_given_up(id, app, &stream);
            }
        }
        self.end_streams(id, Some(app), reason);
        self.pump(id);
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
        let (before, served) = (remote.instance, remote.served);
        remote.instance = response.instance.or(before);
        remote.served = self.served;
        if before.is_some() && response.instance.is_some() && before != response.instance {
            self.lose_remote_session(now, source.link, from, served);
        }
        true
    }
}

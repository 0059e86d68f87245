//! The heartbeat of links (specification, section 4.7), and limits that a large message defers.

use std::time::Instant;

use nacp_proto::{AppId, Body, Decoded, MessageId, Payload, RequestKind, Response};
use serde::Serialize;
use smol_str::SmolStr;

use crate::ids::LinkId;
use crate::incoming::Source;
use crate::link::OutstandingBeat;
use crate::node::{Node, half};
use crate::timers::{Timer, TimerHandle};
use crate::{Cause, Close, PeerId};

/// The ability that a beat asks for.
pub(crate) const HEARTBEAT: &str = "NApp.heartbeat";

impl Node {
    /// A link is bound: the dialler beats at once, the acceptor half an interval later.
    pub(crate) fn start_beat(&mut self, now: Instant, id: LinkId) {
        let Some(interval) = self.config.heartbeat_interval else {
            return;
        };
        let Some(link) = self.links.get_mut(id).filter(|link| link.peer().is_some()) else {
            return;
        };
        if link.dialled {
            return self.send_beat(now, id);
        }
        self.timers.disarm(&mut link.beat.next);
        link.beat.next = self.timers.arm(now, half(interval), Timer::Beat(id));
    }

    fn send_beat(&mut self, now: Instant, id: LinkId) {
        let Some(peer) = self.peer_of(id) else { return };
        let beat = self.outstanding_beat(now, id, peer);
        let next = self
            .config
            .heartbeat_interval
            .and_then(|interval| self.timers.arm(now, interval, Timer::Beat(id)));
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        self.timers.disarm(&mut link.beat.next);
        link.beat.next = next;
        link.beat.outstanding = beat;
    }

    fn outstanding_beat(
        &mut self,
        now: Instant,
        id: LinkId,
        peer: PeerId,
    ) -> Option<OutstandingBeat> {
        let beat = self.beat_to(now, id, peer, None)?;
        let control = self.peers.get(peer).map_or(0, |peer| peer.sent.control);
        Some(OutstandingBeat {
            id: beat,
            sent_at: now,
            control,
            acked: false,
            limit: None,
        })
    }

    /// Sends a beat to the app of a link, or to one behind it.
    pub(crate) fn beat_to(
        &mut self,
        now: Instant,
        id: LinkId,
        peer: PeerId,
        app: Option<&AppId>,
    ) -> Option<MessageId> {
        let to = app
            .cloned()
            .or_else(|| self.links.get(id).map(|link| link.app.clone()))?;
        let body = Body::Request {
            kind: RequestKind::Ability,
            target: Some(SmolStr::new_static(HEARTBEAT)),
            payload: beat_payload(&self.config.app_id),
        };
        Some(self.send_control(now, peer, &to, body))
    }

    /// Asks the peer of a link for a sign of life at once, beside the rhythm.
    pub(crate) fn probe(&mut self, now: Instant, id: LinkId, peer: PeerId) {
        let beat = self.outstanding_beat(now, id, peer);
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        // An earlier one that is not ACKed keeps its limit: the next does not put it off.
        let earlier = link.beat.probe.take();
        let limit = earlier.and_then(|earlier| earlier.limit);
        link.beat.probe = beat.map(|beat| OutstandingBeat { limit, ..beat });
    }

    /// The control lane is accepted so far: a beat within it now waits for its ACK.
    pub(crate) fn beat_accepted(&mut self, now: Instant, id: LinkId, accepted: u64) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        for beat in link.beat.unanswered() {
            if beat.limit.is_none() && !beat.acked && accepted >= beat.control {
                beat.limit = self
                    .timers
                    .arm(now, self.config.ack_timeout, Timer::BeatAck(id));
            }
        }
    }

    /// Whether a message is a beat or the answer to one. They are never replayed, so remembering
    /// them would only push out what is.
    pub(crate) fn is_beat(&mut self, source: Source, decoded: &Decoded) -> bool {
        let Decoded::Message(message) = decoded else {
            return false;
        };
        match &message.body {
            Body::Request {
                kind: RequestKind::Ability,
                target,
                ..
            } => target.as_deref() == Some(HEARTBEAT),
            Body::Response(response) => self.links.get_mut(source.link).is_some_and(|link| {
                let remote = link
                    .remotes
                    .get(&message.from)
                    .and_then(|remote| remote.outstanding.as_ref());
                let is_remote = remote == Some(&response.parent_id);
                is_remote
                    || link
                        .beat
                        .unanswered()
                        .any(|beat| beat.id == response.parent_id)
            }),
            Body::Register(_)
            | Body::Unregister
            | Body::Subscribe { .. }
            | Body::Unsubscribe { .. }
            | Body::Request { .. }
            | Body::Signal { .. }
            | Body::Notify { .. }
            | Body::Ack { .. } => false,
        }
    }

    /// `true` if the ACK is for a beat of this link.
    pub(crate) fn beat_acked(&mut self, source: Source, from: &AppId, id: &MessageId) -> bool {
        let Some(link) = self.links.get_mut(source.link) else {
            return false;
        };
        if link.app != *from {
            return link
                .remotes
                .get(from)
                .is_some_and(|remote| remote.outstanding.as_ref() == Some(id));
        }
        let Some(beat) = link.beat.unanswered().find(|beat| beat.id == *id) else {
            return false;
        };
        beat.acked = true;
        self.timers.disarm(&mut beat.limit);
        true
    }

    /// `true` if the response is to a beat of this link. Whatever it says, it proves life.
    pub(crate) fn beat_answered(
        &mut self,
        now: Instant,
        source: Source,
        from: &AppId,
        response: &Response,
    ) -> bool {
        let Some(link) = self
            .links
            .get_mut(source.link)
            .filter(|link| link.app == *from)
        else {
            return false;
        };
        let is_answered = |beat: &mut OutstandingBeat| beat.id == response.parent_id;
        if let Some(mut probe) = link.beat.probe.take_if(is_answered) {
            self.timers.disarm(&mut probe.limit);
            return true;
        }
        let Some(mut beat) = link.beat.outstanding.take_if(is_answered) else {
            return false;
        };
        link.beat.round_trip = Some(now.saturating_duration_since(beat.sent_at));
        self.timers.disarm(&mut beat.limit);
        if std::mem::take(&mut link.deferred.beat) {
            self.timers.disarm(&mut link.beat.next);
            self.send_beat(now, source.link);
        }
        true
    }

    /// A beat of the other side may bring ours forward, so that both share one rhythm.
    pub(crate) fn beat_received(&mut self, now: Instant, id: LinkId) {
        let Some(interval) = self.config.heartbeat_interval else {
            return;
        };
        let Some(link) = self
            .links
            .get_mut(id)
            .filter(|link| link.beat.outstanding.is_none())
        else {
            return;
        };
        let Some(sooner) = now.checked_add(half(interval)) else {
            return;
        };
        if link.beat.next.is_none_or(|(at, _)| at > sooner) {
            self.timers.disarm(&mut link.beat.next);
            link.beat.next = self.timers.arm_at(sooner, Timer::Beat(id));
        }
    }

    /// The next beat is due: the last one must have been answered.
    pub(crate) fn beat_due(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        link.beat.next = None;
        link.deferred.beat = false;
        if link.beat.outstanding.is_none() {
            return self.send_beat(now, id);
        }
        if let Some(at) = self.deferred_until(now, id) {
            let next = self.timers.arm_at(at, Timer::Beat(id));
            if let Some(link) = self.links.get_mut(id) {
                link.beat.next = next;
                link.deferred.beat = true;
            }
            return;
        }
        self.condemn(now, id, Cause::BeatTimeout);
    }

    /// A beat may not have been ACKed in time.
    pub(crate) fn beat_ack_due(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let is_due = |handle: TimerHandle| handle.is_some_and(|(at, _)| at <= now);
        if is_due(link.beat.deferred_limit) {
            link.beat.deferred_limit = None;
        }
        link.deferred.beat_ack = false;
        if !link
            .beat
            .unanswered()
            .any(|beat| !beat.acked && is_due(beat.limit))
        {
            return;
        }
        let Some(at) = self.deferred_until(now, id) else {
            return self.condemn(now, id, Cause::AckTimeout);
        };
        let limit = self.timers.arm_at(at, Timer::BeatAck(id));
        if let Some(link) = self.links.get_mut(id) {
            link.deferred.beat_ack = true;
            let mut earlier = std::mem::replace(&mut link.beat.deferred_limit, limit);
            self.timers.disarm(&mut earlier);
        }
    }

    /// A link's peer no longer counts as alive.
    pub(crate) fn condemn(&mut self, now: Instant, id: LinkId, cause: Cause) {
        if let Some(peer) = self.peer_of(id) {
            self.lose_peer(now, peer, cause, Close::Abort);
        }
    }

    /// While a large message keeps coming in from a link's peer: until when its limits wait.
    pub(crate) fn deferred_until(&mut self, now: Instant, id: LinkId) -> Option<Instant> {
        if !self.config.letter.defer_limits {
            return None;
        }
        let peer = self.links.get(id)?.peer()?;
        self.peers.get_mut(peer)?.growth.growing_until(now)
    }

    /// The large message is whole: limits that waited for it are due again.
    pub(crate) fn judge_deferred(&mut self, now: Instant, peer: PeerId) {
        let Some(id) = self.peers.get(peer).and_then(|peer| peer.bound_link()) else {
            return;
        };
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let deferred = std::mem::take(&mut link.deferred);
        if deferred.acks {
            self.timers.disarm(&mut link.acks);
            link.acks = self.timers.arm_at(now, Timer::Acks(id));
        }
        if deferred.beat {
            self.timers.disarm(&mut link.beat.next);
            link.beat.next = self.timers.arm_at(now, Timer::Beat(id));
        }
        if deferred.beat_ack {
            self.timers.disarm(&mut link.beat.deferred_limit);
            link.beat.deferred_limit = self.timers.arm_at(now, Timer::BeatAck(id));
        }
    }
}

fn beat_payload(from: &AppId) -> Payload {
    #[derive(Serialize)]
    struct Beat<'a> {
        from: &'a str,
    }
    Payload::new(&Beat {
        from: from.as_str(),
    })
    .unwrap_or_else(|_| Payload::empty())
}

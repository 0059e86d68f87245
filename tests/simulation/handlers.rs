//! What nodes tell their applications, and how their handlers answer.

use std::time::Duration;

use nacp_link::{
    Answer, Event, MessageReport, Reason, Report, Requested, RunningId, Subject, SubscriptionId,
    Undelivered, Verdict,
};
use nacp_proto::{AppId, Body, MessageId, RequestKind, Signal};

use super::life::{Run, Subscription};
use super::oracle::index;
use super::random::Random;
use super::sent::{Kind, uid_of, uid_of_pattern};
use super::world::{Happening, Phase, World};

impl World {
    /// Goes on with a handler.
    pub(crate) fn handle(&mut self, life: usize, id: RunningId) {
        if self.lives[life].is_alive {
            self.work(life, id);
            self.turn(life);
        }
    }

    pub(super) fn work(&mut self, life: usize, id: RunningId) {
        loop {
            let Some(run) = self.lives[life].running.get_mut(&id) else {
                return;
            };
            if run.items_left == 0 || run.cancelled.is_some() {
                return self.respond(life, id);
            }
            if run.is_paced && run.pacing.is_some() {
                return;
            }
            run.items_left -= 1;
            let (request, index, to) = (run.uid, run.items, run.from);
            run.items += 1;
            let token = self.call(life, to, Kind::Item { request, index }, None, false);
            if let Some(run) = self.lives[life].running.get_mut(&id) {
                run.pacing = Some(token.0);
            }
            let (payload, instant) = (self.payload(token.0), self.instant());
            self.lives[life]
                .node
                .process(instant, id, payload, Some(token));
        }
    }

    pub(super) fn respond(&mut self, life: usize, id: RunningId) {
        let Some(run) = self.lives[life].running.remove(&id) else {
            return;
        };
        self.lives[life].batch.answered.insert(id);
        for _ in 0..if run.is_twice { 2 } else { 1 } {
            let kind = Kind::Response {
                request: run.uid,
                items: run.is_event.then_some(run.items),
            };
            let token = self.call(life, run.from, kind, None, true);
            let (payload, instant) = (self.payload(token.0), self.instant());
            let answer = if token.0.is_multiple_of(8) {
                Answer::not_ok("nope", payload)
            } else {
                Answer::ok(payload)
            };
            self.lives[life]
                .node
                .respond(instant, id, answer, Some(token));
        }
    }

    /// The item that a paced handler waited for has settled.
    pub(crate) fn item_settled(&mut self, life: usize, uid: u64) {
        let paced = self.lives[life]
            .running
            .iter_mut()
            .find(|(_, run)| run.pacing == Some(uid));
        if let Some((id, run)) = paced {
            run.pacing = None;
            let id = *id;
            self.after(Duration::ZERO, Happening::Handle(life, id));
        }
    }

    pub(crate) fn event(&mut self, life: usize, event: Event) {
        match event {
            Event::Settled { token, settlement } => self.settled(life, token.0, settlement),
            Event::Authorize(authorize) => {
                let verdict = match self.random.below(20) {
                    0..=1 if self.phase == Phase::Busy => Verdict::Refuse,
                    2 if self.phase == Phase::Busy => Verdict::AdmitAnew,
                    3..=7 => Verdict::Admit,
                    _ => Verdict::AdmitProven,
                };
                let wait = self.random.millis(0, 600);
                self.after(wait, Happening::Decide(life, authorize.peer, verdict));
            }
            Event::Request(requested) => self.requested(life, requested),
            Event::Signal { signal, .. } => {
                if let Signal::Normal(payload) = signal {
                    self.reach(life, &payload);
                }
            }
            Event::Cancelled { running, reason } => self.cancelled(life, running, reason),
            Event::Process {
                request,
                token,
                payload,
                missed,
            } => {
                self.item_came(life, &request, token, &payload, missed);
            }
            Event::Notified {
                stream,
                payload,
                missed,
                ..
            } => self.hit_came(life, stream, &payload, missed),
            Event::StreamEnded { stream, reason } => self.stream_ended(life, stream, &reason),
            Event::Subscribed {
                subscription,
                app,
                pattern,
            } => {
                let app = self.app_of(&app);
                self.subscribed(life, subscription, app, &pattern);
            }
            Event::Unsubscribed { subscription } => {
                let held = self.lives[life].subscriptions.remove(&subscription);
                self.check(held.is_some(), || {
                    format!("life {life}: a subscription ends that was not held")
                });
            }
            Event::Link(change) => self.link_changed(life, &change),
            Event::Report(report) => self.reported(life, report),
            Event::Terminated => {
                let known = &mut self.lives[life];
                let is_first = !std::mem::replace(&mut known.has_ended, true);
                self.check(is_first, || format!("life {life} ends twice"));
            }
            other => self.fail(|| format!("life {life}: an unknown event {other:?}")),
        }
    }

    pub(super) fn requested(&mut self, life: usize, requested: Requested) {
        let Requested {
            running,
            from,
            kind,
            payload,
            ..
        } = requested;
        let Some(uid) = self.reach(life, &payload) else {
            return;
        };
        let from = self.app_of(&from);
        let mut random = Random::new(self.plan.seed ^ uid, 4);
        let is_event = kind == RequestKind::Event;
        let run = Run {
            uid,
            from,
            is_event,
            cancelled: None,
            items: 0,
            items_left: if is_event { random.below(9) } else { 0 },
            is_twice: random.percent(8),
            is_paced: random.percent(60),
            pacing: None,
        };
        self.lives[life].running.insert(running, run);
        match random.below(20) {
            _ if self.phase > Phase::Busy => self.work(life, running),
            0..=9 => self.work(life, running),
            10..=17 => {
                let wait = random.millis(0, 8000);
                self.after(wait, Happening::Handle(life, running));
            }
            // It never answers, as long as it is not made to.
            _ => {}
        }
    }

    pub(super) fn cancelled(&mut self, life: usize, running: RunningId, reason: Undelivered) {
        let run = self.lives[life].running.get_mut(&running);
        let is_first = run.is_some_and(|run| run.cancelled.replace(reason).is_none())
            || self.lives[life].batch.answered.contains(&running);
        self.check(is_first, || {
            format!("life {life}: a request is cancelled that does not run")
        });
        let wait = self.random.millis(0, 3000);
        self.after(wait, Happening::Handle(life, running));
    }

    pub(super) fn subscribed(
        &mut self,
        life: usize,
        id: SubscriptionId,
        app: usize,
        pattern: &str,
    ) {
        let Some(uid) = uid_of_pattern(pattern) else {
            return;
        };
        let sender = self.sent_of(uid).from;
        self.check(self.lives[sender].app == app, || {
            format!("#{uid} comes from another app")
        });
        let held = self.lives[life].subscriptions.values();
        let twins = held.filter(|held| held.uid == uid).count();
        // Behind a gateway, an impostor's answers look like a restart.
        let is_misled = self.had_impostor && self.plan.has_gateway;
        let sent = self.sent_of(uid);
        let is_excused = twins <= sent.lost_endings + sent.late_endings;
        self.check(is_excused || is_misled, || {
            format!("life {life}: the subscription of #{uid} is doubled")
        });
        if self.sent_of(uid).reached.is_empty() {
            self.reach_uid(life, uid);
        } else {
            self.stats.count("subscribed again");
        }
        self.kins += 1;
        let held = Subscription {
            uid,
            hits: 0,
            serial: self.kins,
        };
        self.lives[life].subscriptions.insert(id, held);
    }

    pub(super) fn reported(&mut self, life: usize, report: Report) {
        match report {
            Report::App { app, reason, .. } => {
                let app = self.app_of(&app);
                self.lives[life].batch.reports.push_back((app, reason));
            }
            Report::Message {
                kind,
                subject,
                reason,
                ..
            } => {
                self.stats.count(reason.as_str());
                self.message_reported(life, kind, reason, &subject);
            }
            Report::PeerError { reason, .. } => {
                self.stats.count(reason);
                let is_expected = matches!(reason, "handshake-timeout" | "limit-reached")
                    || self.plan.has_gateway;
                self.check(is_expected, || {
                    format!("life {life} closes a peer: {reason}")
                });
            }
            Report::RegisterWarning { reason, .. } => self.stats.count(reason.as_str()),
            _ => {}
        }
    }

    fn message_reported(
        &mut self,
        life: usize,
        kind: MessageReport,
        reason: Reason,
        subject: &Subject,
    ) {
        match (kind, &subject.body) {
            (
                MessageReport::SignalError,
                Some(Body::Signal {
                    signal: Signal::Normal(payload),
                    ..
                }),
            ) => {
                self.reach(life, payload);
            }
            (MessageReport::ResponseError, Some(Body::Response(response)))
                if uid_of(&response.payload) != Ok(None) =>
            {
                self.reach(life, &response.payload);
            }
            (MessageReport::InboundError | MessageReport::MessageError, _) => {
                let is_expected = self.plan.has_gateway;
                self.check(is_expected, || {
                    format!("life {life}: {reason} for {subject:?}")
                });
            }
            (MessageReport::GatewayError, Some(Body::Unsubscribe { target_sub_id })) => {
                self.ending_lost(life, &subject.envelope.from, target_sub_id);
            }
            (
                MessageReport::AckWarning
                | MessageReport::BacklogWarning
                | MessageReport::RouteError,
                body,
            ) => {
                if reason == Reason::PendingOverflow {
                    self.overflowed(life, &subject.envelope.id);
                }
                if let Some(Body::Unsubscribe { target_sub_id }) = body
                    && !matches!(reason, Reason::Timeout | Reason::RelayRetry)
                {
                    self.ending_lost(life, &subject.envelope.from, target_sub_id);
                }
                if is_by_node(body.as_ref()) {
                    let app = self.app_of(&subject.envelope.to);
                    self.lives[life].answers_lost.insert(app);
                }
            }
            _ => {}
        }
    }

    /// An unsubscribe of an app was lost with a reason: for good at the app itself; one that was
    /// lost on its way through a gateway comes again.
    fn ending_lost(&mut self, life: usize, from: &AppId, subscription: &MessageId) {
        let from = self.app_of(from);
        let mut senders = (0..self.lives.len()).filter(|sender| self.lives[*sender].app == from);
        let ended = senders.find_map(|sender| {
            let key = (sender, subscription.clone());
            self.subscribes.get(&key).copied()
        });
        let is_own = self.lives[life].app == from;
        if let Some(uid) = ended {
            let sent = &mut self.sent[index(uid)];
            sent.lost_endings += usize::from(is_own);
            sent.late_endings += usize::from(!is_own);
        }
    }
}

/// Whether the node itself answers or unsubscribes with a message.
fn is_by_node(body: Option<&Body>) -> bool {
    match body {
        Some(Body::Response(response)) => uid_of(&response.payload) == Ok(None),
        Some(Body::Unsubscribe { .. }) => true,
        _ => false,
    }
}

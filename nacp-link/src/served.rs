//! What other apps ask of this node: requests, signals, subscriptions.

use std::time::Instant;

use nacp_proto::{
    AppId, Body, Envelope, Message, MessageId, Outcome, Payload, RequestKind, Response, Signal,
};
use serde::Serialize;
use smol_str::SmolStr;

use crate::beat::HEARTBEAT;
use crate::exposure::{self, Exposure};
use crate::incoming::{Source, envelope_of};
use crate::link::{Running, Subscription};
use crate::node::Node;
use crate::outgoing::Urgency;
use crate::record::Class;
use crate::report::{MessageReport, Reason, Subject};
use crate::{Event, Requested, RunningId, Settlement, SubscriptionId, Token, Undelivered};

/// The answer of a handler.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    outcome: Outcome,
    payload: Payload,
}

impl Answer {
    /// It went well.
    pub const fn ok(payload: Payload) -> Self {
        Self {
            outcome: Outcome::Ok,
            payload,
        }
    }

    /// It did not, for a reason of the handler's own.
    pub fn not_ok(why: impl Into<SmolStr>, payload: Payload) -> Self {
        Self {
            outcome: Outcome::NotOk {
                why: Some(why.into()),
            },
            payload,
        }
    }

    /// `processor-failed`: the handler is unknown, failed or panicked.
    pub fn failed(error: &str) -> Self {
        Self::not_ok("processor-failed", error_payload(error))
    }

    /// `processor-rejected`: refused before it started, or the answer cannot be encoded.
    pub fn rejected(error: &str) -> Self {
        Self::not_ok("processor-rejected", error_payload(error))
    }

    /// `no-processor`: this node has no handlers of that kind at all.
    pub fn no_processor() -> Self {
        Self::not_ok("no-processor", Payload::empty())
    }
}

fn error_payload(error: &str) -> Payload {
    #[derive(Serialize)]
    struct Failure<'a> {
        error: &'a str,
    }
    Payload::new(&Failure { error }).unwrap_or_else(|_| Payload::empty())
}

impl Node {
    pub(crate) fn handle_request(&mut self, now: Instant, source: Source, message: Message) {
        let envelope = envelope_of(&message);
        let Body::Request {
            kind,
            target,
            payload,
        } = message.body
        else {
            return;
        };
        if kind == RequestKind::Ability && target.as_deref() == Some(HEARTBEAT) {
            return self.answer_beat(now, source, &envelope);
        }
        let Some(link) = self.links.get_mut(source.link) else {
            return;
        };
        if link.running.len() >= self.config.max_running {
            return self.answer_not_ok(now, &envelope, Some(kind), Reason::ProcessorRejected);
        }
        let (app, id) = (envelope.from, envelope.id);
        let running = self.running.insert(Running {
            link: source.link,
            app: app.clone(),
            id: id.clone(),
            kind,
            items: 0,
            cancelled: None,
        });
        link.running.insert((app.clone(), id.clone()), running);
        self.tell(Event::Request(Box::new(Requested {
            running,
            from: app,
            id,
            kind,
            target,
            payload,
        })));
    }

    /// Answers a request. The token settles as delivered when the answer is ACKed.
    ///
    /// A second answer settles `discarded` and sends nothing; one to a cancelled request settles
    /// with the reason it was cancelled for. An answer that is too large for the other side is
    /// replaced by `processor-rejected`, and settles `too-large`.
    pub fn respond(
        &mut self,
        now: Instant,
        running: RunningId,
        answer: Answer,
        token: Option<Token>,
    ) {
        let Some(run) = self.running.remove(running) else {
            return self.settle_undelivered(token, Undelivered::Discarded);
        };
        if let Some(reason) = run.cancelled {
            return self.settle_undelivered(token, reason);
        }
        if let Some(link) = self.links.get_mut(run.link) {
            link.running.remove(&(run.app.clone(), run.id.clone()));
        }
        if answer.outcome
            == (Outcome::NotOk {
                why: Some(SmolStr::new_static(Reason::NoProcessor.as_str())),
            })
        {
            self.report_request(&run, Reason::NoProcessor);
        }
        let is_too_large = self.send_answer(now, &run, answer, token) == Err(Undelivered::TooLarge);
        if is_too_large {
            let rejection = Answer::rejected("the answer is larger than the asking side takes");
            // Small enough for anyone; without a token nobody waits for it.
            let _ = self.send_answer(now, &run, rejection, None);
        }
        self.settle_room();
    }

    fn send_answer(
        &mut self,
        now: Instant,
        run: &Running,
        answer: Answer,
        token: Option<Token>,
    ) -> Result<(), Undelivered> {
        let seq = (run.kind == RequestKind::Event).then_some(run.items);
        let response = Response {
            parent_id: run.id.clone(),
            outcome: answer.outcome,
            kind: Some(run.kind),
            payload: answer.payload,
            seq,
            instance: None,
        };
        let message = {
            let id = self.fresh_id();
            self.message(now, id, run.app.clone(), Body::Response(response))
        };
        self.send_via(
            now,
            run.link,
            &message,
            Class::Response,
            token,
            Urgency::Forced,
        )
    }

    fn send_via(
        &mut self,
        now: Instant,
        link: crate::ids::LinkId,
        message: &Message,
        class: Class,
        token: Option<Token>,
        urgency: Urgency,
    ) -> Result<(), Undelivered> {
        match self.address(message, Some(link), class, token) {
            Ok(record) => self.admit(now, record, urgency),
            Err(reason) => {
                self.report_route_error(message, reason);
                self.settle_undelivered(token, reason);
                Err(reason)
            }
        }
    }

    /// Sends one process item of a running event to whoever asked for it. The token settles at the
    /// item's acceptance; until then the caller should not send the next, so that a handler faster
    /// than the link is slowed.
    pub fn process(
        &mut self,
        now: Instant,
        running: RunningId,
        payload: Payload,
        token: Option<Token>,
    ) {
        let run = match self.running.get_mut(running) {
            None => return self.settle_undelivered(token, Undelivered::Discarded),
            Some(Running {
                cancelled: Some(reason),
                ..
            }) => {
                let reason = *reason;
                return self.settle_undelivered(token, reason);
            }
            Some(run) => run,
        };
        let seq = run.items;
        run.items += 1;
        let (app, link, parent_id) = (run.app.clone(), run.link, run.id.clone());
        let name = SmolStr::from(format!("nacp:event:{}:process", parent_id.to_smol_str()));
        let body = Body::Notify {
            parent_id,
            target_sub_name: name.clone(),
            hit_sub_name: name,
            payload,
            seq: Some(seq),
        };
        let id = self.fresh_id();
        let message = self.message(now, id, app, body);
        // Its token, if it has one, is settled either way.
        let _ = self.send_via(now, link, &message, Class::Notify, token, Urgency::Waits);
        self.settle_room();
    }

    pub(crate) fn handle_signal(&mut self, source: Source, message: Message) {
        let Body::Signal { parent_id, .. } = &message.body else {
            return;
        };
        let key = (message.from.clone(), parent_id.clone());
        let running = self
            .links
            .get(source.link)
            .and_then(|link| link.running.get(&key))
            .copied();
        let kind = running
            .and_then(|running| self.running.get(running))
            .map(|run| run.kind);
        if let (Some(running), Some(RequestKind::Event)) = (running, kind) {
            let Body::Signal { signal, .. } = message.body else {
                return;
            };
            return self.tell_signal(running, signal);
        }
        let reason = if kind.is_some() {
            Reason::ProcessorRejected
        } else {
            Reason::NoEventProcessor
        };
        self.report_message(
            MessageReport::SignalError,
            Some(source.peer),
            reason,
            || Subject::from(&message),
        );
    }

    fn tell_signal(&mut self, running: RunningId, signal: Signal) {
        self.tell(Event::Signal { running, signal });
    }

    pub(crate) fn handle_subscribe(&mut self, now: Instant, source: Source, message: Message) {
        let Body::Subscribe {
            target_sub_name: pattern,
        } = &message.body
        else {
            return;
        };
        let envelope = envelope_of(&message);
        if let Some(reason) = self.subscription_refusal(source, pattern) {
            self.report_message(
                MessageReport::SubscribeError,
                Some(source.peer),
                reason,
                || Subject::from(&message),
            );
            return self.answer_not_ok(now, &envelope, None, reason);
        }
        let (app, id, pattern) = (envelope.from.clone(), envelope.id.clone(), pattern.clone());
        let subscription = self.subscriptions.insert(Subscription {
            link: source.link,
            app: app.clone(),
            id: id.clone(),
            pattern: pattern.clone(),
            items: 0,
        });
        if let Some(link) = self.links.get_mut(source.link)
            && let Some(replaced) = link
                .subscriptions
                .insert((app.clone(), id.clone()), subscription)
        {
            self.subscriptions.remove(replaced);
            self.tell(Event::Unsubscribed {
                subscription: replaced,
            });
        }
        self.tell(Event::Subscribed {
            subscription,
            app,
            pattern,
        });
        self.answer(now, &envelope, Outcome::Ok, subscription_payload(&id));
    }

    fn subscription_refusal(&self, source: Source, pattern: &str) -> Option<Reason> {
        let held = self
            .links
            .get(source.link)
            .map_or(0, |link| link.subscriptions.len());
        if pattern.is_empty() {
            return Some(Reason::BadTargetSubName);
        }
        if pattern.len() > self.config.max_pattern_bytes || held >= self.config.max_subscriptions {
            return Some(Reason::LimitReached);
        }
        match exposure::of_pattern(pattern, self.config.expose_internal_events) {
            Exposure::Some => None,
            Exposure::SelfExciting => Some(Reason::SelfExciting),
            Exposure::None => Some(Reason::NotExposed),
        }
    }

    pub(crate) fn handle_unsubscribe(&mut self, now: Instant, source: Source, message: Message) {
        let Body::Unsubscribe { target_sub_id } = &message.body else {
            return;
        };
        let key = (message.from.clone(), target_sub_id.clone());
        let removed = self
            .links
            .get_mut(source.link)
            .and_then(|link| link.subscriptions.remove(&key));
        match removed {
            Some(subscription) => {
                self.subscriptions.remove(subscription);
                self.tell(Event::Unsubscribed { subscription });
                self.answer(now, &envelope_of(&message), Outcome::Ok, Payload::empty());
            }
            None => {
                let reason = Reason::UnknownSubscription;
                self.report_message(
                    MessageReport::SubscribeError,
                    Some(source.peer),
                    reason,
                    || Subject::from(&message),
                );
                self.answer_not_ok(now, &envelope_of(&message), None, reason);
            }
        }
    }

    /// An event of our bus has hit a remote app's subscription.
    ///
    /// Events that must not leave the node are passed over, and so is an ended subscription.
    pub fn notify(
        &mut self,
        now: Instant,
        subscription: SubscriptionId,
        hit_sub_name: &SmolStr,
        payload: Payload,
        token: Option<Token>,
    ) {
        let exposes = self.config.expose_internal_events;
        let Some(held) = self
            .subscriptions
            .get_mut(subscription)
            .filter(|held| exposure::may_forward(&held.pattern, hit_sub_name, exposes))
        else {
            return self.settle_undelivered(token, Undelivered::Discarded);
        };
        let seq = held.items;
        held.items += 1;
        let (app, link) = (held.app.clone(), held.link);
        let body = Body::Notify {
            parent_id: held.id.clone(),
            target_sub_name: held.pattern.clone(),
            hit_sub_name: hit_sub_name.clone(),
            payload,
            seq: Some(seq),
        };
        let id = self.fresh_id();
        let message = self.message(now, id, app, body);
        // Its token, if it has one, is settled either way.
        let _ = self.send_via(now, link, &message, Class::Notify, token, Urgency::Refused);
    }

    fn answer(&mut self, now: Instant, to: &Envelope, outcome: Outcome, payload: Payload) {
        self.answer_kind(now, to, None, outcome, payload);
    }

    pub(crate) fn answer_not_ok(
        &mut self,
        now: Instant,
        to: &Envelope,
        kind: Option<RequestKind>,
        reason: Reason,
    ) {
        let why = Some(SmolStr::new_static(reason.as_str()));
        self.answer_kind(now, to, kind, Outcome::NotOk { why }, Payload::empty());
    }

    fn answer_kind(
        &mut self,
        now: Instant,
        to: &Envelope,
        kind: Option<RequestKind>,
        outcome: Outcome,
        payload: Payload,
    ) {
        let response = Response {
            parent_id: to.id.clone(),
            outcome,
            kind,
            payload,
            seq: None,
            instance: None,
        };
        // Without a token nobody waits for it.
        let _ = self.dispatch(
            now,
            &to.from,
            (Class::Response, Body::Response(response)),
            None,
            Urgency::Forced,
        );
    }

    fn answer_beat(&mut self, now: Instant, source: Source, to: &Envelope) {
        let is_direct = self
            .links
            .get(source.link)
            .is_some_and(|link| link.app == to.from);
        let response = Response {
            parent_id: to.id.clone(),
            outcome: Outcome::Ok,
            kind: Some(RequestKind::Ability),
            payload: Payload::new(&true).unwrap_or_else(|_| Payload::empty()),
            seq: None,
            instance: (!is_direct).then_some(self.instance),
        };
        let id = self.send_control(now, source.peer, &to.from, Body::Response(response));
        self.expect_ack(source.peer, id);
        if is_direct {
            self.beat_received(now, source.link);
        }
    }

    pub(crate) fn expect_ack(&mut self, peer: crate::PeerId, id: MessageId) {
        if let Some(peer) = self.peers.get_mut(peer) {
            peer.expect_ack(id);
        }
    }

    /// Ends everything that an app holds here: its handlers and its subscriptions.
    pub(crate) fn end_served(
        &mut self,
        link: crate::ids::LinkId,
        app: Option<&AppId>,
        reason: Undelivered,
    ) {
        let Some(known) = self.links.get_mut(link) else {
            return;
        };
        let is_meant = |key: &(AppId, MessageId)| app.is_none_or(|app| key.0 == *app);
        let mut running: Vec<_> = known
            .running
            .extract_if(|key, _| is_meant(key))
            .map(|(_, id)| id)
            .collect();
        let mut subscriptions: Vec<_> = known
            .subscriptions
            .extract_if(|key, _| is_meant(key))
            .map(|(_, id)| id)
            .collect();
        running.sort_unstable();
        subscriptions.sort_unstable();
        for running in running {
            if let Some(run) = self.running.get_mut(running) {
                run.cancelled = Some(reason);
                self.tell(Event::Cancelled { running, reason });
            }
        }
        for subscription in subscriptions {
            self.subscriptions.remove(subscription);
            self.tell(Event::Unsubscribed { subscription });
        }
    }

    pub(crate) fn settle_delivered(&mut self, token: Option<Token>) {
        self.settle(token, Settlement::Delivered);
    }
}

fn subscription_payload(id: &MessageId) -> Payload {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Granted<'a> {
        target_sub_id: &'a str,
    }
    Payload::new(&Granted {
        target_sub_id: id.to_smol_str().as_str(),
    })
    .unwrap_or_else(|_| Payload::empty())
}

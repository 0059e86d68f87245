//! What other apps ask of this node: requests, signals, subscriptions.

use std::time::Instant;

use nacp_proto::{
    AppId, Body, Envelope, Message, MessageId, Outcome, Payload, RequestKind, Response, Signal,
};
use serde::Serialize;
use smol_str::SmolStr;

use crate::admission::Urgency;
use crate::beat::HEARTBEAT;
use crate::ids::LinkId;
use crate::incoming::{Source, envelope_of};
use crate::link::{Running, Served};
use crate::node::Node;
use crate::record::Class;
use crate::report::{MessageReport, Reason, Subject};
use crate::{Event, Requested, RunningId, Settlement, Token, Undelivered};

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
        // Answers that wait for room count, so that asking without reading stays bounded.
        if link.running.len() + link.blocked.answers() >= self.config.max_running {
            return self.answer_not_ok(
                now,
                source.link,
                &envelope,
                Some(kind),
                Reason::ProcessorRejected,
            );
        }
        let (app, id) = (envelope.from, envelope.id);
        if link.running.contains_key(&(app.clone(), id.clone())) {
            // A repeat that the dedup window no longer holds.
            return;
        }
        self.served.0 += 1;
        let running = self.running.insert(Running {
            link: source.link,
            app: app.clone(),
            id: id.clone(),
            kind,
            items: 0,
            cancelled: None,
            since: self.served,
        });
        link.running.insert((app.clone(), id.clone()), running);
        self.tell(Event::Request(Requested {
            running,
            from: app,
            id,
            kind,
            target,
            payload,
        }));
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
        let sent = self.send_answer(now, &run, answer, token, Urgency::Waits);
        let is_too_large = sent == Err(Undelivered::TooLarge);
        if is_too_large {
            let rejection = Answer::rejected("the answer is larger than the asking side takes");
            // Small enough for anyone; without a token nobody waits for it.
            let _ = self.send_answer(now, &run, rejection, None, Urgency::Forced);
        }
        self.settle_room();
    }

    fn send_answer(
        &mut self,
        now: Instant,
        run: &Running,
        answer: Answer,
        token: Option<Token>,
        urgency: Urgency,
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
        self.send_via(now, run.link, &message, Class::Response, token, urgency)
    }

    pub(crate) fn send_via(
        &mut self,
        now: Instant,
        link: LinkId,
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

    /// Sends one process item of a running event to whoever asked for it; an ability has no stream,
    /// and its items settle `discarded`. The token settles at the
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
            Some(run) if run.kind == RequestKind::Ability => {
                return self.settle_undelivered(token, Undelivered::Discarded);
            }
            Some(run) => run,
        };
        let seq = run.items;
        run.items += 1;
        let (app, link, parent_id) = (run.app.clone(), run.link, run.id.clone());
        let name = process_name(&parent_id);
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

    /// Sends the node's own answer by the way that the question came.
    pub(crate) fn answer(&mut self, now: Instant, link: LinkId, to: &AppId, response: Response) {
        let id = self.fresh_id();
        let message = self.message(now, id, to.clone(), Body::Response(response));
        // Without a token nobody waits for it.
        let _ = self.send_via(now, link, &message, Class::Response, None, Urgency::Forced);
    }

    pub(crate) fn answer_not_ok(
        &mut self,
        now: Instant,
        link: LinkId,
        to: &Envelope,
        kind: Option<RequestKind>,
        reason: Reason,
    ) {
        let response = Response {
            kind,
            ..Response::not_ok(to.id.clone(), reason.as_str())
        };
        self.answer(now, link, &to.from, response);
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
    /// Ends what a link, or one app of it, was served up to then.
    pub(crate) fn end_served(
        &mut self,
        link: LinkId,
        app: Option<&AppId>,
        until: Served,
        reason: Undelivered,
    ) {
        let reason = self.reason_now(reason);
        let Some(known) = self.links.get_mut(link) else {
            return;
        };
        let is_meant = |key: &(AppId, MessageId)| app.is_none_or(|app| key.0 == *app);
        let mut running: Vec<_> = known
            .running
            .extract_if(|key, id| {
                let since = self.running.get(*id).map(|running| running.since);
                is_meant(key) && since.is_none_or(|since| since <= until)
            })
            .map(|(_, id)| id)
            .collect();
        let mut subscriptions: Vec<_> = known
            .subscriptions
            .extract_if(|key, id| {
                let since = self.subscriptions.get(*id).map(|held| held.since);
                is_meant(key) && since.is_none_or(|since| since <= until)
            })
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

/// The name that process items of a request carry on the wire, where nothing is escaped.
fn process_name(request: &MessageId) -> SmolStr {
    smol_str::format_smolstr!("nacp:event:{}:process", request.to_smol_str())
}

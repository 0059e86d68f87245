//! Requests, subscriptions and signals of this node, and their answers.

use std::time::{Duration, Instant};

use nacp_proto::{
    AppId, Body, Message, MessageId, Outcome, Payload, RequestKind, Response, Signal,
};
use smol_str::SmolStr;

use crate::ids::LinkId;
use crate::incoming::Source;
use crate::link::Stream;
use crate::node::Node;
use crate::outgoing::Urgency;
use crate::record::{Call, Class, Items, Waiter};
use crate::report::{MessageReport, Reason, Subject};
use crate::timers::Timer;
use crate::{Answered, Event, Settlement, StreamEnd, StreamId, Token, Undelivered};

/// A request of ours: see [`Node::request`].
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// Whom it is for.
    pub to: AppId,
    /// Ability or event.
    pub kind: RequestKind,
    /// The name of the ability or event.
    pub target: SmolStr,
    /// The argument.
    pub payload: Payload,
    /// How long to wait for the answer, from the call; `None` waits as long as the link is kept.
    pub limit: Option<Duration>,
}

impl Node {
    /// Calls an ability or starts an event at another app.
    ///
    /// The token settles as [`Settlement::Answered`] or [`Settlement::Undelivered`], exactly once.
    /// Process items of an event come as [`Event::Process`] before that. Returns the request's id,
    /// or `None` if it settled at once.
    ///
    /// At its limit a request is withdrawn: it leaves the backlog, and is not sent again; if it
    /// was on its way, it may still be handled, and its answer is then `has-no-consumer`.
    pub fn request(
        &mut self,
        now: Instant,
        request: Request,
        token: Option<Token>,
    ) -> Option<MessageId> {
        let Request {
            to,
            kind,
            target,
            payload,
            limit,
        } = request;
        let items = (kind == RequestKind::Event).then(Items::default);
        let body = Body::Request {
            kind,
            target: Some(target),
            payload,
        };
        let id = self.call(
            now,
            &to,
            Call::Request,
            body,
            CallOptions {
                token,
                limit,
                items,
                urgency: Urgency::Waits,
            },
        );
        self.settle_room();
        id
    }

    /// Gives up waiting for the answer to a request. The request itself is still delivered.
    /// Unknown ids are ignored.
    pub fn abandon(&mut self, id: &MessageId) {
        if let Some(waiter) = self.take_waiter(id) {
            self.release_remote(waiter.link, &waiter.to);
        }
    }

    /// Tells a running event of another app something. Settles as delivered when it is ACKed,
    /// whether or not something still runs there.
    pub fn signal(
        &mut self,
        now: Instant,
        to: &AppId,
        request: MessageId,
        signal: Signal,
        token: Option<Token>,
    ) {
        if !self.accepts_calls(token) {
            return;
        }
        let body = Body::Signal {
            parent_id: request,
            signal,
        };
        // Its token, if it has one, is settled either way.
        let _ = self.dispatch(now, to, (Class::Signal, body), token, Urgency::Waits);
        self.settle_room();
    }

    /// Listens on another app's bus. The token settles with the answer; hits come as
    /// [`Event::Notified`]. Returns the subscription, or `None` if the call settled at once.
    pub fn subscribe(
        &mut self,
        now: Instant,
        to: &AppId,
        pattern: SmolStr,
        token: Option<Token>,
    ) -> Option<StreamId> {
        let body = Body::Subscribe {
            target_sub_name: pattern.clone(),
        };
        let limit = Some(self.config.response_timeout);
        let options = CallOptions {
            token,
            limit,
            items: None,
            urgency: Urgency::Waits,
        };
        let id = self.call(now, to, Call::Subscribe, body, options)?;
        let link = self.waiters.get(&id).map(|waiter| waiter.link);
        let stream = link.map(|link| {
            let (to, items) = (to.clone(), Items::default());
            let stream = self.streams.insert(Stream {
                link,
                to,
                pattern,
                id: id.clone(),
                items,
                live: false,
            });
            if let Some(link) = self.links.get_mut(link) {
                link.streams.insert(id, stream);
            }
            stream
        });
        self.settle_room();
        stream
    }

    /// Ends a subscription of ours: no hit is told after this. The token settles with the answer.
    /// An unknown subscription settles as delivered, for there is nothing left to end.
    pub fn unsubscribe(&mut self, now: Instant, stream: StreamId, token: Option<Token>) {
        let Some(ended) = self.remove_stream(stream) else {
            return self.settle(token, Settlement::Delivered);
        };
        if let Some(waiter) = self.take_waiter(&ended.id) {
            self.release_remote(waiter.link, &waiter.to);
            self.settle_undelivered(waiter.token, Undelivered::Discarded);
        }
        self.release_remote(ended.link, &ended.to);
        if let Some(record) = self.backlog.remove(&Self::own_key(&ended.id)) {
            self.count_out(&record);
            if !record.was_accepted {
                self.settle(token, Settlement::Delivered);
                return self.settle_room();
            }
        }
        self.send_unsubscribe(now, &ended.to, ended.id, token);
        self.settle_room();
    }

    pub(crate) fn send_unsubscribe(
        &mut self,
        now: Instant,
        to: &AppId,
        id: MessageId,
        token: Option<Token>,
    ) {
        let body = Body::Unsubscribe { target_sub_id: id };
        let limit = Some(self.config.response_timeout);
        let options = CallOptions {
            token,
            limit,
            items: None,
            urgency: Urgency::Forced,
        };
        self.call(now, to, Call::Unsubscribe, body, options);
    }

    /// Whether calls are still taken; settles the token if they are not.
    pub(crate) fn accepts_calls(&mut self, token: Option<Token>) -> bool {
        if !self.is_running() {
            self.settle_undelivered(token, Undelivered::Terminated);
        }
        self.is_running()
    }

    pub(crate) fn call(
        &mut self,
        now: Instant,
        to: &AppId,
        call: Call,
        body: Body,
        options: CallOptions,
    ) -> Option<MessageId> {
        let CallOptions {
            token,
            limit,
            items,
            urgency,
        } = options;
        if !self.accepts_calls(token) {
            return None;
        }
        let id = self.fresh_id();
        let message = self.message(now, id.clone(), to.clone(), body);
        let record = match self.address(&message, None, Class::Call(call), None) {
            Ok(record) => record,
            Err(reason) => {
                self.report_route_error(&message, reason);
                self.settle_undelivered(token, reason);
                return None;
            }
        };
        let timer = limit.and_then(|limit| self.timers.arm(now, limit, Timer::Call(id.clone())));
        let (link, seq) = (record.link, record.seq);
        self.wait_for(Waiter {
            id: id.clone(),
            link,
            to: to.clone(),
            call,
            token,
            seq,
            timer,
            items,
        });
        self.use_remote(now, link, to);
        // What fails here has rejected the call through its waiter.
        let admitted = self.admit(now, record, urgency);
        admitted.ok().map(|()| id)
    }

    pub(crate) fn wait_for(&mut self, waiter: Waiter) {
        // The table has no caps, so nothing is evicted, and ids are fresh, so nothing is refused.
        let _ = self.waiters.insert(waiter, None);
    }

    /// Takes a call's waiter, with its deadline disarmed.
    pub(crate) fn take_waiter(&mut self, id: &MessageId) -> Option<Waiter> {
        let mut waiter = self.waiters.settle(id)?;
        self.timers.disarm(&mut waiter.timer);
        Some(waiter)
    }

    /// Ends a call without an answer.
    pub(crate) fn reject_call(&mut self, id: &MessageId, reason: Undelivered) {
        let Some(waiter) = self.take_waiter(id) else {
            return;
        };
        self.reject_waiter(waiter, reason);
    }

    pub(crate) fn reject_waiter(&mut self, waiter: Waiter, reason: Undelivered) {
        self.release_remote(waiter.link, &waiter.to);
        if waiter.call == Call::Subscribe {
            self.end_stream_of(waiter.link, &waiter.id, StreamEnd::Undelivered(reason));
        }
        self.settle_undelivered(waiter.token, reason);
    }

    /// Ends the stream of a subscribe that failed: told only if the user has it.
    fn end_stream_of(&mut self, link: LinkId, id: &MessageId, reason: StreamEnd) {
        let stream = self
            .links
            .get(link)
            .and_then(|link| link.streams.get(id))
            .copied();
        let Some(id) = stream else { return };
        let Some(stream) = self.remove_stream(id) else {
            return;
        };
        self.release_remote(stream.link, &stream.to);
        if stream.live {
            self.tell(Event::StreamEnded { stream: id, reason });
        }
    }

    pub(crate) fn remove_stream(&mut self, id: StreamId) -> Option<Stream> {
        let stream = self.streams.remove(id)?;
        if let Some(link) = self.links.get_mut(stream.link) {
            link.streams.remove(&stream.id);
        }
        Some(stream)
    }

    /// A call has reached its own limit: it is withdrawn from wherever it is.
    pub(crate) fn call_timed_out(&mut self, id: &MessageId) {
        let Some(waiter) = self.take_waiter(id) else {
            return;
        };
        let link = waiter.link;
        match self.backlog.remove(&Self::own_key(id)) {
            Some(record) => self.count_out(&record),
            None if self.is_on_its_way(link, id) => {
                if let Some(link) = self.links.get_mut(link) {
                    link.withdrawn.insert(id.clone());
                }
            }
            None => {}
        }
        self.reject_waiter(waiter, Undelivered::Timeout);
        self.pump(link);
    }

    /// Whether a record is blocked, submitted or un-ACKed.
    pub(crate) fn is_on_its_way(&self, link: LinkId, id: &MessageId) -> bool {
        if self.pending.contains(&Self::own_key(id)) {
            return true;
        }
        let Some(link) = self.links.get(link) else {
            return false;
        };
        let peer = link.peer().and_then(|peer| self.peers.get(peer));
        link.blocked
            .iter()
            .any(|record| record.own_id() == Some(id))
            || peer.is_some_and(|peer| {
                peer.submitted_records()
                    .any(|record| record.own_id() == Some(id))
            })
    }

    pub(crate) fn handle_response(&mut self, now: Instant, source: Source, message: Message) {
        let Message {
            body: Body::Response(response),
            from,
            ..
        } = &message
        else {
            return;
        };
        let is_awaited = self
            .waiters
            .get(&response.parent_id)
            .is_some_and(|waiter| waiter.to == *from);
        if !is_awaited {
            if self.beat_answered(now, source, from, response)
                || self.remote_beat_answered(now, source, from, response)
            {
                return;
            }
            return self.handle_stray_response(now, source, &message);
        }
        let Some(waiter) = self.take_waiter(&response.parent_id) else {
            return;
        };
        if let Some(record) = self.backlog.remove(&Self::own_key(&waiter.id)) {
            self.count_out(&record);
        }
        self.settle_answered(now, waiter, response.clone());
    }

    fn settle_answered(&mut self, now: Instant, waiter: Waiter, response: Response) {
        self.release_remote(waiter.link, &waiter.to);
        match waiter.call {
            Call::Subscribe => self.subscribe_answered(&waiter, &response),
            Call::Unregister => return self.good_bye_done(now, waiter.link),
            Call::Sentinel(sentinel) => {
                return self.sentinel_answered(now, &waiter, sentinel, &response);
            }
            Call::Request | Call::Unsubscribe => {}
        }
        let missed = waiter
            .items
            .as_ref()
            .and_then(|items| items.finish(response.seq));
        self.settle(
            waiter.token,
            Settlement::Answered(Box::new(Answered { response, missed })),
        );
    }

    fn subscribe_answered(&mut self, waiter: &Waiter, response: &Response) {
        match &response.outcome {
            Outcome::Ok => {
                let stream = self
                    .links
                    .get(waiter.link)
                    .and_then(|link| link.streams.get(&waiter.id));
                if let Some(stream) = stream.and_then(|stream| self.streams.get_mut(*stream)) {
                    stream.live = true;
                }
            }
            Outcome::NotOk { why } => {
                self.end_stream_of(
                    waiter.link,
                    &waiter.id,
                    StreamEnd::Refused { why: why.clone() },
                );
            }
        }
    }

    /// An answer that nobody waits for. If it grants a subscription that was given up, the
    /// subscription is ended again.
    fn handle_stray_response(&mut self, now: Instant, source: Source, message: &Message) {
        let Body::Response(response) = &message.body else {
            return;
        };
        if response.outcome == Outcome::Ok
            && response.kind.is_none()
            && grants_subscription(response)
        {
            let known = self
                .links
                .get(source.link)
                .is_some_and(|link| link.streams.contains_key(&response.parent_id));
            if !known && self.is_running() {
                return self.send_unsubscribe(now, &message.from, response.parent_id.clone(), None);
            }
        }
        self.report_message(
            MessageReport::ResponseError,
            Some(source.peer),
            Reason::HasNoConsumer,
            || Subject::from(message),
        );
    }

    pub(crate) fn handle_notify(&mut self, source: Source, message: Message) {
        let Body::Notify {
            parent_id,
            hit_sub_name,
            payload,
            seq,
            ..
        } = &message.body
        else {
            return;
        };
        let stream = self
            .links
            .get(source.link)
            .and_then(|link| link.streams.get(parent_id))
            .copied();
        if let Some(id) = stream
            && let Some(stream) = self
                .streams
                .get_mut(id)
                .filter(|stream| stream.to == message.from)
        {
            let missed = stream.items.take(*seq);
            let (from, hit_sub_name, payload) =
                (message.from.clone(), hit_sub_name.clone(), payload.clone());
            return self.tell(Event::Notified {
                stream: id,
                from,
                hit_sub_name,
                payload,
                missed,
            });
        }
        if self.take_item(&message, parent_id, payload, *seq) {
            return;
        }
        self.report_message(
            MessageReport::NotifyError,
            Some(source.peer),
            Reason::HasNoConsumer,
            || Subject::from(&message),
        );
    }

    fn take_item(
        &mut self,
        message: &Message,
        request: &MessageId,
        payload: &Payload,
        seq: Option<u64>,
    ) -> bool {
        let Some(waiter) = self
            .waiters
            .get(request)
            .filter(|waiter| waiter.to == message.from)
        else {
            return false;
        };
        let Some(items) = &waiter.items else {
            return false;
        };
        let (missed, token) = (items.take(seq), waiter.token);
        self.tell(Event::Process {
            request: request.clone(),
            token,
            payload: payload.clone(),
            missed,
        });
        true
    }
}

/// What a call needs beside its message.
#[derive(Debug)]
pub(crate) struct CallOptions {
    pub(crate) token: Option<Token>,
    pub(crate) limit: Option<Duration>,
    pub(crate) items: Option<Items>,
    pub(crate) urgency: Urgency,
}

fn grants_subscription(response: &Response) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Granted {
        target_sub_id: String,
    }
    response.payload.decode::<Granted>().is_ok_and(|granted| {
        MessageId::new(&granted.target_sub_id).is_ok_and(|id| id == response.parent_id)
    })
}

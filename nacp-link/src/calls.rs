//! Requests, subscriptions and signals of this node, and their answers.

use std::time::{Duration, Instant};

use nacp_proto::{AppId, Body, MessageId, Payload, RequestKind, Signal};
use smol_str::SmolStr;

use crate::admission::Urgency;
use crate::ids::LinkId;
use crate::node::Node;
use crate::record::{Call, Class, Items, Waiter};
use crate::timers::Timer;
use crate::{StreamEnd, Token, Undelivered};

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
    /// The token settles as [`Settlement::Answered`](crate::Settlement::Answered) or
    /// [`Settlement::Undelivered`](crate::Settlement::Undelivered), exactly once. Process items of an
    /// event come as [`Event::Process`](crate::Event::Process) before that. Returns the request's id,
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
        let link = record.link;
        self.wait_for(Waiter {
            id: id.clone(),
            link,
            to: to.clone(),
            call,
            token,
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
        let reason = self.reason_now(reason);
        self.release_remote(waiter.link, &waiter.to);
        if waiter.call == Call::Subscribe {
            self.end_stream_of(waiter.link, &waiter.id, StreamEnd::Undelivered(reason));
        }
        self.settle_undelivered(waiter.token, reason);
    }

    /// A call has reached its own limit: it is withdrawn from wherever it is.
    pub(crate) fn call_timed_out(&mut self, id: &MessageId) {
        let Some(waiter) = self.take_waiter(id) else {
            return;
        };
        let link = waiter.link;
        self.withdraw_call(&waiter);
        self.reject_waiter(waiter, Undelivered::Timeout);
        self.pump(link);
    }

    /// Takes a call that nobody waits for any more from wherever it is. Nobody else can end the
    /// subscription, so an unsubscribe goes on.
    pub(crate) fn withdraw_call(&mut self, waiter: &Waiter) {
        let (link, id) = (waiter.link, &waiter.id);
        if waiter.call == Call::Unsubscribe || self.remove_blocked(link, id) {
            return;
        }
        match self.backlog.remove(&Self::own_key(id)) {
            Some(record) => {
                self.count_out(&record);
                if record.was_submitted {
                    self.give_up(waiter);
                }
            }
            None => {
                self.withdraw(link, id);
                self.give_up(waiter);
            }
        }
    }

    /// A record that is on its way goes on, but not back into the backlog.
    pub(crate) fn withdraw(&mut self, link: LinkId, id: &MessageId) {
        if self.is_on_its_way(link, id)
            && let Some(link) = self.links.get_mut(link)
        {
            link.withdrawn.insert(id.clone());
        }
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
        link.blocked.contains(id)
            || peer.is_some_and(|peer| {
                peer.submitted_records()
                    .any(|record| record.own_id() == Some(id))
            })
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

//! How a restart of a foreign peer is noticed (specification, section 11).

use std::time::Instant;

use nacp_proto::{Body, Encoded, MessageId, Outcome, Response};
use smol_str::SmolStr;

use crate::Undelivered;
use crate::ids::LinkId;
use crate::node::Node;
use crate::record::{Call, Class, Sentinel, Waiter};
use crate::report::Reason;

impl Node {
    /// Asks a peer that was foreign for the subscription that it still knows unless it has
    /// restarted, and sets another.
    pub(crate) fn check_sentinel(&mut self, now: Instant, link: LinkId) {
        let suspects = self.acked_requests(link);
        let Some(known) = self.links.get_mut(link) else {
            return;
        };
        known.foreign.suspects = suspects;
        let asked = known.foreign.question.take();
        let sentinel = known.foreign.sentinel.take();
        let question = asked.or_else(|| {
            let body = Body::Unsubscribe {
                target_sub_id: sentinel?,
            };
            self.sentinel_message(now, link, body)
        });
        match question {
            Some(question) => {
                if let Some(link) = self.links.get_mut(link) {
                    link.foreign.question = Some(question.clone());
                }
                self.send_sentinel(link, Sentinel::Check, question);
            }
            None => self.set_sentinel(now, link),
        }
    }

    /// Subscribes at a foreign peer to a name that nobody emits.
    pub(crate) fn set_sentinel(&mut self, now: Instant, link: LinkId) {
        if self.links.get(link).is_none_or(|link| link.is_native()) {
            return;
        }
        let name = SmolStr::from(format!("nacp:sentinel:{}", self.fresh_id()));
        let body = Body::Subscribe {
            target_sub_name: name,
        };
        if let Some(message) = self.sentinel_message(now, link, body) {
            self.send_sentinel(link, Sentinel::Set, message);
        }
    }

    fn sentinel_message(
        &mut self,
        now: Instant,
        link: LinkId,
        body: Body,
    ) -> Option<(MessageId, Encoded)> {
        let to = self.links.get(link)?.app.clone();
        let id = self.fresh_id();
        let message = self.message(now, id.clone(), to, body);
        Some((id, message.encode()))
    }

    /// Sends ahead of the backlog, and outside of it: a sentinel is never queued.
    fn send_sentinel(
        &mut self,
        link: LinkId,
        sentinel: Sentinel,
        (id, encoded): (MessageId, Encoded),
    ) {
        let Some((peer, to)) = self
            .links
            .get(link)
            .and_then(|link| link.peer().map(|peer| (peer, link.app.clone())))
        else {
            return;
        };
        let call = Call::Sentinel(sentinel);
        let key = Self::own_key(&id);
        let record = self.record(link, key, to.clone(), Class::Call(call), encoded, None);
        self.wait_for(Waiter {
            id,
            link,
            to,
            call,
            token: None,
            timer: None,
            items: None,
        });
        self.count_in(&record);
        self.submit(peer, record);
    }

    pub(crate) fn sentinel_answered(
        &mut self,
        now: Instant,
        waiter: &Waiter,
        sentinel: Sentinel,
        response: &Response,
    ) {
        match sentinel {
            Sentinel::Set => {
                let id = response.outcome.is_ok().then(|| waiter.id.clone());
                if let Some(link) = self.links.get_mut(waiter.link) {
                    link.foreign.sentinel = id;
                }
            }
            Sentinel::Check => {
                if let Some(link) = self.links.get_mut(waiter.link) {
                    link.foreign.question = None;
                }
                if let Outcome::NotOk { .. } = response.outcome {
                    self.lose_foreign_session(now, waiter.link);
                }
                self.set_sentinel(now, waiter.link);
            }
        }
    }

    /// Requests that an earlier peer acknowledged and did not answer.
    fn acked_requests(&self, id: LinkId) -> Vec<MessageId> {
        let requests = self.waiters.iter(&id).map(|(waiter, _)| waiter);
        requests
            .filter(|waiter| waiter.call == Call::Request && !self.is_queued(id, &waiter.id))
            .map(|waiter| waiter.id.clone())
            .collect()
    }

    /// A foreign peer has restarted: what it acknowledged on earlier peers is lost.
    fn lose_foreign_session(&mut self, now: Instant, id: LinkId) {
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let suspects = std::mem::take(&mut link.foreign.suspects);
        let (app, is_gateway) = (link.app.clone(), link.info.is_gateway);
        let only = is_gateway.then_some(&app);
        self.report_register_warning(&app, Reason::SessionLost);
        for call in suspects {
            let is_meant = self
                .waiters
                .get(&call)
                .is_some_and(|waiter| only.is_none_or(|app| waiter.to == *app));
            if is_meant {
                self.reject_call(&call, Undelivered::SessionLost);
            }
        }
        for stream in self.live_streams(id, only) {
            self.subscribe_again(now, stream);
        }
    }
}

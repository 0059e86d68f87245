//! How a restart of a foreign peer is noticed (specification, section 11).

use std::time::Instant;

use nacp_proto::{Body, MessageId, Outcome, Response};
use smol_str::SmolStr;

use crate::Undelivered;
use crate::ids::LinkId;
use crate::node::Node;
use crate::record::{Call, Class, Sentinel, Waiter};
use crate::report::Reason;

impl Node {
    /// Asks a peer that was foreign for the subscription that it still knows unless it has
    /// restarted, and sets another. A question that an earlier peer left open goes out again with
    /// the backlog: another one would find the subscription ended.
    pub(crate) fn check_sentinel(&mut self, now: Instant, link: LinkId) {
        let check = Call::Sentinel(Sentinel::Check);
        if self
            .waiters
            .iter(&link)
            .any(|(waiter, _)| waiter.call == check)
        {
            return;
        }
        let suspects = self.acked_requests(link);
        let Some(known) = self.links.get_mut(link) else {
            return;
        };
        known.foreign.suspects = suspects;
        match known.foreign.sentinel.take() {
            Some(id) => {
                let body = Body::Unsubscribe { target_sub_id: id };
                self.send_sentinel(now, link, Sentinel::Check, body);
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
        self.send_sentinel(now, link, Sentinel::Set, body);
    }

    /// Sends ahead of the backlog, and outside of it.
    fn send_sentinel(&mut self, now: Instant, link: LinkId, sentinel: Sentinel, body: Body) {
        let Some((peer, to)) = self
            .links
            .get(link)
            .and_then(|link| link.peer().map(|peer| (peer, link.app.clone())))
        else {
            return;
        };
        let call = Call::Sentinel(sentinel);
        let id = self.fresh_id();
        let message = self.message(now, id.clone(), to.clone(), body);
        if let Ok(record) = self.address(&message, Some(link), Class::Call(call), None) {
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

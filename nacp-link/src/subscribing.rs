//! Subscriptions of this node at other apps.

use std::time::Instant;

use nacp_proto::{AppId, Body, MessageId, Outcome, Response};
use smol_str::SmolStr;

use crate::admission::Urgency;
use crate::calls::CallOptions;
use crate::ids::LinkId;
use crate::link::{Ending, Stream};
use crate::node::Node;
use crate::record::{Call, Items, Waiter};
use crate::{Event, Settlement, StreamEnd, StreamId, Token, Undelivered};

/// Subscribes of one link that timed out and may still be answered.
pub(crate) const MAX_GIVEN_UP: usize = 1024;

impl Node {
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
        let stream = self
            .call(now, to, Call::Subscribe, body, options)
            .and_then(|id| self.open_stream(now, to, pattern, id));
        self.settle_room();
        stream
    }

    fn open_stream(
        &mut self,
        now: Instant,
        to: &AppId,
        pattern: SmolStr,
        id: MessageId,
    ) -> Option<StreamId> {
        let link = self.waiters.get(&id)?.link;
        let stream = self.streams.insert(Stream {
            link,
            to: to.clone(),
            pattern,
            id: id.clone(),
            items: Items::default(),
            live: false,
        });
        if let Some(link) = self.links.get_mut(link) {
            link.streams.insert(id, stream);
        }
        self.use_remote(now, link, to);
        Some(stream)
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
        if self.remove_blocked(ended.link, &ended.id) {
            self.settle(token, Settlement::Delivered);
            return self.settle_room();
        }
        if let Some(record) = self.backlog.remove(&Self::own_key(&ended.id)) {
            self.count_out(&record);
            if !record.was_submitted {
                self.settle(token, Settlement::Delivered);
                return self.settle_room();
            }
        }
        self.send_unsubscribe(now, &ended.to, ended.id, token, Urgency::Forced);
        self.settle_room();
    }

    pub(crate) fn send_unsubscribe(
        &mut self,
        now: Instant,
        to: &AppId,
        id: MessageId,
        token: Option<Token>,
        urgency: Urgency,
    ) {
        let body = Body::Unsubscribe {
            target_sub_id: id.clone(),
        };
        let limit = Some(self.config.response_timeout);
        let options = CallOptions {
            token,
            limit,
            items: None,
            urgency,
        };
        let Some(unsubscribe) = self.call(now, to, Call::Unsubscribe, body, options) else {
            return;
        };
        let link = self.waiters.get(&unsubscribe).map(|waiter| waiter.link);
        if let Some(link) = link.and_then(|link| self.links.get_mut(link)) {
            link.given_up.retain(|(_, given_up)| *given_up != id);
            link.endings.retain(|ended| ended.id != id);
            if link.endings.len() == MAX_GIVEN_UP {
                link.endings.pop_front();
            }
            link.endings.push_back(Ending {
                app: to.clone(),
                id,
                unsubscribe: Some(unsubscribe),
            });
        }
    }

    /// An unsubscribe is answered.
    pub(crate) fn ending_answered(&mut self, link: LinkId, unsubscribe: &MessageId) {
        let link = self.links.get_mut(link);
        let ending = link.and_then(|link| {
            link.endings
                .iter_mut()
                .find(|ending| ending.unsubscribe.as_ref() == Some(unsubscribe))
        });
        if let Some(ending) = ending {
            ending.unsubscribe = None;
        }
    }

    /// A hit of a subscription that was given up or ended: should the other side not have heard of
    /// its end, and none be on the way, it is told again.
    pub(crate) fn end_again(&mut self, now: Instant, link: LinkId, to: &AppId, id: &MessageId) {
        let Some(known) = self.links.get(link).filter(|_| self.is_running()) else {
            return;
        };
        let is_lost = match known.endings.iter().find(|ending| ending.id == *id) {
            Some(Ending { unsubscribe, .. }) => unsubscribe
                .as_ref()
                .is_none_or(|id| !self.waiters.contains(id) && !self.is_queued(link, id)),
            None => known.given_up.iter().any(|(_, given_up)| given_up == id),
        };
        if is_lost {
            self.send_unsubscribe(now, to, id.clone(), None, Urgency::Refused);
        }
    }

    /// Ends the stream of a subscribe that failed: told only if the user has it.
    pub(crate) fn end_stream_of(&mut self, link: LinkId, id: &MessageId, reason: StreamEnd) {
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

    pub(crate) fn subscribe_answered(&mut self, waiter: &Waiter, response: &Response) {
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

    /// Remembers a subscribe that went out and whose answer may still come.
    pub(crate) fn give_up(&mut self, waiter: &Waiter) {
        if waiter.call == Call::Subscribe {
            self.remember_given_up(waiter.link, &waiter.to, &waiter.id);
        }
    }

    /// Remembers a subscription that the other side may still have: a hit of it ends it there.
    pub(crate) fn remember_given_up(&mut self, link: LinkId, to: &AppId, id: &MessageId) {
        if let Some(link) = self.links.get_mut(link) {
            if link.given_up.len() == MAX_GIVEN_UP {
                link.given_up.pop_front();
            }
            link.given_up.push_back((to.clone(), id.clone()));
        }
    }

    pub(crate) fn take_given_up(&mut self, link: LinkId, id: &MessageId) -> bool {
        let Some(link) = self.links.get_mut(link) else {
            return false;
        };
        let at = link
            .given_up
            .iter()
            .position(|(_, given_up)| given_up == id);
        at.is_some_and(|at| link.given_up.remove(at).is_some())
    }
}

//! Answers to calls of this node, and the items of its streams.

use std::time::Instant;

use nacp_proto::{Body, Message, MessageId, Payload, Response};

use crate::admission::Urgency;
use crate::incoming::Source;
use crate::node::Node;
use crate::record::{Call, Waiter};
use crate::report::{MessageReport, Reason, Subject};
use crate::{Answered, Event, Settlement};

impl Node {
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
            Call::Unsubscribe => self.ending_answered(waiter.link, &waiter.id),
            Call::Request => {}
        }
        let missed = waiter
            .items
            .as_ref()
            .and_then(|items| items.finish(response.seq));
        self.settle(
            waiter.token,
            Settlement::Answered(Answered { response, missed }),
        );
    }

    /// An answer that nobody waits for. A subscription that was given up meanwhile is ended again.
    fn handle_stray_response(&mut self, now: Instant, source: Source, message: &Message) {
        let Body::Response(response) = &message.body else {
            return;
        };
        let given_up = self.take_given_up(source.link, &response.parent_id);
        if given_up && response.outcome.is_ok() {
            let id = response.parent_id.clone();
            return self.send_unsubscribe(now, &message.from, id, None, Urgency::Forced);
        }
        if given_up {
            return;
        }
        self.report_message(
            MessageReport::ResponseError,
            Some(source.peer),
            Reason::HasNoConsumer,
            || Subject::from(message),
        );
    }

    pub(crate) fn handle_notify(&mut self, now: Instant, source: Source, message: Message) {
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
        self.end_again(now, source.link, &message.from, parent_id);
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

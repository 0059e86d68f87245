//! Subscriptions that other apps hold on this node's bus.

use std::time::Instant;

use nacp_proto::{Body, Message, MessageId, Payload, Response};
use serde::Serialize;
use smol_str::SmolStr;

use crate::admission::Urgency;
use crate::exposure::{self, Exposure};
use crate::incoming::{Source, envelope_of};
use crate::link::Subscription;
use crate::node::Node;
use crate::record::Class;
use crate::report::{MessageReport, Reason, Subject};
use crate::{Event, SubscriptionId, Token, Undelivered};

impl Node {
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
            return self.answer_not_ok(now, source.link, &envelope, None, reason);
        }
        let (app, id, pattern) = (envelope.from.clone(), envelope.id.clone(), pattern.clone());
        self.served.0 += 1;
        let subscription = self.subscriptions.insert(Subscription {
            link: source.link,
            app: app.clone(),
            id: id.clone(),
            pattern: pattern.clone(),
            items: 0,
            since: self.served,
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
        let response = Response::ok(id.clone(), subscription_payload(&id));
        self.answer(now, source.link, &envelope.from, response);
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
                let response = Response::ok(message.id, Payload::empty());
                self.answer(now, source.link, &message.from, response);
            }
            None => {
                let reason = Reason::UnknownSubscription;
                self.report_message(
                    MessageReport::SubscribeError,
                    Some(source.peer),
                    reason,
                    || Subject::from(&message),
                );
                self.answer_not_ok(now, source.link, &envelope_of(&message), None, reason);
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
        self.settle_room();
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

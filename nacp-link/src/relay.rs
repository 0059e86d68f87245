//! Routing, gateways, and apps behind them (specification, section 9).

use std::sync::Arc;
use std::time::Instant;

use nacp_proto::{AppId, Decoded, Encoded, MessageType};

use crate::admission::Urgency;
use crate::ids::LinkId;
use crate::incoming::Source;
use crate::node::Node;
use crate::peer::Inbound;
use crate::record::{Class, Key, Record};
use crate::report::{MessageReport, Reason};
use crate::timers::Timer;
use crate::{Cause, Undelivered};

/// How often a message is sent through a gateway, in all.
const MAX_RELAY_TRIES: u8 = 3;

impl Node {
    /// The next hop to an app.
    pub(crate) fn route(&self, to: &AppId) -> Result<LinkId, Undelivered> {
        if *to == self.config.app_id {
            return Err(Undelivered::SelfAddressed);
        }
        if let Some(id) = self.by_app.get(to) {
            let is_leaving = self
                .links
                .get(*id)
                .is_none_or(|link| link.leaving.is_some());
            return if is_leaving {
                Err(Undelivered::PeerGone)
            } else {
                Ok(*id)
            };
        }
        self.gateway.ok_or(Undelivered::NoRoute)
    }

    pub(crate) fn is_second_gateway(&self, app: &AppId, is_gateway: bool) -> bool {
        let own = self.gateway.and_then(|id| self.links.get(id));
        is_gateway && own.is_some_and(|gateway| gateway.app != *app)
    }

    /// Makes a gateway this node's own if it has none; a second one stays a plain link.
    pub(crate) fn adopt(&mut self, id: LinkId) {
        self.gateways.retain(|gateway| *gateway != id);
        let Some(link) = self.links.get(id).filter(|link| link.info.is_gateway) else {
            if self.gateway == Some(id) {
                self.adopt_next();
            }
            return;
        };
        let order = link.order;
        let is_second = self.is_second_gateway(&link.app, true);
        let place = self
            .gateways
            .partition_point(|other| self.order_of(*other) < order);
        self.gateways.insert(place, id);
        if !is_second {
            self.gateway = Some(id);
        }
        let Some(link) = self.links.get_mut(id) else {
            return;
        };
        let was_plain = std::mem::replace(&mut link.downgraded, is_second);
        if is_second && !was_plain {
            let app = link.app.clone();
            self.report_downgrade(&app);
        }
    }

    fn order_of(&self, link: LinkId) -> u64 {
        self.links.get(link).map_or(0, |link| link.order)
    }

    /// The gateway is gone: the one that is linked longest takes its place.
    pub(crate) fn adopt_next(&mut self) {
        let links = &self.links;
        let stays = |id: &&LinkId| links.get(**id).is_some_and(|link| link.leaving.is_none());
        self.gateway = self.gateways.iter().find(stays).copied();
        if let Some(link) = self.gateway.and_then(|id| self.links.get_mut(id)) {
            link.downgraded = false;
        }
    }

    /// A message for somebody else: forwarded byte for byte, or dropped.
    pub(crate) fn relay(&mut self, now: Instant, source: Source, inbound: Inbound) {
        let Inbound { bytes, decoded } = inbound;
        let envelope = decoded.envelope();
        let (from, to, id) = (
            envelope.from.clone(),
            envelope.to.clone(),
            envelope.id.clone(),
        );
        let message_type = decoded.message_type();
        let next = self
            .by_app
            .get(&to)
            .copied()
            .filter(|next| *next != source.link && self.config.is_gateway);
        let next = next.filter(|next| {
            let fits = self
                .links
                .get(*next)
                .is_some_and(|link| bytes.len() as u64 <= link.max_message_bytes());
            fits && message_type != Some(MessageType::Register)
        });
        let Some(next) = next else {
            return self.report_subject(
                MessageReport::GatewayError,
                Some(source.peer),
                &decoded,
                Reason::Dropped,
            );
        };
        if message_type == Some(MessageType::Ack) {
            return self.relay_ack(next, source, &decoded, bytes.into());
        }
        let key = Key::Relayed(Arc::new((from, id)));
        if !self.relaying.insert(key.clone()) {
            return;
        }
        let droppable = message_type == Some(MessageType::Notify);
        let record = self.record(
            next,
            key.clone(),
            to,
            Class::Relayed { droppable },
            bytes.into(),
            None,
        );
        match self.admit(now, record, Urgency::Refused) {
            Ok(()) => self.report_forwarded(next, &decoded),
            Err(_) => drop(self.relaying.remove(&key)),
        }
    }

    fn relay_ack(&mut self, next: LinkId, source: Source, decoded: &Decoded, encoded: Encoded) {
        match self.peer_of(next) {
            Some(peer) => {
                self.push_control(peer, encoded);
                self.report_forwarded(next, decoded);
            }
            None => self.report_subject(
                MessageReport::GatewayError,
                Some(source.peer),
                decoded,
                Reason::Dropped,
            ),
        }
    }

    /// The oldest un-ACKed record of a link may be due.
    pub(crate) fn acks_due(&mut self, now: Instant, id: LinkId) {
        if let Some(link) = self.links.get_mut(id) {
            link.acks = None;
            link.deferred.acks = false;
        }
        while let Some(record) = self.due_record(now, id) {
            let is_relayed = self.links.get(id).is_some_and(|link| link.app != record.to);
            if is_relayed {
                self.retry_relayed(now, id);
                continue;
            }
            if let Some(at) = self.deferred_until(now, id) {
                let acks = self.timers.arm_at(at, Timer::Acks(id));
                if let Some(link) = self.links.get_mut(id) {
                    link.acks = acks;
                    link.deferred.acks = true;
                }
                return;
            }
            if let Some(record) = self.due_record(now, id).cloned() {
                self.report_record(MessageReport::AckWarning, &record, Reason::Timeout);
            }
            return self.condemn(now, id, Cause::AckTimeout);
        }
        self.arm_acks(id);
        self.pump(id);
    }

    fn due_record(&self, now: Instant, id: LinkId) -> Option<&Record> {
        let (record, deadline) = self.pending.oldest(&id)?;
        deadline.is_some_and(|at| at <= now).then_some(record)
    }

    /// An ACK that did not come through a gateway: once more, but not for ever.
    fn retry_relayed(&mut self, now: Instant, id: LinkId) {
        let Some((oldest, _)) = self.pending.oldest(&id) else {
            return;
        };
        let key = oldest.key.clone();
        let Some(mut record) = self.pending.settle(&key) else {
            return;
        };
        record.tries += 1;
        if self.take_withdrawn(id, &record) {
            return self.fail(record, Undelivered::Timeout);
        }
        if record.tries >= MAX_RELAY_TRIES {
            self.report_record(MessageReport::AckWarning, &record, Reason::UnroutableRelay);
            return self.fail(record, Undelivered::UnroutableRelay);
        }
        self.report_record(MessageReport::AckWarning, &record, Reason::RelayRetry);
        record.seq = self.next_seq();
        self.count_out(&record);
        record.is_excess = false;
        // What fails here has settled its waiter.
        let _ = self.admit(now, record, Urgency::Forced);
    }
}

//! The way in, in the order of section 8 of the specification.

use std::time::Instant;

use nacp_proto::{
    AppId, Body, Decoded, Encoded, Envelope, EnvelopeRef, Malformed, Message, MessageId,
    MessageType,
};
use nacp_queue::Heard;

use crate::ids::LinkId;
use crate::node::Node;
use crate::peer::{Inbound, Stage};
use crate::report::{MessageReport, Reason, Subject};
use crate::{Cause, Close, DialId, Lane, PeerId, Transmit};

/// A message as large as this may have kept others waiting while it came in.
const LARGE_MESSAGE_BYTES: u64 = 64 << 10;

/// Where a message came from: the peer, and the link that holds its source's tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Source {
    pub(crate) peer: PeerId,
    pub(crate) link: LinkId,
}

/// What a message of a bound peer turns out to be.
enum Sorted {
    /// It is for this node.
    Ours,
    /// It is for another app.
    Others,
    /// It is a register, of which a bound peer may send more.
    Register,
    /// It has been dropped.
    Dropped,
}

impl Node {
    /// One whole message has come from a peer.
    ///
    /// Whatever it says, it costs at most its peer. Messages of unknown peers are ignored.
    pub fn handle_message(&mut self, now: Instant, peer: PeerId, inbound: Inbound) {
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        if !known.growth.is_empty() && inbound.bytes.len() as u64 >= LARGE_MESSAGE_BYTES {
            known.growth.clear();
            self.judge_deferred(now, peer);
        }
        self.totals.received(&inbound.decoded);
        self.report_inbound(peer, &inbound.decoded);
        self.sort(now, peer, inbound);
        self.settle_room();
    }

    /// Body bytes of an unfinished message have come from a peer.
    pub fn handle_progress(&mut self, now: Instant, peer: PeerId, bytes: u64) {
        let Some(known) = self.peers.get_mut(peer) else {
            return;
        };
        known.growth.add(now, bytes);
        if let Some(link) = known.bound_link() {
            self.refuse_contender(now, link);
            self.settle_room();
        }
    }

    /// Handles what was kept beside a register, now that it is answered.
    pub(crate) fn handle_kept(&mut self, now: Instant, peer: PeerId) {
        while let Some(inbound) = self.take_kept(peer) {
            self.sort(now, peer, inbound);
        }
        self.turn_reading(peer);
    }

    fn take_kept(&mut self, id: PeerId) -> Option<Inbound> {
        let peer = self
            .peers
            .get_mut(id)
            .filter(|peer| peer.bound_link().is_some())?;
        let inbound = peer.kept.pop_front()?;
        peer.kept_bytes = peer.kept_bytes.saturating_sub(inbound.bytes.len() as u64);
        Some(inbound)
    }

    /// The source check: who may speak on this peer.
    fn sort(&mut self, now: Instant, peer: PeerId, inbound: Inbound) {
        let Some(known) = self.peers.get(peer) else {
            return;
        };
        let envelope = inbound.decoded.envelope();
        match &known.stage {
            Stage::Bound(link) => self.sort_bound(now, peer, *link, inbound),
            Stage::Leaving { .. } => {}
            Stage::Fresh => match inbound.decoded {
                Decoded::Message(Message {
                    body: Body::Register(_),
                    ..
                })
                | Decoded::Malformed(Malformed {
                    message_type: MessageType::Register,
                    ..
                }) => {
                    self.handle_register(now, peer, inbound.decoded);
                }
                Decoded::Message(_) | Decoded::Malformed(_) | Decoded::Unknown { .. } => {
                    self.source_fault(now, peer, &inbound.decoded, Reason::NotRegistered);
                }
            },
            Stage::Registering { dial, register } => {
                let registering = (*dial, register.clone());
                self.sort_registering(now, peer, registering, inbound);
            }
            Stage::Deciding(applicant) | Stage::Held(applicant) => {
                let is_applicant = applicant.app == *envelope.from;
                let is_register = matches!(
                    inbound.decoded,
                    Decoded::Message(Message {
                        body: Body::Register(_),
                        ..
                    })
                );
                if is_applicant && is_register && self.is_for_us(envelope, true) {
                    self.join_register(now, peer, inbound.decoded);
                } else {
                    self.keep(now, peer, inbound, is_applicant);
                }
            }
        }
    }

    /// Beside our own unanswered register only its ACK and its answer are looked at.
    fn sort_registering(
        &mut self,
        now: Instant,
        peer: PeerId,
        (dial, register): (DialId, MessageId),
        inbound: Inbound,
    ) {
        let envelope = inbound.decoded.envelope();
        match &inbound.decoded {
            Decoded::Message(Message {
                body: Body::Ack { parent_id },
                ..
            }) if *parent_id == register => {}
            Decoded::Message(Message {
                body: Body::Response(response),
                from,
                ..
            }) if response.parent_id == register => {
                let answer = (envelope.id.clone(), from.clone(), response.clone());
                self.handle_register_answer(now, peer, dial, answer);
            }
            Decoded::Message(_) | Decoded::Malformed(_) | Decoded::Unknown { .. } => {
                let expected = self.dials.get(dial).and_then(|dial| dial.target.as_ref());
                let is_expected = expected.is_none_or(|app| app == envelope.from);
                self.keep(now, peer, inbound, is_expected);
            }
        }
    }

    fn keep(&mut self, now: Instant, id: PeerId, inbound: Inbound, is_expected: bool) {
        if !is_expected {
            return self.source_fault(now, id, &inbound.decoded, Reason::NotRegistered);
        }
        if let Some(peer) = self.peers.get_mut(id) {
            peer.kept_bytes = peer.kept_bytes.saturating_add(inbound.bytes.len() as u64);
            peer.kept.push_back(inbound);
        }
        self.turn_reading(id);
    }

    fn sort_bound(&mut self, now: Instant, peer: PeerId, link: LinkId, inbound: Inbound) {
        let source = Source { peer, link };
        match self.judge(now, source, &inbound.decoded) {
            Sorted::Ours if self.take_note(now, source, &inbound.decoded) => {
                self.handle(now, source, inbound.decoded);
            }
            Sorted::Ours | Sorted::Dropped => {}
            Sorted::Others => self.relay(now, source, inbound),
            Sorted::Register => self.refresh_register(now, peer, link, inbound.decoded),
        }
    }

    /// Checks the source of a bound peer's message, and whom it is for.
    fn judge(&mut self, now: Instant, source: Source, decoded: &Decoded) -> Sorted {
        let Source { peer, link } = source;
        let Some(bound) = self.links.get_mut(link) else {
            return Sorted::Dropped;
        };
        bound.counts.messages_in += 1;
        if bound.contender.is_some() {
            self.refuse_contender(now, link);
        }
        let Some(bound) = self.links.get(link) else {
            return Sorted::Dropped;
        };
        let envelope = decoded.envelope();
        let is_own = bound.app == *envelope.from;
        let is_register = decoded.message_type() == Some(MessageType::Register);
        if !is_own && (is_register || !self.may_relay(link, envelope.from)) {
            if bound.info.is_gateway && !is_register {
                let (kind, reason) = (MessageReport::InboundError, Reason::SourceMismatch);
                self.report_subject(kind, Some(peer), decoded, reason);
            } else {
                self.source_fault(now, peer, decoded, Reason::SourceMismatch);
            }
            return Sorted::Dropped;
        }
        match (self.is_for_us(envelope, is_register), is_register) {
            (false, _) => Sorted::Others,
            (true, true) => Sorted::Register,
            (true, false) => Sorted::Ours,
        }
    }

    /// Whether an app that is not bound to a gateway's peer may be spoken for by it.
    fn may_relay(&self, link: LinkId, from: &AppId) -> bool {
        let is_gateway = self
            .links
            .get(link)
            .is_some_and(|link| link.info.is_gateway);
        is_gateway
            && *from != self.config.app_id
            && !from.is_any()
            && !self.by_app.contains_key(from)
    }

    pub(crate) fn is_for_us(&self, envelope: EnvelopeRef<'_>, is_register: bool) -> bool {
        *envelope.to == self.config.app_id || (is_register && envelope.to.is_any())
    }

    /// Drops a message whose source is not bound to its peer; one too many closes the peer.
    fn source_fault(&mut self, now: Instant, id: PeerId, decoded: &Decoded, reason: Reason) {
        self.report_subject(MessageReport::InboundError, Some(id), decoded, reason);
        let is_over = self
            .peers
            .get_mut(id)
            .is_some_and(|peer| peer.count_fault(now));
        if is_over {
            self.report_peer_error(id, "source-faults");
            self.lose_peer(now, id, Cause::Disconnected, Close::Abort);
        }
    }

    /// ACK and dedup; `false` if that is all that there is to do.
    fn take_note(&mut self, now: Instant, source: Source, decoded: &Decoded) -> bool {
        if let Decoded::Message(Message {
            body: Body::Ack { parent_id },
            from,
            ..
        }) = decoded
        {
            self.handle_ack(source, (from, parent_id), decoded);
            return false;
        }
        let is_reliable = decoded.message_type().is_none_or(MessageType::is_reliable);
        if !is_reliable {
            return true;
        }
        let EnvelopeRef { id, from, .. } = decoded.envelope();
        self.acknowledge(now, source.peer, from, id);
        self.is_beat(source, decoded) || self.remember(from, id)
    }

    fn handle(&mut self, now: Instant, source: Source, decoded: Decoded) {
        match decoded {
            Decoded::Message(message) => self.handle_body(now, source, message),
            Decoded::Malformed(malformed) => self.handle_malformed(now, source, malformed),
            Decoded::Unknown { .. } => {
                self.report_subject(
                    MessageReport::MessageError,
                    Some(source.peer),
                    &decoded,
                    Reason::UnknownType,
                );
            }
        }
    }

    /// `false` if the message has been handled before.
    fn remember(&mut self, from: &AppId, id: &MessageId) -> bool {
        match self.received.insert(from, id.clone()) {
            Heard::New(_) => true,
            Heard::Duplicate(_) => false,
        }
    }

    pub(crate) fn acknowledge(
        &mut self,
        now: Instant,
        peer: PeerId,
        to: &AppId,
        parent_id: &MessageId,
    ) {
        self.send_control(
            now,
            peer,
            to,
            Body::Ack {
                parent_id: parent_id.clone(),
            },
        );
    }

    /// Sends a message in the control lane; its id.
    pub(crate) fn send_control(
        &mut self,
        now: Instant,
        peer: PeerId,
        to: &AppId,
        body: Body,
    ) -> MessageId {
        let id = self.fresh_id();
        let message = self.message(now, id.clone(), to.clone(), body);
        self.report_outbound_message(Some(peer), &message);
        self.totals.sent_control(message.message_type());
        let encoded = self.encode_control(&message);
        self.push_control(peer, encoded);
        id
    }

    pub(crate) fn push_control(&mut self, id: PeerId, encoded: Encoded) {
        if let Some(peer) = self.peers.get_mut(id) {
            peer.sent.control += 1;
            self.transmit(Transmit::Send {
                peer: id,
                lane: Lane::Control,
                encoded,
            });
            self.turn_reading(id);
        }
    }

    fn handle_body(&mut self, now: Instant, source: Source, message: Message) {
        match message.body {
            Body::Request { .. } => self.handle_request(now, source, message),
            Body::Response(_) => self.handle_response(now, source, message),
            Body::Notify { .. } => self.handle_notify(now, source, message),
            Body::Signal { .. } => self.handle_signal(source, message),
            Body::Subscribe { .. } => self.handle_subscribe(now, source, message),
            Body::Unsubscribe { .. } => self.handle_unsubscribe(now, source, message),
            Body::Unregister => self.handle_unregister(now, source, message),
            // Registers and ACKs have been dealt with on the way here.
            Body::Register(_) | Body::Ack { .. } => {}
        }
    }

    fn handle_malformed(&mut self, now: Instant, source: Source, malformed: Malformed) {
        let Malformed {
            envelope,
            message_type,
            bad_target_sub_name,
        } = malformed;
        let (kind, reason) = if bad_target_sub_name {
            (MessageReport::SubscribeError, Reason::BadTargetSubName)
        } else {
            (MessageReport::MessageError, Reason::Malformed)
        };
        let subject = Subject {
            envelope: envelope.clone(),
            type_name: message_type.as_str().into(),
            body: None,
        };
        self.report_message(kind, Some(source.peer), reason, || subject);
        match message_type {
            MessageType::Request | MessageType::Subscribe | MessageType::Unsubscribe => {
                self.answer_not_ok(now, source.link, &envelope, None, reason);
            }
            MessageType::Register
            | MessageType::Unregister
            | MessageType::Response
            | MessageType::Signal
            | MessageType::Notify
            | MessageType::Ack => {}
        }
    }

    fn handle_ack(
        &mut self,
        source: Source,
        (from, parent_id): (&AppId, &MessageId),
        decoded: &Decoded,
    ) {
        if self.settle_acked(source.peer, from, parent_id)
            || self.beat_acked(source, from, parent_id)
        {
            return;
        }
        let is_expected = self
            .peers
            .get_mut(source.peer)
            .is_some_and(|peer| peer.take_expected_ack(parent_id));
        if is_expected {
            return self.register_answer_acked(source.link, parent_id);
        }
        self.report_subject(
            MessageReport::AckError,
            Some(source.peer),
            decoded,
            Reason::HasNoConsumer,
        );
    }
}

pub(crate) fn envelope_of(message: &Message) -> Envelope {
    Envelope {
        id: message.id.clone(),
        from: message.from.clone(),
        to: message.to.clone(),
        time: message.time,
    }
}

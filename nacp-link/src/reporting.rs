//! Reports, built only where somebody wants them, and their `tracing` events.

use nacp_proto::{AppId, Decoded, Envelope, Message, MessageType};

use crate::dial::DialError;
use crate::ids::LinkId;
use crate::link::Running;
use crate::node::Node;
use crate::record::Record;
use crate::report::{Interest, MessageReport, Reason, Report, Subject};
use crate::{Event, PeerId, Undelivered};

impl Node {
    fn report(&mut self, report: Report) {
        self.tell(Event::Report(report));
    }

    pub(crate) fn report_connect(&mut self, peer: PeerId) {
        tracing::debug!(?peer, "{}", Report::PEER_CONNECT);
        self.report_peer(Report::PeerConnect { peer });
    }

    pub(crate) fn report_disconnect(&mut self, peer: PeerId) {
        tracing::debug!(?peer, "{}", Report::PEER_DISCONNECT);
        self.report_peer(Report::PeerDisconnect { peer });
    }

    pub(crate) fn report_peer_error(&mut self, peer: PeerId, reason: &'static str) {
        tracing::warn!(?peer, reason, "{}", Report::PEER_ERROR);
        self.report_peer(Report::PeerError { peer, reason });
    }

    fn report_peer(&mut self, report: Report) {
        if self.interest.contains(Interest::PEERS) {
            self.report(report);
        }
    }

    pub(crate) fn report_inbound(&mut self, peer: PeerId, decoded: &Decoded) {
        let envelope = decoded.envelope();
        tracing::debug!(?peer, message_type = ?decoded.message_type(), id = %envelope.id, from = %envelope.from, "inbound");
        if self
            .interest
            .contains(Interest::inbound(decoded.message_type()))
        {
            self.report(Report::Inbound {
                peer,
                subject: Box::new(decoded.into()),
            });
        }
    }

    pub(crate) fn report_outbound_message(&mut self, peer: Option<PeerId>, message: &Message) {
        tracing::debug!(?peer, message_type = %message.message_type(), id = %message.id, to = %message.to, "outbound");
        if self
            .interest
            .contains(Interest::outbound(message.message_type()))
        {
            self.report(Report::Outbound {
                peer,
                subject: Box::new(message.into()),
            });
        }
    }

    pub(crate) fn report_outbound(&mut self, peer: Option<PeerId>, record: &Record) {
        tracing::debug!(?peer, class = ?record.class, to = %record.to, bytes = record.bytes, "outbound");
        if !self.interest.any_outbound() {
            return;
        }
        let Ok(decoded) = Message::decode(&record.encoded.to_bytes()) else {
            return;
        };
        let wanted = decoded
            .message_type()
            .is_some_and(|kind| self.interest.contains(Interest::outbound(kind)));
        if wanted {
            self.report(Report::Outbound {
                peer,
                subject: Box::new((&decoded).into()),
            });
        }
    }

    pub(crate) fn report_app(
        &mut self,
        app: &AppId,
        reason: Reason,
        is_gateway: Option<bool>,
        resumed: Option<bool>,
    ) {
        tracing::debug!(%app, %reason, ?is_gateway, ?resumed, "{}", Report::APP);
        if self.interest.contains(Interest::APPS) {
            self.report(Report::App {
                app: app.clone(),
                reason,
                is_gateway,
                resumed,
            });
        }
    }

    pub(crate) fn report_register_error(
        &mut self,
        peer: Option<PeerId>,
        from: Option<&AppId>,
        reason: DialError,
    ) {
        let shown = from.map(tracing::field::display);
        tracing::warn!(
            ?peer,
            from = shown,
            reason = reason.as_str(),
            "{}",
            Report::REGISTER_ERROR
        );
        if self.interest.contains(Interest::REGISTERS) {
            self.report(Report::RegisterError {
                peer,
                from: from.cloned(),
                reason,
            });
        }
    }

    pub(crate) fn report_register_warning(&mut self, app: &AppId, reason: Reason) {
        tracing::warn!(%app, %reason, "{}", Report::REGISTER_WARNING);
        if self.interest.contains(Interest::REGISTERS) {
            self.report(Report::RegisterWarning {
                app: app.clone(),
                reason,
            });
        }
    }

    /// A report about a message; `subject` is called only if it is wanted.
    pub(crate) fn report_message(
        &mut self,
        kind: MessageReport,
        peer: Option<PeerId>,
        reason: Reason,
        subject: impl FnOnce() -> Subject,
    ) {
        self.totals.count(reason);
        let is_wanted = self.interest.contains(Interest::message(kind));
        if !is_wanted && !is_traced(kind) {
            return;
        }
        let subject = subject();
        trace(kind, &subject.envelope, reason);
        if is_wanted {
            self.report(Report::Message {
                kind,
                peer,
                subject: Box::new(subject),
                reason,
            });
        }
    }

    pub(crate) fn report_subject(
        &mut self,
        kind: MessageReport,
        peer: Option<PeerId>,
        decoded: &Decoded,
        reason: Reason,
    ) {
        self.report_message(kind, peer, reason, || decoded.into());
    }

    /// A report about a record, whose message is read again only if it is wanted.
    pub(crate) fn report_record(&mut self, kind: MessageReport, record: &Record, reason: Reason) {
        let is_wanted = self.interest.contains(Interest::message(kind)) || is_traced(kind);
        let read = || Message::decode(&record.encoded.to_bytes()).ok();
        match is_wanted.then(read).flatten() {
            Some(decoded) => self.report_subject(kind, None, &decoded, reason),
            None => self.totals.count(reason),
        }
    }

    /// A message that found no way out.
    pub(crate) fn report_route_error(&mut self, message: &Message, reason: Undelivered) {
        let reason = match reason {
            Undelivered::SelfAddressed => Reason::SelfAddressed,
            Undelivered::NoRoute => Reason::NoRoute,
            Undelivered::TooLarge => Reason::TooLarge,
            Undelivered::SendFailed
            | Undelivered::Refused
            | Undelivered::Evicted
            | Undelivered::PeerGone
            | Undelivered::Terminated
            | Undelivered::Timeout
            | Undelivered::UnroutableRelay
            | Undelivered::SessionLost
            | Undelivered::Poisoned
            | Undelivered::Discarded => return,
        };
        self.report_outbound_message(None, message);
        self.report_message(MessageReport::RouteError, None, reason, || message.into());
    }

    pub(crate) fn report_request(&mut self, run: &Running, reason: Reason) {
        let envelope = Envelope {
            id: run.id.clone(),
            from: run.app.clone(),
            to: self.config.app_id.clone(),
            time: None,
        };
        let type_name = smol_str::SmolStr::new_static(MessageType::Request.as_str());
        self.report_message(MessageReport::RequestError, None, reason, || Subject {
            envelope,
            type_name,
            body: None,
        });
    }

    pub(crate) fn report_forwarded(&mut self, next: LinkId, decoded: &Decoded) {
        let peer = self.peer_of(next);
        self.report_subject(
            MessageReport::GatewaySuccess,
            peer,
            decoded,
            Reason::Forwarded,
        );
    }

    /// A second gateway that stays a plain link.
    pub(crate) fn report_downgrade(&mut self, app: &AppId) {
        let envelope = Envelope {
            id: self.fresh_id(),
            from: app.clone(),
            to: self.config.app_id.clone(),
            time: None,
        };
        let type_name = smol_str::SmolStr::new_static(MessageType::Register.as_str());
        let reason = Reason::MultiGatewayDowngraded;
        self.report_message(MessageReport::GatewayWarning, None, reason, || Subject {
            envelope,
            type_name,
            body: None,
        });
    }
}

/// Whether a subscriber of `tracing` may want a report.
fn is_traced(kind: MessageReport) -> bool {
    if kind == MessageReport::GatewaySuccess {
        tracing::enabled!(tracing::Level::DEBUG)
    } else {
        tracing::enabled!(tracing::Level::WARN)
    }
}

fn trace(kind: MessageReport, envelope: &Envelope, reason: Reason) {
    let Envelope { id, from, to, .. } = envelope;
    if kind == MessageReport::GatewaySuccess {
        tracing::debug!(%id, %from, %to, %reason, "{}", kind.as_str());
    } else {
        tracing::warn!(%id, %from, %to, %reason, "{}", kind.as_str());
    }
}

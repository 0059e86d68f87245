//! Reports, built only where somebody wants them, and their `tracing` events.

use nacp_proto::{AppId, Decoded, Message, MessageType};

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

    pub(crate) fn report_peer(&mut self, report: impl FnOnce() -> Report) {
        if self.interest.contains(Interest::PEERS) {
            self.report(report());
        }
    }

    pub(crate) fn report_peer_error(&mut self, peer: PeerId, reason: &'static str) {
        tracing::warn!(?peer, reason, "peer closed for a fault");
        self.report_peer(|| Report::PeerError { peer, reason });
    }

    pub(crate) fn report_inbound(&mut self, peer: PeerId, decoded: &Decoded) {
        let envelope = decoded.envelope();
        tracing::trace!(?peer, message_type = ?decoded.message_type(), id = %envelope.id, from = %envelope.from, "inbound");
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
        tracing::trace!(?peer, message_type = %message.message_type(), id = %message.id, to = %message.to, "outbound");
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
        tracing::trace!(?peer, class = ?record.class, to = %record.to, bytes = record.bytes, "outbound");
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
        tracing::info!(%app, %reason, ?resumed, "link");
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
        tracing::warn!(?peer, ?from, reason = reason.as_str(), "register failed");
        if self.interest.contains(Interest::REGISTERS) {
            self.report(Report::RegisterError {
                peer,
                from: from.cloned(),
                reason,
            });
        }
    }

    pub(crate) fn report_register_warning(&mut self, app: &AppId, reason: Reason) {
        tracing::warn!(%app, %reason, "register");
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
        tracing::debug!(event = kind.as_str(), ?peer, %reason, "report");
        if self.interest.contains(Interest::message(kind)) {
            self.report(Report::Message {
                kind,
                peer,
                subject: Box::new(subject()),
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
        self.totals.count(reason);
        tracing::debug!(event = kind.as_str(), to = %record.to, bytes = record.bytes, %reason, "report");
        if !self.interest.contains(Interest::message(kind)) {
            return;
        }
        if let Ok(decoded) = Message::decode(&record.encoded.to_bytes()) {
            self.report(Report::Message {
                kind,
                peer: None,
                subject: Box::new((&decoded).into()),
                reason,
            });
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
        let envelope = nacp_proto::Envelope {
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
        let envelope = nacp_proto::Envelope {
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

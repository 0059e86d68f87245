//! The names and payloads of what a node reports (specification, section 13).

use std::borrow::Cow;

use nacp_bus::EventBus;
use nacp_link::{Interest, MessageReport, Report, Subject};
use nacp_proto::{MessageType, Payload};
use serde::Serialize;

use crate::Value;

pub(crate) const PEER_CONNECT: &str = "nact:peer:connect";
pub(crate) const PEER_DISCONNECT: &str = "nact:peer:disconnect";
pub(crate) const PEER_ERROR: &str = "nact:peer:error";
const APP: &str = "nacp:internal:napp:success";
const REGISTER_ERROR: &str = "nacp:internal:register:error";
const REGISTER_WARNING: &str = "nacp:internal:register:warning";

const TYPES: [MessageType; 9] = [
    MessageType::Register,
    MessageType::Unregister,
    MessageType::Subscribe,
    MessageType::Unsubscribe,
    MessageType::Request,
    MessageType::Response,
    MessageType::Signal,
    MessageType::Notify,
    MessageType::Ack,
];

const MESSAGE_REPORTS: [MessageReport; 14] = [
    MessageReport::RouteError,
    MessageReport::AckWarning,
    MessageReport::AckError,
    MessageReport::ResponseError,
    MessageReport::NotifyError,
    MessageReport::BacklogWarning,
    MessageReport::RequestError,
    MessageReport::SignalError,
    MessageReport::SubscribeError,
    MessageReport::MessageError,
    MessageReport::InboundError,
    MessageReport::GatewaySuccess,
    MessageReport::GatewayError,
    MessageReport::GatewayWarning,
];

/// The name of a report on the bus.
pub(crate) fn name(report: &Report) -> Cow<'static, str> {
    match report {
        Report::PeerConnect { .. } => PEER_CONNECT.into(),
        Report::PeerDisconnect { .. } => PEER_DISCONNECT.into(),
        Report::PeerError { .. } => PEER_ERROR.into(),
        Report::Inbound { subject, .. } => format!("nacp:inbound:{}", subject.type_name).into(),
        Report::Outbound { subject, .. } => format!("nacp:outbound:{}", subject.type_name).into(),
        Report::App { .. } => APP.into(),
        Report::RegisterError { .. } => REGISTER_ERROR.into(),
        Report::RegisterWarning { .. } => REGISTER_WARNING.into(),
        Report::Message { kind, .. } => kind.as_str().into(),
        _ => "nacp:internal:unknown:warning".into(),
    }
}

/// Which reports somebody on the bus, or a subscriber of `tracing`, wants.
pub(crate) fn interest(is_wanted: impl Fn(&str) -> bool) -> Interest {
    let mut interest = Interest::NONE;
    let mut want = |wanted: bool, kind: Interest| {
        if wanted {
            interest = interest.union(kind);
        }
    };
    let warns = tracing::enabled!(tracing::Level::WARN);
    let debugs = tracing::enabled!(tracing::Level::DEBUG);
    let peers = [PEER_CONNECT, PEER_DISCONNECT, PEER_ERROR];
    want(
        warns || peers.iter().any(|name| is_wanted(name)),
        Interest::PEERS,
    );
    want(debugs || is_wanted(APP), Interest::APPS);
    let registers = [REGISTER_ERROR, REGISTER_WARNING];
    want(
        warns || registers.iter().any(|name| is_wanted(name)),
        Interest::REGISTERS,
    );
    for kind in MESSAGE_REPORTS {
        let traced = if kind == MessageReport::GatewaySuccess {
            debugs
        } else {
            warns
        };
        want(traced || is_wanted(kind.as_str()), Interest::message(kind));
    }
    for kind in TYPES {
        want(
            is_wanted(&format!("nacp:inbound:{kind}")),
            Interest::inbound(Some(kind)),
        );
        want(
            is_wanted(&format!("nacp:outbound:{kind}")),
            Interest::outbound(kind),
        );
    }
    // The names of unknown types are not known beforehand; one stands for all.
    want(is_wanted("nacp:inbound:unknown"), Interest::inbound(None));
    interest
}

/// Whether a bus has a listener for a name.
pub(crate) fn listened_to(bus: &EventBus<Value>) -> impl Fn(&str) -> bool + '_ {
    |name| bus.has_listener(name)
}

/// Tells `tracing` of it: faults as warnings, the rest as debug events.
pub(crate) fn trace(name: &str, report: &Report) {
    match report {
        Report::PeerError { peer, reason } => {
            tracing::warn!(target: "nacp", name, ?peer, reason);
        }
        Report::App { app, reason, .. } => {
            tracing::debug!(target: "nacp", name, %app, %reason);
        }
        Report::RegisterError { from, reason, .. } => {
            let from = from.as_ref().map(tracing::field::display);
            tracing::warn!(target: "nacp", name, from, reason = reason.as_str());
        }
        Report::RegisterWarning { app, reason } => {
            tracing::warn!(target: "nacp", name, %app, %reason);
        }
        Report::Message {
            kind: MessageReport::GatewaySuccess,
            subject,
            ..
        } => {
            tracing::debug!(target: "nacp", name, id = %subject.envelope.id);
        }
        Report::Message {
            subject, reason, ..
        } => {
            let (id, from, to) = (
                &subject.envelope.id,
                &subject.envelope.from,
                &subject.envelope.to,
            );
            tracing::warn!(target: "nacp", name, %id, %from, %to, %reason);
        }
        Report::PeerConnect { .. }
        | Report::PeerDisconnect { .. }
        | Report::Inbound { .. }
        | Report::Outbound { .. }
        | _ => tracing::debug!(target: "nacp", name),
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Reported<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    peer_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_peer_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_peer_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    app_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    msg: Option<Msg<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    is_gateway: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
}

/// The head of a message: its payload is not repeated.
#[derive(Serialize)]
struct Msg<'a> {
    r#type: &'a str,
    id: String,
    from: &'a str,
    to: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    t: Option<f64>,
}

impl<'a> From<&'a Subject> for Msg<'a> {
    fn from(subject: &'a Subject) -> Self {
        Self {
            r#type: &subject.type_name,
            id: subject.envelope.id.to_smol_str().into(),
            from: subject.envelope.from.as_str(),
            to: subject.envelope.to.as_str(),
            t: subject.envelope.time,
        }
    }
}

const NOTHING: Reported<'_> = Reported {
    peer_id: None,
    from_peer_id: None,
    to_peer_id: None,
    app_id: None,
    from: None,
    msg: None,
    reason: None,
    is_gateway: None,
    resumed: None,
};

/// The payload of a report.
pub(crate) fn to_payload(report: &Report) -> Payload {
    Payload::new(&reported(report)).unwrap_or_default()
}

fn reported(report: &Report) -> Reported<'_> {
    let shown = |peer: &nacp_link::PeerId| Some(format!("{peer:?}"));
    match report {
        Report::PeerConnect { peer } | Report::PeerDisconnect { peer } => Reported {
            peer_id: shown(peer),
            ..NOTHING
        },
        Report::PeerError { peer, reason } => Reported {
            peer_id: shown(peer),
            reason: Some(reason),
            ..NOTHING
        },
        Report::Inbound { peer, subject } => Reported {
            from_peer_id: shown(peer),
            msg: Some((&**subject).into()),
            ..NOTHING
        },
        Report::Outbound { peer, subject } => Reported {
            to_peer_id: peer.as_ref().and_then(shown),
            msg: Some((&**subject).into()),
            ..NOTHING
        },
        Report::App {
            app,
            reason,
            is_gateway,
            resumed,
        } => Reported {
            app_id: Some(app.as_str()),
            reason: Some(reason.as_str()),
            is_gateway: *is_gateway,
            resumed: *resumed,
            ..NOTHING
        },
        Report::RegisterError { peer, from, reason } => Reported {
            from_peer_id: peer.as_ref().and_then(shown),
            from: from.as_ref().map(|from| from.as_str()),
            reason: Some(reason.as_str()),
            ..NOTHING
        },
        Report::RegisterWarning { app, reason } => Reported {
            app_id: Some(app.as_str()),
            reason: Some(reason.as_str()),
            ..NOTHING
        },
        Report::Message {
            peer,
            subject,
            reason,
            ..
        } => Reported {
            to_peer_id: peer.as_ref().and_then(shown),
            msg: Some((&**subject).into()),
            reason: Some(reason.as_str()),
            ..NOTHING
        },
        _ => NOTHING,
    }
}

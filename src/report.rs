//! The payloads of what a node reports (specification, section 13).

use nacp_bus::EventBus;
use nacp_link::{Interest, MessageReport, Report, Subject};
use nacp_proto::{MessageType, Payload};
use serde::Serialize;

use crate::Value;

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

/// Which reports somebody on the bus wants.
pub(crate) fn interest(is_wanted: impl Fn(&str) -> bool) -> Interest {
    let mut interest = Interest::NONE;
    let mut want = |wanted: bool, kind: Interest| {
        if wanted {
            interest = interest.union(kind);
        }
    };
    let peers = [
        Report::PEER_CONNECT,
        Report::PEER_DISCONNECT,
        Report::PEER_ERROR,
    ];
    want(peers.into_iter().any(&is_wanted), Interest::PEERS);
    want(is_wanted(Report::APP), Interest::APPS);
    let registers = [Report::REGISTER_ERROR, Report::REGISTER_WARNING];
    want(registers.into_iter().any(&is_wanted), Interest::REGISTERS);
    for kind in MESSAGE_REPORTS {
        want(is_wanted(kind.as_str()), Interest::message(kind));
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

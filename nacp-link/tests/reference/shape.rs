//! What of a message must be as recorded.

use std::collections::HashMap;

use bytes::Bytes;
use nacp_proto::{Body, Message, Payload, Registered};

use crate::recording::Conn;

pub(crate) fn show((link, number): &Conn) -> String {
    format!("{link} {number}")
}

pub(crate) fn decode(bytes: &Bytes) -> Option<Message> {
    Message::decode(bytes).ok()?.into_message()
}

pub(crate) fn is_beat(message: &Message) -> bool {
    matches!(&message.body, Body::Request { target, .. } if target.as_deref() == Some("NApp.heartbeat"))
}

pub(crate) fn is_sentinel(message: &Message, ids: &HashMap<String, String>) -> bool {
    let ours = message.id.to_smol_str();
    matches!(
        message.body,
        Body::Subscribe { .. } | Body::Unsubscribe { .. }
    ) && !ids.values().any(|known| *known == ours.as_str())
}

pub(crate) fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    let mut at = 0;
    while at + from.len() <= bytes.len() {
        if &bytes[at..at + from.len()] == from {
            bytes[at..at + from.len()].copy_from_slice(to);
            at += from.len();
        } else {
            at += 1;
        }
    }
}

/// Everything of a message that must be as recorded: not its own id, its time, and our own keys.
pub(crate) fn shape(message: &Message) -> String {
    let way = format!("{} > {}", message.from, message.to);
    let what = match &message.body {
        Body::Register(register) => format!("register gateway {}", register.info.is_gateway),
        Body::Unregister => "unregister".to_owned(),
        Body::Subscribe { target_sub_name } => format!("subscribe {target_sub_name}"),
        Body::Unsubscribe { target_sub_id } => format!("unsubscribe {target_sub_id}"),
        Body::Request {
            kind,
            target,
            payload,
        } => {
            format!("request {kind} {target:?} {}", value(payload))
        }
        Body::Response(response) => {
            let payload = Registered::from_payload(&response.payload).map_or_else(
                |_| value(&response.payload),
                |registered| format!("gateway {}", registered.info.is_gateway),
            );
            format!(
                "response {} {:?} {:?} {payload}",
                response.parent_id, response.outcome, response.kind
            )
        }
        Body::Signal { parent_id, signal } => {
            let payload = message.body.payload().map(value).unwrap_or_default();
            format!("signal {parent_id} {} {payload}", signal.kind())
        }
        Body::Notify {
            parent_id,
            target_sub_name,
            hit_sub_name,
            payload,
            ..
        } => format!(
            "notify {parent_id} {target_sub_name} {hit_sub_name} {}",
            value(payload)
        ),
        Body::Ack { parent_id } => format!("ack {parent_id}"),
    };
    format!("{way} {what}")
}

/// The value of a payload; its bytes if nobody can read it.
pub(crate) fn value(payload: &Payload) -> String {
    payload.to_value().map_or_else(
        |_| format!("{:02x?}", payload.as_cbor()),
        |value| format!("{value:?}"),
    )
}

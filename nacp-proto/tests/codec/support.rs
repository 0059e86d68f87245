//! Messages for the tests.

use bytes::Bytes;
use ciborium::Value;
use nacp_proto::{
    AppId, Body, Decl, DecodeError, Decoded, Entry, Instance, Message, MessageId, Payload,
    PeerInfo, Register, RequestKind, Response, Session, Signal, Version,
};

pub(crate) const ID: &str = "00112233-4455-6677-8899-aabbccddeeff";
pub(crate) const PARENT: &str = "an id: of *another* kind";

pub(crate) fn app(name: &str) -> AppId {
    AppId::new(name).unwrap()
}

pub(crate) fn id(text: &str) -> MessageId {
    MessageId::new(text).unwrap()
}

pub(crate) fn message(body: Body) -> Message {
    Message {
        time: Some(1_700_000_000_000.0),
        ..Message::new(id(ID), app("a"), app("b"), body)
    }
}

pub(crate) fn request(payload: Payload) -> Message {
    let (kind, target) = (RequestKind::Ability, Some("echo".into()));
    message(Body::Request {
        kind,
        target,
        payload,
    })
}

pub(crate) fn register() -> Register {
    let entry = |name: &str| Entry {
        name: name.into(),
        description: format!("does {name}").into(),
    };
    Register {
        version: Version::CURRENT,
        info: PeerInfo {
            is_gateway: true,
            decl: Decl {
                events: vec![entry("run")],
                abilities: vec![entry("add"), entry("mul")],
            },
            instance: Some(Instance([0x1a; 16])),
            max_message_bytes: Some(1 << 31),
        },
        holds: vec![Session([0x2b; 16]), Session([0x3c; 16])],
        auth: Some(Payload::new("open sesame").unwrap()),
    }
}

/// One message of every type and kind.
pub(crate) fn every_body() -> Vec<Body> {
    let (payload, parent_id) = (|| Payload::new(&[1, 2, 3]).unwrap(), || id(PARENT));
    let signal = |signal| Body::Signal {
        parent_id: parent_id(),
        signal,
    };
    vec![
        Body::Register(Box::new(register())),
        Body::Unregister,
        Body::Subscribe {
            target_sub_name: "tick:*".into(),
        },
        Body::Unsubscribe {
            target_sub_id: parent_id(),
        },
        Body::Request {
            kind: RequestKind::Event,
            target: Some("run".into()),
            payload: payload(),
        },
        Body::Request {
            kind: RequestKind::Ability,
            target: None,
            payload: payload(),
        },
        Body::Response(Response::ok(parent_id(), payload())),
        Body::Response(Response {
            kind: Some(RequestKind::Event),
            seq: Some(3),
            instance: Some(Instance([0x4d; 16])),
            ..Response::not_ok(parent_id(), "processor-failed")
        }),
        signal(Signal::Normal(payload())),
        signal(Signal::Pause),
        signal(Signal::Resume),
        signal(Signal::Abort),
        Body::Notify {
            parent_id: parent_id(),
            target_sub_name: "tick:*".into(),
            hit_sub_name: "tick:7".into(),
            payload: payload(),
            seq: Some(0),
        },
        Body::Notify {
            parent_id: parent_id(),
            target_sub_name: "n".into(),
            hit_sub_name: "n".into(),
            payload: payload(),
            seq: None,
        },
        Body::Ack {
            parent_id: parent_id(),
        },
    ]
}

/// What another encoder makes of these keys.
pub(crate) fn wire(keys: &[(&str, Value)]) -> Bytes {
    let entries = keys
        .iter()
        .map(|(key, value)| (Value::from(*key), value.clone()))
        .collect();
    let mut bytes = Vec::new();
    ciborium::into_writer(&Value::Map(entries), &mut bytes).unwrap();
    bytes.into()
}

/// The keys of a message as another decoder sees them, in their order.
pub(crate) fn keys_of(message: &[u8]) -> Vec<(String, Value)> {
    let value: Value = ciborium::from_reader(message).unwrap();
    let entries = value.into_map().unwrap().into_iter();
    entries
        .map(|(key, value)| (key.into_text().unwrap(), value))
        .collect()
}

/// The message with what `change` made of its keys.
pub(crate) fn changed(message: &Message, change: impl FnOnce(&mut Vec<(String, Value)>)) -> Bytes {
    let mut keys = keys_of(&message.encode().to_bytes());
    change(&mut keys);
    let keys: Vec<_> = keys
        .iter()
        .map(|(key, value)| (key.as_str(), value.clone()))
        .collect();
    wire(&keys)
}

pub(crate) fn set(keys: &mut Vec<(String, Value)>, key: &str, value: Value) {
    keys.retain(|(old, _)| old != key);
    keys.push((key.to_owned(), value));
}

pub(crate) fn good(bytes: &Bytes) -> Message {
    Message::decode(bytes).unwrap().into_message().unwrap()
}

pub(crate) fn decode(bytes: impl Into<Bytes>) -> Result<Decoded, DecodeError> {
    Message::decode(&bytes.into())
}

/// The bytes of a good request, but for its payload.
pub(crate) fn carrying(payload: &[u8]) -> Bytes {
    let bytes = request(Payload::null()).encode().to_bytes();
    let key = b"\x67payload";
    let at = bytes
        .windows(key.len())
        .position(|window| window == key)
        .unwrap()
        + key.len();
    [&bytes[..at], payload, &bytes[at + 1..]].concat().into()
}

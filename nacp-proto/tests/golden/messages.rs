//! Every message that was recorded: read, and written again.

use std::{collections::BTreeMap, io::Cursor};

use bytes::Bytes;
use ciborium::Value;
use nacp_proto::{
    Body, Decl, Decoded, FrameHeader, Message, Outcome, Payload, PeerInfo, Register, Registered,
    Response,
};
use serde_json::{Value as Json, json};

use crate::{
    meaning::means,
    recordings::{self, Recorded, Step},
};

/// Frames made by hand whose header is a fault in itself; `hand_made` tells which.
const FAULTY_HEADERS: [&str; 4] = [
    "bad-magic, step 0",
    "bad-version, step 0",
    "body-longer-than-total, step 0",
    "offset-beyond-total, step 0",
];

/// Keys that we do not know, or know and cannot use: they are not in what we decode.
const UNREAD_KEYS: [(&str, &str); 3] = [
    ("unknown-top-level-keys, step 0", "zzz"),
    ("unknown-top-level-keys, step 0", "extra"),
    // The reference echoes the kind "foo" of a request that it refuses.
    ("request-unknown-kind, step 2", "kind"),
];

/// What is no good message, nearly all of it made by hand, and what it is to us instead.
const NO_GOOD_MESSAGES: [(&str, &str); 23] = [
    ("d1-subscribe, step 19", "bad-target-sub-name"),
    ("d1-subscribe, step 23", "bad-target-sub-name"),
    ("d1-subscribe, step 27", "bad-target-sub-name"),
    (
        "empty-packet, step 0",
        "decode-failed: the message is not well-formed cbor: the item is not complete after 0 bytes",
    ),
    (
        "not-cbor, step 0",
        "decode-failed: the message is not well-formed cbor: no item begins with the byte at 0",
    ),
    (
        "trailing-bytes, step 0",
        "decode-failed: the message is not well-formed cbor: the item ends at 161 and more bytes follow",
    ),
    ("register-without-v, step 0", "malformed register"),
    ("register-without-payload, step 0", "malformed register"),
    (
        "null-message, step 0",
        "decode-failed: the message is not a map",
    ),
    (
        "non-map-messages, step 0",
        "decode-failed: the message is not a map",
    ),
    (
        "non-map-messages, step 1",
        "decode-failed: the message is not a map",
    ),
    (
        "non-map-messages, step 2",
        "decode-failed: the message is not a map",
    ),
    (
        "non-map-messages, step 3",
        "decode-failed: the message has no usable `type`",
    ),
    ("unknown-type, step 0", "unknown type frobnicate"),
    ("ack-without-meta, step 0", "malformed ack"),
    ("request-without-meta, step 0", "malformed request"),
    ("request-unknown-kind, step 0", "malformed request"),
    (
        "unsubscribe-without-payload, step 0",
        "malformed unsubscribe",
    ),
    (
        "id-missing-twice, step 0",
        "decode-failed: the message has no usable `id`",
    ),
    (
        "id-missing-twice, step 1",
        "decode-failed: the message has no usable `id`",
    ),
    // The reference answers with a parentId of undefined.
    ("id-missing-twice, step 2", "malformed ack"),
    ("id-missing-twice, step 3", "malformed response"),
    ("id-missing-twice, step 4", "malformed ack"),
];

fn recorded() -> Vec<Recorded> {
    recordings::all()
        .iter()
        .flat_map(|recording| recording.messages())
        .collect()
}

fn good_messages() -> Vec<(Recorded, Message)> {
    let good = recorded().into_iter().filter_map(|recorded| {
        let message = Message::decode(&recorded.bytes).ok()?.into_message()?;
        Some((recorded, message))
    });
    good.collect()
}

fn count_steps(count: impl Fn(&Step) -> bool) -> usize {
    recordings::all()
        .iter()
        .flat_map(|recording| &recording.steps)
        .filter(|step| count(step))
        .count()
}

#[test]
fn every_recorded_frame_parses_to_its_recorded_header() {
    let (mut frames, mut faulty) = (0, Vec::new());
    for step in recordings::all()
        .iter()
        .flat_map(|recording| &recording.steps)
    {
        let Ok(header) = FrameHeader::parse(&step.header_bytes) else {
            faulty.push(step.name.clone());
            continue;
        };
        let recorded = &step.header;
        assert_eq!(
            hex::encode(header.msg_id().0),
            recorded["msgId"],
            "{}",
            step.name
        );
        assert_eq!(header.offset(), recorded["offset"], "{}", step.name);
        assert_eq!(header.total_size(), recorded["totalSize"], "{}", step.name);
        assert_eq!(
            header.body_len() + 32,
            recorded["thisFrameSize"],
            "{}",
            step.name
        );
        let ours = header.to_bytes();
        let sent_blank = json!(0) == recorded["blank"];
        assert_eq!(ours == step.header_bytes, sent_blank, "{}", step.name);
        frames += 1;
    }
    assert_eq!(faulty, FAULTY_HEADERS);
    assert_eq!(frames + FAULTY_HEADERS.len(), count_steps(|_| true));
}

#[test]
fn every_recorded_message_is_a_good_one_but_those_listed() {
    let bad: Vec<_> = recorded()
        .into_iter()
        .filter_map(|recorded| no_good(&recorded.bytes).map(|outcome| (recorded.name, outcome)))
        .collect();
    let listed = NO_GOOD_MESSAGES.map(|(name, outcome)| (name.to_owned(), outcome.to_owned()));
    assert_eq!(bad, listed);
    let ends_a_message = |step: &Step| step.body.is_some() && step.message.get("$chunk").is_none();
    // Two of the frames with a faulty header carry a whole message that nobody looks at.
    assert_eq!(
        good_messages().len() + bad.len() + 2,
        count_steps(ends_a_message)
    );
}

/// In words, what bytes are that are no good message.
pub(crate) fn no_good(bytes: &Bytes) -> Option<String> {
    match Message::decode(bytes) {
        Ok(Decoded::Message(_)) => None,
        Ok(Decoded::Malformed(malformed)) if malformed.bad_target_sub_name => {
            Some("bad-target-sub-name".to_owned())
        }
        Ok(Decoded::Malformed(malformed)) => Some(format!("malformed {}", malformed.message_type)),
        Ok(Decoded::Unknown { type_name, .. }) => Some(format!("unknown type {type_name}")),
        Err(error) => Some(format!("{}: {error}", error.reason())),
    }
}

#[test]
fn every_recorded_message_decodes_to_the_recorded_fields() {
    for (recorded, message) in good_messages() {
        let (name, json) = (&recorded.name, &recorded.json);
        assert_eq!(message.message_type().as_str(), json["type"], "{name}");
        assert_eq!(message.id.to_smol_str().as_str(), json["id"], "{name}");
        assert_eq!(message.from.as_str(), json["from"], "{name}");
        assert_eq!(message.to.as_str(), json["to"], "{name}");
        assert_eq!(message.time, recorded_time(json), "{name}");
        assert_eq!(meta(&message.body), recorded_meta(&recorded), "{name}");
        assert!(has_payload(&message.body, json), "{name}: {message:?}");
    }
}

fn recorded_time(json: &Json) -> Option<f64> {
    let big = json["t"]
        .get("$bigint")
        .map(|text| text.as_str().unwrap().parse().unwrap());
    big.or_else(|| json["t"].as_f64())
}

fn is_unread(name: &str, key: &str) -> bool {
    UNREAD_KEYS.contains(&(name, key))
}

fn recorded_meta(recorded: &Recorded) -> Json {
    let mut meta = recorded.json["meta"].clone();
    meta.as_object_mut()
        .unwrap()
        .retain(|key, _| !is_unread(&recorded.name, key));
    meta
}

/// The meta of a message with this body, as JSON.
fn meta(body: &Body) -> Json {
    let mut meta = match body {
        Body::Register(_)
        | Body::Unregister
        | Body::Subscribe { .. }
        | Body::Unsubscribe { .. } => {
            json!({})
        }
        Body::Request { kind, target, .. } => json!({"kind": kind.as_str(), "target": target}),
        Body::Response(Response {
            parent_id,
            outcome,
            kind,
            seq,
            instance,
            ..
        }) => {
            let why = if let Outcome::NotOk { why } = outcome {
                why.clone()
            } else {
                None
            };
            json!({
                "parentId": parent_id.to_smol_str(),
                "isOk": outcome.is_ok(),
                "whyNotOk": why,
                "kind": kind.map(|kind| kind.as_str()),
                "seq": seq,
                "instance": instance.map(|instance| hex::encode(instance.0)),
            })
        }
        Body::Signal { parent_id, signal } => {
            json!({"parentId": parent_id.to_smol_str(), "kind": signal.kind()})
        }
        Body::Notify {
            parent_id,
            target_sub_name,
            hit_sub_name,
            seq,
            ..
        } => json!({
            "parentId": parent_id.to_smol_str(),
            "targetSubName": target_sub_name,
            "hitSubName": hit_sub_name,
            "seq": seq,
        }),
        Body::Ack { parent_id } => json!({"parentId": parent_id.to_smol_str()}),
    };
    meta.as_object_mut()
        .unwrap()
        .retain(|_, value| !value.is_null());
    meta
}

fn has_payload(body: &Body, json: &Json) -> bool {
    let recorded = &json["payload"];
    match body {
        Body::Register(register) => {
            let version = &json["v"];
            let numbers = (register.version.major.into(), register.version.minor.into());
            let same_version = numbers == (number(&version["major"]), number(&version["minor"]));
            let plain = Register {
                version: register.version,
                info: info(recorded),
                holds: Vec::new(),
                auth: None,
            };
            same_version && **register == plain
        }
        Body::Unregister => *recorded == json!({}),
        Body::Subscribe { target_sub_name } => {
            *recorded == json!({"targetSubName": target_sub_name})
        }
        Body::Unsubscribe { target_sub_id } => {
            *recorded == json!({"targetSubId": target_sub_id.to_smol_str()})
        }
        Body::Response(Response { payload, .. }) if recorded.get("decl").is_some() => {
            let plain = Registered {
                info: info(recorded),
                session: None,
                resumed: None,
            };
            Registered::from_payload(payload) == Ok(plain)
        }
        Body::Ack { .. } => json.get("payload").is_none(),
        Body::Request { .. } | Body::Response(_) | Body::Signal { .. } | Body::Notify { .. } => {
            match (body.payload(), json.get("payload")) {
                (Some(payload), Some(json)) => means(&payload.to_value().unwrap(), json),
                (Some(payload), None) => *payload == Payload::undefined(),
                (None, json) => json.is_none(),
            }
        }
    }
}

fn number(json: &Json) -> Json {
    match json.get("$bigint") {
        Some(text) => text.as_str().unwrap().parse::<u64>().unwrap().into(),
        None => json.clone(),
    }
}

fn info(json: &Json) -> PeerInfo {
    PeerInfo {
        is_gateway: json["isGateway"].as_bool().unwrap(),
        decl: serde_json::from_value::<Decl>(json["decl"].clone()).unwrap(),
        instance: None,
        max_message_bytes: None,
    }
}

#[test]
fn payload_bytes_come_out_identical_and_uncopied() {
    for (recorded, message) in good_messages() {
        let Some(payload) = message.body.payload() else {
            continue;
        };
        if recorded.json.get("payload").is_none() {
            continue;
        }
        let cbor = payload.as_cbor();
        let start = cbor.as_ptr().addr() - recorded.bytes.as_ptr().addr();
        let before = &recorded.bytes[..start];
        assert!(before.ends_with(b"\x67payload"), "{}", recorded.name);
        let mut reader = Cursor::new(&recorded.bytes[start..]);
        ciborium::from_reader::<Value, _>(&mut reader).unwrap();
        assert_eq!(reader.position(), cbor.len() as u64, "{}", recorded.name);
    }
}

#[test]
fn encoding_a_decoded_message_again_keeps_its_meaning_and_sends_t_as_float64() {
    for (recorded, message) in good_messages() {
        let again = message.encode().to_bytes();
        let name = &recorded.name;
        assert_eq!(
            comparable(&again, name),
            comparable(&recorded.bytes, name),
            "{name}"
        );
        if let Some(time) = message.time {
            let mut t = b"\x61t\xfb".to_vec();
            t.extend(time.to_be_bytes());
            assert!(again.windows(t.len()).any(|window| window == t), "{name}");
        }
    }
}

/// A message as another decoder sees it, with its maps sorted and whole floats as
/// integers. Left out: `v` where nobody reads it,
/// `t`, which the test looks at itself, and what we do not read. A missing payload is undefined.
fn comparable(message: &[u8], name: &str) -> BTreeMap<String, Value> {
    let value: Value = ciborium::from_reader(message).unwrap();
    let mut keys = text_keys(value);
    if keys["type"] != Value::from("register") {
        keys.remove("v");
    }
    keys.remove("t");
    keys.retain(|key, _| !is_unread(name, key));
    keys.entry("payload".to_owned()).or_insert(Value::Null);
    keys.into_iter()
        .map(|(key, value)| (key, sorted(value, name)))
        .collect()
}

fn text_keys(map: Value) -> BTreeMap<String, Value> {
    let entries = map.into_map().unwrap().into_iter();
    entries
        .map(|(key, value)| (key.into_text().unwrap(), value))
        .collect()
}

fn sorted(value: Value, name: &str) -> Value {
    if value.is_map() {
        let keys = text_keys(value)
            .into_iter()
            .filter(|(key, _)| !is_unread(name, key));
        return Value::Map(
            keys.map(|(key, value)| (key.into(), sorted(value, name)))
                .collect(),
        );
    }
    if let Some(items) = value.as_array() {
        return Value::Array(
            items
                .iter()
                .map(|item| sorted(item.clone(), name))
                .collect(),
        );
    }
    match value.as_float() {
        Some(whole) if whole.fract() == 0.0 => Value::from(whole as i64),
        _ => value,
    }
}

//! Single values: what the reference makes of each, and what we make of it.

use bytes::Bytes;
use ciborium::Value;
use nacp_proto::{AppId, Body, Message, MessageId, Payload, PayloadReadError};
use serde_json::Value as Json;

use crate::{
    meaning::means,
    recordings::{load, unhex},
};

/// The payload of a message whose payload is these bytes, `None` if there is no such message.
fn payload_of(item: &[u8]) -> Option<Payload> {
    let message = Message::new(
        MessageId::from_uuid_bytes([7; 16]),
        AppId::new("a").unwrap(),
        AppId::new("b").unwrap(),
        Body::Notify {
            parent_id: MessageId::from_uuid_bytes([8; 16]),
            target_sub_name: "n".into(),
            hit_sub_name: "n".into(),
            payload: Payload::null(),
            seq: None,
        },
    );
    let bytes = message.encode().to_bytes();
    let key = b"\x67payload";
    let at = bytes
        .windows(key.len())
        .position(|window| window == key)
        .unwrap()
        + key.len();
    let bytes = [&bytes[..at], item, &bytes[at + 1..]].concat();
    let message = Message::decode(&Bytes::from(bytes)).ok()?.into_message()?;
    message.body.payload().cloned()
}

fn value_of(item: &[u8]) -> Option<Result<Value, PayloadReadError>> {
    payload_of(item).map(|payload| payload.to_value())
}

fn cases(file: &str) -> Vec<Json> {
    load(file)["cases"].as_array().unwrap().clone()
}

fn cbor_of(json: &Json) -> Vec<u8> {
    let Some(length) = json.get("bytes") else {
        return unhex(json);
    };
    // A long text of one letter, kept as its beginning and its end.
    let mut cbor = unhex(&json["head"]);
    cbor.resize(length.as_u64().unwrap() as usize, b'x');
    assert!(cbor.ends_with(&unhex(&json["tail"])));
    cbor
}

/// Values that the reference reads in another way than we, and why.
const READ_OTHERWISE: [(&str, &str, &str); 3] = [
    (
        "lone high surrogate, short",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "lone low surrogate, short",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "own __proto__ key",
        r#"{"__proto__": 1, "a": 2}"#,
        "it renames a key that JavaScript cannot have",
    ),
];

#[test]
fn each_value_of_the_payload_zoo_reads_as_what_it_says() {
    let zoo = cases("i1-payload-zoo.json");
    assert_eq!(zoo.len(), 130);
    let mut otherwise = Vec::new();
    for case in zoo {
        let Some(cbor) = case.get("cbor").map(cbor_of) else {
            assert!(case.get("encode_error").is_some());
            continue;
        };
        let name = case["name"].as_str().unwrap();
        let payload = payload_of(&cbor).unwrap();
        assert_eq!(payload.as_cbor(), cbor, "{name}");
        let value = payload.to_value();
        if !value
            .as_ref()
            .is_ok_and(|value| means(value, &case["decoded_back"]))
        {
            otherwise.push((name.to_owned(), in_words(Some(value))));
        }
    }
    assert_eq!(
        otherwise,
        READ_OTHERWISE.map(|(name, ours, _)| (name.to_owned(), ours.to_owned()))
    );
}

#[test]
fn each_value_of_the_payload_zoo_reads_the_same_inside_a_map_and_off_the_wire() {
    for case in cases("i1-payload-zoo.json") {
        let Some(cbor) = case.get("cbor").map(cbor_of) else {
            continue;
        };
        let name = case["name"].as_str().unwrap();
        let alone = in_words(value_of(&cbor));
        let in_map = value_of(&cbor_of(&case["in_map_cbor"])).unwrap();
        let inner = in_map.map(|map| map.into_map().unwrap().remove(0).1);
        assert_eq!(in_words(Some(inner)), alone, "{name}");
        let on_wire = cbor_of(&case["request_payload_on_wire"]);
        if !matches!(name, "undefined" | "null") {
            assert_eq!(in_words(value_of(&on_wire)), alone, "{name}");
        }
    }
}

/// Items that we take in another way than the reference: what they are to us, and why.
const TAKEN_OTHERWISE: [(&str, &str, &str); 22] = [
    (
        "indefinite byte string",
        "h'0102030405'",
        "it has no indefinite strings",
    ),
    (
        "indefinite text string",
        r#""ab""#,
        "it has no indefinite strings",
    ),
    (
        "empty indefinite text",
        r#""""#,
        "it has no indefinite strings",
    ),
    (
        "byte string key",
        "{h'61': 1}",
        "its objects have no such keys",
    ),
    ("array key", "{[1]: 1}", "its objects have no such keys"),
    (
        "__proto__ key",
        r#"{"__proto__": 1}"#,
        "it renames a key that JavaScript cannot have",
    ),
    (
        "tag 64 on text",
        r#"64("a")"#,
        "it makes empty bytes of it, we keep it",
    ),
    (
        "tag 69 odd length",
        "69(h'010203')",
        "it cannot make the typed array, we keep it",
    ),
    (
        "tag 0 date string",
        r#"0("2023-11-14T22:13:20Z")"#,
        "we keep the tag",
    ),
    ("tag 4 decimal [-1, 15]", "4([-1, 15])", "we keep the tag"),
    ("tag 5 bigfloat [-1, 3]", "5([-1, 3])", "we keep the tag"),
    (
        "tag 28/29 shared",
        "28([29(0), 1])",
        "it ties a knot, we keep the tags",
    ),
    (
        "tag 51 packed",
        "invalid type: unassigned simple value, expected false, true, null or undefined",
        "it unpacks, we have no packing",
    ),
    (
        "tag 258 set",
        "258([1, 1])",
        "its set drops the repeat, we keep the array",
    ),
    ("tag 55799 self-described", "55799(1)", "we keep the tag"),
    (
        "record inline 0xdfff",
        r#"57343([16384, ["a"], 7])"#,
        "it unpacks a record, we keep the tag",
    ),
    (
        "invalid utf-8 (ff)",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "invalid utf-8 (truncated 2-byte)",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "overlong utf-8",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "surrogate utf-8",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "invalid utf-8 in a 100-byte string",
        "a text is not utf-8",
        "it puts U+FFFD for bytes that are no text",
    ),
    (
        "nesting 500 arrays",
        "decode-failed",
        "our limit is 128 levels",
    ),
];

#[test]
fn each_item_is_taken_as_the_reference_takes_it_but_those_listed() {
    let items = cases("i2-cbor-decode.json");
    assert_eq!(items.len(), 101);
    let mut otherwise = Vec::new();
    for case in items {
        let name = case["name"].as_str().unwrap();
        let value = value_of(&item_of(name, &case["hex"]));
        let same = match (&value, case.get("decoded")) {
            (Some(Ok(value)), Some(json)) => means(value, json),
            (None | Some(Err(_)), None) => true,
            (Some(Ok(_)), None) | (None | Some(Err(_)), Some(_)) => false,
        };
        if !same {
            otherwise.push((name.to_owned(), in_words(value)));
        }
    }
    assert_eq!(
        otherwise,
        TAKEN_OTHERWISE.map(|(name, ours, _)| (name.to_owned(), ours.to_owned()))
    );
}

fn item_of(name: &str, hex: &Json) -> Vec<u8> {
    let nested = |levels| [vec![0x81; levels], vec![0x01]].concat();
    match name {
        "nesting 500 arrays" => nested(500),
        "nesting 20000 arrays" => nested(20_000),
        _ => unhex(hex),
    }
}

/// A value in the diagnostic notation of RFC 8949, an error by its text.
fn in_words(value: Option<Result<Value, PayloadReadError>>) -> String {
    match value {
        None => "decode-failed".to_owned(),
        Some(Err(error)) => error.to_string(),
        Some(Ok(value)) => diagnostic(&value),
    }
}

fn diagnostic(value: &Value) -> String {
    let list = |items: Vec<String>| items.join(", ");
    match value {
        Value::Integer(value) => i128::from(*value).to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Bool(value) => value.to_string(),
        Value::Null => "null".to_owned(),
        Value::Text(text) => format!("{text:?}"),
        Value::Bytes(bytes) => format!("h'{}'", hex::encode(bytes)),
        Value::Tag(tag, inner) => format!("{tag}({})", diagnostic(inner)),
        Value::Array(items) => format!("[{}]", list(items.iter().map(diagnostic).collect())),
        Value::Map(entries) => {
            let entry = |(key, value): &_| format!("{}: {}", diagnostic(key), diagnostic(value));
            format!("{{{}}}", list(entries.iter().map(entry).collect()))
        }
        other => panic!("{other:?}"),
    }
}

//! Random messages and bytes. The seed of a failure is kept under `proptest-regressions` and tried
//! first from then on.

use bytes::{Bytes, BytesMut};
use ciborium::Value;
use nacp_proto::{
    AppId, Body, Decl, DecodeError, Decoded, Entry, Instance, Message, MessageId, Outcome, Payload,
    PeerInfo, Register, Registered, RequestKind, Response, Session, Signal, Version,
};
use proptest::{collection::vec, option, prelude::*, sample::select};
use smol_str::SmolStr;

use crate::support::good;

fn text(bytes: usize) -> impl Strategy<Value = String> {
    let odd = select(vec![
        "",
        "*",
        ":",
        "a:b",
        "\0",
        "caf\u{e9}",
        "\u{6f22}\u{5b57}",
    ]);
    prop_oneof![
        3 => vec(any::<char>(), 0..20).prop_map(String::from_iter),
        1 => odd.prop_map(str::to_owned),
        1 => (0..=bytes).prop_map(|length| "x".repeat(length)),
    ]
    .prop_filter("too long", move |text| text.len() <= bytes)
}

fn name() -> impl Strategy<Value = SmolStr> {
    text(300).prop_map(SmolStr::from)
}

fn filled_name() -> impl Strategy<Value = SmolStr> {
    name().prop_filter("empty", |name| !name.is_empty())
}

fn app() -> impl Strategy<Value = AppId> {
    prop_oneof![
        text(255).prop_filter_map("no name", |name| AppId::new(name).ok()),
        Just(AppId::any())
    ]
}

fn id() -> impl Strategy<Value = MessageId> {
    prop_oneof![
        any::<[u8; 16]>().prop_map(MessageId::from_uuid_bytes),
        any::<(u64, u64)>().prop_map(|(sequence, random)| MessageId::sequenced(sequence, random)),
        text(255).prop_filter_map("no id", |text| MessageId::new(&text).ok()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("equal to nothing", |float| !float.is_nan())
            .prop_map(Value::from),
        text(60).prop_map(Value::from),
        vec(any::<u8>(), 0..300).prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 60, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::Array),
            proptest::collection::btree_map(text(20), inner.clone(), 0..6).prop_map(|map| {
                Value::Map(
                    map.into_iter()
                        .map(|(key, value)| (key.into(), value))
                        .collect(),
                )
            }),
            // Tags 2, 3 and 64 have a meaning of their own.
            (1000..u64::MAX, inner).prop_map(|(tag, value)| Value::Tag(tag, Box::new(value))),
        ]
    })
}

fn payload() -> impl Strategy<Value = Payload> {
    prop_oneof![
        4 => value().prop_map(|value| Payload::new(&value).unwrap()),
        1 => (0_usize..10_000).prop_map(|length| Payload::byte_string(vec![0x5a; length])),
        1 => select(vec![Payload::empty(), Payload::null(), Payload::undefined()]),
    ]
}

fn info() -> impl Strategy<Value = PeerInfo> {
    let entries = || {
        let entry = (name(), name()).prop_map(|(name, description)| Entry { name, description });
        vec(entry, 0..5)
    };
    let instance = option::of(any::<[u8; 16]>().prop_map(Instance));
    (
        any::<bool>(),
        entries(),
        entries(),
        instance,
        any::<Option<u64>>(),
    )
        .prop_map(
            |(is_gateway, events, abilities, instance, max_message_bytes)| PeerInfo {
                is_gateway,
                decl: Decl { events, abilities },
                instance,
                max_message_bytes,
            },
        )
}

fn register() -> impl Strategy<Value = Register> {
    let version = any::<(u64, u64)>().prop_map(|(major, minor)| Version { major, minor });
    let holds = vec(any::<[u8; 16]>().prop_map(Session), 0..4);
    let auth = option::of(payload().prop_filter("absent", |auth| {
        *auth != Payload::null() && *auth != Payload::undefined()
    }));
    (version, info(), holds, auth).prop_map(|(version, info, holds, auth)| Register {
        version,
        info,
        holds,
        auth,
    })
}

fn kind() -> impl Strategy<Value = RequestKind> {
    select(vec![RequestKind::Event, RequestKind::Ability])
}

fn response() -> impl Strategy<Value = Response> {
    let outcome = prop_oneof![
        Just(Outcome::Ok),
        option::of(name()).prop_map(|why| Outcome::NotOk { why }),
    ];
    let instance = option::of(any::<[u8; 16]>().prop_map(Instance));
    (
        id(),
        outcome,
        option::of(kind()),
        payload(),
        any::<Option<u64>>(),
        instance,
    )
        .prop_map(
            |(parent_id, outcome, kind, payload, seq, instance)| Response {
                parent_id,
                outcome,
                kind,
                payload,
                seq,
                instance,
            },
        )
}

fn body() -> impl Strategy<Value = Body> {
    let signal = prop_oneof![
        payload().prop_map(Signal::Normal),
        select(vec![Signal::Pause, Signal::Resume, Signal::Abort]),
    ];
    prop_oneof![
        register().prop_map(|register| Body::Register(Box::new(register))),
        Just(Body::Unregister),
        filled_name().prop_map(|target_sub_name| Body::Subscribe { target_sub_name }),
        id().prop_map(|target_sub_id| Body::Unsubscribe { target_sub_id }),
        (kind(), option::of(name()), payload()).prop_map(|(kind, target, payload)| Body::Request {
            kind,
            target,
            payload
        }),
        response().prop_map(Body::Response),
        (id(), signal).prop_map(|(parent_id, signal)| Body::Signal { parent_id, signal }),
        (id(), name(), name(), payload(), any::<Option<u64>>()).prop_map(
            |(parent_id, target_sub_name, hit_sub_name, payload, seq)| Body::Notify {
                parent_id,
                target_sub_name,
                hit_sub_name,
                payload,
                seq,
            }
        ),
        id().prop_map(|parent_id| Body::Ack { parent_id }),
    ]
}

fn message() -> impl Strategy<Value = Message> {
    let time = option::of(any::<f64>().prop_filter("equal to nothing", |time| !time.is_nan()));
    (id(), app(), app(), time, body()).prop_map(|(id, from, to, time, body)| Message {
        id,
        from,
        to,
        time,
        body,
    })
}

/// Bytes that are often CBOR.
fn cbor_like() -> impl Strategy<Value = Vec<u8>> {
    let heads = vec![
        0x00, 0x17, 0x18, 0x19, 0x1a, 0x1b, 0x1c, 0x1f, 0x20, 0x38, 0x40, 0x41, 0x58, 0x5f, 0x60,
        0x61, 0x62, 0x78, 0x7f, 0x80, 0x81, 0x82, 0x98, 0x9f, 0xa0, 0xa1, 0xb8, 0xbf, 0xc1, 0xc2,
        0xd8, 0xe0, 0xf4, 0xf6, 0xf7, 0xf8, 0xf9, 0xfa, 0xfb, 0xff,
    ];
    let byte = prop_oneof![3 => select(heads), 1 => any::<u8>()];
    vec(byte, 0..24)
}

fn ciborium_reads(bytes: &[u8]) -> bool {
    let mut rest = bytes;
    ciborium::from_reader::<Value, _>(&mut rest).is_ok() && rest.is_empty()
}

/// Whether these are one whole item: a plain reading of RFC 8949, appendix C.
fn is_one_item(mut bytes: &[u8]) -> bool {
    well_formed(&mut bytes, false).is_some() && bytes.is_empty()
}

fn take<'a>(bytes: &mut &'a [u8], length: u64) -> Option<&'a [u8]> {
    let (taken, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
    *bytes = rest;
    Some(taken)
}

/// The major type of the item that it went past, 8 for a break, which only some places allow.
fn well_formed(bytes: &mut &[u8], breakable: bool) -> Option<u8> {
    let first = take(bytes, 1)?[0];
    let (major, info) = (first >> 5, first & 0x1f);
    let value = match info {
        24..=27 => {
            let argument = take(bytes, 1 << (info - 24))?;
            argument
                .iter()
                .fold(0, |value, byte| (value << 8) | u64::from(*byte))
        }
        28..=30 => return None,
        31 => return well_formed_indefinite(bytes, major, breakable),
        _ => u64::from(info),
    };
    match major {
        2 | 3 => drop(take(bytes, value)?),
        4 => (0..value).try_for_each(|_| well_formed(bytes, false).map(drop))?,
        5 => (0..value.checked_mul(2)?).try_for_each(|_| well_formed(bytes, false).map(drop))?,
        6 => drop(well_formed(bytes, false)?),
        7 if info == 24 && value < 32 => return None,
        _ => {}
    }
    Some(major)
}

fn well_formed_indefinite(bytes: &mut &[u8], major: u8, breakable: bool) -> Option<u8> {
    match major {
        2 | 3 => loop {
            let is_definite = bytes.first()? & 0x1f != 31;
            match well_formed(bytes, true)? {
                8 => return Some(major),
                chunk if chunk == major && is_definite => {}
                _ => return None,
            }
        },
        4 => while well_formed(bytes, true)? != 8 {},
        5 => {
            while well_formed(bytes, true)? != 8 {
                well_formed(bytes, false)?;
            }
        }
        7 if breakable => return Some(8),
        _ => return None,
    }
    Some(major)
}

proptest! {
    #[test]
    fn what_is_encoded_decodes_to_itself(message in message()) {
        prop_assert_eq!(good(&message.encode().to_bytes()), message);
    }

    #[test]
    fn encoding_takes_no_more_room_than_it_says(message in message()) {
        let length = message.encode().len();
        if !matches!(message.body, Body::Register(_)) {
            let mut out = BytesMut::with_capacity(length + 256);
            let room = out.as_ptr();
            message.encode_into(&mut out);
            prop_assert_eq!(out.as_ptr(), room, "not moved");
            prop_assert_eq!(out.len(), length);
        }
    }

    #[test]
    fn every_encoded_message_is_cbor_to_another_reader(message in message()) {
        prop_assert!(ciborium_reads(&message.encode().to_bytes()));
    }

    #[test]
    fn an_answer_to_a_register_reads_as_itself(
        info in info(),
        session in option::of(any::<[u8; 16]>().prop_map(Session)),
        resumed in any::<Option<bool>>(),
    ) {
        let registered = Registered { info, session, resumed };
        prop_assert_eq!(Registered::from_payload(&registered.to_payload()), Ok(registered));
    }

    #[test]
    fn a_value_comes_out_of_a_payload_as_it_went_in(value in value()) {
        let payload = Payload::new(&value).unwrap();
        prop_assert_eq!(payload.to_value(), Ok(value.clone()));
        prop_assert_eq!(ciborium::from_reader::<Value, _>(payload.as_cbor()).unwrap(), value);
    }

    #[test]
    fn the_scan_takes_exactly_what_is_well_formed(bytes in cbor_like()) {
        // As the only key of a map, so that the scan is all that looks at it.
        let wrapped = [&b"\xa1\x61x"[..], &bytes].concat();
        let error = Message::decode(&Bytes::from(wrapped)).unwrap_err();
        let passes = error == DecodeError::Unusable { key: "type" };
        prop_assert_eq!(passes, is_one_item(&bytes), "{:x?}: {}", bytes, error);
    }

    #[test]
    fn what_another_reader_takes_is_well_formed(value in value()) {
        let payload = Payload::new(&value).unwrap();
        prop_assert!(is_one_item(payload.as_cbor()) && ciborium_reads(payload.as_cbor()));
    }

    #[test]
    fn random_bytes_are_never_more_than_an_error(bytes in vec(any::<u8>(), 0..300)) {
        prop_assert!(Message::decode(&Bytes::from(bytes.clone())).is_err());
        if let Ok(payload) = Payload::from_cbor(bytes) {
            let _ = payload.to_value();
        }
    }

    #[test]
    fn any_well_formed_item_is_read_or_refused_but_never_a_panic(bytes in cbor_like()) {
        if let Ok(payload) = Payload::from_cbor(bytes) {
            let _ = (payload.to_value(), payload.as_byte_string());
            let _ = (payload.decode::<Vec<f32>>(), payload.decode::<u128>(), payload.decode::<String>());
            let _ = (payload.decode::<(i8, bool)>(), payload.decode::<nacp_proto::EpochMillis>());
        }
    }

    #[test]
    fn a_damaged_message_is_refused_or_read_but_never_a_panic(
        message in message(),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = message.encode().to_bytes().to_vec();
        for (at, byte) in damage {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let again = Message::decode(&bytes.into()).ok().and_then(Decoded::into_message);
        // NaN is not even equal to itself.
        let again = again.filter(|message| message.time.is_none_or(|time| !time.is_nan()));
        if let Some(again) = again {
            prop_assert_eq!(good(&again.encode().to_bytes()), again);
        }
    }
}

//! The bytes that go out (specification, section 3).

use bytes::{BufMut, Bytes, BytesMut};
use ciborium::Value;
use nacp_proto::{Body, Message, MessageType, Payload, Response, Version};

use crate::support::{ID, PARENT, every_body, good, id, keys_of, message, register, request};

#[test]
fn a_request_goes_out_in_exactly_these_bytes() {
    let bytes = request(Payload::new(&7).unwrap()).encode().to_bytes();
    let expected: Bytes = [
        &b"\xa8\x61v\xa2\x65major\x02\x65minor\x01"[..],
        b"\x64type\x67request",
        b"\x62id\x78\x2400112233-4455-6677-8899-aabbccddeeff",
        b"\x64from\x61a",
        b"\x62to\x61b",
        b"\x61t\xfb\x42\x78\xbc\xfe\x56\x80\x00\x00",
        b"\x67payload\x07",
        b"\x64meta\xa2\x64kind\x67ability\x66target\x64echo",
    ]
    .concat()
    .into();
    assert_eq!(bytes, expected);
}

#[test]
fn an_ack_goes_out_in_exactly_these_bytes() {
    let ack = Message {
        time: None,
        ..message(Body::Ack { parent_id: id("p") })
    };
    let expected = [
        &b"\xa6\x61v\xa2\x65major\x02\x65minor\x01"[..],
        b"\x64type\x63ack",
        b"\x62id\x78\x2400112233-4455-6677-8899-aabbccddeeff",
        b"\x64from\x61a",
        b"\x62to\x61b",
        b"\x64meta\xa1\x68parentId\x61p",
    ]
    .concat();
    assert_eq!(ack.encode().to_bytes(), expected);
}

#[test]
fn keys_go_out_in_the_order_v_type_id_from_to_t_payload_meta() {
    for body in every_body() {
        let message = message(body);
        let keys: Vec<_> = keys_of(&message.encode().to_bytes());
        let names: Vec<_> = keys.iter().map(|(key, _)| key.as_str()).collect();
        let with_payload = ["v", "type", "id", "from", "to", "t", "payload", "meta"];
        let without = ["v", "type", "id", "from", "to", "t", "meta"];
        let is_control =
            matches!(&message.body, Body::Signal { signal, .. } if signal.kind() != "normal");
        if is_control || message.message_type() == MessageType::Ack {
            assert_eq!(names, without, "{message:?}");
        } else {
            assert_eq!(names, with_payload, "{message:?}");
        }
    }
}

#[test]
fn every_type_has_exactly_the_meta_and_payload_of_its_row() {
    let rows: Vec<(String, String)> = every_body()
        .into_iter()
        .map(|body| {
            let keys = keys_of(&message(body).encode().to_bytes());
            let names = |wanted: &str| {
                let value = keys
                    .iter()
                    .find(|(key, _)| key == wanted)
                    .map(|(_, value)| value);
                let entries = value.and_then(Value::as_map);
                let name = |(key, _): &(Value, Value)| key.as_text().map(str::to_owned);
                let names: Option<Vec<_>> =
                    entries.and_then(|entries| entries.iter().map(name).collect());
                names.map_or_else(|| "-".to_owned(), |names| names.join(" "))
            };
            (names("meta"), names("payload"))
        })
        .collect();
    let expected = [
        ("", "isGateway decl instance maxMessageBytes holds auth"),
        ("", ""),
        ("", "targetSubName"),
        ("", "targetSubId"),
        ("kind target", "-"),
        ("kind", "-"),
        ("parentId isOk", "-"),
        ("parentId isOk whyNotOk kind seq instance", ""),
        ("parentId kind", "-"),
        ("parentId kind", "-"),
        ("parentId kind", "-"),
        ("parentId kind", "-"),
        ("parentId targetSubName hitSubName seq", "-"),
        ("parentId targetSubName hitSubName", "-"),
        ("parentId", "-"),
    ];
    assert_eq!(
        rows,
        expected.map(|(meta, payload)| (meta.to_owned(), payload.to_owned()))
    );
}

#[test]
fn t_04_time_always_leaves_as_a_64_bit_float() {
    for (time, bits) in [
        (1.0, 0x3ff0_0000_0000_0000_u64),
        (1_700_000_000_000.0, 0x4278_bcfe_5680_0000),
        (9_007_199_254_740_992.0, 0x4340_0000_0000_0000),
    ] {
        let message = Message {
            time: Some(time),
            ..request(Payload::null())
        };
        let bytes = message.encode().to_bytes();
        let expected = [b"\x61t\xfb", &bits.to_be_bytes()[..]].concat();
        assert!(bytes.windows(11).any(|window| window == expected), "{time}");
        assert_eq!(good(&bytes).time, Some(time));
    }
}

#[test]
fn a_time_that_is_not_given_is_left_out() {
    let message = Message {
        time: None,
        ..request(Payload::null())
    };
    let bytes = message.encode().to_bytes();
    assert!(keys_of(&bytes).iter().all(|(key, _)| key != "t"));
    assert_eq!(good(&bytes), message);
}

#[test]
fn every_message_says_2_1_but_a_register_its_own_version() {
    let v = |message: Message| keys_of(&message.encode().to_bytes())[0].clone();
    let version = |major: u64, minor: u64| {
        let entries = vec![
            ("major".into(), major.into()),
            ("minor".into(), minor.into()),
        ];
        ("v".to_owned(), Value::Map(entries))
    };
    assert_eq!(v(request(Payload::null())), version(2, 1));
    let register = nacp_proto::Register {
        version: Version {
            major: 3,
            minor: 1000,
        },
        ..register()
    };
    assert_eq!(
        v(message(Body::Register(Box::new(register)))),
        version(3, 1000)
    );
}

#[test]
fn everything_but_t_has_the_shortest_form_and_a_definite_length() {
    for body in every_body() {
        let message = Message {
            time: None,
            ..message(body)
        };
        let bytes = message.encode().to_bytes();
        let value: Value = ciborium::from_reader(&*bytes).unwrap();
        let mut shortest = Vec::new();
        ciborium::into_writer(&value, &mut shortest).unwrap();
        assert_eq!(bytes, shortest, "{message:?}");
    }
}

#[test]
fn an_explicit_null_stays_null_and_nothing_stays_an_empty_map() {
    for (payload, cbor) in [
        (Payload::null(), [0xf6]),
        (Payload::empty(), [0xa0]),
        (Payload::default(), [0xa0]),
        (Payload::undefined(), [0xf7]),
    ] {
        assert_eq!(payload.as_cbor(), cbor);
        let bytes = request(payload.clone()).encode().to_bytes();
        assert_eq!(good(&bytes).body.payload(), Some(&payload));
    }
}

#[test]
fn a_payload_of_more_than_4_kib_is_not_copied() {
    for (length, pieces) in [(4096, 1), (4097, 3), (1 << 20, 3)] {
        let payload = Payload::from_cbor(Payload::byte_string(vec![7; length - 3]).into_bytes());
        let payload = payload.unwrap();
        let message = request(payload.clone());
        let encoded = message.encode();
        let filled = encoded
            .pieces()
            .iter()
            .filter(|piece| !piece.is_empty())
            .count();
        assert_eq!(
            filled,
            if payload.len() > 4096 { 3 } else { 1 },
            "{length} {pieces}"
        );
        if filled == 3 {
            assert_eq!(encoded.pieces()[1].as_ptr(), payload.as_cbor().as_ptr());
            assert!(encoded.pieces()[0].len() + encoded.pieces()[2].len() < 256);
        }
        assert_eq!(good(&encoded.to_bytes()), message);
    }
}

#[test]
fn both_ways_to_encode_write_the_same_bytes() {
    for body in every_body() {
        let message = message(body);
        let mut out = BytesMut::new();
        out.put_slice(b"before");
        message.encode_into(&mut out);
        assert_eq!(&out[..6], b"before");
        assert_eq!(out[6..], message.encode().to_bytes());
    }
}

#[test]
fn a_message_id_goes_out_as_it_came_in() {
    for text in [
        ID,
        PARENT,
        "00112233-4455-6677-8899-AABBCCDDEEFF",
        "00112233445566778899aabbccddeeff",
        "{00112233-4455-6677-8899-aabbccddee}",
        "0011223-34455-6677-8899-aabbccddeeff",
        "g0112233-4455-6677-8899-aabbccddeeff",
        "*",
        ":",
        "caf\u{e9}",
        "\0",
    ] {
        let ack = message(Body::Ack {
            parent_id: id(text),
        });
        let keys = keys_of(&ack.encode().to_bytes());
        let meta = &keys.last().unwrap().1.as_map().unwrap()[0];
        assert_eq!(meta.1.as_text(), Some(text));
        assert_eq!(good(&ack.encode().to_bytes()), ack);
    }
}

#[test]
fn a_response_without_options_has_none() {
    let response = Response::ok(id("p"), Payload::empty());
    assert_eq!(response.outcome, nacp_proto::Outcome::Ok);
    assert_eq!(
        (response.kind, response.seq, response.instance),
        (None, None, None)
    );
}

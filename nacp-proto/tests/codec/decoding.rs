//! What is taken, and what becomes of the rest (specification, section 3).

use bytes::Bytes;
use ciborium::{Value, cbor};
use nacp_proto::{
    Body, DecodeError, Decoded, Malformed, Message, MessageType, Outcome, Payload, RequestKind,
    Response, ScanError, Signal,
};

use crate::support::{
    ID, changed, decode, every_body, good, id, keys_of, message, register, request, set, wire,
};

#[test]
fn every_message_reads_as_what_was_written() {
    for body in every_body() {
        let message = message(body);
        assert_eq!(good(&message.encode().to_bytes()), message);
    }
}

#[test]
fn keys_are_taken_in_any_order() {
    for body in every_body() {
        let message = message(body);
        let mut keys = keys_of(&message.encode().to_bytes());
        for _ in 0..keys.len() {
            keys.rotate_left(1);
            let again = changed(&message, |own| own.clone_from(&keys));
            assert_eq!(good(&again), message);
            let again = changed(&message, |own| *own = keys.iter().rev().cloned().collect());
            assert_eq!(good(&again), message);
        }
    }
}

#[test]
fn unknown_keys_are_ignored_whatever_they_hold() {
    let nested = cbor!({"deep" => [1, {"deeper" => null}], "id" => "not this one"}).unwrap();
    for body in every_body() {
        let message = message(body);
        let more = changed(&message, |keys| {
            keys.insert(0, ("zzz".to_owned(), nested.clone()));
            keys.push((
                "aaa".to_owned(),
                Value::Tag(1000, Box::new(Value::Bytes(vec![0xff]))),
            ));
            let meta = keys.iter_mut().find(|(key, _)| key == "meta").unwrap();
            meta.1
                .as_map_mut()
                .unwrap()
                .push(("extra".into(), nested.clone()));
        });
        assert_eq!(good(&more), message);
    }
}

#[test]
fn keys_that_are_no_text_are_ignored() {
    let plain = request(Payload::null());
    let mut entries = ciborium::from_reader::<Value, _>(&*plain.encode().to_bytes()).unwrap();
    let odd = [
        Value::from(1),
        Value::Null,
        Value::Bytes(vec![b'i', b'd']),
        Value::Array(vec![]),
    ];
    for key in odd {
        entries
            .as_map_mut()
            .unwrap()
            .insert(1, (key, Value::from("x")));
    }
    let mut bytes = Vec::new();
    ciborium::into_writer(&entries, &mut bytes).unwrap();
    assert_eq!(good(&bytes.into()), plain);
}

#[test]
fn of_a_key_that_is_there_twice_the_last_counts() {
    let plain = request(Payload::null());
    let twice = changed(&plain, |keys| {
        keys.insert(0, ("from".to_owned(), "somebody else".into()));
        keys.insert(
            0,
            (
                "meta".to_owned(),
                cbor!({"kind" => "event", "seq" => "?"}).unwrap(),
            ),
        );
        keys.insert(0, ("payload".to_owned(), 5.into()));
    });
    assert_eq!(good(&twice), plain);
}

#[test]
fn null_and_undefined_count_as_absent_where_a_field_is_optional() {
    let response = Response::not_ok(id("p"), "why");
    let bare = Response {
        outcome: Outcome::NotOk { why: None },
        ..response
    };
    let bare = Message {
        time: None,
        ..message(Body::Response(bare))
    };
    let bytes = bare.encode().to_bytes();
    for nothing in [0xf6, 0xf7] {
        // {parentId, isOk, whyNotOk, kind, seq, instance} with nothing in the last four.
        let at = bytes.len() - b"\xa2\x68parentId\x61p\x64isOk\xf4".len();
        let mut meta = b"\xa6\x68parentId\x61p\x64isOk\xf4".to_vec();
        for key in [
            &b"\x68whyNotOk"[..],
            b"\x64kind",
            b"\x63seq",
            b"\x68instance",
        ] {
            meta.extend([key, &[nothing]].concat());
        }
        assert_eq!(good(&[&bytes[..at], &meta].concat().into()), bare);
    }
    let untargeted = request_with(cbor!({"kind" => "ability", "target" => null}).unwrap());
    assert_eq!(
        good(&untargeted).body,
        Body::Request {
            kind: RequestKind::Ability,
            target: None,
            payload: Payload::null()
        }
    );
}

fn request_with(meta: Value) -> Bytes {
    changed(&request(Payload::null()), |keys| set(keys, "meta", meta))
}

#[test]
fn a_time_that_is_no_number_counts_as_absent() {
    for (time, expected) in [
        (Value::from("noon"), None),
        (Value::Null, None),
        (cbor!([1]).unwrap(), None),
        (
            Value::from(1_700_000_000_000_u64),
            Some(1_700_000_000_000.0),
        ),
        (Value::from(-1), Some(-1.0)),
        (Value::from(0.5), Some(0.5)),
    ] {
        let bytes = changed(&request(Payload::null()), |keys| set(keys, "t", time));
        assert_eq!(good(&bytes).time, expected);
    }
}

#[test]
fn indefinite_lengths_are_taken_everywhere() {
    let bytes = [
        &b"\xbf"[..],
        b"\x7f\x62ty\x62pe\xff\x7f\x63req\x64uest\xff",
        b"\x62id\x7f\x64same\xff",
        b"\x64from\x61a",
        b"\x62to\x7f\x61b\x60\xff",
        b"\x64meta\xbf\x64kind\x7f\x67ability\xff\x7f\x66target\xff\x64echo\xff",
        b"\x67payload\x9f\x01\x5f\x41\x02\xff\xff",
        b"\xff",
    ]
    .concat();
    let message = good(&bytes.into());
    assert_eq!(message.id, id("same"));
    assert_eq!(message.to.as_str(), "b");
    let Body::Request {
        kind,
        target,
        payload,
    } = message.body
    else {
        panic!("a request")
    };
    assert_eq!(
        (kind, target.as_deref()),
        (RequestKind::Ability, Some("echo"))
    );
    assert_eq!(payload.as_cbor(), b"\x9f\x01\x5f\x41\x02\xff\xff");
}

#[test]
fn numbers_are_taken_in_any_width_and_as_whole_floats() {
    let forms: [&[u8]; 8] = [
        b"\x02",
        b"\x18\x02",
        b"\x19\x00\x02",
        b"\x1a\x00\x00\x00\x02",
        b"\x1b\x00\x00\x00\x00\x00\x00\x00\x02",
        b"\xf9\x40\x00",
        b"\xfa\x40\x00\x00\x00",
        b"\xfb\x40\x00\x00\x00\x00\x00\x00\x00",
    ];
    let register = message(Body::Register(Box::new(register())));
    let notify = |seq| {
        message(Body::Notify {
            parent_id: id("p"),
            target_sub_name: "n".into(),
            hit_sub_name: "n".into(),
            payload: Payload::null(),
            seq,
        })
    };
    for form in forms {
        let bytes = register.encode().to_bytes();
        let old = b"\x65major\x02";
        let at = bytes
            .windows(old.len())
            .position(|window| window == old)
            .unwrap()
            + 6;
        let wide = [&bytes[..at], form, &bytes[at + 1..]].concat();
        assert_eq!(good(&wide.into()), register, "{form:x?}");

        let bytes = notify(Some(0)).encode().to_bytes();
        let wide = [&bytes[..bytes.len() - 1], form].concat();
        assert_eq!(good(&wide.into()), notify(Some(2)), "{form:x?}");
    }
}

#[test]
fn a_missing_payload_is_undefined() {
    for body in every_body() {
        if body.payload().is_none() {
            continue;
        }
        let whole = message(body);
        let bytes = changed(&whole, |keys| keys.retain(|(key, _)| key != "payload"));
        assert_eq!(
            good(&bytes).body.payload(),
            Some(&Payload::undefined()),
            "{whole:?}"
        );
    }
}

#[test]
fn the_payload_of_an_ack_or_control_signal_is_ignored() {
    for body in [
        Body::Ack { parent_id: id("p") },
        Body::Signal {
            parent_id: id("p"),
            signal: Signal::Abort,
        },
    ] {
        let plain = message(body);
        let bytes = changed(&plain, |keys| set(keys, "payload", "ignored".into()));
        assert_eq!(good(&bytes), plain);
    }
}

#[test]
fn a_payload_is_a_part_of_the_received_bytes() {
    let bytes = request(Payload::byte_string([9; 100])).encode().to_bytes();
    let message = good(&bytes);
    let within = bytes.as_ptr_range();
    assert!(within.contains(&message.body.payload().unwrap().as_cbor().as_ptr()));
}

#[test]
fn v_is_read_of_a_register_alone() {
    let plain = request(Payload::null());
    for v in [
        Value::Null,
        "x".into(),
        cbor!({"major" => 9}).unwrap(),
        cbor!([]).unwrap(),
    ] {
        let bytes = changed(&plain, |keys| set(keys, "v", v));
        assert_eq!(good(&bytes), plain);
    }
    let bytes = changed(&plain, |keys| keys.retain(|(key, _)| key != "v"));
    assert_eq!(good(&bytes), plain);
}

#[test]
fn what_is_not_one_cbor_map_is_decode_failed() {
    let whole = request(Payload::null()).encode().to_bytes();
    for (bytes, error) in [
        (Bytes::new(), ScanError::Truncated { at: 0 }),
        (
            Bytes::from_static(&[0xff]),
            ScanError::InvalidHead { at: 0 },
        ),
        (
            Bytes::from_static(&[0xa1, 0x61, b'v', 0x1c]),
            ScanError::InvalidHead { at: 3 },
        ),
        (
            Bytes::from_static(&[0xa1, 0x61, b'v', 0xff]),
            ScanError::InvalidHead { at: 3 },
        ),
        (
            Bytes::from_static(&[0xbf, 0x61, b'v', 0xff]),
            ScanError::InvalidHead { at: 3 },
        ),
        (
            [&whole[..], &[0]].concat().into(),
            ScanError::TrailingBytes { at: whole.len() },
        ),
    ] {
        let decoded = decode(bytes);
        assert_eq!(decoded, Err(DecodeError::NotWellFormed(error)));
    }
    for bytes in [
        &[0x05][..],
        b"\x61a",
        &[0x80],
        &[0xf6],
        &[0xc1, 0xa0],
        b"\x41a",
    ] {
        assert_eq!(
            decode(Bytes::copy_from_slice(bytes)),
            Err(DecodeError::NotAMap)
        );
    }
    assert_eq!(DecodeError::NotAMap.reason(), "decode-failed");
}

#[test]
fn a_message_cut_at_any_byte_is_truncated_there() {
    for body in every_body() {
        let bytes = message(body).encode().to_bytes();
        for end in 0..bytes.len() {
            let error = DecodeError::NotWellFormed(ScanError::Truncated { at: end });
            assert_eq!(decode(bytes.slice(..end)), Err(error));
        }
    }
}

#[test]
fn without_a_usable_type_id_from_or_to_it_is_decode_failed() {
    let long = "x".repeat(256);
    for key in ["type", "id", "from", "to"] {
        let unusable = Err(DecodeError::Unusable { key });
        let plain = request(Payload::null());
        let without = changed(&plain, |keys| keys.retain(|(name, _)| name != key));
        assert_eq!(decode(without), unusable);
        for value in [
            Value::Null,
            5.into(),
            cbor!(["a"]).unwrap(),
            Value::Bytes(vec![b'a']),
        ] {
            let bytes = changed(&plain, |keys| set(keys, key, value));
            assert_eq!(decode(bytes), unusable);
        }
        if key != "type" {
            for text in ["", long.as_str()] {
                let bytes = changed(&plain, |keys| set(keys, key, text.into()));
                assert_eq!(decode(bytes), unusable);
            }
        }
        let bytes = changed(&plain, |keys| set(keys, key, "\u{fffd}".into()));
        let at = bytes
            .windows(3)
            .position(|window| window == "\u{fffd}".as_bytes())
            .unwrap();
        let mut ill_formed = bytes.to_vec();
        ill_formed[at..at + 3].copy_from_slice(&[0xff, 0xfe, 0xfd]);
        assert_eq!(decode(ill_formed), unusable);
    }
}

#[test]
fn an_unknown_type_has_an_envelope_and_its_name() {
    let plain = request(Payload::null());
    for meta in [Some(cbor!({}).unwrap()), Some(Value::Null), None] {
        let bytes = changed(&plain, |keys| {
            set(keys, "type", "frobnicate".into());
            keys.retain(|(key, _)| key != "meta");
            keys.extend(meta.map(|meta| ("meta".to_owned(), meta)));
        });
        let decoded = decode(bytes).unwrap();
        assert_eq!(decoded.envelope().id, &plain.id);
        assert_eq!(decoded.message_type(), None);
        let (envelope, _) = plain.clone().into_parts();
        assert_eq!(
            decoded,
            Decoded::Unknown {
                envelope,
                type_name: "frobnicate".into()
            }
        );
    }
}

#[test]
fn a_known_type_with_a_bad_meta_is_malformed_and_keeps_its_envelope() {
    for body in every_body() {
        let whole = message(body);
        let message_type = whole.message_type();
        for meta in [
            None,
            Some(Value::Null),
            Some(5.into()),
            Some(cbor!([]).unwrap()),
        ] {
            let bytes = changed(&whole, |keys| {
                keys.retain(|(key, _)| key != "meta");
                keys.extend(meta.clone().map(|meta| ("meta".to_owned(), meta)));
            });
            let (envelope, _) = whole.clone().into_parts();
            let malformed = Malformed {
                envelope,
                message_type,
                bad_target_sub_name: false,
            };
            assert_eq!(decode(bytes), Ok(Decoded::Malformed(malformed)));
        }
    }
}

/// Type, meta and payload of a message.
fn of_type(message_type: &str, meta: Value, payload: Option<Value>) -> Bytes {
    let v = cbor!({"major" => 2, "minor" => 1}).unwrap();
    let mut keys = vec![
        ("v", v),
        ("type", message_type.into()),
        ("id", ID.into()),
        ("from", "a".into()),
        ("to", "b".into()),
        ("meta", meta),
    ];
    keys.extend(payload.map(|payload| ("payload", payload)));
    wire(&keys)
}

#[test]
fn each_bad_field_makes_its_message_malformed() {
    let bad = |message_type: &str, meta: Result<Value, _>| {
        (
            message_type.to_owned(),
            Result::<Value, ciborium::value::Error>::unwrap(meta),
        )
    };
    for (message_type, meta) in [
        bad("request", cbor!({})),
        bad("request", cbor!({"kind" => "foo"})),
        bad("request", cbor!({"kind" => 1})),
        bad("request", cbor!({"kind" => "ability", "target" => 5})),
        bad("response", cbor!({"isOk" => true})),
        bad("response", cbor!({"parentId" => "p"})),
        bad("response", cbor!({"parentId" => "p", "isOk" => 1})),
        bad("response", cbor!({"parentId" => "", "isOk" => true})),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => false, "whyNotOk" => 3}),
        ),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => true, "seq" => (-1)}),
        ),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => true, "seq" => 1.5}),
        ),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => true, "seq" => 1e30}),
        ),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => true, "instance" => "00"}),
        ),
        bad(
            "response",
            cbor!({"parentId" => "p", "isOk" => true, "instance" => ID}),
        ),
        bad("signal", cbor!({"kind" => "pause"})),
        bad("signal", cbor!({"parentId" => "p"})),
        bad("signal", cbor!({"parentId" => "p", "kind" => "stop"})),
        bad(
            "notify",
            cbor!({"targetSubName" => "n", "hitSubName" => "n"}),
        ),
        bad("notify", cbor!({"parentId" => "p", "hitSubName" => "n"})),
        bad("notify", cbor!({"parentId" => "p", "targetSubName" => "n"})),
        bad(
            "notify",
            cbor!({"parentId" => "p", "targetSubName" => "n", "hitSubName" => 1}),
        ),
        bad(
            "notify",
            cbor!({"parentId" => "p", "targetSubName" => "n", "hitSubName" => "n", "seq" => "0"}),
        ),
        bad("ack", cbor!({})),
        bad("ack", cbor!({"parentId" => null})),
        bad("ack", cbor!({"parentId" => 5})),
    ] {
        let decoded = decode(of_type(&message_type, meta.clone(), Some(Value::Null))).unwrap();
        let Decoded::Malformed(malformed) = decoded else {
            panic!("{message_type} {meta:?}")
        };
        assert_eq!(malformed.message_type.as_str(), message_type);
        assert!(!malformed.bad_target_sub_name);
    }
}

#[test]
fn a_subscribe_without_a_usable_name_says_so() {
    let name = |name: Value| Value::Map(vec![("targetSubName".into(), name)]);
    for payload in [
        None,
        Some(Value::Null),
        Some("tick".into()),
        Some(Value::Map(vec![])),
        Some(name("".into())),
        Some(name(5.into())),
        Some(name(Value::Null)),
        Some(name(Value::Bytes(vec![b'n']))),
    ] {
        let decoded = decode(of_type("subscribe", Value::Map(vec![]), payload)).unwrap();
        let Decoded::Malformed(malformed) = decoded else {
            panic!("malformed")
        };
        assert_eq!(malformed.message_type, MessageType::Subscribe);
        assert!(malformed.bad_target_sub_name);
    }
}

#[test]
fn an_unsubscribe_without_a_usable_id_is_malformed() {
    let id = |id: Value| Value::Map(vec![("targetSubId".into(), id)]);
    for payload in [
        None,
        Some(Value::Null),
        Some(id("".into())),
        Some(id(5.into())),
    ] {
        let decoded = decode(of_type("unsubscribe", Value::Map(vec![]), payload)).unwrap();
        assert!(matches!(decoded, Decoded::Malformed(_)));
    }
}

#[test]
fn an_unregister_needs_no_payload() {
    for payload in [None, Some(Value::Null), Some("bye".into())] {
        let decoded = decode(of_type("unregister", Value::Map(vec![]), payload)).unwrap();
        assert_eq!(
            decoded.into_message().map(|message| message.body),
            Some(Body::Unregister)
        );
    }
}

#[test]
fn a_response_with_a_kind_that_we_do_not_know_is_taken_without_it() {
    let meta = cbor!({"parentId" => "p", "isOk" => false, "whyNotOk" => "no", "kind" => "foo"});
    let message = good(&of_type("response", meta.unwrap(), None));
    let expected = Response {
        payload: Payload::undefined(),
        ..Response::not_ok(id("p"), "no")
    };
    assert_eq!(message.body, Body::Response(expected));
}

#[test]
fn types_and_kinds_have_the_names_of_the_specification() {
    let names = MessageType::ALL.map(MessageType::as_str);
    let expected = [
        "register",
        "unregister",
        "subscribe",
        "unsubscribe",
        "request",
        "response",
        "signal",
        "notify",
        "ack",
    ];
    assert_eq!(names, expected);
    let unreliable: Vec<_> = MessageType::ALL
        .into_iter()
        .filter(|message_type| !message_type.is_reliable())
        .collect();
    assert_eq!(unreliable, [MessageType::Notify, MessageType::Ack]);
    assert_eq!(RequestKind::Event.to_string(), "event");
    assert_eq!(RequestKind::Ability.to_string(), "ability");
}

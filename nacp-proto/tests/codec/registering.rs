//! The payloads of a register and of its answer (specification, sections 3 and 11).

use ciborium::{Value, cbor};
use nacp_proto::{
    Body, Decl, Decoded, Entry, Instance, Message, Payload, PeerInfo, Register, Registered,
    RegisteredError, Session, Version,
};

use crate::support::{changed, decode, good, message, register, set};

const HEX: &str = "00112233445566778899aabbccddeeff";

fn hex_bytes() -> [u8; 16] {
    std::array::from_fn(|at| at as u8 * 0x11)
}

fn registered() -> Registered {
    Registered {
        info: register().info,
        session: Some(Session(hex_bytes())),
        resumed: Some(true),
    }
}

#[test]
fn our_keys_go_over_the_wire_as_section_11_says() {
    let register = Register {
        info: PeerInfo {
            is_gateway: false,
            decl: Decl {
                events: vec![],
                abilities: vec![Entry {
                    name: "add".into(),
                    description: "adds".into(),
                }],
            },
            instance: Some(Instance(hex_bytes())),
            max_message_bytes: Some(2_147_483_648),
        },
        holds: vec![Session([0xff; 16])],
        ..register()
    };
    let expected = cbor!({
        "isGateway" => false,
        "decl" => {"events" => [], "abilities" => [{"name" => "add", "description" => "adds"}]},
        "instance" => HEX,
        "maxMessageBytes" => 2_147_483_648_u64,
        "holds" => ["ffffffffffffffffffffffffffffffff"],
        "auth" => "open sesame",
    });
    assert_eq!(register.to_payload().to_value().unwrap(), expected.unwrap());

    let registered = Registered {
        info: PeerInfo::default(),
        ..registered()
    };
    let expected = cbor!({
        "isGateway" => false,
        "decl" => {"events" => [], "abilities" => []},
        "session" => HEX,
        "resumed" => true,
    });
    assert_eq!(
        registered.to_payload().to_value().unwrap(),
        expected.unwrap()
    );
}

#[test]
fn what_a_foreign_peer_says_is_all_that_a_bare_register_has() {
    let bare = Register {
        version: Version::CURRENT,
        info: PeerInfo::default(),
        holds: vec![],
        auth: None,
    };
    let expected = cbor!({"isGateway" => false, "decl" => {"events" => [], "abilities" => []}});
    assert_eq!(bare.to_payload().to_value().unwrap(), expected.unwrap());
    let bare = message(Body::Register(Box::new(bare)));
    assert_eq!(good(&bare.encode().to_bytes()), bare);
}

#[test]
fn a_register_and_its_answer_read_as_what_was_written() {
    let whole = message(Body::Register(Box::new(register())));
    assert_eq!(good(&whole.encode().to_bytes()), whole);
    let bare = Registered {
        info: PeerInfo::default(),
        session: None,
        resumed: None,
    };
    for registered in [registered(), bare] {
        assert_eq!(
            Registered::from_payload(&registered.to_payload()),
            Ok(registered)
        );
    }
}

fn read(payload: Value) -> Option<Register> {
    let whole = message(Body::Register(Box::new(register())));
    match decode(changed(&whole, |keys| set(keys, "payload", payload))).unwrap() {
        Decoded::Message(Message {
            body: Body::Register(register),
            ..
        }) => Some(*register),
        Decoded::Malformed(_) => None,
        other @ (Decoded::Message(_) | Decoded::Unknown { .. }) => panic!("{other:?}"),
    }
}

#[test]
fn a_declaration_is_read_as_far_as_it_is_there() {
    let nothing = Decl::default();
    for payload in [
        cbor!({"isGateway" => true}),
        cbor!({"isGateway" => true, "decl" => null}),
        cbor!({"isGateway" => true, "decl" => {}}),
        cbor!({"isGateway" => true, "decl" => {"events" => null, "more" => 5}}),
    ] {
        let register = read(payload.unwrap()).unwrap();
        assert_eq!(
            (register.info.is_gateway, &register.info.decl),
            (true, &nothing)
        );
    }
    let entries =
        cbor!({"isGateway" => true, "decl" => {"abilities" => [{"name" => "a", "x" => 1}]}});
    let abilities = read(entries.unwrap()).unwrap().info.decl.abilities;
    assert_eq!(
        abilities,
        [Entry {
            name: "a".into(),
            description: "".into()
        }]
    );
}

#[test]
fn a_register_that_is_none_is_malformed() {
    for payload in [
        cbor!(null),
        cbor!([]),
        cbor!({}),
        cbor!({"isGateway" => 1}),
        cbor!({"isGateway" => null}),
        cbor!({"isGateway" => true, "decl" => []}),
        cbor!({"isGateway" => true, "decl" => {"events" => {}}}),
        cbor!({"isGateway" => true, "decl" => {"events" => ["run"]}}),
        cbor!({"isGateway" => true, "decl" => {"events" => [{"description" => "x"}]}}),
        cbor!({"isGateway" => true, "decl" => {"events" => [{"name" => "x", "description" => 1}]}}),
        cbor!({"isGateway" => true, "instance" => "00"}),
        cbor!({"isGateway" => true, "instance" => "zz112233445566778899aabbccddeeff"}),
        cbor!({"isGateway" => true, "maxMessageBytes" => (-1)}),
        cbor!({"isGateway" => true, "holds" => HEX}),
        cbor!({"isGateway" => true, "holds" => [HEX, 5]}),
    ] {
        let payload = payload.unwrap();
        assert_eq!(read(payload.clone()), None, "{payload:?}");
        let answer = Payload::new(&payload).unwrap();
        if payload
            .as_map()
            .is_none_or(|keys| keys.iter().all(|(key, _)| *key != "holds".into()))
        {
            assert_eq!(
                Registered::from_payload(&answer),
                Err(RegisteredError),
                "{payload:?}"
            );
        }
    }
    for v in [
        cbor!(null),
        cbor!(2),
        cbor!({"major" => 2}),
        cbor!({"major" => "2", "minor" => 1}),
    ] {
        let (whole, v) = (message(Body::Register(Box::new(register()))), v.unwrap());
        let bytes = changed(&whole, |keys| set(keys, "v", v.clone()));
        assert!(matches!(decode(bytes), Ok(Decoded::Malformed(_))), "{v:?}");
    }
}

#[test]
fn an_answer_with_a_bad_session_is_refused() {
    for payload in [
        cbor!({"isGateway" => true, "session" => 5}),
        cbor!({"isGateway" => true, "session" => "00"}),
        cbor!({"isGateway" => true, "resumed" => "yes"}),
    ] {
        let payload = Payload::new(&payload.unwrap()).unwrap();
        assert_eq!(Registered::from_payload(&payload), Err(RegisteredError));
    }
}

#[test]
fn null_counts_as_absent_in_a_register() {
    let payload = cbor!({
        "isGateway" => false, "instance" => null, "maxMessageBytes" => null, "holds" => null, "auth" => null,
    });
    let register = read(payload.unwrap()).unwrap();
    assert_eq!(register.info, PeerInfo::default());
    assert_eq!((register.holds, register.auth), (vec![], None));
}

#[test]
fn a_credential_comes_out_as_the_bytes_it_came_in() {
    let auth = Payload::new(&["user", "secret"]).unwrap();
    let whole = Register {
        auth: Some(auth.clone()),
        ..register()
    };
    let whole = message(Body::Register(Box::new(whole)));
    let Body::Register(read) = good(&whole.encode().to_bytes()).body else {
        panic!("a register")
    };
    assert_eq!(read.auth, Some(auth));
}

#[test]
fn secrets_are_not_shown() {
    let register = Register {
        auth: Some(Payload::new("sesame").unwrap()),
        ..register()
    };
    let shown = format!("{register:?} {:?}", registered());
    assert!(!shown.contains("sesame"), "{shown}");
    for byte in ["0x2b", "43,", "2b2b"] {
        assert!(!shown.contains(byte), "{shown}");
    }
    assert!(shown.contains("Session(..)"));
}

#[test]
fn sessions_are_equal_by_their_bytes() {
    let mut other = hex_bytes();
    assert_eq!(Session(hex_bytes()), Session(other));
    other[15] ^= 1;
    assert_ne!(Session(hex_bytes()), Session(other));
}

#[test]
fn the_length_of_a_declaration_is_that_of_its_bytes() {
    for decl in [Decl::default(), register().info.decl] {
        let info = PeerInfo {
            decl: decl.clone(),
            ..PeerInfo::default()
        };
        let bare = Registered {
            info,
            session: None,
            resumed: None,
        };
        let around = b"\xa2\x69isGateway\xf4\x64decl".len();
        assert_eq!(decl.encoded_len(), bare.to_payload().len() - around);
    }
    // Also what has no text takes room.
    let empty = Decl {
        events: vec![Entry::default(); 1000],
        abilities: vec![],
    };
    assert!(empty.encoded_len() > 20 * 1000);
}

//! AppIds and message ids are opaque, whatever they spell (T-05).

use std::collections::{BTreeSet, HashMap};

use nacp_proto::{
    AppId, AppIdError, Body, DecodeError, Decoded, Message, MessageId, MessageIdError, Payload,
};

use crate::support::{app, changed, decode, good, id, message, register, request, set};

fn from(name: &str) -> Result<Decoded, DecodeError> {
    let register = message(Body::Register(Box::new(register())));
    decode(changed(&register, |keys| set(keys, "from", name.into())))
}

#[test]
fn t_05_ids_with_colons_and_stars_are_ids_like_any_other() {
    for text in ["a:b", "*", ":", "q1:process", "%2A", &"i".repeat(255)] {
        let plain = Message {
            id: id(text),
            ..request(Payload::null())
        };
        let read = good(&plain.encode().to_bytes());
        assert_eq!(read.id.to_smol_str(), text);
        assert_eq!(read, plain);
    }
}

#[test]
fn t_05_the_empty_id_and_one_of_256_bytes_are_decode_failed() {
    for text in ["", &"i".repeat(256)] {
        let bytes = changed(&request(Payload::null()), |keys| {
            set(keys, "id", text.into())
        });
        let error = decode(bytes).unwrap_err();
        assert_eq!(error, DecodeError::Unusable { key: "id" });
        assert_eq!(error.reason(), "decode-failed");
    }
    assert_eq!(MessageId::new(""), Err(MessageIdError::Empty));
    assert_eq!(
        MessageId::new(&"i".repeat(256)),
        Err(MessageIdError::TooLong { bytes: 256 })
    );
}

#[test]
fn t_05_app_ids_are_taken_byte_by_byte_up_to_255_bytes() {
    let long = "x".repeat(255);
    let three_byte_letters = "\u{6f22}".repeat(85);
    for name in [
        &long,
        &three_byte_letters,
        "x\0y",
        " x",
        "a:b",
        "A",
        "caf\u{e9}",
        "cafe\u{301}",
    ] {
        let read = from(name).unwrap().into_message().unwrap();
        assert_eq!(read.from.as_str(), name);
        assert_eq!(AppId::new(name), Ok(read.from));
    }
}

#[test]
fn t_05_empty_long_and_ill_formed_app_ids_are_refused_at_once() {
    let long = "x".repeat(256);
    assert_eq!(AppId::new(""), Err(AppIdError::Empty));
    assert_eq!(AppId::new(&long), Err(AppIdError::TooLong { bytes: 256 }));
    let letters = "\u{6f22}".repeat(86);
    assert_eq!(
        AppId::new(&letters),
        Err(AppIdError::TooLong { bytes: 258 })
    );
    let unusable = Err(DecodeError::Unusable { key: "from" });
    assert_eq!(from(""), unusable);
    assert_eq!(from(&long), unusable);

    let bytes = Message {
        from: app("??"),
        ..request(Payload::null())
    }
    .encode()
    .to_bytes();
    let at = bytes.windows(2).position(|window| window == b"??").unwrap();
    let ill_formed = [&bytes[..at], &[0xff, 0xfe], &bytes[at + 2..]].concat();
    assert_eq!(decode(ill_formed), unusable);
}

#[test]
fn t_05_look_alikes_are_different_apps() {
    let names = ["caf\u{e9}", "cafe\u{301}", "A", "a", "x", "x\0", " x", "x "];
    let apps: BTreeSet<_> = names.iter().map(|name| app(name)).collect();
    assert_eq!(apps.len(), names.len());
    let by_name: HashMap<_, _> = apps.into_iter().map(|app| (app, ())).collect();
    assert!(by_name.contains_key("cafe\u{301}"));
    assert!(!by_name.contains_key("cafe"));
}

#[test]
fn t_05_names_are_shown_with_control_characters_escaped() {
    let name = "x\0\u{1b}[2J\n\u{202e}'\"\u{e9}";
    let shown = "x\\0\\u{1b}[2J\\n\\u{202e}'\"\u{e9}";
    assert_eq!(app(name).to_string(), shown);
    assert_eq!(id(name).to_string(), shown);
    for debug in [format!("{:?}", app(name)), format!("{:?}", id(name))] {
        assert!(
            debug.chars().all(|character| !character.is_control()),
            "{debug}"
        );
    }
    assert_eq!(app(name).as_str(), name);
    assert_eq!(id(name).to_smol_str(), name);
}

#[test]
fn the_wildcard_is_no_app_and_goes_over_the_wire() {
    assert_eq!(AppId::new("*"), Err(AppIdError::Wildcard));
    assert_eq!("*".parse::<AppId>(), Err(AppIdError::Wildcard));
    assert!(AppId::any().is_any());
    assert!(!app("**").is_any());
    let to_whoever = Message {
        to: AppId::any(),
        ..message(Body::Register(Box::new(register())))
    };
    assert_eq!(good(&to_whoever.encode().to_bytes()), to_whoever);
    assert!(from("*").unwrap().envelope().from.is_any());
}

#[test]
fn app_ids_are_ordered_by_their_bytes() {
    let mut apps = ["b", "a", "B", "aa", "\u{e9}", "z"].map(app);
    apps.sort();
    assert_eq!(
        apps.map(|app| app.as_str().to_owned()),
        ["B", "a", "aa", "b", "z", "\u{e9}"]
    );
}

#[test]
fn only_the_canonical_text_of_a_uuid_is_kept_as_its_bytes() {
    let bytes: [u8; 16] = std::array::from_fn(|at| at as u8 * 0x11);
    let canonical = "00112233-4455-6677-8899-aabbccddeeff";
    assert_eq!(id(canonical).uuid_bytes(), Some(bytes));
    assert_eq!(MessageId::from_uuid_bytes(bytes), id(canonical));
    assert_eq!(MessageId::from_uuid_bytes(bytes).to_smol_str(), canonical);
    for other in [
        "00112233-4455-6677-8899-AABBCCDDEEFF",
        "00112233-4455-6677-8899-aabbccddeefF",
        "00112233445566778899aabbccddeeff",
        "{00112233-4455-6677-8899-aabbccddee}",
        "urn:uuid:00112233-4455-6677-8899-aab",
        "001122334-455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeefg",
    ] {
        assert_eq!(id(other).uuid_bytes(), None, "{other}");
        assert_eq!(id(other).to_smol_str(), other);
        assert_ne!(id(other), id(canonical));
    }
}

#[test]
fn message_ids_are_ordered_as_their_texts() {
    let texts = [
        "00112233-4455-6677-8899-aabbccddeefe",
        "00112233-4455-6677-8899-aabbccddeeff",
        "00112233-4455-6677-8899-aabbccddeeff!",
        "00112233",
        "fffffff0-0000-0000-0000-000000000000",
        "~",
        "G",
    ];
    for a in texts {
        for b in texts {
            assert_eq!(id(a).cmp(&id(b)), a.cmp(b), "{a} {b}");
        }
    }
}

#[test]
fn a_sequenced_id_is_a_uuid_with_58_bits_of_sequence_and_64_random_ones() {
    let largest = (1 << MessageId::SEQUENCE_BITS) - 1;
    for sequence in [0, 1, 0x3ff, 0x400, 0x1234_5678_9abc, largest] {
        for random in [0, 1, u64::MAX, 0x8000_0000_0000_0000, 0x0123_4567_89ab_cdef] {
            let made = MessageId::sequenced(sequence, random);
            assert_eq!(made.sequence(), Some(sequence));
            let bytes = made.uuid_bytes().unwrap();
            assert_eq!(
                (bytes[6] >> 4, bytes[8] >> 6),
                (8, 0b10),
                "version 8, variant of RFC 9562"
            );
            assert_eq!(
                good(
                    &Message {
                        id: made.clone(),
                        ..request(Payload::null())
                    }
                    .encode()
                    .to_bytes()
                )
                .id,
                made
            );
        }
    }
    let differing = (0..64)
        .map(|bit| MessageId::sequenced(5, 1 << bit))
        .collect::<BTreeSet<_>>();
    assert_eq!(differing.len(), 64, "no random bit is lost");
    assert_eq!(MessageId::sequenced(largest + 1, 0).sequence(), Some(0));
    assert_eq!(id("00112233-4455-6677-8899-aabbccddeeff").sequence(), None);
    assert_eq!(id("1").sequence(), None);
}

#[test]
fn ids_are_small() {
    assert!(size_of::<MessageId>() <= 32, "{}", size_of::<MessageId>());
    assert!(size_of::<AppId>() <= 24, "{}", size_of::<AppId>());
}

//! Lengths and depths that only a hostile peer writes (T-01).

use std::thread;

use ciborium::Value;
use nacp_proto::{Body, DecodeError, Message, Payload, PayloadError, Register, ScanError};

use crate::support::{carrying, decode, good, message, register};

fn nested(level: &[u8], levels: usize) -> Vec<u8> {
    [level.repeat(levels), vec![0xf6]].concat()
}

#[test]
fn t_01_a_declared_length_without_its_bytes_is_decode_failed() {
    for major in [0x9b, 0xbb, 0x7b, 0x5b] {
        for length in [1 << 32, u64::MAX] {
            let item = [&[major][..], &u64::to_be_bytes(length)].concat();
            let error = decode(item.clone()).unwrap_err();
            assert!(
                matches!(
                    error,
                    DecodeError::NotWellFormed(ScanError::Truncated { .. })
                ) || error == DecodeError::NotAMap,
                "{error}"
            );
            assert_eq!(error.reason(), "decode-failed");

            let error = decode(carrying(&item)).unwrap_err();
            assert!(matches!(error, DecodeError::NotWellFormed(_)), "{error}");
            assert!(Payload::from_cbor(item).is_err());
        }
    }
}

#[test]
fn t_01_nesting_of_100_000_levels_is_refused_with_one_error() {
    for level in [&[0x81][..], &[0xc1], &[0xa1, 0x01], &[0x9f], &[0xbf, 0x01]] {
        let error = decode(carrying(&nested(level, 100_000))).unwrap_err();
        assert!(
            matches!(error, DecodeError::NotWellFormed(ScanError::TooDeep { .. })),
            "{error}"
        );
        let error = decode(nested(level, 100_000)).unwrap_err();
        assert_eq!(error.reason(), "decode-failed");
    }
}

#[test]
fn a_message_nests_up_to_128_levels_itself_included() {
    for level in [&[0x81][..], &[0xc1], &[0xa1, 0x01]] {
        let deepest = nested(level, 127);
        assert_eq!(
            good(&carrying(&deepest)).body.payload().unwrap().as_cbor(),
            deepest
        );
        let error = decode(carrying(&nested(level, 128))).unwrap_err();
        assert!(matches!(
            error,
            DecodeError::NotWellFormed(ScanError::TooDeep { .. })
        ));
    }
}

#[test]
fn what_a_meta_or_an_unknown_key_holds_counts_as_well() {
    let inner = |levels| [&b"\xa1\x61x"[..], &nested(&[0x81], levels)].concat();
    assert_eq!(
        decode(inner(127)),
        Err(DecodeError::Unusable { key: "type" })
    );
    let too_deep = ScanError::TooDeep { at: 3 + 127 };
    assert_eq!(
        decode(inner(128)),
        Err(DecodeError::NotWellFormed(too_deep))
    );
    let meta = |levels| [&b"\xa1\x64meta\xa1\x61x"[..], &nested(&[0x81], levels)].concat();
    assert_eq!(
        decode(meta(126)),
        Err(DecodeError::Unusable { key: "type" })
    );
    let too_deep = ScanError::TooDeep { at: 9 + 126 };
    assert_eq!(decode(meta(127)), Err(DecodeError::NotWellFormed(too_deep)));
}

#[test]
fn a_payload_that_can_be_made_fits_wherever_it_goes() {
    let deepest = Payload::from_cbor(nested(&[0x81], 126)).unwrap();
    assert_eq!(
        Payload::from_cbor(nested(&[0x81], 127)),
        Err(PayloadError::NotWellFormed(ScanError::TooDeep { at: 126 }))
    );
    let value = |levels| (0..levels).fold(Value::Null, |inner, _| Value::Array(vec![inner]));
    assert_eq!(Payload::new(&value(126)), Ok(deepest.clone()));
    assert!(Payload::new(&value(127)).is_err());

    let auth = Register {
        auth: Some(deepest),
        ..register()
    };
    let register = message(Body::Register(Box::new(auth)));
    assert_eq!(good(&register.encode().to_bytes()), register);
}

#[test]
fn the_deepest_payload_is_read_on_a_small_stack() {
    let read = || {
        let message = good(&carrying(&nested(&[0xa1, 0x61, b'x'], 127)));
        let payload = message.body.payload().unwrap().clone();
        assert!(payload.decode::<u8>().is_err());
        payload.to_value().is_ok()
    };
    let reader = thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(read)
        .unwrap();
    assert!(reader.join().unwrap());
}

#[test]
fn a_head_that_rfc_8949_does_not_have_is_decode_failed() {
    let reserved = (0..8).flat_map(|major| (28..31).map(move |info| vec![major << 5 | info]));
    let without_length = [0x1f, 0x3f, 0xdf].map(|head| vec![head]);
    let two_byte_simple = (0..32).map(|value| vec![0xf8, value]);
    let bad_chunks: [&[u8]; 6] = [
        b"\x5f\x61a\xff",
        b"\x7f\x41a\xff",
        b"\x5f\x5f\xff\xff",
        b"\x7f\x01\xff",
        b"\xbf\x01\xff",
        b"\xa1\xff",
    ];
    let items = reserved
        .chain(without_length)
        .chain(two_byte_simple)
        .chain(bad_chunks.map(<[u8]>::to_vec));
    for item in items {
        let error = decode(carrying(&item)).unwrap_err();
        assert!(
            matches!(
                error,
                DecodeError::NotWellFormed(ScanError::InvalidHead { .. })
            ),
            "{item:x?}: {error}"
        );
    }
}

#[test]
fn odd_but_well_formed_payloads_pass_as_bytes() {
    for item in [
        &[0xe0][..],
        &[0xf8, 0x20],
        &[0xf8, 0xff],
        b"\x61\xff",
        b"\xa2\x61a\x01\x61a\x02",
        b"\xa1\x41a\x01",
        b"\x7f\x61a\xff",
        b"\xd9\xd9\xf7\x01",
    ] {
        let message = good(&carrying(item));
        assert_eq!(message.body.payload().unwrap().as_cbor(), item);
        let again = Message::decode(&message.encode().to_bytes())
            .unwrap()
            .into_message();
        assert_eq!(again, Some(message), "carried on as it came");
    }
}

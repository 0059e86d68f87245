//! Dates, wide integers and floats between languages (T-04).

use ciborium::Value;
use nacp_proto::{EpochMillis, Payload, PayloadReadError, js_integer};
use serde::{Deserialize, Serialize};

fn payload(hex: &str) -> Payload {
    Payload::from_cbor(hex::decode(hex).unwrap()).unwrap()
}

#[test]
fn t_04_a_date_is_rounded_to_the_nearest_millisecond_also_before_1970() {
    for (hex, millis) in [
        ("c1fb41e057c2d9795810", 2_193_495_755_792),
        ("c1fb41e020c62edd26e9", 2_164_666_742_911),
        ("c1fbbfe0000000000000", -500),
        ("c1f90000", 0),
        ("c11a6553f100", 1_700_000_000_000),
        ("c120", -1000),
        ("c1fa3f000000", 500),
        ("c11b00000000ffffffff", 4_294_967_295_000),
    ] {
        assert_eq!(
            payload(hex).decode::<EpochMillis>(),
            Ok(EpochMillis(millis)),
            "{hex}"
        );
    }
}

#[test]
fn what_is_no_moment_is_no_date() {
    for hex in [
        "1a6553f100",
        "c1f97e00",
        "c1f97c00",
        "c1fb7e37e43c8800759c",
        "c11bffffffffffffffff",
        "c16161",
        "c01a6553f100",
        "c1c249010000000000000000",
    ] {
        assert!(payload(hex).decode::<EpochMillis>().is_err(), "{hex}");
    }
}

#[test]
fn a_date_goes_out_as_the_reference_writes_its_own() {
    for (millis, hex) in [
        (1_700_000_000_000, "c11a6553f100"),
        (0, "c100"),
        (1_700_000_000_123, "c1fb41d954fc4007df3b"),
        (-1000, "c1f9bc00"),
        (4_294_967_295_000, "c11affffffff"),
        // Beyond 32 bits an integer would be a BigInt there.
        (4_294_967_296_000, "c1fa4f800000"),
    ] {
        let payload = Payload::new(&EpochMillis(millis)).unwrap();
        assert_eq!(hex::encode(payload.as_cbor()), hex);
        assert_eq!(payload.decode::<EpochMillis>(), Ok(EpochMillis(millis)));
    }
    assert!(Payload::new(&EpochMillis(i64::MAX)).is_err());
    assert_eq!(serde_json::to_string(&EpochMillis(5)).unwrap(), "5");
    assert_eq!(
        serde_json::from_str::<EpochMillis>("5").unwrap(),
        EpochMillis(5)
    );
}

#[test]
fn t_04_wide_integers_are_exact_and_never_floats() {
    for (hex, value) in [
        ("1b002386f2162b9371", 9_999_998_497_035_121_i128),
        ("1bffffffffffffffff", 18_446_744_073_709_551_615),
        ("3bffffffffffffffff", -18_446_744_073_709_551_616),
    ] {
        let payload = payload(hex);
        assert_eq!(payload.decode::<i128>(), Ok(value));
        assert_eq!(
            payload.to_value().unwrap().as_integer().map(i128::from),
            Some(value)
        );
        assert_eq!(Payload::new(&value).unwrap(), payload, "and goes out so");
    }
}

#[test]
fn t_04_a_narrower_type_gets_an_error_and_no_cut_value() {
    use PayloadReadError::TooWide;
    let wide = payload("1b002386f2162b9371");
    assert_eq!(wide.decode::<u32>(), Err(TooWide));
    assert_eq!(wide.decode::<i32>(), Err(TooWide));
    assert_eq!(wide.decode::<f64>(), Err(TooWide), "above 2^53 and odd");
    let widest = payload("1bffffffffffffffff");
    assert_eq!(widest.decode::<i64>(), Err(TooWide));
    assert_eq!(widest.decode::<f64>(), Err(TooWide));
    let lowest = payload("3bffffffffffffffff");
    assert_eq!(lowest.decode::<i64>(), Err(TooWide));
    assert!(lowest.decode::<u64>().is_err());
    assert_eq!(
        lowest.decode::<f64>(),
        Ok(-18_446_744_073_709_551_616.0),
        "a float holds it"
    );
    assert_eq!(payload("190100").decode::<u8>(), Err(TooWide));
    assert_eq!(payload("1880").decode::<i8>(), Err(TooWide));
    assert_eq!(payload("3880").decode::<i8>(), Err(TooWide));
    assert_eq!(payload("387f").decode::<i8>(), Ok(-128));
    assert!(payload("20").decode::<u8>().is_err());
    assert_eq!(
        payload("1a01000001").decode::<f32>(),
        Err(TooWide),
        "2^24 + 1"
    );
    assert_eq!(
        payload("fb7e37e43c8800759c").decode::<f32>(),
        Err(TooWide),
        "1e300"
    );
}

#[test]
fn t_04_big_integers_are_exact_or_said_to_be_too_wide() {
    let two_to_64 = payload("c249010000000000000000");
    assert_eq!(two_to_64.decode::<u128>(), Ok(1 << 64));
    assert_eq!(two_to_64.decode::<i128>(), Ok(1 << 64));
    assert_eq!(two_to_64.decode::<u64>(), Err(PayloadReadError::TooWide));
    let digits = Value::Bytes(vec![1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        two_to_64.to_value(),
        Ok(Value::Tag(2, Box::new(digits.clone())))
    );

    let below = payload("c349010000000000000000");
    assert_eq!(below.decode::<i128>(), Ok(-(1 << 64) - 1));
    assert_eq!(below.decode::<i64>(), Err(PayloadReadError::TooWide));
    assert_eq!(below.to_value(), Ok(Value::Tag(3, Box::new(digits))));

    let wider_than_128_bits = payload("c2510100000000000000000000000000000000");
    assert_eq!(
        wider_than_128_bits.decode::<u128>(),
        Err(PayloadReadError::TooWide)
    );
    assert!(
        wider_than_128_bits.to_value().unwrap().is_tag(),
        "kept whole"
    );
    let below_i128 = payload("c350ffffffffffffffffffffffffffffffff");
    assert_eq!(below_i128.decode::<i128>(), Err(PayloadReadError::TooWide));
    assert!(below_i128.to_value().unwrap().is_tag(), "kept whole");

    assert_eq!(payload("c24105").decode::<u8>(), Ok(5));
    assert_eq!(
        payload("c2520000000000000000000000000000000005ff").decode::<u16>(),
        Ok(0x5ff)
    );
    assert_eq!(payload("c240").decode::<u8>(), Ok(0));
}

#[test]
fn t_04_an_integer_stays_an_integer_and_a_float_a_float() {
    assert_eq!(payload("01").to_value(), Ok(Value::from(1)));
    assert_eq!(payload("f93c00").to_value(), Ok(Value::Float(1.0)));
    let nan = payload("f97e00");
    assert!(nan.decode::<f64>().unwrap().is_nan() && nan.decode::<f32>().unwrap().is_nan());
    assert!(nan.to_value().unwrap().as_float().unwrap().is_nan());
    let negative_zero = payload("f98000");
    assert!(negative_zero.decode::<f64>().unwrap().is_sign_negative());
    assert!(
        negative_zero
            .to_value()
            .unwrap()
            .as_float()
            .unwrap()
            .is_sign_negative()
    );
    assert_eq!(Payload::new(&f64::NAN).unwrap(), nan);
    assert_eq!(Payload::new(&-0.0).unwrap(), negative_zero);
}

#[test]
fn t_04_a_payload_that_is_sent_on_keeps_its_bytes() {
    for hex in [
        "c1fb41e057c2d9795810",
        "c1fb41e020c62edd26e9",
        "c1fbbfe0000000000000",
        "1b002386f2162b9371",
        "1bffffffffffffffff",
        "3bffffffffffffffff",
        "c249010000000000000000",
        "c349010000000000000000",
        "01",
        "f93c00",
        "f97e00",
        "f98000",
        "1b0000000000000005",
    ] {
        let message = crate::support::request(payload(hex));
        let read = crate::support::good(&message.encode().to_bytes());
        let echoed = crate::support::request(read.body.payload().unwrap().clone());
        assert_eq!(echoed.encode(), message.encode());
        assert_eq!(hex::encode(echoed.body.payload().unwrap().as_cbor()), hex);
    }
}

#[test]
fn a_whole_float_of_javascript_reads_into_an_integer() {
    // Date.now() there, and the largest integer that it tells from its neighbours.
    assert_eq!(
        payload("fb4278bcfe56800000").decode::<u64>(),
        Ok(1_700_000_000_000)
    );
    assert_eq!(
        payload("fb433fffffffffffff").decode::<i64>(),
        Ok(9_007_199_254_740_991)
    );
    assert_eq!(
        payload("fbc33fffffffffffff").decode::<i64>(),
        Ok(-9_007_199_254_740_991)
    );
    assert_eq!(
        payload("fb4340000000000000").decode::<u64>(),
        Err(PayloadReadError::TooWide)
    );
    assert_eq!(payload("f93c00").decode::<u8>(), Ok(1));
    assert_eq!(payload("f98000").decode::<u8>(), Ok(0));
    assert!(payload("f93e00").decode::<u8>().is_err(), "1.5");
    assert!(payload("f9bc00").decode::<u8>().is_err(), "-1.0");
    assert!(payload("f97e00").decode::<u8>().is_err(), "NaN");
    assert!(payload("f97c00").decode::<u64>().is_err(), "infinity");
    assert_eq!(
        payload("fa43800000").decode::<u8>(),
        Err(PayloadReadError::TooWide),
        "256.0"
    );
}

#[test]
fn an_integer_of_javascript_reads_into_a_float() {
    assert_eq!(payload("02").decode::<f64>(), Ok(2.0));
    assert_eq!(payload("21").decode::<f32>(), Ok(-2.0));
    assert_eq!(payload("1affffffff").decode::<f64>(), Ok(4_294_967_295.0));
    assert_eq!(payload("1a01000000").decode::<f32>(), Ok(16_777_216.0));
    assert_eq!(payload("fb3fb999999999999a").decode::<f32>(), Ok(0.1_f32));
    assert_eq!(
        payload("830102fb3ff8000000000000").decode::<Vec<f64>>(),
        Ok(vec![1.0, 2.0, 1.5])
    );
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Sent<T: Serialize + Copy + TryInto<i64> + for<'any> Deserialize<'any>>(
    #[serde(with = "js_integer")] T,
);

#[test]
fn js_integer_sends_numbers_that_javascript_does_not_take_for_a_bigint() {
    for (integer, hex) in [
        (0, "00"),
        (4_294_967_295, "1affffffff"),
        (4_294_967_296, "fa4f800000"),
        (1_700_000_000_001, "fb4278bcfe56801000"),
        (9_007_199_254_740_991, "fb433fffffffffffff"),
        // No float tells it from its neighbour, so a BigInt it is.
        (9_007_199_254_740_993, "1b0020000000000001"),
        (u64::MAX, "1bffffffffffffffff"),
    ] {
        let payload = Payload::new(&Sent(integer)).unwrap();
        assert_eq!(hex::encode(payload.as_cbor()), hex);
        assert_eq!(payload.decode::<Sent<u64>>(), Ok(Sent(integer)));
    }
    for (integer, hex) in [
        (-1, "20"),
        (-4_294_967_296, "3affffffff"),
        (-4_294_967_297, "fbc1f0000000100000"),
        (i64::MIN, "3b7fffffffffffffff"),
    ] {
        let payload = Payload::new(&Sent(integer)).unwrap();
        assert_eq!(hex::encode(payload.as_cbor()), hex);
        assert_eq!(payload.decode::<Sent<i64>>(), Ok(Sent(integer)));
    }
}

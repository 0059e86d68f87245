//! Values of users: made into payloads, and read out of them.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use ciborium::{
    Value, cbor,
    tag::{Accepted, Captured, Required},
};
use nacp_proto::{Message, Payload, PayloadError, PayloadReadError};
use serde::{Deserialize, Serialize, Serializer, ser::SerializeSeq};

use crate::support::{carrying, good};

/// A payload as it comes out of a message, whatever it holds.
fn payload(hex: &str) -> Payload {
    let message = good(&carrying(&hex::decode(hex).unwrap()));
    message.body.payload().unwrap().clone()
}

fn hex_of<T: Serialize>(value: T) -> String {
    hex::encode(Payload::new(&value).unwrap().as_cbor())
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
enum Shape {
    Point,
    Circle(f64),
    Line(i32, i32),
    Box { width: u32, height: u32 },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Everything {
    text: String,
    letter: char,
    flag: bool,
    numbers: (u8, i16, u32, i64, f32, f64),
    wide: (u128, i128),
    some: Option<u8>,
    none: Option<u8>,
    unit: (),
    list: Vec<String>,
    map: BTreeMap<String, u8>,
    by_number: HashMap<i32, String>,
    bytes: Bytes,
    shapes: Vec<Shape>,
    value: Value,
}

fn everything() -> Everything {
    Everything {
        text: "h\u{e9}llo".into(),
        letter: '\u{6f22}',
        flag: true,
        numbers: (u8::MAX, i16::MIN, u32::MAX, i64::MIN, 1.5, f64::MAX),
        wide: (u128::MAX, i128::MIN),
        some: Some(1),
        none: None,
        unit: (),
        list: vec!["a".into(), "b".repeat(5000)],
        map: BTreeMap::from([("k".into(), 1)]),
        by_number: HashMap::from([(-1, "minus".into())]),
        bytes: Bytes::from_static(b"\0\x01\xff"),
        shapes: vec![
            Shape::Point,
            Shape::Circle(2.0),
            Shape::Line(-1, 1),
            Shape::Box {
                width: 1,
                height: 2,
            },
        ],
        value: cbor!({"a" => [1, 2.5, null, true], 5 => "b"}).unwrap(),
    }
}

#[test]
fn any_serializable_value_comes_back() {
    let payload = Payload::new(&everything()).unwrap();
    assert_eq!(payload.decode::<Everything>(), Ok(everything()));
    assert_eq!(
        payload.to_value(),
        Ok(ciborium::from_reader(payload.as_cbor()).unwrap())
    );
}

#[test]
fn a_value_means_the_same_to_other_decoders() {
    let payload = Payload::new(&everything()).unwrap();
    let theirs: Everything = ciborium::from_reader(payload.as_cbor()).unwrap();
    assert_eq!(theirs, everything());
}

/// A sequence that does not tell its length in front.
struct Unsized(u8);

impl Serialize for Unsized {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(None)?;
        for item in 0..self.0 {
            seq.serialize_element(&item)?;
        }
        seq.end()
    }
}

#[derive(Serialize)]
struct Flat {
    first: Vec<Unsized>,
    #[serde(flatten)]
    rest: BTreeMap<String, u8>,
}

#[test]
fn lengths_are_definite_also_where_a_type_does_not_tell_them() {
    assert_eq!(hex_of(Unsized(0)), "80");
    assert_eq!(hex_of(Unsized(2)), "820001");
    let flat = Flat {
        first: vec![Unsized(1), Unsized(2)],
        rest: BTreeMap::from([("b".into(), 7)]),
    };
    // {"first": [[0], [0, 1]], "b": 7}
    assert_eq!(hex_of(flat), "a2656669727374828100820001616207");
    let long: Vec<u8> = (0..24).collect();
    assert_eq!(hex_of(Unsized(24)), hex_of(long));
}

#[test]
fn floats_and_integers_have_their_shortest_forms() {
    assert_eq!(hex_of(1.0), "f93c00");
    assert_eq!(hex_of(0.1_f32), "fa3dcccccd");
    assert_eq!(hex_of(0.1), "fb3fb999999999999a");
    assert_eq!(hex_of(u64::from(u32::MAX)), "1affffffff");
    assert_eq!(hex_of(u64::from(u32::MAX) + 1), "1b0000000100000000");
}

#[test]
fn map_keys_that_the_reference_cannot_read_are_refused() {
    assert_eq!(
        Payload::new(&BTreeMap::from([([1, 2], 3)])),
        Err(PayloadError::MapKey { at: 1 })
    );
    let bytes = BTreeMap::from([(Bytes::from_static(b"k"), 3)]);
    assert_eq!(Payload::new(&bytes), Err(PayloadError::MapKey { at: 1 }));
    let map = Value::Map(vec![(cbor!({}).unwrap(), 1.into())]);
    assert_eq!(Payload::new(&(1, map)), Err(PayloadError::MapKey { at: 3 }));
    assert_eq!(
        Payload::new(&Value::Map(vec![(Value::from(1_u128 << 64), 1.into())])),
        Err(PayloadError::MapKey { at: 2 }),
        "a big integer is a tagged byte string"
    );
    for key in [
        Value::Null,
        true.into(),
        1.into(),
        (-1).into(),
        1.5.into(),
        "k".into(),
    ] {
        assert!(Payload::new(&Value::Map(vec![(key, 1.into())])).is_ok());
    }
}

#[test]
fn raw_cbor_is_checked_and_kept_as_it_is() {
    for good in [
        "00",
        "1b0000000000000005",
        "9f01ff",
        "bf616101ff",
        "b90000",
        "d840420102",
        "f7",
    ] {
        let cbor = hex::decode(good).unwrap();
        assert_eq!(Payload::from_cbor(cbor.clone()).unwrap().into_bytes(), cbor);
    }
    let refused = |hex: &str| Payload::from_cbor(hex::decode(hex).unwrap()).unwrap_err();
    assert_eq!(
        refused("5f4101ff"),
        PayloadError::IndefiniteString { at: 0 }
    );
    assert_eq!(refused("817fff"), PayloadError::IndefiniteString { at: 1 });
    assert_eq!(refused("a1410101"), PayloadError::MapKey { at: 1 });
    assert_eq!(refused("82f6e0"), PayloadError::SimpleValue { at: 2 });
    assert_eq!(refused("f820"), PayloadError::SimpleValue { at: 0 });
    for bad in ["", "01 02", "1c", "ff", "8201", "62", "a101"] {
        let cbor = hex::decode(bad.replace(' ', "")).unwrap();
        assert!(
            matches!(
                Payload::from_cbor(cbor),
                Err(PayloadError::NotWellFormed(_))
            ),
            "{bad}"
        );
    }
}

struct Refusing;

impl Serialize for Refusing {
    fn serialize<S: Serializer>(&self, _: S) -> Result<S::Ok, S::Error> {
        Err(serde::ser::Error::custom("not today"))
    }
}

/// Says that it has three items and has two.
struct Lying;

impl Serialize for Lying {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut seq = serializer.serialize_seq(Some(3))?;
        seq.serialize_element(&1)?;
        seq.serialize_element(&2)?;
        seq.end()
    }
}

#[test]
fn a_value_that_refuses_or_lies_is_an_error() {
    let error = Payload::new(&Refusing).unwrap_err();
    assert!(error.to_string().contains("not today"), "{error}");
    assert!(matches!(
        Payload::new(&Lying),
        Err(PayloadError::NotWellFormed(_))
    ));
}

#[test]
fn a_byte_string_is_easy_to_send_and_is_copied_once() {
    for length in [0, 23, 24, 255, 256, 65_535, 65_536, 1 << 20] {
        let bytes = Bytes::from(vec![0xa5; length]);
        let payload = Payload::byte_string(&bytes);
        let value: Value = ciborium::from_reader(payload.as_cbor()).unwrap();
        assert_eq!(value, Value::Bytes(bytes.to_vec()));
        let read = payload.as_byte_string().unwrap();
        assert_eq!(read, bytes);
        if length > 0 {
            assert!(
                payload.as_cbor().as_ptr_range().contains(&read.as_ptr()),
                "not copied"
            );
        }
        assert_eq!(payload.decode::<Bytes>(), Ok(bytes.clone()));
        assert_eq!(payload.decode::<Vec<u8>>(), Ok(bytes.to_vec()));
    }
}

#[test]
fn tag_64_reads_as_bytes_wherever_bytes_are_asked_for() {
    for hex in ["43010203", "d84043010203", "5f4201024103ff"] {
        let payload = payload(hex);
        assert_eq!(payload.as_byte_string().as_deref(), Some(&[1, 2, 3][..]));
        assert_eq!(payload.decode::<Bytes>().as_deref(), Ok(&[1, 2, 3][..]));
        assert_eq!(payload.decode::<Vec<u8>>(), Ok(vec![1, 2, 3]));
        assert_eq!(payload.to_value(), Ok(Value::Bytes(vec![1, 2, 3])));
    }
    #[derive(Debug, PartialEq, Deserialize)]
    struct Upload {
        data: Bytes,
    }
    let nested = payload("a16464617461d840420102");
    assert_eq!(
        nested.decode::<Upload>(),
        Ok(Upload {
            data: Bytes::from_static(&[1, 2])
        })
    );
    for no_bytes in ["6161", "8101", "d8406161", "d903e843010203", "f6"] {
        assert_eq!(payload(no_bytes).as_byte_string(), None, "{no_bytes}");
    }
}

#[test]
fn typed_arrays_of_javascript_read_as_their_numbers() {
    assert_eq!(
        payload("d8444201ff").decode::<Vec<u8>>(),
        Ok(vec![1, 255]),
        "clamped"
    );
    assert_eq!(payload("d84842ff01").decode::<Vec<i8>>(), Ok(vec![-1, 1]));
    assert_eq!(
        payload("d8454401000201").decode::<Vec<u16>>(),
        Ok(vec![1, 258])
    );
    assert_eq!(
        payload("d8414400010102").decode::<Vec<u16>>(),
        Ok(vec![1, 258]),
        "big-endian"
    );
    assert_eq!(payload("d84d42feff").decode::<Vec<i16>>(), Ok(vec![-2]));
    assert_eq!(
        payload("d8464801000000ffffffff").decode::<Vec<u32>>(),
        Ok(vec![1, u32::MAX])
    );
    assert_eq!(payload("d84e44feffffff").decode::<Vec<i64>>(), Ok(vec![-2]));
    assert_eq!(
        payload("d847480100000000000000").decode::<Vec<u64>>(),
        Ok(vec![1])
    );
    assert_eq!(
        payload("d84f48ffffffffffffffff").decode::<Vec<i64>>(),
        Ok(vec![-1])
    );
    assert_eq!(
        payload("d855480000c03f000000c0").decode::<Vec<f32>>(),
        Ok(vec![1.5, -2.0])
    );
    assert_eq!(
        payload("d85648000000000000f83f").decode::<Vec<f64>>(),
        Ok(vec![1.5])
    );
    assert_eq!(
        payload("d850443c00c000").decode::<[f64; 2]>(),
        Ok([1.0, -2.0])
    );
    assert!(
        payload("d84543010203").decode::<Vec<u16>>().is_err(),
        "ends inside an element"
    );
    let quad = payload("d8535000000000000000000000000000000000");
    assert_eq!(
        quad.decode::<Vec<f64>>(),
        Err(PayloadReadError::TooWide),
        "of 128 bits"
    );
}

#[test]
fn an_empty_map_of_the_reference_reads_as_nothing() {
    for empty in ["a0", "b90000", "bfff"] {
        let payload = payload(empty);
        assert_eq!(payload.decode::<()>(), Ok(()));
        assert_eq!(payload.decode::<Option<u32>>(), Ok(None));
        assert_eq!(payload.decode::<HashMap<String, u8>>(), Ok(HashMap::new()));
        assert_eq!(
            payload.decode::<Option<HashMap<String, u8>>>(),
            Ok(Some(HashMap::new()))
        );
        assert!(payload.decode::<u32>().is_err());
    }
    for nothing in ["f6", "f7"] {
        assert_eq!(payload(nothing).decode::<()>(), Ok(()));
        assert_eq!(payload(nothing).decode::<Option<u32>>(), Ok(None));
        assert_eq!(payload(nothing).to_value(), Ok(Value::Null));
    }
    assert!(payload("a1616101").decode::<()>().is_err());
}

#[test]
fn of_a_key_that_is_there_twice_the_last_value_is_read() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct One {
        a: u8,
    }
    // {"a": 1, "a": 2}, the second time with a long head and in chunks.
    for hex in [
        "a2616101616102",
        "a261610178016102",
        "a26161017f6161ff02",
        "bf616101616102ff",
    ] {
        let payload = payload(hex);
        assert_eq!(payload.decode::<One>(), Ok(One { a: 2 }), "{hex}");
        assert_eq!(
            payload.decode::<BTreeMap<String, u8>>(),
            Ok(BTreeMap::from([("a".into(), 2)]))
        );
        assert_eq!(payload.to_value(), Ok(cbor!({"a" => 2}).unwrap()));
    }
    assert_eq!(
        payload("a20501180502").to_value(),
        Ok(cbor!({5 => 2}).unwrap())
    );
    assert_eq!(
        payload("81a2616101616102").decode::<Vec<One>>(),
        Ok(vec![One { a: 2 }])
    );
}

#[test]
fn a_text_that_is_not_utf_8_is_an_error_for_who_reads_it() {
    let payload = payload("8261ff01");
    assert_eq!(
        payload.decode::<(String, u8)>(),
        Err(PayloadReadError::NotUtf8)
    );
    assert_eq!(payload.to_value(), Err(PayloadReadError::NotUtf8));
    assert_eq!(
        payload
            .decode::<(serde::de::IgnoredAny, u8)>()
            .map(|pair| pair.1),
        Ok(1)
    );
}

#[test]
fn indefinite_lengths_and_long_heads_are_read() {
    assert_eq!(payload("9f010203ff").decode::<Vec<u8>>(), Ok(vec![1, 2, 3]));
    assert_eq!(
        payload("9b000000000000000101").decode::<Vec<u8>>(),
        Ok(vec![1])
    );
    assert_eq!(payload("7f61616162ff").decode::<String>(), Ok("ab".into()));
    assert_eq!(payload("7f61616162ff").to_value(), Ok("ab".into()));
    assert_eq!(
        payload("bf616101ff").decode::<HashMap<String, u8>>(),
        Ok(HashMap::from([("a".into(), 1)]))
    );
    assert_eq!(
        payload("bf66436972636c6502ff").decode::<Shape>(),
        Ok(Shape::Circle(2.0))
    );
}

#[test]
fn a_list_of_small_numbers_ends_where_it_says_wherever_another_item_lies_in_it() {
    let others = [
        "18ff",
        "3818",
        "f97e00",
        "fb3ff0000000000000",
        "6161",
        "4161",
        "8101",
        "a10102",
    ];
    for length in 0..70_u8 {
        let numbers: Vec<u8> = (0..length).map(|number| number % 24).collect();
        let list = format!("98{length:02x}{}", hex::encode(&numbers));
        assert_eq!(payload(&list).decode::<Vec<u8>>(), Ok(numbers.clone()));
        for (at, other) in (0..numbers.len()).zip(others.iter().cycle()) {
            let (before, after) = (hex::encode(&numbers[..at]), hex::encode(&numbers[at + 1..]));
            let list = format!("98{length:02x}{before}{other}{after}");
            assert_eq!(hex::encode(payload(&list).as_cbor()), list);
        }
    }
}

#[test]
fn a_list_that_ends_early_or_holds_a_break_is_no_item() {
    for length in 1..70_u8 {
        let missing = [vec![0x98, length], vec![7; usize::from(length) - 1]].concat();
        let broken = [missing.clone(), vec![0xff]].concat();
        for list in [missing, broken] {
            let message = Message::decode(&carrying(&list));
            assert!(message.is_err(), "{list:x?}: {message:?}");
        }
    }
}

#[test]
fn a_list_of_another_length_is_no_tuple() {
    assert_eq!(payload("820102").decode::<(u8, u8)>(), Ok((1, 2)));
    assert!(payload("83010203").decode::<(u8, u8)>().is_err());
    assert!(payload("8101").decode::<(u8, u8)>().is_err());
    assert!(payload("9f010203ff").decode::<(u8, u8)>().is_err());
    assert!(
        payload("8283010203f5")
            .decode::<((u8, u8), bool)>()
            .is_err()
    );
}

#[test]
fn variants_without_their_content_are_errors() {
    assert_eq!(payload("65506f696e74").decode::<Shape>(), Ok(Shape::Point));
    assert!(payload("66436972636c65").decode::<Shape>().is_err());
    assert!(payload("644c696e65").decode::<Shape>().is_err());
    assert!(payload("63426f78").decode::<Shape>().is_err());
    assert!(payload("a0").decode::<Shape>().is_err());
    assert!(
        payload("a265506f696e74f666436972636c6502")
            .decode::<Shape>()
            .is_err()
    );
    assert!(payload("05").decode::<Shape>().is_err());
}

#[test]
fn tags_are_passed_over_or_shown_as_the_type_asks() {
    let tagged = payload("d903e805");
    assert_eq!(tagged.decode::<u8>(), Ok(5));
    assert_eq!(tagged.decode::<Required<u8, 1000>>(), Ok(Required(5)));
    assert!(tagged.decode::<Required<u8, 1001>>().is_err());
    assert_eq!(tagged.decode::<Accepted<u8, 1000>>(), Ok(Accepted(5)));
    assert_eq!(
        payload("05").decode::<Accepted<u8, 1000>>(),
        Ok(Accepted(5))
    );
    assert_eq!(tagged.decode::<Captured<u8>>(), Ok(Captured(Some(1000), 5)));
    assert_eq!(
        payload("05").decode::<Captured<u8>>(),
        Ok(Captured(None, 5))
    );
    assert_eq!(tagged.to_value(), Ok(Value::Tag(1000, Box::new(5.into()))));
    assert_eq!(
        Payload::new(&Value::Tag(1000, Box::new(5.into()))),
        Ok(tagged)
    );
    // A Map and a Set of JavaScript.
    assert_eq!(
        payload("d90103a1616101").decode::<HashMap<String, u8>>(),
        Ok(HashMap::from([("a".into(), 1)]))
    );
    assert_eq!(payload("d90102820102").decode::<Vec<u8>>(), Ok(vec![1, 2]));
}

#[test]
fn unassigned_simple_values_are_an_error_for_who_reads_them() {
    for hex in ["e0", "f0", "f820", "f8ff"] {
        assert!(payload(hex).to_value().is_err());
        assert!(payload(hex).decode::<u8>().is_err());
        assert!(payload(hex).decode::<Option<u8>>().is_err());
    }
}

#[test]
fn the_wrong_type_is_an_error_that_names_both() {
    let error = payload("6161").decode::<u8>().unwrap_err();
    assert_eq!(error.to_string(), "invalid type: text, expected u8");
    let error = payload("a1616101").decode::<String>().unwrap_err();
    assert_eq!(error.to_string(), "invalid type: map, expected a string");
    let error = payload("f5").decode::<Vec<u8>>().unwrap_err();
    assert_eq!(
        error.to_string(),
        "invalid type: boolean `true`, expected a sequence"
    );
}

#[test]
fn a_payload_is_not_shown() {
    let payload = Payload::new("sesame").unwrap();
    assert_eq!(format!("{payload:?}"), "Payload(7 bytes)");
    assert_eq!(payload.len(), 7);
}

#[test]
fn numbers_are_a_choice_between_variants_where_a_type_leaves_it() {
    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(untagged)]
    enum Any {
        Integer(i64),
        Float(f64),
        Text(String),
        Nothing,
    }
    assert_eq!(payload("01").decode::<Any>(), Ok(Any::Integer(1)));
    assert_eq!(payload("f93c00").decode::<Any>(), Ok(Any::Float(1.0)));
    assert_eq!(payload("6161").decode::<Any>(), Ok(Any::Text("a".into())));
    assert_eq!(payload("f6").decode::<Any>(), Ok(Any::Nothing));
}

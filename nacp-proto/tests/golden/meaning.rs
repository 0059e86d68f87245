//! What a value means in the JSON of the recordings.

use ciborium::Value;
use nacp_proto::{EpochMillis, Payload};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::recordings::unhex;

/// Whether `value` is what the JSON of a recording describes.
pub(crate) fn means(value: &Value, json: &Json) -> bool {
    match (value, json) {
        (Value::Null, Json::Null) => true,
        (Value::Bool(value), Json::Bool(json)) => value == json,
        (Value::Integer(value), Json::Number(json)) => json.as_i128().map_or_else(
            || json.as_f64() == Some(i128::from(*value) as f64),
            |json| json == i128::from(*value),
        ),
        (Value::Float(value), Json::Number(json)) => json.as_f64() == Some(*value),
        (Value::Text(value), Json::String(json)) => value == json,
        (Value::Array(value), Json::Array(json)) => all_mean(value, json),
        (value, Json::Object(json)) => match json.iter().find(|(key, _)| key.starts_with('$')) {
            Some((form, content)) => means_special(value, form, content, json),
            None => means_object(value, json),
        },
        _ => false,
    }
}

fn all_mean(values: &[Value], json: &[Json]) -> bool {
    values.len() == json.len()
        && values
            .iter()
            .zip(json)
            .all(|(value, json)| means(value, json))
}

fn means_object(value: &Value, json: &serde_json::Map<String, Json>) -> bool {
    let Value::Map(entries) = value else {
        return false;
    };
    let means_entry = |(key, value): &(Value, Value)| {
        json.get(&property_name(key))
            .is_some_and(|json| means(value, json))
    };
    entries.len() == json.len() && entries.iter().all(means_entry)
}

/// The name that JavaScript gives to a property with this key.
fn property_name(key: &Value) -> String {
    match key {
        Value::Text(key) => key.clone(),
        Value::Integer(key) => i128::from(*key).to_string(),
        Value::Float(key) => key.to_string(),
        Value::Bool(key) => key.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bytes(_) | Value::Tag(..) | Value::Array(_) | Value::Map(_) | _ => {
            panic!("JavaScript has no property of this name")
        }
    }
}

fn means_special(
    value: &Value,
    form: &str,
    content: &Json,
    json: &serde_json::Map<String, Json>,
) -> bool {
    match (form, value) {
        ("$bytes", Value::Bytes(bytes)) => *bytes == unhex(content),
        ("$bytes_sha256", Value::Bytes(bytes)) => sha256(bytes) == *content,
        ("$bigint", Value::Integer(integer)) => {
            i128::from(*integer).to_string() == content.as_str().unwrap()
        }
        ("$bigint", Value::Tag(2 | 3, _)) => {
            decode::<i128>(value).to_string() == content.as_str().unwrap()
        }
        ("$undefined", Value::Null) => true,
        ("$float", Value::Float(float)) => match content.as_str().unwrap() {
            "NaN" => float.is_nan(),
            "-0" => *float == 0.0 && float.is_sign_negative(),
            infinity => infinity.parse() == Ok(*float),
        },
        ("$date", Value::Tag(1, seconds)) if content == "invalid" => {
            seconds.as_float().unwrap().is_nan()
        }
        ("$date", Value::Tag(1, _)) => decode::<EpochMillis>(value).0 == millis(content),
        ("$map", Value::Tag(259, map)) => means_pairs(map.as_map().unwrap(), content),
        ("$set", Value::Tag(258, items)) => {
            all_mean(items.as_array().unwrap(), content.as_array().unwrap())
        }
        ("$typed", Value::Tag(65..=87, _)) => {
            let numbers = decode::<Vec<f64>>(value);
            let json = json["values"].as_array().unwrap();
            numbers.len() == json.len()
                && numbers
                    .iter()
                    .zip(json)
                    .all(|(n, json)| is_number(*n, json))
        }
        ("$regexp", Value::Tag(27, parts)) => {
            let [_, pattern, flags] = parts.as_array().unwrap().as_slice() else {
                return false;
            };
            let text = format!(
                "/{}/{}",
                pattern.as_text().unwrap(),
                flags.as_text().unwrap()
            );
            text == *content
        }
        ("$error", Value::Tag(27, parts)) => {
            let [_, message] = parts.as_array().unwrap().as_slice() else {
                return false;
            };
            property_name(message) == content["message"]
        }
        ("$longstring", Value::Text(text)) => {
            sha256(text.as_bytes()) == content["sha256_utf8"]
                && text.encode_utf16().count() as u64 == content["length"]
        }
        ("$tag", Value::Tag(tag, inner)) => *tag == *content && means(inner, &json["value"]),
        _ => false,
    }
}

fn means_pairs(entries: &[(Value, Value)], json: &Json) -> bool {
    let pairs = json.as_array().unwrap();
    entries.len() == pairs.len()
        && entries
            .iter()
            .zip(pairs)
            .all(|((key, value), pair)| means(key, &pair[0]) && means(value, &pair[1]))
}

fn is_number(number: f64, json: &Json) -> bool {
    let big = json
        .get("$bigint")
        .map(|text| text.as_str().unwrap().parse().unwrap());
    Some(number) == big.or_else(|| json.as_f64())
}

fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    Payload::new(value).unwrap().decode().unwrap()
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Milliseconds since 1970 of a text like `2023-11-14T22:13:20.123Z`.
fn millis(text: &Json) -> i64 {
    let numbers: Vec<i64> = text
        .as_str()
        .unwrap()
        .split(|character: char| !character.is_ascii_digit())
        .filter(|part| !part.is_empty())
        .map(|part| part.parse().unwrap())
        .collect();
    let [year, month, day, hours, minutes, seconds, millis] = numbers[..] else {
        panic!("{text}")
    };
    let leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let february = if leap(year) { 29 } else { 28 };
    let months = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let years = if year >= 1970 {
        (1970..year)
            .map(|year| if leap(year) { 366 } else { 365 })
            .sum::<i64>()
    } else {
        -(year..1970)
            .map(|year| if leap(year) { 366 } else { 365 })
            .sum::<i64>()
    };
    let days = years + months[..month as usize - 1].iter().sum::<i64>() + day - 1;
    (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000 + millis
}

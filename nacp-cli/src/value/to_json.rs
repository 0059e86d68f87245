use nacp::proto::ciborium::Value;
use serde_json::{Map, Number, json};

/// The largest whole number up to which a 64-bit float holds every other: 2^53.
const EXACT: f64 = 9_007_199_254_740_992.0;

/// CBOR as JSON.
pub(crate) fn to_json(value: &Value) -> serde_json::Value {
    match value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(flag) => (*flag).into(),
        Value::Text(text) => text.as_str().into(),
        Value::Bytes(bytes) => json!({ "$bytes": hex::encode(bytes) }),
        Value::Integer(integer) => whole(i128::from(*integer)),
        Value::Float(float) => number(*float),
        Value::Array(items) => items.iter().map(to_json).collect(),
        Value::Map(entries) => map(entries),
        Value::Tag(tag, inner) => tagged(*tag, inner),
        _ => serde_json::Value::Null,
    }
}

fn whole(integer: i128) -> serde_json::Value {
    if let Ok(small) = i64::try_from(integer) {
        return small.into();
    }
    match u64::try_from(integer) {
        Ok(large) => large.into(),
        Err(_) => json!({ "$bigint": integer.to_string() }),
    }
}

/// A whole float is how JavaScript sends an integer above 32 bits.
fn number(float: f64) -> serde_json::Value {
    let is_whole = float.fract() == 0.0 && float.abs() <= EXACT;
    if is_whole && !(float == 0.0 && float.is_sign_negative()) {
        #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
        return (float as i64).into();
    }
    match Number::from_f64(float) {
        Some(number) => number.into(),
        None => json!({ "$float": float.to_string() }),
    }
}

fn map(entries: &[(Value, Value)]) -> serde_json::Value {
    let texts = entries
        .iter()
        .map(|(key, value)| Some((key.as_text()?.to_owned(), to_json(value))));
    match texts.collect::<Option<Map<_, _>>>() {
        Some(object) => object.into(),
        None => {
            let pairs = entries.iter();
            let pairs = pairs.map(|(key, value)| json!([to_json(key), to_json(value)]));
            json!({ "$map": pairs.collect::<Vec<_>>() })
        }
    }
}

fn tagged(tag: u64, inner: &Value) -> serde_json::Value {
    if let (2 | 3, Value::Bytes(bytes)) = (tag, inner)
        && let Some(magnitude) = magnitude(bytes)
    {
        let value = if tag == 2 { magnitude } else { -1 - magnitude };
        return whole(value);
    }
    json!({ "$tag": tag, "value": to_json(inner) })
}

/// The number of a big integer, if it is below 2^127.
fn magnitude(bytes: &[u8]) -> Option<i128> {
    let significant = bytes
        .iter()
        .position(|byte| *byte != 0)
        .unwrap_or(bytes.len());
    let bytes = bytes.get(significant..)?;
    let mut wide = [0; 16];
    wide.get_mut(16_usize.checked_sub(bytes.len())?..)?
        .copy_from_slice(bytes);
    i128::try_from(u128::from_be_bytes(wide)).ok()
}

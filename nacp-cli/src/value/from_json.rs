use nacp::proto::ciborium::Value;
use serde_json::{Map, Number};

use super::ValueError;

type Result<T> = std::result::Result<T, ValueError>;

/// JSON as CBOR.
pub(super) fn from_json(json: serde_json::Value) -> Result<Value> {
    Ok(match json {
        serde_json::Value::Null => Value::Null,
        serde_json::Value::Bool(flag) => flag.into(),
        serde_json::Value::Number(given) => number(&given)?,
        serde_json::Value::String(text) => text.into(),
        serde_json::Value::Array(items) => Value::Array(each(items)?),
        serde_json::Value::Object(entries) => object(entries)?,
    })
}

fn each(items: Vec<serde_json::Value>) -> Result<Vec<Value>> {
    items.into_iter().map(from_json).collect()
}

/// JavaScript reads an integer of 64 bits on the wire as a `BigInt`, so what its numbers hold
/// exactly goes as a float instead.
fn number(given: &Number) -> Result<Value> {
    const IN_32_BITS: std::ops::RangeInclusive<i64> = -(1 << 32)..=u32::MAX as i64;
    const EXACT: std::ops::RangeInclusive<i64> = -(1 << 53)..=1 << 53;
    if let Some(integer) = given.as_i64() {
        if !IN_32_BITS.contains(&integer) && EXACT.contains(&integer) {
            #[expect(
                clippy::cast_precision_loss,
                reason = "within 2^53, where floats are exact"
            )]
            return Ok(Value::Float(integer as f64));
        }
        return Ok(integer.into());
    }
    if let Some(integer) = given.as_u64() {
        return Ok(integer.into());
    }
    let float = given.as_f64().map(Value::Float);
    float.ok_or(ValueError::BadForm {
        key: "number",
        expected: "a number that 64 bits hold",
    })
}

fn object(mut entries: Map<String, serde_json::Value>) -> Result<Value> {
    if let Some(form) = form(&mut entries) {
        return form;
    }
    let entries = entries
        .into_iter()
        .map(|(key, value)| Ok((Value::Text(key), from_json(value)?)));
    Ok(Value::Map(entries.collect::<Result<_>>()?))
}

/// One of the objects that stand for what JSON lacks.
fn form(entries: &mut Map<String, serde_json::Value>) -> Option<Result<Value>> {
    let text = |key| entries.get(key).and_then(serde_json::Value::as_str);
    if entries.len() == 1 {
        if let Some(digits) = text("$bytes") {
            return Some(bytes(digits));
        }
        if let Some(word) = text("$float") {
            return Some(float(word));
        }
        if let Some(digits) = text("$bigint") {
            return Some(big_integer(digits));
        }
        if let Some(serde_json::Value::Array(_)) = entries.get("$map") {
            return entries.remove("$map").map(pairs);
        }
    }
    let tag = entries.get("$tag").and_then(serde_json::Value::as_u64)?;
    if entries.len() != 2 {
        return None;
    }
    let inner = from_json(entries.remove("value")?);
    Some(inner.map(|inner| Value::Tag(tag, Box::new(inner))))
}

fn bytes(digits: &str) -> Result<Value> {
    let bytes = hex::decode(digits).map_err(|_| ValueError::BadForm {
        key: "$bytes",
        expected: "hexadecimal digits",
    })?;
    Ok(Value::Bytes(bytes))
}

fn float(word: &str) -> Result<Value> {
    word.parse()
        .map(Value::Float)
        .map_err(|_| ValueError::BadForm {
            key: "$float",
            expected: "a number, `NaN`, `inf` or `-inf`",
        })
}

fn big_integer(digits: &str) -> Result<Value> {
    let wide = ValueError::BadForm {
        key: "$bigint",
        expected: "an integer from -2^64 to 2^64 - 1",
    };
    let integer: i128 = digits.parse().map_err(|_| ValueError::BadForm {
        key: "$bigint",
        expected: "decimal digits",
    })?;
    match integer.try_into() {
        Ok(integer) => Ok(Value::Integer(integer)),
        Err(_) => Err(wide),
    }
}

fn pairs(list: serde_json::Value) -> Result<Value> {
    let bad = || ValueError::BadForm {
        key: "$map",
        expected: "pairs of a key and a value",
    };
    let serde_json::Value::Array(list) = list else {
        return Err(bad());
    };
    let pairs = list.into_iter().map(|pair| {
        let serde_json::Value::Array(pair) = pair else {
            return Err(bad());
        };
        let [key, value] = <[serde_json::Value; 2]>::try_from(pair).map_err(|_| bad())?;
        Ok((from_json(key)?, from_json(value)?))
    });
    Ok(Value::Map(pairs.collect::<Result<_>>()?))
}

//! Payloads as JSON and JSON as payloads.
//!
//! What JSON lacks is written as an object with one key: `{"$bytes": "hex"}`, `{"$float": "NaN"}`,
//! `{"$bigint": "digits"}`, `{"$map": [[key, value], ..]}` and `{"$tag": number, "value": ..}`. All of
//! them are read too.

mod from_json;
mod to_json;

use nacp::proto::{Payload, PayloadError};
use thiserror::Error;

pub(crate) use to_json::to_json;

/// Why a text is no payload.
#[derive(Debug, Error)]
pub(crate) enum ValueError {
    #[error("not JSON: {0}")]
    NotJson(#[from] serde_json::Error),
    #[error("{0}")]
    NotSendable(#[from] PayloadError),
    #[error("`{key}` does not hold {expected}")]
    BadForm {
        key: &'static str,
        expected: &'static str,
    },
}

/// Reads JSON as a payload. A text of nothing but white space is the empty map.
pub(crate) fn payload(json: &str) -> Result<Payload, ValueError> {
    if json.trim().is_empty() {
        return Ok(Payload::empty());
    }
    let value: serde_json::Value = serde_json::from_str(json)?;
    Ok(Payload::new(&from_json::from_json(value)?)?)
}

/// Shows a payload as JSON; one that cannot be read shows as its bytes.
pub(crate) fn shown(payload: &Payload) -> serde_json::Value {
    match payload.to_value() {
        Ok(value) => to_json(&value),
        Err(_) => serde_json::json!({ "$cbor": hex::encode(payload.as_cbor()) }),
    }
}

#[cfg(test)]
mod tests {
    use super::{payload, shown};
    use nacp::proto::Payload;
    use serde_json::json;

    fn cbor(json: &str) -> String {
        hex::encode(payload(json).unwrap().as_cbor())
    }

    #[test]
    fn what_is_written_as_json_is_shown_as_the_same_json() {
        for text in [
            r#"{"a":1,"b":[true,null,"x",-3,2.5]}"#,
            r#"{"$bytes":"00ff"}"#,
            r#"{"$float":"NaN"}"#,
            r#"{"$float":"-inf"}"#,
            r#"{"$bigint":"-18446744073709551616"}"#,
            r#"{"$map":[[1,"one"],[true,2]]}"#,
            r#"{"$tag":1,"value":1700000000}"#,
            "9007199254740993",
            "1700000000000",
        ] {
            let value: serde_json::Value = serde_json::from_str(text).unwrap();
            assert_eq!(shown(&payload(text).unwrap()), value, "{text}");
        }
    }

    #[test]
    fn nothing_is_the_empty_map_and_null_stays_null() {
        assert_eq!(cbor(" \n"), "a0");
        assert_eq!(cbor("null"), "f6");
    }

    #[test]
    fn integers_that_javascript_holds_exactly_never_reach_it_as_bigint() {
        assert_eq!(cbor("4294967295"), "1affffffff");
        assert_eq!(cbor("-4294967296"), "3affffffff");
        assert_eq!(cbor("4294967296"), "fa4f800000");
        assert_eq!(cbor("9007199254740993"), "1b0020000000000001");
    }

    #[test]
    fn bytes_and_their_javascript_form_show_alike() {
        let tagged = Payload::from_cbor(hex::decode("d8404200ff").unwrap()).unwrap();
        assert_eq!(shown(&tagged), json!({"$bytes": "00ff"}));
    }

    #[test]
    fn a_form_that_holds_something_else_is_named() {
        let error = payload(r#"{"$bytes":"0g"}"#).unwrap_err().to_string();
        assert_eq!(error, "`$bytes` does not hold hexadecimal digits");
        assert!(
            payload("{")
                .unwrap_err()
                .to_string()
                .starts_with("not JSON: ")
        );
    }
}

use std::fmt;

use bytes::Bytes;
use nacp::proto::{DecodeError, Decoded, Message, Payload, PayloadError, ScanError};
use serde::Serialize;

use super::fault;
use crate::diag::{DiagError, diag};
use crate::escape::Escaped;
use crate::failure::Failure;
use crate::value::to_json;

/// One thing found in the bytes.
#[derive(Debug, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub(super) enum Item {
    Frame {
        at: usize,
        msg_id: String,
        offset: u32,
        total_size: u32,
        body: u32,
    },
    Message {
        /// Where its first frame's body lies, or the message itself.
        at: usize,
        #[serde(rename = "type")]
        type_name: String,
        /// `good`, `malformed` or `unknown-type`.
        verdict: &'static str,
        #[serde(flatten)]
        content: Content,
    },
    Cbor {
        at: usize,
        #[serde(flatten)]
        content: Content,
    },
}

/// The same bytes in one of two forms.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Content {
    Value(serde_json::Value),
    Diag(String),
}

impl fmt::Display for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Frame {
                at,
                msg_id,
                offset,
                total_size,
                body,
            } => {
                let end = u64::from(*offset) + u64::from(*body);
                write!(
                    f,
                    "byte {at}: frame of {msg_id}, {offset}..{end} of {total_size}"
                )
            }
            Self::Message {
                at,
                type_name,
                verdict,
                content,
            } => write!(f, "byte {at}: {verdict} {}\n{content}", Escaped(type_name)),
            Self::Cbor { content, .. } => content.fmt(f),
        }
    }
}

impl fmt::Display for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Value(value) => write!(f, "{value:#}"),
            Self::Diag(text) => f.write_str(text),
        }
    }
}

/// Reads one message, whose first byte is byte `at` of the input.
pub(super) fn message(
    bytes: &Bytes,
    at: usize,
    as_diag: bool,
    items: &mut Vec<Item>,
) -> Result<(), Failure> {
    let decoded = Message::decode(bytes)
        .map_err(|error| fault(at + offset_of(error), error.reason(), error))?;
    let (type_name, verdict) = match &decoded {
        Decoded::Message(message) => (message.message_type().as_str(), "good"),
        Decoded::Malformed(malformed) => (malformed.message_type.as_str(), "malformed"),
        Decoded::Unknown { type_name, .. } => (type_name.as_str(), "unknown-type"),
    };
    items.push(Item::Message {
        at,
        type_name: type_name.to_owned(),
        verdict,
        content: content(bytes, at, as_diag)?,
    });
    Ok(())
}

/// Reads items until the bytes end: a sequence (RFC 8742).
pub(super) fn cbor(bytes: &Bytes, as_diag: bool, items: &mut Vec<Item>) -> Result<(), Failure> {
    if bytes.is_empty() {
        return Err(fault(0, "decode-failed", "there is nothing"));
    }
    let mut at = 0;
    while at < bytes.len() {
        let mut item = bytes.slice(at..);
        let (_, len) = diag(&item).map_err(|error| bad_cbor(error, at))?;
        item.truncate(len);
        let content = content(&item, at, as_diag)?;
        items.push(Item::Cbor { at, content });
        at += len.max(1);
    }
    Ok(())
}

/// An item that JSON cannot show comes out in diagnostic notation too.
fn content(bytes: &Bytes, at: usize, as_diag: bool) -> Result<Content, Failure> {
    let notation = || diag(bytes).map_err(|error| bad_cbor(error, at));
    if as_diag {
        return Ok(Content::Diag(notation()?.0));
    }
    let value = match Payload::from_cbor(bytes.clone()) {
        Ok(payload) => payload.to_value().ok(),
        Err(PayloadError::NotWellFormed(error)) => {
            return Err(fault(at + scan_offset(error), "decode-failed", error));
        }
        Err(_) => nacp::proto::ciborium::from_reader(&bytes[..]).ok(),
    };
    Ok(match value {
        Some(value) => Content::Value(to_json(&value)),
        None => Content::Diag(notation()?.0),
    })
}

fn bad_cbor(error: DiagError, base: usize) -> Failure {
    let (DiagError::Syntax { at } | DiagError::Truncated { at } | DiagError::TooDeep { at }) =
        error;
    fault(base + at, "decode-failed", error)
}

const fn offset_of(error: DecodeError) -> usize {
    match error {
        DecodeError::NotWellFormed(error) => scan_offset(error),
        DecodeError::NotAMap | DecodeError::Unusable { .. } | _ => 0,
    }
}

const fn scan_offset(error: ScanError) -> usize {
    match error {
        ScanError::Truncated { at }
        | ScanError::InvalidHead { at }
        | ScanError::TooDeep { at }
        | ScanError::TrailingBytes { at } => at,
        _ => 0,
    }
}

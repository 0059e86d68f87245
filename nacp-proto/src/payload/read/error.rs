use std::fmt;

use serde::de::{self, Unexpected};

use crate::scan::{Head, Major, ScanError};

/// Why a payload is not the value asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadReadError {
    /// It is something else than the type asked for, or the type refuses it.
    #[error("{message}")]
    Unfit {
        /// What was found and what expected.
        message: Box<str>,
    },
    /// A number that the type asked for does not hold exactly.
    #[error("the number is too wide for the type asked for")]
    TooWide,
    /// A text that is not UTF-8.
    #[error("a text is not utf-8")]
    NotUtf8,
    /// The bytes are not CBOR.
    #[error("not well-formed cbor: {0}")]
    NotWellFormed(#[from] ScanError),
}

impl de::Error for PayloadReadError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::Unfit {
            message: message.to_string().into(),
        }
    }
}

/// The error for an item that is not what was expected.
pub(super) fn unexpected(head: Head, expected: &dyn de::Expected) -> PayloadReadError {
    let found = match head.major {
        Major::Unsigned => Unexpected::Unsigned(head.argument),
        Major::Negative => Unexpected::Other("negative integer"),
        Major::Bytes => Unexpected::Other("byte string"),
        Major::Text => Unexpected::Other("text"),
        Major::Array => Unexpected::Seq,
        Major::Map => Unexpected::Map,
        Major::Tag => Unexpected::Other("tag"),
        Major::Simple => match (head.float(), head.bool()) {
            (Some(float), _) => Unexpected::Float(float),
            (None, Some(value)) => Unexpected::Bool(value),
            (None, None) if head.is_nothing() => Unexpected::Unit,
            (None, None) => Unexpected::Other("unassigned simple value"),
        },
    };
    de::Error::invalid_type(found, expected)
}

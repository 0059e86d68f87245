use std::fmt;

use bytes::{Bytes, BytesMut, BufMut};
use ciborium::Value;
use serde::{Serialize, de::DeserializeOwned};

use crate::{scan::{ScanError, scan}, write};

/// One well-formed CBOR item: what a message carries for its user (specification, section 3).
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Bytes);

/// Why no payload could be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The bytes are not one CBOR item.
    #[error("not one well-formed cbor item")]
    NotWellFormed(#[from] ScanError),
    /// The value's own `Serialize` refused.
    #[error("the value cannot be serialized: {message}")]
    Refused {
        /// What it said.
        message: Box<str>,
    },
}

/// Why a payload could not be read as the type asked for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the payload is no such value: {message}")]
pub struct PayloadReadError {
    message: Box<str>,
}

/// Deepest nesting of a payload that we make.
pub(crate) const MAX_PAYLOAD_DEPTH: usize = crate::scan::MAX_DEPTH - 2;

impl Payload {
    /// The empty map, which stands for "nothing" in a call.
    pub const fn empty() -> Self {
        Self(Bytes::from_static(&[0xa0]))
    }

    /// `null`.
    pub const fn null() -> Self {
        Self(Bytes::from_static(&[0xf6]))
    }

    /// `undefined`.
    pub const fn undefined() -> Self {
        Self(Bytes::from_static(&[0xf7]))
    }

    /// The value as CBOR.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, PayloadError> {
        let mut bytes = Vec::new();
        ciborium::into_writer(value, &mut bytes)
            .map_err(|error| PayloadError::Refused { message: error.to_string().into() })?;
        Self::from_cbor(bytes.into())
    }

    /// A byte string.
    pub fn byte_string(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut out = BytesMut::with_capacity(write::MAX_HEAD + bytes.len());
        write::head(&mut out, write::BYTES, bytes.len() as u64);
        out.put_slice(bytes);
        Self(out.freeze())
    }

    /// Bytes that are already CBOR.
    pub fn from_cbor(cbor: Bytes) -> Result<Self, PayloadError> {
        scan(&cbor, MAX_PAYLOAD_DEPTH)?;
        Ok(Self(cbor))
    }

    pub(crate) const fn from_scanned(cbor: Bytes) -> Self {
        Self(cbor)
    }

    /// The value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadReadError> {
        ciborium::from_reader(self.0.as_ref())
            .map_err(|error| PayloadReadError { message: error.to_string().into() })
    }

    /// The value, whatever it is.
    pub fn to_value(&self) -> Result<Value, PayloadReadError> {
        self.decode()
    }

    /// The CBOR bytes.
    pub fn as_cbor(&self) -> &[u8] {
        &self.0
    }

    /// The CBOR bytes.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length in bytes, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "there is no payload without a byte")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

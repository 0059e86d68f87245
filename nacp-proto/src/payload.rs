mod epoch_millis;
pub mod js_integer;
mod portable;
mod read;
mod rewrite;

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use ciborium::Value;
use serde::{Serialize, de::DeserializeOwned};

use crate::{
    scan::{Head, Major, ScanError, Scanner},
    write,
};

pub use epoch_millis::EpochMillis;
pub use read::PayloadReadError;

/// What a message carries for its users: one well-formed CBOR item, kept as bytes.
///
/// A payload that came in is carried as the bytes it came in and never encoded again; it is decoded
/// only where somebody asks (specification, section 3). Cloning copies no bytes. `Debug` shows the
/// length alone, because payloads carry secrets.
///
/// ```
/// use nacp_proto::Payload;
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Debug, PartialEq, Serialize, Deserialize)]
/// struct Reading { station: String, celsius: f64 }
///
/// let reading = Reading { station: "north".into(), celsius: 21.5 };
/// let payload = Payload::new(&reading)?;
/// assert_eq!(payload.decode::<Reading>()?, reading);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Peers written in JavaScript
///
/// The reference implementation has JavaScript's numbers. What its users send and see:
///
/// - It sends an integer that does not fit 32 bits as a 64-bit float, so `Date.now()` arrives as one,
///   and a float without a fraction as an integer, so `2.0` arrives as `2`. [`decode`](Self::decode)
///   therefore reads a whole float into an integer type as long as JavaScript holds it exactly
///   (±(2^53 - 1)), and an integer into a float type if the float holds it exactly.
/// - It reads an integer that takes 64 bits on the wire (a `u64` from 2^32 up) as a `BigInt`, which
///   JavaScript does not mix with its numbers. [`js_integer`] sends such a field as a number.
/// - It sends `null` and `undefined` as an empty map where the whole payload is one of them. `decode`
///   reads an empty map as nothing if the type asked for takes no map: as `()`, or as `None`.
/// - It reads no map whose keys are byte strings, arrays or maps, no indefinite string and no
///   unassigned simple value. We refuse to make a payload with one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Payload(Bytes);

/// Why a payload could not be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// The value's own `Serialize` refused.
    #[error("the value cannot be serialized: {message}")]
    Refused {
        /// What it said.
        message: Box<str>,
    },
    /// The bytes are not one CBOR item, or one that nests deeper than 126 levels.
    #[error("not one well-formed cbor item: {0}")]
    NotWellFormed(#[from] ScanError),
    /// A map has a byte string, an array or a map as a key, which the reference cannot read.
    #[error("a map key is a byte string, an array or a map (at {at})")]
    MapKey {
        /// Offset of the key.
        at: usize,
    },
    /// A string of indefinite length, which the reference cannot read.
    #[error("a string has an indefinite length (at {at})")]
    IndefiniteString {
        /// Offset of the string.
        at: usize,
    },
    /// A simple value other than false, true, null and undefined, which the reference cannot read.
    #[error("an unassigned simple value (at {at})")]
    SimpleValue {
        /// Offset of the value.
        at: usize,
    },
}

/// The CBOR tag of bytes that JavaScript holds in a `Uint8Array` (RFC 8746).
const UINT8_ARRAY: u64 = 64;

impl Payload {
    /// The empty map: what a call without a payload sends.
    pub const fn empty() -> Self {
        Self(Bytes::from_static(&[write::MAP]))
    }

    /// `null`. It stays null, while [`empty`](Self::empty) stands for a payload that nobody gave.
    pub const fn null() -> Self {
        Self(Bytes::from_static(&[0xf6]))
    }

    /// `undefined`: what a message carries whose sender left the payload out.
    pub const fn undefined() -> Self {
        Self(Bytes::from_static(&[0xf7]))
    }

    /// Makes a payload of any serializable value, with definite lengths throughout.
    ///
    /// A `Vec<u8>` becomes an array of numbers, as serde has it; [`byte_string`](Self::byte_string),
    /// or a field of type `bytes::Bytes` or `serde_bytes::ByteBuf`, becomes a byte string.
    ///
    /// # Errors
    ///
    /// If the value refuses to be serialized, nests deeper than 126 levels, or holds what the
    /// reference cannot read: a map key that is a byte string, an array or a map.
    pub fn new<T: Serialize + ?Sized>(value: &T) -> Result<Self, PayloadError> {
        let mut cbor = Vec::with_capacity(128);
        ciborium::into_writer(value, &mut cbor).map_err(|error| PayloadError::Refused {
            message: error.to_string().into(),
        })?;
        match portable::check(&cbor)? {
            portable::Lengths::Definite => Ok(Self(cbor.into())),
            portable::Lengths::SomeIndefinite => Ok(Self(rewrite::rewrite(&cbor)?.freeze())),
        }
    }

    /// Makes a byte string. Its bytes are copied once.
    ///
    /// ```
    /// use nacp_proto::Payload;
    ///
    /// let payload = Payload::byte_string([1, 2, 3]);
    /// assert_eq!(payload.as_cbor(), [0x43, 1, 2, 3]);
    /// assert_eq!(payload.as_byte_string().as_deref(), Some(&[1, 2, 3][..]));
    /// ```
    pub fn byte_string(bytes: impl AsRef<[u8]>) -> Self {
        let bytes = bytes.as_ref();
        let mut cbor = BytesMut::with_capacity(write::MAX_HEAD + bytes.len());
        write::head(&mut cbor, write::BYTES, bytes.len() as u64);
        cbor.put_slice(bytes);
        Self(cbor.freeze())
    }

    /// Takes bytes that are one CBOR item already. They are checked and sent as they are.
    ///
    /// # Errors
    ///
    /// If they are not one well-formed item of at most 126 levels, or hold what the reference cannot
    /// read (see [`PayloadError`]).
    pub fn from_cbor(cbor: impl Into<Bytes>) -> Result<Self, PayloadError> {
        let cbor = cbor.into();
        portable::check(&cbor)?;
        Ok(Self(cbor))
    }

    /// A part of a message that was scanned, or bytes that we wrote.
    pub(crate) const fn from_scanned(cbor: Bytes) -> Self {
        Self(cbor)
    }

    /// An item inside this payload, which lies in its bytes.
    pub(crate) fn part(&self, item: &[u8]) -> Self {
        Self(self.0.slice_ref(item))
    }

    /// Reads the payload as any deserializable type.
    ///
    /// Byte strings read the same with tag 64, which the reference puts before them, and without;
    /// typed arrays of JavaScript read into sequences of numbers, dates into [`EpochMillis`]. Other
    /// tags are passed over where the type asks for none. Of a key that is there twice, the last
    /// counts. How numbers and empty maps of JavaScript read, the page of this type tells.
    ///
    /// # Errors
    ///
    /// [`PayloadReadError`] if the payload is no such value. A number that does not fit the type is
    /// an error, never cut or saturated.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadReadError> {
        read::read(&self.0).or_else(|error| self.decode_loosely().ok_or(error))
    }

    /// The second try, which repairs what strict reading stumbles over; its cost falls on those
    /// payloads alone.
    fn decode_loosely<T: DeserializeOwned>(&self) -> Option<T> {
        if self.is_empty_map() {
            return read::read(Self::null().as_cbor()).ok();
        }
        read::read(&rewrite::rewrite(&self.0).ok()?).ok()
    }

    fn is_empty_map(&self) -> bool {
        let mut scanner = Scanner::new(&self.0);
        let map = |head: Head| head.is(Major::Map);
        scanner
            .head()
            .is_ok_and(|head| map(head) && scanner.more(head, 0) == Ok(false))
    }

    /// Looks at the payload as a value of whatever kind it is.
    ///
    /// `undefined` reads as null, tag 64 as the bytes under it; other tags are kept, also those of big
    /// integers that no `Value` of an integer holds, so no number is ever cut.
    ///
    /// # Errors
    ///
    /// [`PayloadReadError`] if a text is not UTF-8 or a simple value has no meaning.
    pub fn to_value(&self) -> Result<Value, PayloadReadError> {
        // Values keep a key's every appearance, so the earlier ones go before.
        read::read(&rewrite::rewrite(&self.0)?)
    }

    /// The bytes, if the payload is a byte string, with or without tag 64. Nothing is copied, unless
    /// a foreign peer sent the string in chunks.
    pub fn as_byte_string(&self) -> Option<Bytes> {
        let mut scanner = Scanner::new(&self.0);
        let mut head = scanner.head().ok()?;
        if head.is(Major::Tag) && head.argument == UINT8_ARRAY {
            head = scanner.head().ok()?;
        }
        if !head.is(Major::Bytes) {
            return None;
        }
        if head.is_indefinite() {
            return Some(scanner.string(head).ok()?.into_owned().into());
        }
        Some(self.0.slice(scanner.at()..))
    }

    /// The CBOR, as it goes over the wire.
    pub fn as_cbor(&self) -> &[u8] {
        &self.0
    }

    /// The CBOR, as it goes over the wire.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }

    /// Length of the CBOR in bytes: at least 1.
    #[expect(clippy::len_without_is_empty, reason = "no payload is without a byte")]
    pub fn len(&self) -> usize {
        self.0.len()
    }
}

impl Default for Payload {
    /// The [`empty`](Self::empty) map.
    fn default() -> Self {
        Self::empty()
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({} bytes)", self.0.len())
    }
}

//! For integer fields that a peer written in JavaScript shall see as numbers.
//!
//! Such a peer reads integers of 64 bits as `BigInt`. With this module a field is sent as a 32-bit
//! integer or a float whenever JavaScript holds it exactly, and as a 64-bit integer, thus a `BigInt`,
//! beyond ±(2^53 - 1). It reads what [`Payload::decode`](crate::Payload::decode) reads into an integer
//! anyway: integers of any width, and whole floats that JavaScript holds exactly.
//!
//! ```
//! use nacp_proto::{Payload, js_integer};
//! use serde::{Deserialize, Serialize};
//!
//! #[derive(Serialize, Deserialize)]
//! struct Tick {
//!     #[serde(with = "js_integer")]
//!     at_millis: u64,
//! }
//!
//! let payload = Payload::new(&Tick { at_millis: 1_700_000_000_001 })?;
//! let value = payload.to_value()?;
//! assert!(value.as_map().is_some_and(|entries| entries[0].1.is_float()));
//! assert_eq!(payload.decode::<Tick>()?.at_millis, 1_700_000_000_001);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The largest integer that JavaScript tells from its neighbours.
pub(super) const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// Writes the integer as a number of JavaScript if it is one.
///
/// # Errors
///
/// Those of the serializer.
pub fn serialize<T, S>(integer: &T, serializer: S) -> Result<S::Ok, S::Error>
where
    T: Serialize + Copy + TryInto<i64>,
    S: Serializer,
{
    let small = (*integer)
        .try_into()
        .ok()
        .filter(|value| value.unsigned_abs() <= MAX_SAFE_INTEGER);
    match small {
        Some(value) if !takes_32_bits(value) => serializer.serialize_f64(value as f64),
        Some(_) | None => integer.serialize(serializer),
    }
}

/// Whether CBOR writes it in 32 bits: from -2^32 to 2^32 - 1.
fn takes_32_bits(value: i64) -> bool {
    (-(1 << 32)..1 << 32).contains(&value)
}

/// Reads the integer.
///
/// # Errors
///
/// If it is no integer, or one that `T` does not hold.
pub fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
where
    T: Deserialize<'de>,
    D: Deserializer<'de>,
{
    T::deserialize(deserializer)
}

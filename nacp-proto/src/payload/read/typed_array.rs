//! The typed arrays of JavaScript (RFC 8746): a byte string under a tag that tells the elements.

use serde::de::{self, DeserializeSeed, IntoDeserializer};

use super::{PayloadReadError, Result};

/// The numbers in a byte string. Without a tag of RFC 8746 they are its bytes.
pub(super) struct TypedArray<'a> {
    element: Element,
    left: &'a [u8],
}

/// How the bytes of one element are to be read.
#[derive(Clone, Copy)]
struct Element {
    size: usize,
    kind: Kind,
    little_endian: bool,
}

#[derive(Clone, Copy)]
enum Kind {
    Unsigned,
    Signed,
    Float,
}

impl<'a> TypedArray<'a> {
    pub(super) fn new(tag: Option<u64>, bytes: &'a [u8]) -> Result<Self> {
        let element = Element::of_tag(tag);
        if !bytes.len().is_multiple_of(element.size) {
            return Err(de::Error::custom("a typed array ends inside an element"));
        }
        if element.size > 8 {
            return Err(PayloadReadError::TooWide);
        }
        Ok(Self {
            element,
            left: bytes,
        })
    }
}

impl Element {
    /// RFC 8746, section 2.1: the low five bits are float, signed, little-endian, and two for the size.
    fn of_tag(tag: Option<u64>) -> Self {
        let bits = tag.filter(|tag| (64..88).contains(tag)).unwrap_or(64);
        let is_float = bits & 0b1_0000 != 0;
        let power = (bits & 0b11) as u32 + u32::from(is_float);
        let kind = match (is_float, bits & 0b1000 != 0) {
            (true, _) => Kind::Float,
            (false, true) => Kind::Signed,
            (false, false) => Kind::Unsigned,
        };
        Self {
            size: 1 << power,
            kind,
            little_endian: bits & 0b100 != 0,
        }
    }

    /// The bits of one element, at the low end.
    fn bits(self, bytes: &[u8]) -> u64 {
        let join = |bits: u64, byte: &u8| (bits << 8) | u64::from(*byte);
        if self.little_endian {
            bytes.iter().rev().fold(0, join)
        } else {
            bytes.iter().fold(0, join)
        }
    }

    fn deserialize<'de, S: DeserializeSeed<'de>>(self, bytes: &[u8], seed: S) -> Result<S::Value> {
        let bits = self.bits(bytes);
        match self.kind {
            Kind::Unsigned => seed.deserialize(bits.into_deserializer()),
            Kind::Signed => {
                let unused = 64 - 8 * self.size;
                let value = (bits << unused).cast_signed() >> unused;
                seed.deserialize(value.into_deserializer())
            }
            Kind::Float => seed.deserialize(self.float(bits).into_deserializer()),
        }
    }

    fn float(self, bits: u64) -> f64 {
        match self.size {
            2 => crate::scan::half_to_double(bits as u16),
            4 => f64::from(f32::from_bits(bits as u32)),
            _ => f64::from_bits(bits),
        }
    }
}

impl<'de> de::SeqAccess<'de> for TypedArray<'_> {
    type Error = PayloadReadError;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>> {
        let Some((element, left)) = self.left.split_at_checked(self.element.size) else {
            return Ok(None);
        };
        self.left = left;
        self.element.deserialize(element, seed).map(Some)
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.left.len() / self.element.size)
    }
}

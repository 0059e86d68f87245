//! Numbers: exact, or an error.

use serde::de::{self, Expected, Unexpected, Visitor};

use super::{PayloadReadError, Result, unexpected};
use crate::{
    payload::js_integer::MAX_SAFE_INTEGER,
    scan::{Major, Scanner},
};

const POSITIVE_BIGNUM: u64 = 2;
const NEGATIVE_BIGNUM: u64 = 3;

/// A number of any form that CBOR has.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// The integer itself.
    Positive(u128),
    /// -1 minus the integer.
    Negative(u128),
    Float(f64),
}

impl Number {
    pub(super) fn negative(argument: u64) -> Self {
        Self::Negative(argument.into())
    }

    /// Reads the next item, past tags that have no meaning for a number.
    pub(super) fn read(scanner: &mut Scanner<'_>, expected: &dyn Expected) -> Result<Self> {
        loop {
            let head = scanner.head()?;
            match (head.major, head.float()) {
                (Major::Unsigned, _) => return Ok(Self::Positive(head.argument.into())),
                (Major::Negative, _) => return Ok(Self::negative(head.argument)),
                (_, Some(float)) => return Ok(Self::Float(float)),
                (Major::Tag, _) if is_bignum(head.argument) => {
                    return Self::read_big(head.argument, scanner)?
                        .ok_or(PayloadReadError::TooWide);
                }
                (Major::Tag, _) => {}
                _ => return Err(unexpected(head, expected)),
            }
        }
    }

    /// Reads the bytes of a big integer behind its tag; reads nothing and is `None` if it is none, or
    /// one of more than 128 bits.
    pub(super) fn read_big(tag: u64, scanner: &mut Scanner<'_>) -> Result<Option<Self>> {
        let mut ahead = scanner.clone();
        let head = ahead.head()?;
        if !is_bignum(tag) || !head.is(Major::Bytes) {
            return Ok(None);
        }
        let bytes = ahead.string(head)?;
        let leading = bytes.iter().take_while(|byte| **byte == 0).count();
        let digits = bytes.get(leading..).unwrap_or_default();
        if digits.len() > 16 {
            return Ok(None);
        }
        let value = digits
            .iter()
            .fold(0, |value, digit| (value << 8) | u128::from(*digit));
        let number = if tag == POSITIVE_BIGNUM {
            Self::Positive(value)
        } else {
            Self::Negative(value)
        };
        // Serde has no name for a negative of more than 128 bits with its sign.
        if tag == NEGATIVE_BIGNUM && i128::try_from(value).is_err() {
            return Ok(None);
        }
        *scanner = ahead;
        Ok(Some(number))
    }

    pub(super) fn unsigned(self, expected: &dyn Expected) -> Result<u128> {
        match self.integer(expected)? {
            Self::Positive(value) => Ok(value),
            Self::Negative(_) | Self::Float(_) => Err(de::Error::invalid_value(
                Unexpected::Other("negative integer"),
                expected,
            )),
        }
    }

    pub(super) fn signed(self, expected: &dyn Expected) -> Result<i128> {
        let wide = |value| i128::try_from(value).map_err(|_| PayloadReadError::TooWide);
        match self.integer(expected)? {
            Self::Positive(value) => wide(value),
            Self::Negative(value) => wide(value).map(|value| -1 - value),
            Self::Float(float) => Err(de::Error::invalid_type(Unexpected::Float(float), expected)),
        }
    }

    /// A float becomes the integer that it is to JavaScript.
    fn integer(self, expected: &dyn Expected) -> Result<Self> {
        let Self::Float(float) = self else {
            return Ok(self);
        };
        if float.fract() != 0.0 {
            return Err(de::Error::invalid_type(Unexpected::Float(float), expected));
        }
        if float.abs() > MAX_SAFE_INTEGER as f64 {
            return Err(PayloadReadError::TooWide);
        }
        let magnitude = float.abs() as u128;
        match magnitude.checked_sub(1) {
            Some(below) if float < 0.0 => Ok(Self::Negative(below)),
            _ => Ok(Self::Positive(magnitude)),
        }
    }

    pub(super) fn f64(self) -> Result<f64> {
        let exact = |value: u128| {
            let float = value as f64;
            (float as u128 == value && value < 1 << 127).then_some(float)
        };
        match self {
            Self::Float(float) => Ok(float),
            Self::Positive(value) => exact(value).ok_or(PayloadReadError::TooWide),
            Self::Negative(value) => {
                let magnitude = value.checked_add(1).and_then(exact);
                magnitude
                    .map(|float| -float)
                    .ok_or(PayloadReadError::TooWide)
            }
        }
    }

    /// Rounds a fraction, as 0.1 must be, and nothing else.
    pub(super) fn f32(self) -> Result<f32> {
        let double = self.f64()?;
        let single = double as f32;
        let is_cut = match self {
            Self::Float(_) => single.is_infinite() && double.is_finite(),
            Self::Positive(_) | Self::Negative(_) => f64::from(single) != double,
        };
        if is_cut {
            Err(PayloadReadError::TooWide)
        } else {
            Ok(single)
        }
    }

    /// Shows the number in the narrowest of serde's forms.
    pub(super) fn visit<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value> {
        match self {
            Self::Float(float) => visitor.visit_f64(float),
            Self::Positive(value) => match u64::try_from(value) {
                Ok(value) => visitor.visit_u64(value),
                Err(_) => visitor.visit_u128(value),
            },
            Self::Negative(value) => match (i64::try_from(value), i128::try_from(value)) {
                (Ok(value), _) => visitor.visit_i64(-1 - value),
                (Err(_), Ok(value)) => visitor.visit_i128(-1 - value),
                (Err(_), Err(_)) => Err(PayloadReadError::TooWide),
            },
        }
    }
}

const fn is_bignum(tag: u64) -> bool {
    matches!(tag, POSITIVE_BIGNUM | NEGATIVE_BIGNUM)
}

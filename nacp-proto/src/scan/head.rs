//! The first bytes of an item.

/// The major types of RFC 8949, section 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Major {
    Unsigned,
    Negative,
    Bytes,
    Text,
    Array,
    Map,
    Tag,
    Simple,
}

/// The head of an item: its type, and its number, length or bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) major: Major,
    /// The five low bits of the first byte: how the argument is written.
    pub(crate) info: u8,
    pub(crate) argument: u64,
}

/// `info` of an indefinite length, and of the break that ends it.
pub(super) const INDEFINITE: u8 = 31;

impl Head {
    pub(crate) fn is(self, major: Major) -> bool {
        self.major == major
    }

    pub(crate) const fn is_break(self) -> bool {
        matches!(self.major, Major::Simple) && self.info == INDEFINITE
    }

    pub(crate) const fn is_indefinite(self) -> bool {
        self.info == INDEFINITE
    }

    /// False, true, null, undefined or a float.
    pub(crate) const fn is_known_simple(self) -> bool {
        matches!(self.major, Major::Simple) && matches!(self.info, 20..=23 | 25..=27)
    }

    pub(crate) const fn bool(self) -> Option<bool> {
        match (self.major, self.info) {
            (Major::Simple, 20) => Some(false),
            (Major::Simple, 21) => Some(true),
            _ => None,
        }
    }

    /// `null` or `undefined`: both count as absent.
    pub(crate) const fn is_nothing(self) -> bool {
        matches!(self.major, Major::Simple) && (self.info == 22 || self.info == 23)
    }

    /// The value, if this is the head of a float of any width.
    pub(crate) fn float(self) -> Option<f64> {
        if !matches!(self.major, Major::Simple) {
            return None;
        }
        match self.info {
            25 => Some(half_to_double(self.argument as u16)),
            26 => Some(f64::from(f32::from_bits(self.argument as u32))),
            27 => Some(f64::from_bits(self.argument)),
            _ => None,
        }
    }
}

/// RFC 8949, appendix D.
pub(crate) fn half_to_double(bits: u16) -> f64 {
    let mantissa = f64::from(bits & 0x3ff);
    let magnitude = match (bits >> 10) & 0x1f {
        0 => mantissa * 2f64.powi(-24),
        31 if bits & 0x3ff == 0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (1024.0 + mantissa) * 2f64.powi(i32::from(exponent) - 25),
    };
    if bits & 0x8000 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

//! The values of our own keys, read where they lie.

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::{
    Instance, MessageId,
    scan::{Major, ScanError, Scanner},
};

/// A value of one of our own keys. Arrays, maps and what the protocol has no use for stay unread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Field<'a> {
    /// Not there, null or undefined: all the same (specification, section 3).
    #[default]
    Absent,
    Bool(bool),
    Unsigned(u64),
    Float(f64),
    Text(&'a [u8]),
    /// An item of another kind, or a text in chunks: its bytes.
    Other(&'a [u8]),
}

impl<'a> Field<'a> {
    /// Reads one item of at most `depth` levels.
    pub(crate) fn read(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, ScanError> {
        let (at, before) = (scanner.at(), scanner.rest());
        let head = scanner.head()?;
        if let Some(float) = head.float() {
            return Ok(Self::Float(float));
        }
        if let Some(value) = head.bool() {
            return Ok(Self::Bool(value));
        }
        Ok(match head.major {
            Major::Unsigned => Self::Unsigned(head.argument),
            Major::Text if !head.is_indefinite() => Self::Text(scanner.take(head.argument)?),
            Major::Simple if head.is_nothing() => Self::Absent,
            Major::Simple
            | Major::Negative
            | Major::Bytes
            | Major::Text
            | Major::Array
            | Major::Map
            | Major::Tag => {
                scanner.skip_content(head, at, depth)?;
                let length = scanner.at() - at;
                Self::Other(before.get(..length).unwrap_or_default())
            }
        })
    }

    pub(crate) const fn is_absent(self) -> bool {
        matches!(self, Self::Absent)
    }

    /// The bytes of a text, whether in one piece or in chunks.
    pub(crate) fn text_bytes(self) -> Option<Cow<'a, [u8]>> {
        match self {
            Self::Text(bytes) => Some(Cow::Borrowed(bytes)),
            Self::Other(item) => chunked_text(item),
            Self::Absent | Self::Bool(_) | Self::Unsigned(_) | Self::Float(_) => None,
        }
    }

    /// What `make` makes of a text of good UTF-8.
    pub(crate) fn text<T>(self, make: impl FnOnce(&str) -> T) -> Option<T> {
        if let Self::Text(bytes) = self {
            return std::str::from_utf8(bytes).ok().map(make);
        }
        let bytes = self.text_bytes()?;
        std::str::from_utf8(&bytes).ok().map(make)
    }

    pub(crate) fn smol_str(self) -> Option<SmolStr> {
        self.text(|text| SmolStr::new(text))
    }

    pub(crate) const fn bool(self) -> Option<bool> {
        match self {
            Self::Bool(value) => Some(value),
            Self::Absent | Self::Unsigned(_) | Self::Float(_) | Self::Text(_) | Self::Other(_) => {
                None
            }
        }
    }

    /// A whole number that is not negative; floats count if they are whole.
    pub(crate) fn unsigned(self) -> Option<u64> {
        match self {
            Self::Unsigned(value) => Some(value),
            Self::Float(value) => whole(value),
            Self::Absent | Self::Bool(_) | Self::Text(_) | Self::Other(_) => None,
        }
    }

    /// Any number, as near as a float gets.
    pub(crate) fn number(self) -> Option<f64> {
        match self {
            Self::Unsigned(value) => Some(value as f64),
            Self::Float(value) => Some(value),
            Self::Other(item) => negative(item),
            Self::Absent | Self::Bool(_) | Self::Text(_) => None,
        }
    }

    pub(crate) fn message_id(self) -> Option<MessageId> {
        self.text(|text| MessageId::new(text).ok())?
    }

    /// 16 bytes as hex.
    pub(crate) fn hex(self) -> Option<[u8; 16]> {
        self.text(|text| {
            uuid::Uuid::try_parse(text)
                .ok()
                .filter(|_| text.len() == 32)
        })?
        .map(uuid::Uuid::into_bytes)
    }

    pub(crate) fn instance(self) -> Option<Instance> {
        self.hex().map(Instance)
    }

    /// `None` if it is there and `read` cannot read it.
    pub(crate) fn optional<T>(self, read: impl FnOnce(Self) -> Option<T>) -> Option<Option<T>> {
        if self.is_absent() {
            Some(None)
        } else {
            read(self).map(Some)
        }
    }
}

/// A float that is exactly a `u64`.
fn whole(value: f64) -> Option<u64> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    ((0.0..TWO_TO_64).contains(&value) && value.fract() == 0.0).then_some(value as u64)
}

fn negative(item: &[u8]) -> Option<f64> {
    let head = Scanner::new(item).head().ok()?;
    head.is(Major::Negative)
        .then_some(-1.0 - head.argument as f64)
}

fn chunked_text(item: &[u8]) -> Option<Cow<'_, [u8]>> {
    let mut scanner = Scanner::new(item);
    let head = scanner.head().ok()?;
    if head.is(Major::Text) {
        scanner.string(head).ok()
    } else {
        None
    }
}

/// Walks the entries of the map that comes next; `entry` reads each value.
///
/// `false`: what came next was no map, and has been passed over. Keys that are not text are passed
/// over with their values.
pub(crate) fn each_entry<'a>(
    scanner: &mut Scanner<'a>,
    depth: usize,
    mut entry: impl FnMut(&[u8], &mut Scanner<'a>, usize) -> Result<(), ScanError>,
) -> Result<bool, ScanError> {
    let at = scanner.at();
    let head = scanner.head()?;
    if !head.is(Major::Map) {
        scanner.skip_content(head, at, depth)?;
        return Ok(false);
    }
    let inner = depth.checked_sub(1).ok_or(ScanError::TooDeep { at })?;
    let mut done = 0;
    while scanner.more(head, done)? {
        done += 1;
        let key = Field::read(scanner, inner)?;
        match key.text_bytes() {
            Some(key) => entry(&key, scanner, inner)?,
            None => scanner.skip_item(inner)?,
        }
    }
    Ok(true)
}

/// Walks the items of the array that comes next; like [`each_entry`].
pub(crate) fn each_item<'a>(
    scanner: &mut Scanner<'a>,
    depth: usize,
    mut item: impl FnMut(&mut Scanner<'a>, usize) -> Result<(), ScanError>,
) -> Result<bool, ScanError> {
    let at = scanner.at();
    let head = scanner.head()?;
    if !head.is(Major::Array) {
        scanner.skip_content(head, at, depth)?;
        return Ok(false);
    }
    let inner = depth.checked_sub(1).ok_or(ScanError::TooDeep { at })?;
    let mut done = 0;
    while scanner.more(head, done)? {
        done += 1;
        item(scanner, inner)?;
    }
    Ok(true)
}

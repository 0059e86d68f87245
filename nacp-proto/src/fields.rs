//! The values of our own keys, read where they lie.

use std::borrow::Cow;

use smol_str::SmolStr;

use crate::{
    Instance, MessageId, Payload,
    scan::{DOUBLE, Head, MAX_DEPTH, Major, ScanError, Scanner},
};

/// The value of one of our own keys: its item, not yet looked into. Empty if the key is not there.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Field<'a>(&'a [u8]);

impl<'a> Field<'a> {
    /// Reads one item of at most `depth` levels.
    #[inline]
    pub(crate) fn read(scanner: &mut Scanner<'a>, depth: usize) -> Result<Self, ScanError> {
        scanner.take_item(depth).map(Self)
    }

    /// Reads a text of less than 256 bytes, if one is next.
    #[inline]
    pub(crate) fn read_short_text(scanner: &mut Scanner<'a>) -> Option<Self> {
        let before = scanner.rest();
        scanner.take_short_text()?;
        Some(Self(scanner.since(before)))
    }

    pub(crate) const fn of_item(item: &'a [u8]) -> Self {
        Self(item)
    }

    /// The item that a payload is.
    pub(crate) fn of(payload: &'a Payload) -> Self {
        Self(payload.as_cbor())
    }

    /// The bytes of the item.
    pub(crate) const fn item(self) -> &'a [u8] {
        self.0
    }

    /// Not there, null or undefined: all the same (specification, section 3).
    pub(crate) const fn is_absent(self) -> bool {
        matches!(self.0, [] | [0xf6] | [0xf7])
    }

    fn head(self) -> Option<Head> {
        Scanner::new(self.0).head().ok()
    }

    /// The bytes of a text, whether in one piece or in chunks.
    #[inline]
    pub(crate) fn text_bytes(self) -> Option<Cow<'a, [u8]>> {
        let mut scanner = Scanner::new(self.0);
        if let Some(text) = scanner.take_short_text() {
            return Some(Cow::Borrowed(text));
        }
        let head = scanner.head().ok()?;
        if head.is(Major::Text) {
            scanner.string(head).ok()
        } else {
            None
        }
    }

    /// What `make` makes of a text of good UTF-8.
    #[inline]
    pub(crate) fn text<T>(self, make: impl FnOnce(&str) -> Option<T>) -> Option<T> {
        match Scanner::new(self.0).take_short_text() {
            Some(text) => make(std::str::from_utf8(text).ok()?),
            None => make(std::str::from_utf8(&self.text_bytes()?).ok()?),
        }
    }

    pub(crate) fn smol_str(self) -> Option<SmolStr> {
        self.text(|text| Some(SmolStr::new(text)))
    }

    pub(crate) fn bool(self) -> Option<bool> {
        self.head()?.bool()
    }

    /// A whole number that is not negative; floats count if they are whole.
    pub(crate) fn unsigned(self) -> Option<u64> {
        let head = self.head()?;
        if head.is(Major::Unsigned) {
            Some(head.argument)
        } else {
            whole(head.float()?)
        }
    }

    /// Any number, as near as a float gets.
    #[inline]
    pub(crate) fn number(self) -> Option<f64> {
        if let [DOUBLE, double @ ..] = self.0 {
            return Some(f64::from_be_bytes(double.try_into().ok()?));
        }
        let head = self.head()?;
        match head.major {
            Major::Unsigned => Some(head.argument as f64),
            Major::Negative => Some(-1.0 - head.argument as f64),
            Major::Simple => head.float(),
            Major::Bytes | Major::Text | Major::Array | Major::Map | Major::Tag => None,
        }
    }

    #[inline]
    pub(crate) fn message_id(self) -> Option<MessageId> {
        match Scanner::new(self.0).take_short_text() {
            Some(text) => MessageId::from_wire(text),
            None => MessageId::from_wire(&self.text_bytes()?),
        }
    }

    /// 16 bytes as hex.
    pub(crate) fn hex(self) -> Option<[u8; 16]> {
        let parse = |text: &str| {
            uuid::Uuid::try_parse(text)
                .ok()
                .filter(|_| text.len() == 32)
        };
        self.text(parse).map(uuid::Uuid::into_bytes)
    }

    pub(crate) fn instance(self) -> Option<Instance> {
        self.hex().map(Instance)
    }

    /// Shows every entry whose key is a text to `entry`; `None` if this is no map.
    pub(crate) fn entries(self, mut entry: impl FnMut(&[u8], Self)) -> Option<()> {
        let mut scanner = Scanner::new(self.0);
        let is_map = each_entry(&mut scanner, MAX_DEPTH, |key, scanner, depth| {
            entry(key, Field::read(scanner, depth)?);
            Ok(())
        });
        is_map.ok()?.then_some(())
    }

    /// What `read` makes of every item; `None` if this is no array, or `read` cannot read one.
    pub(crate) fn items<T>(self, read: impl Fn(Self) -> Option<T>) -> Option<Vec<T>> {
        let mut scanner = Scanner::new(self.0);
        let head = scanner.head().ok().filter(|head| head.is(Major::Array))?;
        let mut items = Vec::new();
        while scanner.more(head, items.len() as u64).ok()? {
            items.push(read(Field::read(&mut scanner, MAX_DEPTH).ok()?)?);
        }
        Some(items)
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
        if let Some(key) = scanner.take_short_text() {
            entry(key, scanner, inner)?;
            continue;
        }
        match Field::read(scanner, inner)?.text_bytes() {
            Some(key) => entry(&key, scanner, inner)?,
            None => scanner.skip_item(inner)?,
        }
    }
    Ok(true)
}

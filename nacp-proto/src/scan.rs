//! The structure of CBOR (RFC 8949): where an item ends, and whether it is one at all.
//!
//! Nothing is decoded and nothing allocated here, so a length in the bytes costs nothing until the
//! bytes themselves are there.

mod head;

use std::borrow::Cow;

pub(crate) use head::{Head, Major, half_to_double};

use head::INDEFINITE;

/// How deep arrays, maps and tags may nest in a whole message (specification, section 3).
pub(crate) const MAX_DEPTH: usize = 128;

/// Why bytes are not one well-formed CBOR item. Offsets count from the start of the bytes given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScanError {
    /// The bytes end before the item does.
    #[error("the item is not complete after {at} bytes")]
    Truncated {
        /// Where more was expected.
        at: usize,
    },
    /// A head that RFC 8949 does not allow at this place.
    #[error("no item begins with the byte at {at}")]
    InvalidHead {
        /// Where the head lies.
        at: usize,
    },
    /// Arrays, maps and tags lie in each other deeper than the limit.
    #[error("nested too deep at {at}")]
    TooDeep {
        /// Where the first level too many begins.
        at: usize,
    },
    /// Something follows behind the item.
    #[error("the item ends at {at} and more bytes follow")]
    TrailingBytes {
        /// Where the item ends.
        at: usize,
    },
}

/// The first byte of a number in double precision.
pub(crate) const DOUBLE: u8 = 0xfb;

/// Whether a byte is a whole item: a small number, a boolean, null or undefined.
#[inline]
const fn is_whole(byte: u8) -> bool {
    matches!(byte, 0x00..=0x17 | 0x20..=0x37 | 0xe0..=0xf7)
}

/// A place in some bytes, from which heads and items are read.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    rest: &'a [u8],
    /// Length of all the bytes.
    len: usize,
}

impl<'a> Scanner<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self {
            rest: bytes,
            len: bytes.len(),
        }
    }

    /// Offset of the next byte.
    pub(crate) const fn at(&self) -> usize {
        self.len - self.rest.len()
    }

    const fn truncated(&self) -> ScanError {
        ScanError::Truncated { at: self.len }
    }

    /// Goes past `expected` if that is what comes next.
    #[inline]
    pub(crate) fn skip_if(&mut self, expected: &[u8]) -> bool {
        let rest = self.rest.strip_prefix(expected);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    #[inline]
    pub(crate) fn take(&mut self, length: u64) -> Result<&'a [u8], ScanError> {
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let (taken, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(taken)
    }

    #[inline]
    fn take_array<const N: usize>(&mut self) -> Result<[u8; N], ScanError> {
        let (taken, rest) = self
            .rest
            .split_first_chunk()
            .ok_or_else(|| self.truncated())?;
        self.rest = rest;
        Ok(*taken)
    }

    /// The content of a text of less than 256 bytes, if one is next: what nearly all of ours are.
    #[inline]
    pub(crate) fn take_short_text(&mut self) -> Option<&'a [u8]> {
        let (length, rest) = match self.rest {
            [first @ 0x60..=0x77, rest @ ..] => (first - 0x60, rest),
            [0x78, length, rest @ ..] => (*length, rest),
            _ => return None,
        };
        let (text, rest) = rest.split_at_checked(length.into())?;
        self.rest = rest;
        Some(text)
    }

    /// The bytes of one whole item.
    #[inline]
    pub(crate) fn take_item(&mut self, depth: usize) -> Result<&'a [u8], ScanError> {
        let before = self.rest;
        self.skip_item(depth)?;
        Ok(self.since(before))
    }

    /// What lies between an earlier place and this one.
    #[inline]
    pub(crate) fn since(&self, earlier: &'a [u8]) -> &'a [u8] {
        earlier
            .get(..earlier.len() - self.rest.len())
            .unwrap_or_default()
    }

    /// What is still to come.
    pub(crate) const fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Reads one head; a break is one too.
    #[inline]
    pub(crate) fn head(&mut self) -> Result<Head, ScanError> {
        let at = self.at();
        let [first] = self.take_array()?;
        let major = match first >> 5 {
            0 => Major::Unsigned,
            1 => Major::Negative,
            2 => Major::Bytes,
            3 => Major::Text,
            4 => Major::Array,
            5 => Major::Map,
            6 => Major::Tag,
            _ => Major::Simple,
        };
        let info = first & 0x1f;
        let argument = match info {
            0..=23 => u64::from(info),
            24 => u64::from(self.take_array::<1>()?[0]),
            25 => u64::from(u16::from_be_bytes(self.take_array()?)),
            26 => u64::from(u32::from_be_bytes(self.take_array()?)),
            27 => u64::from_be_bytes(self.take_array()?),
            INDEFINITE => match major {
                Major::Unsigned | Major::Negative | Major::Tag => {
                    return Err(ScanError::InvalidHead { at });
                }
                Major::Bytes | Major::Text | Major::Array | Major::Map | Major::Simple => 0,
            },
            _ => return Err(ScanError::InvalidHead { at }),
        };
        if matches!(major, Major::Simple) && info == 24 && argument < 32 {
            return Err(ScanError::InvalidHead { at });
        }
        Ok(Head {
            major,
            info,
            argument,
        })
    }

    /// Goes past one whole item in which at most `depth` levels of arrays, maps and tags nest.
    #[inline]
    pub(crate) fn skip_item(&mut self, depth: usize) -> Result<(), ScanError> {
        match self.rest {
            [first, rest @ ..] if is_whole(*first) => self.rest = rest,
            [DOUBLE, _, _, _, _, _, _, _, _, rest @ ..] => self.rest = rest,
            _ => {
                if self.take_short_text().is_none() {
                    return self.skip_any(depth);
                }
            }
        }
        Ok(())
    }

    fn skip_any(&mut self, depth: usize) -> Result<(), ScanError> {
        let at = self.at();
        let head = self.head()?;
        self.skip_content(head, at, depth)
    }

    /// Goes past what belongs to a head that was read at `at`.
    pub(crate) fn skip_content(
        &mut self,
        head: Head,
        at: usize,
        depth: usize,
    ) -> Result<(), ScanError> {
        match head.major {
            Major::Unsigned | Major::Negative => Ok(()),
            Major::Simple if head.is_break() => Err(ScanError::InvalidHead { at }),
            Major::Simple => Ok(()),
            Major::Bytes | Major::Text if head.is_indefinite() => self.skip_chunks(head.major),
            Major::Bytes | Major::Text => self.take(head.argument).map(drop),
            Major::Array | Major::Map | Major::Tag => {
                let depth = depth.checked_sub(1).ok_or(ScanError::TooDeep { at })?;
                self.skip_inner(head, depth)
            }
        }
    }

    fn skip_inner(&mut self, head: Head, depth: usize) -> Result<(), ScanError> {
        if head.is(Major::Tag) {
            return self.skip_item(depth);
        }
        let mut done = 0;
        while self.more(head, done)? {
            if head.is(Major::Map) {
                self.skip_item(depth)?;
            } else if !head.is_indefinite() {
                done += self.skip_bytes(head.argument - done);
                if done == head.argument {
                    break;
                }
            }
            self.skip_item(depth)?;
            done += 1;
        }
        Ok(())
    }

    /// Goes past at most `limit` items of one byte each, which in a row are how lists of small
    /// numbers lie; how many there were.
    fn skip_bytes(&mut self, limit: u64) -> u64 {
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        let row = self.rest.get(..limit).unwrap_or(self.rest);
        let (blocks, _) = row.as_chunks::<16>();
        let are_whole =
            |block: &&[u8; 16]| block.iter().fold(true, |all, byte| all & is_whole(*byte));
        let count = 16 * blocks.iter().take_while(are_whole).count();
        let (_, row) = row.split_at(count);
        let count = count + row.iter().take_while(|byte| is_whole(**byte)).count();
        (_, self.rest) = self.rest.split_at(count);
        count as u64
    }

    /// Whether the array or map that `head` opened goes on behind `done` items or entries; goes past
    /// the break that ends it.
    #[inline]
    pub(crate) fn more(&mut self, head: Head, done: u64) -> Result<bool, ScanError> {
        if head.is_indefinite() {
            Ok(!self.skip_break()?)
        } else {
            Ok(done < head.argument)
        }
    }

    fn skip_break(&mut self) -> Result<bool, ScanError> {
        let (first, rest) = self.rest.split_first().ok_or_else(|| self.truncated())?;
        let is_break = *first == 0xff;
        if is_break {
            self.rest = rest;
        }
        Ok(is_break)
    }

    fn skip_chunks(&mut self, major: Major) -> Result<(), ScanError> {
        while self.next_chunk(major)?.is_some() {}
        Ok(())
    }

    /// The content of the string that `head` opened, joined if it comes in chunks.
    pub(crate) fn string(&mut self, head: Head) -> Result<Cow<'a, [u8]>, ScanError> {
        if !head.is_indefinite() {
            return self.take(head.argument).map(Cow::Borrowed);
        }
        let mut joined = Vec::new();
        while let Some(chunk) = self.next_chunk(head.major)? {
            joined.extend_from_slice(chunk);
        }
        Ok(Cow::Owned(joined))
    }

    /// The next chunk of an indefinite string, `None` behind the last.
    fn next_chunk(&mut self, major: Major) -> Result<Option<&'a [u8]>, ScanError> {
        let at = self.at();
        let head = self.head()?;
        if head.is_break() {
            return Ok(None);
        }
        if head.major != major || head.is_indefinite() {
            return Err(ScanError::InvalidHead { at });
        }
        self.take(head.argument).map(Some)
    }

    /// Demands that nothing is left.
    pub(crate) fn finish(&self) -> Result<(), ScanError> {
        if self.rest.is_empty() {
            return Ok(());
        }
        Err(ScanError::TrailingBytes { at: self.at() })
    }
}

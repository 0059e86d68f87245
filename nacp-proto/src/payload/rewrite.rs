//! The same value written anew: definite lengths, and every key of a map once.

use std::{borrow::Cow, collections::HashMap, ops::Range};

use bytes::BytesMut;

use crate::{
    scan::{Head, Major, ScanError, Scanner},
    write,
};

/// Writes one well-formed item anew. Of a key that a map has twice, the last value stays.
pub(super) fn rewrite(cbor: &[u8]) -> Result<BytesMut, ScanError> {
    let mut out = BytesMut::with_capacity(cbor.len());
    item(&mut Scanner::new(cbor), &mut out)?;
    Ok(out)
}

fn item(scanner: &mut Scanner<'_>, out: &mut BytesMut) -> Result<(), ScanError> {
    let (at, rest) = (scanner.at(), scanner.rest());
    let head = scanner.head()?;
    let raw_head = rest.get(..scanner.at() - at).unwrap_or_default();
    match head.major {
        Major::Unsigned | Major::Negative | Major::Simple => out.extend_from_slice(raw_head),
        Major::Tag => {
            out.extend_from_slice(raw_head);
            item(scanner, out)?;
        }
        Major::Bytes | Major::Text => string(scanner, head, out)?,
        Major::Array => array(scanner, head, out)?,
        Major::Map => map(scanner, head, out)?,
    }
    Ok(())
}

fn string(scanner: &mut Scanner<'_>, head: Head, out: &mut BytesMut) -> Result<(), ScanError> {
    let content = scanner.string(head)?;
    let major = if head.is(Major::Text) {
        write::TEXT
    } else {
        write::BYTES
    };
    write::head(out, major, content.len() as u64);
    out.extend_from_slice(&content);
    Ok(())
}

fn array(scanner: &mut Scanner<'_>, head: Head, out: &mut BytesMut) -> Result<(), ScanError> {
    let mut content = BytesMut::new();
    let mut items = 0;
    while scanner.more(head, items)? {
        item(scanner, &mut content)?;
        items += 1;
    }
    write::head(out, write::ARRAY, items);
    out.extend_from_slice(&content);
    Ok(())
}

fn map(scanner: &mut Scanner<'_>, head: Head, out: &mut BytesMut) -> Result<(), ScanError> {
    let mut content = BytesMut::new();
    let mut entries = HashMap::<Key<'_>, Range<usize>>::new();
    let mut read = 0;
    while scanner.more(head, read)? {
        let start = content.len();
        let key = Key::read(&mut scanner.clone())?;
        item(scanner, &mut content)?;
        item(scanner, &mut content)?;
        entries.insert(key, start..content.len());
        read += 1;
    }
    let mut kept: Vec<_> = entries.into_values().collect();
    kept.sort_unstable_by_key(|entry| entry.start);
    write::head(out, write::MAP, kept.len() as u64);
    for entry in kept {
        out.extend_from_slice(content.get(entry).unwrap_or_default());
    }
    Ok(())
}

/// A key by its value: two spellings of one number or text are one key.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Unsigned(u64),
    Negative(u64),
    Text(Cow<'a, [u8]>),
    Other(&'a [u8]),
}

impl<'a> Key<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<Self, ScanError> {
        let (at, rest) = (scanner.at(), scanner.rest());
        let head = scanner.head()?;
        Ok(match head.major {
            Major::Unsigned => Self::Unsigned(head.argument),
            Major::Negative => Self::Negative(head.argument),
            Major::Text => Self::Text(scanner.string(head)?),
            Major::Bytes | Major::Array | Major::Map | Major::Tag | Major::Simple => {
                scanner.skip_content(head, at, crate::scan::MAX_DEPTH)?;
                Self::Other(rest.get(..scanner.at() - at).unwrap_or_default())
            }
        })
    }
}

//! What a payload of ours must be, so that every peer can read it.

use super::PayloadError;
use crate::scan::{Head, Major, ScanError, Scanner};

/// Deepest nesting of a payload that we make: wherever it goes, also into a register's `auth`, the
/// message around it stays within the limit.
const MAX_DEPTH: usize = crate::scan::MAX_DEPTH - 2;

/// Whether all lengths are given in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    Definite,
    SomeIndefinite,
}

/// Checks that `cbor` is one item which the reference implementation can read.
pub(super) fn check(cbor: &[u8]) -> Result<Lengths, PayloadError> {
    let mut walk = Walk {
        scanner: Scanner::new(cbor),
        lengths: Lengths::Definite,
    };
    walk.item(MAX_DEPTH, Place::Value)?;
    walk.scanner.finish()?;
    Ok(walk.lengths)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Value,
    Key,
}

struct Walk<'a> {
    scanner: Scanner<'a>,
    lengths: Lengths,
}

impl Walk<'_> {
    fn item(&mut self, depth: usize, place: Place) -> Result<(), PayloadError> {
        let at = self.scanner.at();
        let head = self.scanner.head()?;
        check_head(head, at, place)?;
        match head.major {
            Major::Unsigned | Major::Negative | Major::Simple => Ok(()),
            Major::Bytes | Major::Text => Ok(self.scanner.take(head.argument).map(drop)?),
            Major::Array | Major::Map | Major::Tag => {
                let depth = depth.checked_sub(1).ok_or(ScanError::TooDeep { at })?;
                self.inner(head, depth, place)
            }
        }
    }

    fn inner(&mut self, head: Head, depth: usize, place: Place) -> Result<(), PayloadError> {
        if head.is(Major::Tag) {
            return self.item(depth, place);
        }
        if head.is_indefinite() {
            self.lengths = Lengths::SomeIndefinite;
        }
        let mut done = 0;
        while self.scanner.more(head, done)? {
            if head.is(Major::Map) {
                self.item(depth, Place::Key)?;
            }
            self.item(depth, Place::Value)?;
            done += 1;
        }
        Ok(())
    }
}

fn check_head(head: Head, at: usize, place: Place) -> Result<(), PayloadError> {
    let is_key = place == Place::Key;
    match head.major {
        Major::Simple if head.is_break() => Err(ScanError::InvalidHead { at }.into()),
        Major::Simple if !head.is_known_simple() => Err(PayloadError::SimpleValue { at }),
        Major::Bytes | Major::Array | Major::Map if is_key => Err(PayloadError::MapKey { at }),
        Major::Bytes | Major::Text if head.is_indefinite() => {
            Err(PayloadError::IndefiniteString { at })
        }
        Major::Unsigned
        | Major::Negative
        | Major::Bytes
        | Major::Text
        | Major::Array
        | Major::Map
        | Major::Tag
        | Major::Simple => Ok(()),
    }
}

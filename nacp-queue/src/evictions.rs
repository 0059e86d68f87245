use std::fmt;
use std::iter::FusedIterator;
use std::time::Instant;

use thiserror::Error;

use crate::record::Record;
use crate::table::{Table, Unfit};

/// Why a record was evicted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Evicted {
    /// It was the oldest droppable record.
    Droppable,
    /// It was the oldest record, and there was no droppable one.
    Oldest,
    /// It was put back while another record with its key was in the table, which stays.
    Duplicate,
}

impl From<Unfit> for Evicted {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::KeyTaken => Self::Duplicate,
            Unfit::NoIndexLeft => Self::Oldest,
        }
    }
}

impl From<Unfit> for Refusal {
    fn from(unfit: Unfit) -> Self {
        match unfit {
            Unfit::KeyTaken => Self::Duplicate,
            Unfit::NoIndexLeft => Self::Full,
        }
    }
}

/// Why a record was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It is droppable and would break a cap.
    #[error("no room for a droppable record")]
    Full,
    /// A record with its key is in the table.
    #[error("a record with this key is in the table")]
    Duplicate,
}

/// A record that was not taken, given back. The table is unchanged.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct Refused<R> {
    /// The record.
    pub record: R,
    /// Why it was refused.
    pub reason: Refusal,
}

impl<R> fmt::Debug for Refused<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refused")
            .field("reason", &self.reason)
            .finish_non_exhaustive()
    }
}

/// Brings a backlog back within its caps, and yields the records that had to go with the reason, in
/// the order in which they go.
///
/// Each is evicted when it is asked for. Dropping the iterator evicts and drops the rest, so the
/// backlog is within its caps as soon as it can be used again.
#[must_use = "evicted records are dropped unless they are taken"]
pub struct Evictions<'a, R: Record> {
    table: &'a mut Table<R, ()>,
    /// Put back in vain; the first one lies last.
    unfit: Vec<(R, Evicted)>,
}

/// Brings an ack-pending table back within its caps, and yields the records that had to go, oldest
/// first.
///
/// Each is evicted when it is asked for. Dropping the iterator evicts and drops the rest, so the
/// table is within its caps as soon as it can be used again.
#[must_use = "evicted records are dropped unless they are taken"]
pub struct Overflow<'a, R: Record> {
    table: &'a mut Table<R, Option<Instant>>,
}

impl<'a, R: Record> Evictions<'a, R> {
    #[inline]
    pub(crate) fn new(table: &'a mut Table<R, ()>, unfit: Vec<(R, Evicted)>) -> Self {
        Self { table, unfit }
    }
}

impl<'a, R: Record> Overflow<'a, R> {
    #[inline]
    pub(crate) fn new(table: &'a mut Table<R, Option<Instant>>) -> Self {
        Self { table }
    }
}

impl<R: Record> Iterator for Evictions<'_, R> {
    type Item = (R, Evicted);

    #[inline]
    fn next(&mut self) -> Option<(R, Evicted)> {
        match self.unfit.pop() {
            Some(unfit) => Some(unfit),
            None => self.table.shed(),
        }
    }
}

impl<R: Record> Iterator for Overflow<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        self.table.shed().map(|(record, _)| record)
    }
}

impl<R: Record> FusedIterator for Evictions<'_, R> {}
impl<R: Record> FusedIterator for Overflow<'_, R> {}

impl<R: Record> Drop for Evictions<'_, R> {
    #[inline]
    fn drop(&mut self) {
        while self.table.shed().is_some() {}
    }
}

impl<R: Record> Drop for Overflow<'_, R> {
    #[inline]
    fn drop(&mut self) {
        while self.table.shed().is_some() {}
    }
}

impl<R: Record> fmt::Debug for Evictions<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Evictions").finish_non_exhaustive()
    }
}

impl<R: Record> fmt::Debug for Overflow<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflow").finish_non_exhaustive()
    }
}

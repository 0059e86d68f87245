use std::fmt;
use std::iter::FusedIterator;

use thiserror::Error;

use crate::ack_pending::AckPending;
use crate::backlog::Backlog;
use crate::record::Record;
use crate::table::Unfit;

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
    backlog: &'a mut Backlog<R>,
}

/// Brings an ack-pending table back within its caps, and yields the records that had to go, oldest
/// first.
///
/// Each is evicted when it is asked for. Dropping the iterator evicts and drops the rest, so the
/// table is within its caps as soon as it can be used again.
#[must_use = "evicted records are dropped unless they are taken"]
pub struct Overflow<'a, R: Record> {
    pending: &'a mut AckPending<R>,
}

/// The traits that both have in common.
macro_rules! evict {
    ($name:ident, $field:ident, $table:ident, $item:ty) => {
        impl<'a, R: Record> $name<'a, R> {
            #[inline]
            pub(crate) fn new($field: &'a mut $table<R>) -> Self {
                Self { $field }
            }
        }

        impl<R: Record> Iterator for $name<'_, R> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.$field.evict()
            }
        }

        impl<R: Record> FusedIterator for $name<'_, R> {}

        impl<R: Record> Drop for $name<'_, R> {
            #[inline]
            fn drop(&mut self) {
                while self.next().is_some() {}
            }
        }

        impl<R: Record> fmt::Debug for $name<'_, R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_tuple(stringify!($name))
                    .field(&self.$field)
                    .finish()
            }
        }
    };
}

evict!(Evictions, backlog, Backlog, (R, Evicted));
evict!(Overflow, pending, AckPending, R);

use std::fmt;
use std::iter::FusedIterator;
use std::time::Instant;

use crate::list::List;
use crate::record::Record;
use crate::slot::{Classes, OWN, Slot, WHOLE, first, last};
use crate::table::{End, Table};

/// Slots in order: those of one destination or of the whole table.
struct Slots<'a, R: Record, N> {
    slots: &'a [Slot<R, N>],
    which: usize,
    /// The next slot of each class from the front, and from the back.
    heads: [u32; 2],
    tails: [u32; 2],
    left: usize,
}

impl<'a, R: Record, N: Copy + Default> Slots<'a, R, N> {
    fn of(table: &'a Table<R, N>, id: &R::Destination) -> Self {
        match table.destinations.get(id) {
            None => Self::new(table, OWN, [List::EMPTY; 2], 0),
            Some(entry) => Self::new(table, OWN, entry.lists, entry.used.count),
        }
    }

    fn all(table: &'a Table<R, N>) -> Self {
        Self::new(table, WHOLE, table.lists(), table.used().count)
    }

    fn new(table: &'a Table<R, N>, which: usize, lists: Classes, left: usize) -> Self {
        Self {
            slots: table.slots(),
            which,
            heads: lists.map(|list| list.head),
            tails: lists.map(|list| list.tail),
            left,
        }
    }

    fn next(&mut self) -> Option<&'a Slot<R, N>> {
        self.left = self.left.checked_sub(1)?;
        let slot = self.slots.get(first(self.slots, self.heads) as usize)?;
        self.heads[slot.rank.class()] = slot.links[self.which].next;
        Some(slot)
    }

    fn next_back(&mut self) -> Option<&'a Slot<R, N>> {
        self.left = self.left.checked_sub(1)?;
        let slot = self.slots.get(last(self.slots, self.tails) as usize)?;
        self.tails[slot.rank.class()] = slot.links[self.which].prev;
        Some(slot)
    }
}

impl<R: Record, N> Clone for Slots<'_, R, N> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

/// Takes records out in order: those of one destination or of the whole table.
struct Takes<'a, R: Record, N: Copy + Default> {
    table: &'a mut Table<R, N>,
    destination: Option<u32>,
    left: usize,
}

impl<'a, R: Record, N: Copy + Default> Takes<'a, R, N> {
    fn of(table: &'a mut Table<R, N>, id: &R::Destination) -> Self {
        let destination = table.destinations.find(id);
        let left = destination.map_or(0, |at| table.destinations[at].used.count);
        Self {
            table,
            destination,
            left,
        }
    }

    fn all(table: &'a mut Table<R, N>) -> Self {
        let left = table.used().count;
        Self {
            table,
            destination: None,
            left,
        }
    }

    /// The destination may be gone with its last record, but not before.
    fn take(&mut self, end: End) -> Option<(R, N)> {
        self.left = self.left.checked_sub(1)?;
        let lists = match self.destination {
            Some(at) => self.table.destinations[at].lists,
            None => self.table.lists(),
        };
        let at = self.table.at_end(lists, end)?;
        let note = self.table.slot(at)?.note;
        Some((self.table.take_in_place(at)?, note))
    }

    fn next(&mut self) -> Option<(R, N)> {
        self.take(End::Front)
    }

    fn next_back(&mut self) -> Option<(R, N)> {
        self.take(End::Back)
    }
}

impl<R: Record, N: Copy + Default> Drop for Takes<'_, R, N> {
    fn drop(&mut self) {
        while self.next().is_some() {}
        self.table.tidy();
    }
}

/// Records in a [`Backlog`](crate::Backlog), in order.
pub struct Iter<'a, R: Record>(Slots<'a, R, ()>);

/// Records in an [`AckPending`](crate::AckPending) with their deadlines, in order.
pub struct IterPending<'a, R: Record>(Slots<'a, R, Option<Instant>>);

/// Takes records out of a [`Backlog`](crate::Backlog), in order.
///
/// Dropping it takes out and drops what is left.
#[must_use = "dropping it drops the records"]
pub struct Drain<'a, R: Record>(Takes<'a, R, ()>);

/// Takes records out of an [`AckPending`](crate::AckPending) with their deadlines, in order.
///
/// Dropping it takes out and drops what is left.
#[must_use = "dropping it drops the records"]
pub struct DrainPending<'a, R: Record>(Takes<'a, R, Option<Instant>>);

impl<'a, R: Record> Iter<'a, R> {
    pub(crate) fn of(table: &'a Table<R, ()>, id: &R::Destination) -> Self {
        Self(Slots::of(table, id))
    }

    pub(crate) fn all(table: &'a Table<R, ()>) -> Self {
        Self(Slots::all(table))
    }
}

impl<'a, R: Record> IterPending<'a, R> {
    pub(crate) fn of(table: &'a Table<R, Option<Instant>>, id: &R::Destination) -> Self {
        Self(Slots::of(table, id))
    }

    pub(crate) fn all(table: &'a Table<R, Option<Instant>>) -> Self {
        Self(Slots::all(table))
    }
}

impl<'a, R: Record> Drain<'a, R> {
    pub(crate) fn of(table: &'a mut Table<R, ()>, id: &R::Destination) -> Self {
        Self(Takes::of(table, id))
    }

    pub(crate) fn all(table: &'a mut Table<R, ()>) -> Self {
        Self(Takes::all(table))
    }
}

impl<'a, R: Record> DrainPending<'a, R> {
    pub(crate) fn of(table: &'a mut Table<R, Option<Instant>>, id: &R::Destination) -> Self {
        Self(Takes::of(table, id))
    }

    pub(crate) fn all(table: &'a mut Table<R, Option<Instant>>) -> Self {
        Self(Takes::all(table))
    }
}

impl<R: Record> Clone for Iter<'_, R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<R: Record> Clone for IterPending<'_, R> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

fn borrowed<R>(slot: &Slot<R, ()>) -> Option<&R> {
    slot.record.as_ref()
}

fn borrowed_with_deadline<R>(slot: &Slot<R, Option<Instant>>) -> Option<(&R, Option<Instant>)> {
    Some((slot.record.as_ref()?, slot.note))
}

fn taken<R>((record, ()): (R, ())) -> Option<R> {
    Some(record)
}

/// The traits that all iterators here have in common.
macro_rules! iterate {
    ($name:ident, $item:ty, $make:expr) => {
        impl<'a, R: Record> Iterator for $name<'a, R> {
            type Item = $item;

            #[inline]
            fn next(&mut self) -> Option<$item> {
                self.0.next().and_then($make)
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.0.left, Some(self.0.left))
            }
        }

        impl<R: Record> DoubleEndedIterator for $name<'_, R> {
            #[inline]
            fn next_back(&mut self) -> Option<Self::Item> {
                self.0.next_back().and_then($make)
            }
        }

        impl<R: Record> ExactSizeIterator for $name<'_, R> {}
        impl<R: Record> FusedIterator for $name<'_, R> {}

        impl<R: Record> fmt::Debug for $name<'_, R> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.debug_struct(stringify!($name))
                    .field("left", &self.0.left)
                    .finish()
            }
        }
    };
}

iterate!(Iter, &'a R, borrowed);
iterate!(
    IterPending,
    (&'a R, Option<Instant>),
    borrowed_with_deadline
);
iterate!(Drain, R, taken);
iterate!(DrainPending, (R, Option<Instant>), Some);

use std::fmt;
use std::iter::FusedIterator;

use crate::list::NONE;
use crate::record::Record;
use crate::slot::{OWN, earlier, later};
use crate::table::{End, Table};

/// The records of one destination in order, borrowed.
pub struct Iter<'a, R: Record> {
    table: &'a Table<R>,
    /// The next node of each class, from the front and from the back.
    heads: [u32; 2],
    tails: [u32; 2],
    left: usize,
}

impl<'a, R: Record> Iter<'a, R> {
    pub(crate) fn new(table: &'a Table<R>, id: &R::Destination) -> Self {
        match table.destinations.get(id) {
            None => Self {
                table,
                heads: [NONE; 2],
                tails: [NONE; 2],
                left: 0,
            },
            Some(entry) => Self {
                table,
                heads: entry.lists.map(|list| list.head),
                tails: entry.lists.map(|list| list.tail),
                left: entry.used.count,
            },
        }
    }
}

impl<'a, R: Record> Iterator for Iter<'a, R> {
    type Item = &'a R;

    fn next(&mut self) -> Option<&'a R> {
        self.left = self.left.checked_sub(1)?;
        let slots = self.table.slots();
        let slot = slots.get(earlier(slots, self.heads[0], self.heads[1]) as usize)?;
        self.heads[slot.class()] = slot.links[OWN].next;
        slot.record.as_ref()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<R: Record> DoubleEndedIterator for Iter<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let slots = self.table.slots();
        let slot = slots.get(later(slots, self.tails[0], self.tails[1]) as usize)?;
        self.tails[slot.class()] = slot.links[OWN].prev;
        slot.record.as_ref()
    }
}

impl<R: Record> ExactSizeIterator for Iter<'_, R> {}
impl<R: Record> FusedIterator for Iter<'_, R> {}

impl<R: Record> Clone for Iter<'_, R> {
    fn clone(&self) -> Self {
        Self { ..*self }
    }
}

impl<R: Record> fmt::Debug for Iter<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Iter")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

/// Takes the records of one destination out of a table, in order.
///
/// Dropping it takes out and drops what is left.
#[must_use = "dropping it drops the records of the destination"]
pub struct Drain<'a, R: Record> {
    table: &'a mut Table<R>,
    destination: u32,
    left: usize,
}

impl<'a, R: Record> Drain<'a, R> {
    pub(crate) fn new(table: &'a mut Table<R>, id: &R::Destination) -> Self {
        let destination = table.destinations.find(id).unwrap_or(NONE);
        let left = match destination {
            NONE => 0,
            at => table.destinations.at(at).used.count,
        };
        Self {
            table,
            destination,
            left,
        }
    }

    fn take(&mut self, end: End) -> Option<R> {
        self.left = self.left.checked_sub(1)?;
        let at = self
            .table
            .end_of(&self.table.destinations.at(self.destination).lists, end)?;
        self.table.take(at)
    }
}

impl<R: Record> Iterator for Drain<'_, R> {
    type Item = R;

    fn next(&mut self) -> Option<R> {
        self.take(End::Front)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<R: Record> DoubleEndedIterator for Drain<'_, R> {
    fn next_back(&mut self) -> Option<R> {
        self.take(End::Back)
    }
}

impl<R: Record> ExactSizeIterator for Drain<'_, R> {}
impl<R: Record> FusedIterator for Drain<'_, R> {}

impl<R: Record> Drop for Drain<'_, R> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<R: Record> fmt::Debug for Drain<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Drain")
            .field("left", &self.left)
            .finish_non_exhaustive()
    }
}

use std::fmt;
use std::iter::FusedIterator;
use std::time::Instant;

use crate::caps::{Caps, Room};
use crate::evictions::{Evictions, Refusal, Refused};
use crate::iter::{Drain, Iter};
use crate::record::Record;
use crate::table::{End, Table};

/// A record and when its time is up.
#[derive(Clone, Debug)]
struct Timed<R> {
    record: R,
    deadline: Option<Instant>,
}

impl<R: Record> Record for Timed<R> {
    type Key = R::Key;
    type Destination = R::Destination;

    #[inline]
    fn key(&self) -> &R::Key {
        self.record.key()
    }

    #[inline]
    fn destination(&self) -> &R::Destination {
        self.record.destination()
    }

    #[inline]
    fn bytes(&self) -> u64 {
        self.record.bytes()
    }

    /// What was sent is sent: nothing goes before the oldest.
    #[inline]
    fn droppable(&self) -> bool {
        false
    }

    #[inline]
    fn sequence(key: &R::Key) -> Option<u64> {
        R::sequence(key)
    }
}

/// Records that were sent and wait for their ACK, in order, within exact caps.
///
/// Every operation is O(1), amortised over growth and shrinking; those that move `k` records are
/// O(k). None of them allocates while the table neither grows nor shrinks.
///
/// Without caps ([`Caps::NONE`]) it serves as a plain table of things that wait for an answer.
#[derive(Clone)]
pub struct AckPending<R: Record> {
    table: Table<Timed<R>>,
}

impl<R: Record> AckPending<R> {
    /// An empty table. Allocates nothing yet.
    #[must_use]
    pub fn new(caps: Caps) -> Self {
        Self {
            table: Table::new(caps),
        }
    }

    /// The caps of the whole table.
    #[must_use]
    pub fn caps(&self) -> Caps {
        self.table.caps
    }

    /// Caps one destination beside the caps of the whole table; `None` lifts them.
    ///
    /// When they are broken, only records of that destination are evicted. They stay until they
    /// are lifted, also while the destination has no records.
    pub fn set_destination_caps(
        &mut self,
        destination: &R::Destination,
        caps: Option<Caps>,
    ) -> Overflow<'_, R> {
        self.table.set_caps(destination, caps.unwrap_or_default());
        Overflow::new(&mut self.table)
    }

    /// Adds a record at the tail. A `deadline` of `None` never falls due.
    ///
    /// If it breaks a cap, the oldest records are evicted until it fits, but never the arriving
    /// one: a record larger than the cap on bytes is kept when it is alone.
    ///
    /// # Errors
    ///
    /// A record whose key is taken is refused.
    #[inline]
    pub fn insert(
        &mut self,
        record: R,
        deadline: Option<Instant>,
    ) -> Result<Overflow<'_, R>, Refused<R>> {
        match self.table.insert(End::Back, Timed { record, deadline }) {
            Ok(()) => Ok(Overflow::new(&mut self.table)),
            Err(Timed { record, .. }) => Err(Refused {
                record,
                reason: Refusal::Duplicate,
            }),
        }
    }

    /// Takes the record with this key: its ACK came.
    #[inline]
    pub fn settle(&mut self, key: &R::Key) -> Option<R> {
        self.table.remove(key).map(|timed| timed.record)
    }

    /// The record with this key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &R::Key) -> Option<&R> {
        self.table.get(key).map(|timed| &timed.record)
    }

    /// Whether a record with this key is here.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &R::Key) -> bool {
        self.table.get(key).is_some()
    }

    /// The oldest record of a destination and its deadline.
    ///
    /// With one time limit for all it is the one that falls due first.
    #[must_use]
    pub fn oldest(&self, destination: &R::Destination) -> Option<(&R, Option<Instant>)> {
        let timed = self.table.record(self.table.first_of(destination)?)?;
        Some((&timed.record, timed.deadline))
    }

    /// Takes all records of a destination with their deadlines, in order.
    pub fn drain(&mut self, destination: &R::Destination) -> DrainPending<'_, R> {
        DrainPending {
            inner: Drain::new(&mut self.table, destination),
        }
    }

    /// The records of a destination with their deadlines, in order.
    #[must_use]
    pub fn iter(&self, destination: &R::Destination) -> IterPending<'_, R> {
        IterPending {
            inner: Iter::new(&self.table, destination),
        }
    }

    /// What is left for a destination under the caps of the table and its own.
    #[must_use]
    pub fn room(&self, destination: &R::Destination) -> Room {
        self.table.room(destination)
    }

    /// How many records there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.used.count
    }

    /// Whether there are no records.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The sum of their sizes, in bytes.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.table.used.total()
    }

    /// How many records a destination has.
    #[must_use]
    pub fn len_of(&self, destination: &R::Destination) -> usize {
        self.table.used_by(destination).count
    }

    /// The sum of the sizes of a destination's records, in bytes.
    #[must_use]
    pub fn bytes_of(&self, destination: &R::Destination) -> u64 {
        self.table.used_by(destination).total()
    }
}

impl<R: Record> fmt::Debug for AckPending<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt_as("AckPending", f)
    }
}

/// Brings an ack-pending table back within its caps, and yields the records that had to go, oldest
/// first.
///
/// Each is evicted when it is asked for. Dropping the iterator evicts and drops the rest, so the
/// table is within its caps as soon as it can be used again.
#[must_use = "evicted records are dropped unless they are taken"]
pub struct Overflow<'a, R: Record> {
    inner: Evictions<'a, Timed<R>>,
}

impl<'a, R: Record> Overflow<'a, R> {
    fn new(table: &'a mut Table<Timed<R>>) -> Self {
        Self {
            inner: Evictions::new(table, Vec::new()),
        }
    }
}

impl<R: Record> Iterator for Overflow<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        self.inner.next().map(|(timed, _)| timed.record)
    }
}

impl<R: Record> FusedIterator for Overflow<'_, R> {}

impl<R: Record> fmt::Debug for Overflow<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Overflow").finish_non_exhaustive()
    }
}

/// The records of one destination with their deadlines in order, borrowed.
pub struct IterPending<'a, R: Record> {
    inner: Iter<'a, Timed<R>>,
}

/// Takes the records of one destination with their deadlines out of a table, in order.
///
/// Dropping it takes out and drops what is left.
#[must_use = "dropping it drops the records of the destination"]
pub struct DrainPending<'a, R: Record> {
    inner: Drain<'a, Timed<R>>,
}

impl<'a, R: Record> Iterator for IterPending<'a, R> {
    type Item = (&'a R, Option<Instant>);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner
            .next()
            .map(|timed| (&timed.record, timed.deadline))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<R: Record> DoubleEndedIterator for IterPending<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner
            .next_back()
            .map(|timed| (&timed.record, timed.deadline))
    }
}

impl<R: Record> ExactSizeIterator for IterPending<'_, R> {}
impl<R: Record> FusedIterator for IterPending<'_, R> {}

impl<R: Record> Clone for IterPending<'_, R> {
    fn clone(&self) -> Self {
        Self {
            inner: self.inner.clone(),
        }
    }
}

impl<R: Record> fmt::Debug for IterPending<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IterPending")
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}

impl<R: Record> Iterator for DrainPending<'_, R> {
    type Item = (R, Option<Instant>);

    fn next(&mut self) -> Option<Self::Item> {
        self.inner
            .next()
            .map(|timed| (timed.record, timed.deadline))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.inner.size_hint()
    }
}

impl<R: Record> DoubleEndedIterator for DrainPending<'_, R> {
    fn next_back(&mut self) -> Option<Self::Item> {
        self.inner
            .next_back()
            .map(|timed| (timed.record, timed.deadline))
    }
}

impl<R: Record> ExactSizeIterator for DrainPending<'_, R> {}
impl<R: Record> FusedIterator for DrainPending<'_, R> {}

impl<R: Record> fmt::Debug for DrainPending<'_, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DrainPending")
            .field("left", &self.len())
            .finish_non_exhaustive()
    }
}

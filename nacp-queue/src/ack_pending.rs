use std::fmt;
use std::time::Instant;

use crate::caps::{Caps, Room};
use crate::evictions::{Overflow, Refused};
use crate::iter::{DrainPending, IterPending};
use crate::record::Record;
use crate::table::{End, Table};

/// Records that were sent and wait for their ACK, in order, within exact caps (specification,
/// section 6).
///
/// Every operation is O(1), amortised over growth and shrinking; those that move `k` records are
/// O(k). None of them allocates while the table neither grows nor shrinks.
///
/// Without caps ([`Caps::NONE`]) it serves as a plain table of things that wait for an answer.
#[derive(Clone)]
pub struct AckPending<R: Record> {
    table: Table<R, Option<Instant>>,
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
        self.table.caps()
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
        self.table
            .set_destination_caps(destination, caps.unwrap_or_default());
        Overflow::new(self)
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
        match self
            .table
            .insert(End::Back, record, NOTHING_GOES_FIRST, deadline)
        {
            Ok(()) => Ok(Overflow::new(self)),
            Err((record, unfit)) => Err(Refused {
                record,
                reason: unfit.into(),
            }),
        }
    }

    /// Takes the record with this key: its ACK came.
    #[inline]
    pub fn settle(&mut self, key: &R::Key) -> Option<R> {
        self.table.take_by_key(key)
    }

    /// The record with this key.
    #[inline]
    #[must_use]
    pub fn get(&self, key: &R::Key) -> Option<&R> {
        self.table.record(self.table.find(key)?)
    }

    /// Whether a record with this key is here.
    #[inline]
    #[must_use]
    pub fn contains(&self, key: &R::Key) -> bool {
        self.table.find(key).is_some()
    }

    /// The oldest record of a destination and its deadline.
    ///
    /// With one time limit for all it is the one that falls due first.
    #[must_use]
    pub fn oldest(&self, destination: &R::Destination) -> Option<(&R, Option<Instant>)> {
        let slot = self.table.slot(self.table.first_of(destination)?)?;
        Some((slot.record.as_ref()?, slot.note))
    }

    /// Takes all records of a destination with their deadlines, in order.
    pub fn drain(&mut self, destination: &R::Destination) -> DrainPending<'_, R> {
        DrainPending::of(&mut self.table, destination)
    }

    /// Takes all records with their deadlines, in order.
    pub fn drain_all(&mut self) -> DrainPending<'_, R> {
        DrainPending::all(&mut self.table)
    }

    /// The records of a destination with their deadlines, in order.
    #[must_use]
    pub fn iter(&self, destination: &R::Destination) -> IterPending<'_, R> {
        IterPending::of(&self.table, destination)
    }

    /// All records with their deadlines, in order.
    #[must_use]
    pub fn iter_all(&self) -> IterPending<'_, R> {
        IterPending::all(&self.table)
    }

    /// What is left for a destination under the caps of the table and its own.
    #[must_use]
    pub fn room(&self, destination: &R::Destination) -> Room {
        self.table.room(destination)
    }

    /// How many records fit before more memory is allocated for them.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.table.capacity()
    }

    /// Gives up all memory that is not in use, in O(n).
    ///
    /// Tables do so by themselves down to about 2048 records.
    pub fn shrink_to_fit(&mut self) {
        self.table.shrink_to_fit();
    }

    /// How many records there are.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.table.used().count
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
        self.table.used().total()
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

    /// Evicts the next record that has to go.
    #[inline]
    pub(crate) fn evict(&mut self) -> Option<R> {
        let (at, _) = self.table.victim()?;
        self.table.take(at)
    }
}

impl<R: Record> fmt::Debug for AckPending<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt_as("AckPending", f)
    }
}

/// What was sent is sent: whatever a record is, the oldest goes first.
const NOTHING_GOES_FIRST: bool = false;

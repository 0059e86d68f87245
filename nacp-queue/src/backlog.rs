use std::fmt;

use crate::caps::{Caps, Room};
use crate::evictions::{Evicted, Evictions, Refusal, Refused};
use crate::iter::{Drain, Iter};
use crate::record::Record;
use crate::table::{End, Table};

/// Records that wait to be sent, in order, within exact caps (specification, section 6).
///
/// Every operation is O(1), amortised over growth and shrinking; those that move `k` records are
/// O(k). None of them allocates while the table neither grows nor shrinks.
#[derive(Clone)]
pub struct Backlog<R: Record> {
    table: Table<R, ()>,
    /// Put back in vain and not handed out yet; the first one lies last.
    unfit: Vec<(R, Evicted)>,
}

impl<R: Record> Backlog<R> {
    /// An empty backlog. Allocates nothing yet.
    #[must_use]
    pub fn new(caps: Caps) -> Self {
        Self {
            table: Table::new(caps),
            unfit: Vec::new(),
        }
    }

    /// The caps of the whole table.
    #[must_use]
    pub fn caps(&self) -> Caps {
        self.table.caps()
    }

    /// Caps one destination beside the caps of the whole table; `None` lifts them.
    ///
    /// When they are broken, only records of that destination are refused or evicted. They stay
    /// until they are lifted, also while the destination has no records.
    pub fn set_destination_caps(
        &mut self,
        destination: &R::Destination,
        caps: Option<Caps>,
    ) -> Evictions<'_, R> {
        self.table
            .set_destination_caps(destination, caps.unwrap_or_default());
        Evictions::new(self)
    }

    /// Adds a record at the tail.
    ///
    /// If it breaks a cap, droppable records are evicted, oldest first, until it fits, and if that
    /// is not enough the others, oldest first, but never the arriving one: a record larger than
    /// the cap on bytes is kept when it is alone.
    ///
    /// # Errors
    ///
    /// A droppable record that would break a cap is refused, and so is one whose key is taken.
    #[inline]
    pub fn push(&mut self, record: R) -> Result<Evictions<'_, R>, Refused<R>> {
        let droppable = record.droppable();
        if droppable && !self.table.admits(&record, droppable) {
            return Err(Refused {
                record,
                reason: Refusal::Full,
            });
        }
        match self.table.insert(End::Back, record, droppable, ()) {
            Ok(()) => Ok(Evictions::new(self)),
            Err((record, unfit)) => Err(Refused {
                record,
                reason: unfit.into(),
            }),
        }
    }

    /// Puts a run of records back at the head, the first one first.
    ///
    /// If that breaks a cap, records of the whole table are evicted as by [`push`](Self::push);
    /// none of them counts as arriving, so the oldest, also one just put back, goes first. One
    /// whose key is taken comes back as [`Duplicate`](crate::Evicted::Duplicate).
    pub fn put_back<I>(&mut self, records: I) -> Evictions<'_, R>
    where
        I: IntoIterator<Item = R>,
        I::IntoIter: DoubleEndedIterator,
    {
        for record in records.into_iter().rev() {
            let droppable = record.droppable();
            if let Err((record, why)) = self.table.insert(End::Front, record, droppable, ()) {
                self.unfit.push((record, why.into()));
            }
        }
        Evictions::new(self)
    }

    /// Takes the next record of a destination.
    #[inline]
    pub fn pop(&mut self, destination: &R::Destination) -> Option<R> {
        let at = self.table.first_of(destination)?;
        self.table.take(at)
    }

    /// The next record of a destination.
    #[inline]
    #[must_use]
    pub fn peek(&self, destination: &R::Destination) -> Option<&R> {
        self.table.record(self.table.first_of(destination)?)
    }

    /// Takes the record with this key, wherever it stands.
    #[inline]
    pub fn remove(&mut self, key: &R::Key) -> Option<R> {
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
        self.get(key).is_some()
    }

    /// Takes all records of a destination, in order.
    pub fn drain(&mut self, destination: &R::Destination) -> Drain<'_, R> {
        Drain::of(&mut self.table, destination)
    }

    /// Takes all records, in order.
    pub fn drain_all(&mut self) -> Drain<'_, R> {
        Drain::all(&mut self.table)
    }

    /// The records of a destination, in order.
    #[must_use]
    pub fn iter(&self, destination: &R::Destination) -> Iter<'_, R> {
        Iter::of(&self.table, destination)
    }

    /// All records, in order.
    #[must_use]
    pub fn iter_all(&self) -> Iter<'_, R> {
        Iter::all(&self.table)
    }

    /// Whether [`push`](Self::push) would take this record without evicting another, unless its
    /// key is taken.
    #[inline]
    #[must_use]
    pub fn has_room_for(&self, record: &R) -> bool {
        self.table.admits(record, record.droppable())
    }

    /// What is left for a destination under the caps of the table and its own.
    #[must_use]
    pub fn room(&self, destination: &R::Destination) -> Room {
        self.table.room(destination)
    }

    /// Says whether records of this destination can be sent now.
    ///
    /// A ready destination takes turns as long as it has records. It is remembered until it is said
    /// not to be ready, also while it has none.
    pub fn set_ready(&mut self, destination: &R::Destination, ready: bool) {
        self.table.set_ready(destination, ready);
    }

    /// Whether this destination was said to be ready.
    #[must_use]
    pub fn is_ready(&self, destination: &R::Destination) -> bool {
        self.table
            .destinations
            .get(destination)
            .is_some_and(|entry| entry.ready)
    }

    /// The ready destination whose turn it is, which then goes to the end of the row.
    ///
    /// A destination joins the row at its end when it is ready and gets its first record, so turns
    /// are taken in the order in which destinations had something ready. Idle ones cost nothing.
    pub fn next_ready(&mut self) -> Option<R::Destination> {
        let at = self.table.destinations.take_turn()?;
        self.table.destinations.id(at).cloned()
    }

    /// The next record of the ready destination whose turn it is.
    #[must_use]
    pub fn peek_ready(&self) -> Option<&R> {
        let at = self.table.destinations.turn()?;
        self.table.record(self.table.first_at(at)?)
    }

    /// Takes the next record of the ready destination whose turn it is, which then goes to the end
    /// of the row.
    ///
    /// ```
    /// # use nacp_queue::{Backlog, Caps, Record};
    /// # struct Letter(u32, &'static str);
    /// # impl Record for Letter {
    /// #     type Key = u32;
    /// #     type Destination = &'static str;
    /// #     fn key(&self) -> &u32 { &self.0 }
    /// #     fn destination(&self) -> &&'static str { &self.1 }
    /// #     fn bytes(&self) -> u64 { 1 }
    /// #     fn droppable(&self) -> bool { false }
    /// # }
    /// let mut backlog = Backlog::new(Caps::NONE);
    /// for letter in [Letter(1, "ann"), Letter(2, "ann"), Letter(3, "bob"), Letter(4, "eve")] {
    ///     assert!(backlog.push(letter).is_ok());
    /// }
    /// backlog.set_ready(&"ann", true);
    /// backlog.set_ready(&"bob", true);
    ///
    /// let order: Vec<u32> = std::iter::from_fn(|| backlog.pop_ready()).map(|l| l.0).collect();
    /// assert_eq!(order, [1, 3, 2]);
    /// assert_eq!(backlog.len_of(&"eve"), 1);
    /// ```
    pub fn pop_ready(&mut self) -> Option<R> {
        let at = self.table.destinations.take_turn()?;
        let first = self.table.first_at(at)?;
        self.table.take(first)
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
        self.unfit.shrink_to_fit();
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
    pub(crate) fn evict(&mut self) -> Option<(R, Evicted)> {
        if let Some(unfit) = self.unfit.pop() {
            return Some(unfit);
        }
        let (at, why) = self.table.victim()?;
        Some((self.table.take(at)?, why))
    }
}

impl<R: Record> fmt::Debug for Backlog<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.table.fmt_as("Backlog", f)
    }
}

use super::{End, Table};
use crate::list::{List, NONE};
use crate::record::Record;
use crate::slot::{Slot, WHOLE, first};

/// How the slab grows, and how it gives memory back.
impl<R: Record, N: Copy + Default> Table<R, N> {
    pub(crate) fn capacity(&self) -> usize {
        self.slots.capacity()
    }

    /// Gives up all memory that is not in use.
    pub(crate) fn shrink_to_fit(&mut self) {
        self.compact(self.used.count);
    }

    /// Gives up memory when less than a quarter of it is in use. Moving the records is paid for by
    /// the removals that led there.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        if self.is_sparse() {
            self.compact(self.used.count * 2);
        }
    }

    /// Adds a free slot, if there is an index for it. Doubles the memory, but stops at what the
    /// caps let the table hold and the one that arrives; only records put back may need more.
    #[cold]
    pub(super) fn grow(&mut self) {
        let len = self.slots.len();
        if len == self.slots.capacity() {
            let double = len.max(4);
            let more = match self.caps.count().saturating_add(1).saturating_sub(len) {
                0 => double,
                most => double.min(most),
            };
            self.slots.reserve_exact(more);
        }
        self.free = len.try_into().unwrap_or(NONE);
        if self.free != NONE {
            self.slots.push(Slot::vacant());
        }
    }

    /// Takes the record out of a slot that is free already, as the last thing, so that it is copied
    /// once, and gives up memory if there is too much.
    #[inline]
    pub(super) fn extract(&mut self, at: u32) -> Option<R> {
        if self.is_sparse() {
            return self.extract_and_compact(at);
        }
        self.slots[at as usize].record.take()
    }

    #[cold]
    fn extract_and_compact(&mut self, at: u32) -> Option<R> {
        let record = self.slots[at as usize].record.take();
        self.compact(self.used.count * 2);
        record
    }

    #[inline]
    fn is_sparse(&self) -> bool {
        let capacity = self.slots.capacity();
        let has_few_records = capacity > KEPT_SLOTS && self.used.count < capacity / 4;
        let has_few_destinations = || {
            let held = self.destinations.sparse();
            held.is_some_and(|held| self.used.count <= held)
        };
        has_few_records || has_few_destinations()
    }

    /// Moves all records, in order, to a new slab of `capacity`, and renumbers the destinations.
    #[cold]
    fn compact(&mut self, capacity: usize) {
        let moved = self.destinations.compact();
        let mut old = std::mem::replace(&mut self.slots, Vec::with_capacity(capacity));
        let mut heads = self.lists.map(|list| list.head);
        self.free = NONE;
        self.lists = [List::EMPTY; 2];
        self.crowded
            .iter_mut()
            .for_each(|at| *at = moved[*at as usize]);
        self.crowded.retain(|&at| at != NONE);
        self.index.reset(capacity);
        for &at in moved.iter().filter(|&&at| at != NONE) {
            self.destinations[at].lists = [List::EMPTY; 2];
        }
        loop {
            let at = first(&old, heads);
            let Some(slot) = old.get_mut(at as usize) else {
                break;
            };
            heads[slot.rank.class()] = slot.links[WHOLE].next;
            let destination = moved[slot.destination as usize];
            let record = slot.record.take();
            self.place(Slot {
                destination,
                record,
                ..*slot
            });
        }
    }

    /// Puts a slot that was moved where it belongs now.
    fn place(&mut self, slot: Slot<R, N>) {
        let at = self.slots.len() as u32;
        let hash = slot
            .record
            .as_ref()
            .and_then(|record| self.index.insert(&self.slots, record.key(), at));
        self.slots.push(Slot {
            hash: hash.unwrap_or_default(),
            ..slot
        });
        self.thread(End::Back, at);
    }
}

/// Slots that a table keeps however few records it holds, so that bursts of the usual size do not
/// make it grow and shrink all the time.
const KEPT_SLOTS: usize = 2048;

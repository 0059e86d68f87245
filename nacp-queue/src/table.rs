mod memory;

use std::fmt;

use crate::caps::{Caps, Room, Usage};
use crate::destinations::Destinations;
use crate::evictions::Evicted;
use crate::key_index::KeyIndex;
use crate::list::{List, NONE};
use crate::record::Record;
use crate::slot::{Classes, OWN, Rank, Slot, WHOLE, first, last};

/// Which end of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// What backlog and ack-pending have in common: the slab, its lists, its index and its books.
#[derive(Clone)]
pub(crate) struct Table<R: Record, N> {
    slots: Vec<Slot<R, N>>,
    free: u32,
    caps: Caps,
    used: Usage,
    lists: Classes,
    /// The orders of the first and of the next last record.
    span: (i64, i64),
    index: KeyIndex,
    pub(crate) destinations: Destinations<R::Destination>,
    /// Destinations that may hold more than their own caps.
    crowded: Vec<u32>,
}

/// Why a record could not be inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    KeyTaken,
    NoIndexLeft,
}

impl<R: Record, N: Copy + Default> Table<R, N> {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            caps,
            used: Usage::default(),
            lists: [List::EMPTY; 2],
            span: (0, 0),
            index: KeyIndex::default(),
            destinations: Destinations::new(),
            crowded: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn find(&self, key: &R::Key) -> Option<u32> {
        self.index.find(&self.slots, key)
    }

    #[inline]
    pub(crate) fn slot(&self, at: u32) -> Option<&Slot<R, N>> {
        self.slots.get(at as usize)
    }

    #[inline]
    pub(crate) fn record(&self, at: u32) -> Option<&R> {
        self.slot(at)?.record.as_ref()
    }

    pub(crate) fn slots(&self) -> &[Slot<R, N>] {
        &self.slots
    }

    pub(crate) fn lists(&self) -> Classes {
        self.lists
    }

    /// The first record of a destination.
    #[inline]
    pub(crate) fn first_of(&self, id: &R::Destination) -> Option<u32> {
        self.first_at(self.destinations.find(id)?)
    }

    /// The first record of the destination at `destination`.
    #[inline]
    pub(crate) fn first_at(&self, destination: u32) -> Option<u32> {
        self.at_end(self.destinations[destination].lists, End::Front)
    }

    /// The record at one end of these lists.
    #[inline]
    pub(crate) fn at_end(&self, [kept, droppable]: Classes, end: End) -> Option<u32> {
        let at = match end {
            End::Front => first(&self.slots, [kept.head, droppable.head]),
            End::Back => last(&self.slots, [kept.tail, droppable.tail]),
        };
        Some(at).filter(|&at| at != NONE)
    }

    /// Adds a record at one end, whatever the caps say.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        end: End,
        record: R,
        droppable: bool,
        note: N,
    ) -> Result<(), (R, Unfit)> {
        let bytes = record.bytes();
        let Some(at) = self.free_slot() else {
            return Err((record, Unfit::NoIndexLeft));
        };
        let Some(hash) = self.index.insert(&self.slots, record.key(), at) else {
            return Err((record, Unfit::KeyTaken));
        };
        let destination = self.destinations.find_or_insert(record.destination());
        let rank = self.next_rank(end, droppable);
        // Field by field, so that the record is copied once.
        let slot = &mut self.slots[at as usize];
        self.free = slot.links[WHOLE].next;
        slot.destination = destination;
        slot.hash = hash;
        slot.rank = rank;
        slot.bytes = bytes;
        slot.note = note;
        slot.record = Some(record);
        self.thread(end, at);
        self.count(destination, bytes);
        Ok(())
    }

    /// Takes the record at `at` out of everything.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> Option<R> {
        self.unindex(at)?;
        self.unlink(at);
        self.extract(at)
    }

    /// Takes the record with this key out of everything.
    #[inline]
    pub(crate) fn take_by_key(&mut self, key: &R::Key) -> Option<R> {
        let at = self.index.take(&self.slots, key)?;
        self.unlink(at);
        self.extract(at)
    }

    /// Takes the record at `at` out of everything, but moves nothing: places stay valid until
    /// [`tidy`](Self::tidy).
    #[inline]
    pub(crate) fn take_in_place(&mut self, at: u32) -> Option<R> {
        self.unindex(at)?;
        self.unlink(at);
        self.slots[at as usize].record.take()
    }

    /// The record that has to go next, if anything is above its caps: droppable ones first, oldest
    /// first.
    #[inline]
    pub(crate) fn victim(&mut self) -> Option<(u32, Evicted)> {
        while let Some(&at) = self.crowded.last() {
            let entry = &self.destinations[at];
            if !entry.caps.hold(entry.used) {
                return Some(choose(entry.lists));
            }
            self.crowded.pop();
        }
        if self.caps.hold(self.used) {
            return None;
        }
        Some(choose(self.lists))
    }

    pub(crate) fn caps(&self) -> Caps {
        self.caps
    }

    #[inline]
    pub(crate) fn used(&self) -> Usage {
        self.used
    }

    pub(crate) fn used_by(&self, id: &R::Destination) -> Usage {
        self.destinations
            .get(id)
            .map(|entry| entry.used)
            .unwrap_or_default()
    }

    /// What a destination may still take without eviction.
    pub(crate) fn room(&self, id: &R::Destination) -> Room {
        let whole = self.caps.room(self.used);
        let Some(entry) = self.destinations.get(id) else {
            return whole;
        };
        let own = entry.caps.room(entry.used);
        Room {
            count: whole.count.min(own.count),
            bytes: whole.bytes.min(own.bytes),
        }
    }

    /// Whether this record would be kept and none evicted.
    #[inline]
    pub(crate) fn admits(&self, record: &R, droppable: bool) -> bool {
        let bytes = record.bytes();
        self.caps.admit(self.used, bytes, droppable)
            && self
                .destinations
                .get(record.destination())
                .is_none_or(|entry| entry.caps.admit(entry.used, bytes, droppable))
    }

    pub(crate) fn set_destination_caps(&mut self, id: &R::Destination, caps: Caps) {
        let at = self.destinations.find_or_insert(id);
        let entry = &mut self.destinations[at];
        entry.caps = caps;
        if !caps.hold(entry.used) {
            self.crowded.push(at);
        }
        self.destinations.settle(at);
        self.tidy();
    }

    pub(crate) fn set_ready(&mut self, id: &R::Destination, ready: bool) {
        let at = self.destinations.find_or_insert(id);
        self.destinations[at].ready = ready;
        self.destinations.settle(at);
        self.tidy();
    }

    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("len", &self.used.count)
            .field("bytes", &self.used.bytes)
            .field("caps", &self.caps)
            .finish_non_exhaustive()
    }

    #[inline]
    fn next_rank(&mut self, end: End, droppable: bool) -> Rank {
        let (first, next) = &mut self.span;
        let order = match end {
            End::Front => {
                *first -= 1;
                *first
            }
            End::Back => {
                *next += 1;
                *next - 1
            }
        };
        Rank::new(order, droppable)
    }

    /// The first free slot, which stays free.
    #[inline]
    fn free_slot(&mut self) -> Option<u32> {
        if self.free == NONE {
            self.grow();
        }
        Some(self.free).filter(|&at| at != NONE)
    }

    #[inline]
    fn thread(&mut self, end: End, at: u32) {
        let slot = &self.slots[at as usize];
        let class = slot.rank.class();
        let own = &mut self.destinations[slot.destination].lists[class];
        let whole = &mut self.lists[class];
        match end {
            End::Back => {
                whole.push_back(&mut self.slots, WHOLE, at);
                own.push_back(&mut self.slots, OWN, at);
            }
            End::Front => {
                whole.push_front(&mut self.slots, WHOLE, at);
                own.push_front(&mut self.slots, OWN, at);
            }
        }
    }

    #[inline]
    fn count(&mut self, destination: u32, bytes: u64) {
        self.used.add(bytes);
        let entry = &mut self.destinations[destination];
        entry.used.add(bytes);
        if !entry.caps.hold(entry.used) && self.crowded.last() != Some(&destination) {
            self.crowded.push(destination);
        }
        self.destinations.settle(destination);
    }

    #[inline]
    fn unindex(&mut self, at: u32) -> Option<()> {
        let slot = self.slots.get(at as usize)?;
        let key = slot.record.as_ref()?.key();
        self.index.remove::<R>(key, slot.hash, at);
        Some(())
    }

    /// Takes the slot at `at` out of the lists and the books, and frees it.
    #[inline]
    fn unlink(&mut self, at: u32) {
        let slot = &self.slots[at as usize];
        let (bytes, destination, class) = (slot.bytes, slot.destination, slot.rank.class());
        self.lists[class].unlink(&mut self.slots, WHOLE, at);
        self.used.subtract(bytes);
        let entry = &mut self.destinations[destination];
        entry.lists[class].unlink(&mut self.slots, OWN, at);
        entry.used.subtract(bytes);
        self.slots[at as usize].links[WHOLE].next = self.free;
        self.free = at;
        self.destinations.settle(destination);
    }
}

/// The record that goes first.
#[inline]
fn choose([kept, droppable]: Classes) -> (u32, Evicted) {
    match droppable.head {
        NONE => (kept.head, Evicted::Oldest),
        at => (at, Evicted::Droppable),
    }
}

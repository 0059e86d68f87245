use std::fmt;

use crate::caps::{Caps, Room, Usage};
use crate::destinations::Destinations;
use crate::evictions::Evicted;
use crate::key_index::KeyIndex;
use crate::list::{Link, List, NONE};
use crate::record::Record;
use crate::slot::{Classes, OWN, Slot, WHOLE, earlier, later};

/// Slots that a table keeps however few records it holds.
const KEPT_SLOTS: usize = 1024;

/// Which end of the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Front,
    Back,
}

/// The slab, its lists and its index: what backlog and ack-pending have in common.
///
/// Records lie on two lists by class (droppable or not), and on two more of their destination. The
/// order of a whole is the merge of both classes by rank.
#[derive(Clone)]
pub(crate) struct Table<R: Record> {
    slots: Vec<Slot<R>>,
    free: u32,
    pub(crate) used: Usage,
    pub(crate) caps: Caps,
    lists: Classes,
    first_rank: i64,
    next_rank: i64,
    index: KeyIndex,
    pub(crate) destinations: Destinations<R::Destination>,
    /// Destinations that may hold more than their own caps.
    crowded: Vec<u32>,
}

impl<R: Record> Table<R> {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            slots: Vec::new(),
            free: NONE,
            used: Usage::default(),
            caps,
            lists: [List::EMPTY; 2],
            first_rank: 0,
            next_rank: 0,
            index: KeyIndex::default(),
            destinations: Destinations::new(),
            crowded: Vec::new(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, key: &R::Key) -> Option<&R> {
        let at = self.index.find(&self.slots, key)?;
        self.record(at)
    }

    #[inline]
    pub(crate) fn remove(&mut self, key: &R::Key) -> Option<R> {
        let at = self.index.find(&self.slots, key)?;
        self.take(at)
    }

    /// Adds a record at one end, whatever the caps say.
    #[inline]
    pub(crate) fn insert(&mut self, end: End, record: R) -> Result<(), R> {
        let at = match self.free {
            NONE => self.slots.len() as u32,
            at => at,
        };
        let Ok(hash) = self.index.insert(&self.slots, record.key(), at) else {
            return Err(record);
        };
        let bytes = record.bytes();
        let destination = self.destinations.find_or_insert(record.destination());
        let rank = self.rank(end, record.droppable());
        self.occupy(
            at,
            Slot {
                links: [Link::ALONE; 2],
                destination,
                hash,
                rank,
                bytes,
                record: Some(record),
            },
        );
        self.thread(end, at);
        self.count(destination, bytes);
        Ok(())
    }

    /// The first record of a destination.
    #[inline]
    pub(crate) fn first_of(&self, id: &R::Destination) -> Option<u32> {
        self.first_at(self.destinations.find(id)?)
    }

    /// The first record of the destination at `at`.
    #[inline]
    pub(crate) fn first_at(&self, at: u32) -> Option<u32> {
        self.end_of(&self.destinations.at(at).lists, End::Front)
    }

    /// The node at one end of a merged order.
    #[inline]
    pub(crate) fn end_of(&self, lists: &Classes, end: End) -> Option<u32> {
        let at = match end {
            End::Front => earlier(&self.slots, lists[0].head, lists[1].head),
            End::Back => later(&self.slots, lists[0].tail, lists[1].tail),
        };
        Some(at).filter(|&at| at != NONE)
    }

    #[inline]
    pub(crate) fn record(&self, at: u32) -> Option<&R> {
        self.slots[at as usize].record.as_ref()
    }

    pub(crate) fn slots(&self) -> &[Slot<R>] {
        &self.slots
    }

    /// Takes the record at `at` out of everything.
    #[inline]
    pub(crate) fn take(&mut self, at: u32) -> Option<R> {
        let slot = &mut self.slots[at as usize];
        let record = slot.record.take()?;
        let (hash, bytes, destination, class) =
            (slot.hash, slot.bytes, slot.destination, slot.class());
        self.index.remove::<R>(record.key(), hash, at);
        self.lists[class].unlink(&mut self.slots, WHOLE, at);
        let entry = self.destinations.at_mut(destination);
        entry.lists[class].unlink(&mut self.slots, OWN, at);
        entry.used.count -= 1;
        entry.used.bytes -= u128::from(bytes);
        self.used.count -= 1;
        self.used.bytes -= u128::from(bytes);
        self.slots[at as usize].links[WHOLE].next = self.free;
        self.free = at;
        self.destinations.settle(destination);
        self.give_back_memory();
        Some(record)
    }

    /// Evicts one record if anything is above its caps: droppable ones first, oldest first.
    #[inline]
    pub(crate) fn shed(&mut self) -> Option<(R, Evicted)> {
        while let Some(&at) = self.crowded.last() {
            let entry = self.destinations.at(at);
            if !entry.caps.hold(entry.used) {
                return self.evict(entry.lists);
            }
            self.crowded.pop();
        }
        if self.caps.hold(self.used) {
            return None;
        }
        self.evict(self.lists)
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

    /// Whether a record of this size would be kept without eviction.
    pub(crate) fn fits(&self, record: &R) -> bool {
        let (bytes, droppable) = (record.bytes(), record.droppable());
        self.caps.admit(self.used, bytes, droppable)
            && self
                .destinations
                .get(record.destination())
                .is_none_or(|entry| entry.caps.admit(entry.used, bytes, droppable))
    }

    pub(crate) fn set_caps(&mut self, id: &R::Destination, caps: Caps) {
        let at = self.destinations.find_or_insert(id);
        let entry = self.destinations.at_mut(at);
        entry.caps = caps;
        if !caps.hold(entry.used) {
            self.crowded.push(at);
        }
        self.destinations.settle(at);
    }

    pub(crate) fn set_ready(&mut self, id: &R::Destination, ready: bool) {
        let at = self.destinations.find_or_insert(id);
        self.destinations.at_mut(at).ready = ready;
        self.destinations.settle(at);
    }

    pub(crate) fn used_by(&self, id: &R::Destination) -> Usage {
        self.destinations
            .get(id)
            .map(|entry| entry.used)
            .unwrap_or_default()
    }

    pub(crate) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("len", &self.used.count)
            .field("bytes", &self.used.bytes)
            .field("caps", &self.caps)
            .finish_non_exhaustive()
    }

    fn evict(&mut self, lists: Classes) -> Option<(R, Evicted)> {
        let (at, why) = match lists[1].head {
            NONE => (lists[0].head, Evicted::Oldest),
            at => (at, Evicted::Droppable),
        };
        self.take(at).map(|record| (record, why))
    }

    #[inline]
    fn rank(&mut self, end: End, droppable: bool) -> i64 {
        let order = match end {
            End::Back => {
                self.next_rank += 2;
                self.next_rank - 2
            }
            End::Front => {
                self.first_rank -= 2;
                self.first_rank
            }
        };
        order | i64::from(droppable)
    }

    #[inline]
    fn occupy(&mut self, at: u32, slot: Slot<R>) {
        if at == self.free {
            self.free = self.slots[at as usize].links[WHOLE].next;
            self.slots[at as usize] = slot;
        } else {
            self.slots.push(slot);
        }
    }

    #[inline]
    fn thread(&mut self, end: End, at: u32) {
        let slot = &self.slots[at as usize];
        let class = slot.class();
        let own = &mut self.destinations.at_mut(slot.destination).lists[class];
        match end {
            End::Back => {
                self.lists[class].push_back(&mut self.slots, WHOLE, at);
                own.push_back(&mut self.slots, OWN, at);
            }
            End::Front => {
                self.lists[class].push_front(&mut self.slots, WHOLE, at);
                own.push_front(&mut self.slots, OWN, at);
            }
        }
    }

    #[inline]
    fn count(&mut self, destination: u32, bytes: u64) {
        self.used.count += 1;
        self.used.bytes += u128::from(bytes);
        let entry = self.destinations.at_mut(destination);
        entry.used.count += 1;
        entry.used.bytes += u128::from(bytes);
        if !entry.caps.hold(entry.used) {
            self.crowded.push(destination);
        }
        self.destinations.settle(destination);
    }

    fn give_back_memory(&mut self) {}
}

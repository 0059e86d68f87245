use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use crate::hash_index::HashIndex;
use crate::list::NONE;
use crate::record::Record;
use crate::slot::{IN_RING, Slot};

/// Finds records by key: in a ring addressed by the key's sequence number, else by hash.
///
/// A place in the ring holds one record; a second one whose number falls there goes to the hash
/// table. So the size of the ring follows how many records are in it, whatever their numbers are.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyIndex {
    /// A power of two of places, or none.
    ring: Vec<u32>,
    in_ring: usize,
    hashed: HashIndex,
    hasher: DefaultHashBuilder,
}

impl KeyIndex {
    #[inline]
    pub(crate) fn find<R: Record, N>(&self, slots: &[Slot<R, N>], key: &R::Key) -> Option<u32> {
        if let Some(sequence) = R::sequence(key)
            && let Some(at) = self.find_in_ring(slots, key, self.place(sequence))
        {
            return Some(at);
        }
        self.find_hashed(slots, key)
    }

    /// Adds `key` for the record that is about to lie at `at`. Returns the hash to keep with it, or
    /// nothing if the key is taken.
    #[inline]
    pub(crate) fn insert<R: Record, N>(
        &mut self,
        slots: &[Slot<R, N>],
        key: &R::Key,
        at: u32,
    ) -> Option<u32> {
        let Some(sequence) = R::sequence(key) else {
            return self.insert_hashed(slots, key, at);
        };
        if (self.in_ring + 1) * 2 > self.ring.len() {
            self.grow_ring(slots);
        }
        let place = self.place(sequence);
        if self.ring[place] != NONE {
            let taken = self.find_in_ring(slots, key, place).is_some();
            return if taken {
                None
            } else {
                self.insert_hashed(slots, key, at)
            };
        }
        if self.find_hashed(slots, key).is_some() {
            return None;
        }
        self.ring[place] = at;
        self.in_ring += 1;
        Some(IN_RING)
    }

    /// Removes `key`. Returns where its record lies.
    #[inline]
    pub(crate) fn take<R: Record, N>(&mut self, slots: &[Slot<R, N>], key: &R::Key) -> Option<u32> {
        if let Some(sequence) = R::sequence(key) {
            let place = self.place(sequence);
            if let Some(at) = self.find_in_ring(slots, key, place) {
                self.clear(place);
                return Some(at);
            }
        }
        if self.hashed.is_empty() {
            return None;
        }
        self.hashed
            .remove(self.hash(key), |at| slots[at as usize].has_key(key))
    }

    /// Removes the record at `at`, whose key was inserted with `hash`.
    #[inline]
    pub(crate) fn remove<R: Record>(&mut self, key: &R::Key, hash: u32, at: u32) {
        if let Some(sequence) = R::sequence(key) {
            let place = self.place(sequence);
            if self.ring.get(place) == Some(&at) {
                self.clear(place);
                return;
            }
        }
        self.hashed.remove(hash, |there| there == at);
    }

    /// Forgets everything and keeps memory for `capacity` records.
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.in_ring = 0;
        if self.ring.is_empty() {
            self.hashed.reset(capacity);
        } else {
            self.ring = vec![NONE; ring_len(capacity)];
            self.hashed.reset(0);
        }
    }

    #[inline]
    fn find_in_ring<R: Record, N>(
        &self,
        slots: &[Slot<R, N>],
        key: &R::Key,
        place: usize,
    ) -> Option<u32> {
        let at = *self.ring.get(place)?;
        slots
            .get(at as usize)
            .filter(|slot| slot.has_key(key))
            .map(|_| at)
    }

    #[inline]
    fn find_hashed<R: Record, N>(&self, slots: &[Slot<R, N>], key: &R::Key) -> Option<u32> {
        if self.hashed.is_empty() {
            return None;
        }
        self.hashed
            .find(self.hash(key), |at| slots[at as usize].has_key(key))
    }

    #[inline]
    fn insert_hashed<R: Record, N>(
        &mut self,
        slots: &[Slot<R, N>],
        key: &R::Key,
        at: u32,
    ) -> Option<u32> {
        let hash = self.hash(key);
        let is_it = |there: u32| slots[there as usize].has_key(key);
        self.hashed.insert(hash, at, slots, is_it).then_some(hash)
    }

    /// Keeps at least half of the ring free.
    #[cold]
    fn grow_ring<R: Record, N>(&mut self, slots: &[Slot<R, N>]) {
        let len = ring_len(self.in_ring + 1);
        let old = std::mem::replace(&mut self.ring, vec![NONE; len]);
        self.in_ring = 0;
        // Numbers that differ in the smaller ring differ in the larger one.
        for at in old.into_iter().filter(|&at| at != NONE) {
            if let Some(sequence) = slots[at as usize].sequence() {
                let place = self.place(sequence);
                self.ring[place] = at;
                self.in_ring += 1;
            }
        }
    }

    #[inline]
    fn clear(&mut self, place: usize) {
        self.ring[place] = NONE;
        self.in_ring -= 1;
    }

    #[inline]
    fn place(&self, sequence: u64) -> usize {
        sequence as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    fn hash<K: Hash>(&self, key: &K) -> u32 {
        (self.hasher.hash_one(key) as u32).max(IN_RING + 1)
    }
}

/// The smallest power of two with room for twice `records`.
fn ring_len(records: usize) -> usize {
    records.saturating_mul(2).next_power_of_two().max(16)
}

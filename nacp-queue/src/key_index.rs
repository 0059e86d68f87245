use std::hash::BuildHasher;

use hashbrown::DefaultHashBuilder;

use crate::hash_index::HashIndex;
use crate::list::NONE;
use crate::record::Record;
use crate::slot::Slot;

/// Finds records by key: in a ring addressed by the key's sequence number, else by hash.
///
/// A ring place holds one record; a second one whose number falls there goes to the hash table. So
/// the size of the ring follows the number of records in it, whatever their numbers are.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyIndex {
    ring: Vec<u32>,
    in_ring: usize,
    hashed: HashIndex,
    hasher: DefaultHashBuilder,
}

/// The key is taken.
#[derive(Debug)]
pub(crate) struct Taken;

impl KeyIndex {
    #[inline]
    pub(crate) fn find<R: Record>(&self, slots: &[Slot<R>], key: &R::Key) -> Option<u32> {
        if let Some(sequence) = R::sequence(key) {
            let at = self.ring.get(self.place(sequence)).copied().unwrap_or(NONE);
            if at != NONE && slots[at as usize].has_key(key) {
                return Some(at);
            }
        }
        if self.hashed.is_empty() {
            return None;
        }
        self.hashed
            .find(self.hash(key), |at| slots[at as usize].has_key(key))
    }

    /// Adds `key` for the record that is about to lie at `at`. Returns the hash to keep with it.
    #[inline]
    pub(crate) fn insert<R: Record>(
        &mut self,
        slots: &[Slot<R>],
        key: &R::Key,
        at: u32,
    ) -> Result<u32, Taken> {
        let Some(sequence) = R::sequence(key) else {
            return self.insert_hashed(slots, key, at);
        };
        self.grow_ring(slots);
        let place = self.place(sequence);
        let there = self.ring[place];
        if there != NONE {
            if slots[there as usize].has_key(key) {
                return Err(Taken);
            }
            return self.insert_hashed(slots, key, at);
        }
        if !self.hashed.is_empty() && self.find(slots, key).is_some() {
            return Err(Taken);
        }
        self.ring[place] = at;
        self.in_ring += 1;
        Ok(0)
    }

    /// Removes the record at `at`, whose key was inserted with `hash`.
    #[inline]
    pub(crate) fn remove<R: Record>(&mut self, key: &R::Key, hash: u32, at: u32) {
        if let Some(sequence) = R::sequence(key) {
            let place = self.place(sequence);
            if self.ring.get(place) == Some(&at) {
                self.ring[place] = NONE;
                self.in_ring -= 1;
                return;
            }
        }
        self.hashed.remove(hash, at);
    }

    /// Forgets everything and keeps memory for `capacity` records.
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.in_ring = 0;
        if !self.ring.is_empty() {
            self.ring = vec![NONE; ring_len(capacity)];
        }
        self.hashed
            .reset(if self.ring.is_empty() { capacity } else { 0 });
    }

    fn insert_hashed<R: Record>(
        &mut self,
        slots: &[Slot<R>],
        key: &R::Key,
        at: u32,
    ) -> Result<u32, Taken> {
        let hash = self.hash(key);
        if self
            .hashed
            .find(hash, |at| slots[at as usize].has_key(key))
            .is_some()
        {
            return Err(Taken);
        }
        self.hashed.insert(hash, at);
        Ok(hash)
    }

    /// Keeps at least half of the ring free.
    #[inline]
    fn grow_ring<R: Record>(&mut self, slots: &[Slot<R>]) {
        if (self.in_ring + 1) * 2 <= self.ring.len() {
            return;
        }
        let len = ring_len(self.in_ring + 1);
        let old = std::mem::replace(&mut self.ring, vec![NONE; len]);
        // Numbers that differ in the smaller ring differ in the larger one.
        for at in old.into_iter().filter(|&at| at != NONE) {
            if let Some(sequence) = slots[at as usize].sequence() {
                let place = self.place(sequence);
                self.ring[place] = at;
            }
        }
    }

    #[inline]
    fn place(&self, sequence: u64) -> usize {
        sequence as usize & self.ring.len().wrapping_sub(1)
    }

    #[inline]
    fn hash<K: std::hash::Hash>(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }
}

/// The smallest power of two with room for twice `records`.
fn ring_len(records: usize) -> usize {
    records.saturating_mul(2).next_power_of_two().max(16)
}

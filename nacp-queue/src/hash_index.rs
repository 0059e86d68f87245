use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// What an index leads to: entries at numbered places that remember their hash.
pub(crate) trait Hashed {
    /// The hash of the entry at `at`.
    fn hash_at(&self, at: u32) -> u32;

    /// The places of all entries that are in the index.
    fn places(&self) -> impl Iterator<Item = u32>;
}

/// Finds places by the hash of what lies there.
///
/// A removal may leave a mark in the table that makes later probes longer. When records come and go
/// in turn the marks spread and double the cost of every operation long before the table would
/// sweep them out by itself, so this sweeps earlier. At a steady size that allocates nothing.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashIndex {
    /// At most half full.
    table: HashTable<u32>,
    /// So many entries fit without more memory.
    capacity: usize,
}

impl HashIndex {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// The place with this hash that `is_it` recognises.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(spread(hash), |&at| is_it(at)).copied()
    }

    /// Adds the place `at`, where there is no entry yet, unless there is one with this hash that
    /// `is_it` recognises. Returns whether it was added.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        at: u32,
        entries: &(impl Hashed + ?Sized),
        mut is_it: impl FnMut(u32) -> bool,
    ) -> bool {
        if self.table.len() == self.capacity || self.marks() > self.capacity / 8 {
            self.rebuild(entries);
        }
        let hash_at = |&at: &u32| spread(entries.hash_at(at));
        match self.table.entry(spread(hash), |&at| is_it(at), hash_at) {
            Entry::Occupied(_) => false,
            Entry::Vacant(vacant) => {
                vacant.insert(at);
                true
            }
        }
    }

    /// Removes the place with this hash that `is_it` recognises.
    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        let entry = self.table.find_entry(spread(hash), |&at| is_it(at)).ok()?;
        Some(entry.remove().0)
    }

    /// Forgets everything and keeps memory for `capacity` entries.
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.table = HashTable::with_capacity(capacity.saturating_mul(2));
        self.capacity = self.table.capacity() / 2;
    }

    /// Removed entries that left a mark.
    #[inline]
    fn marks(&self) -> usize {
        (self.capacity * 2).saturating_sub(self.table.capacity())
    }

    /// Sweeps out the marks, and doubles the memory if it is full.
    #[cold]
    fn rebuild(&mut self, entries: &(impl Hashed + ?Sized)) {
        if self.table.len() == self.capacity {
            self.reset(self.capacity + 1);
        } else {
            self.table.clear();
        }
        for at in entries.places() {
            let hash_at = |&at: &u32| spread(entries.hash_at(at));
            self.table.insert_unique(hash_at(&at), at, hash_at);
        }
    }
}

/// Puts the bits where hashbrown looks for them: at both ends.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::{HashIndex, Hashed};

    /// Entries that came in turn; the last `live` of them are in the index.
    struct Turns {
        next: u32,
        live: u32,
    }

    impl Hashed for Turns {
        fn hash_at(&self, at: u32) -> u32 {
            // The finaliser of murmur3.
            let n = (at ^ at >> 16).wrapping_mul(0x85EB_CA6B);
            let n = (n ^ n >> 13).wrapping_mul(0xC2B2_AE35);
            n ^ n >> 16
        }

        fn places(&self) -> impl Iterator<Item = u32> {
            self.next.saturating_sub(self.live)..self.next
        }
    }

    #[test]
    fn marks_of_removed_entries_are_swept_before_they_spread() {
        let mut index = HashIndex::default();
        let mut turns = Turns {
            next: 0,
            live: 1_000,
        };
        let mut most_marks = 0;
        for _ in 0..1_000_000 {
            let at = turns.next;
            assert!(index.insert(turns.hash_at(at), at, &turns, |there| there == at));
            turns.next += 1;
            if let Some(oldest) = at.checked_sub(turns.live) {
                let removed = index.remove(turns.hash_at(oldest), |there| there == oldest);
                assert_eq!(removed, Some(oldest));
            }
            most_marks = most_marks.max(index.marks());
        }
        assert_eq!((index.len(), index.capacity), (1_000, 1_792));
        assert_eq!(
            most_marks,
            1_792 / 8 + 1,
            "they came up to the limit and no further"
        );
        let found = |at: u32| index.find(turns.hash_at(at), |there| there == at).is_some();
        assert!(turns.places().all(found) && !found(turns.next));
    }
}

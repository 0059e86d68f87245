use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// Finds slab indices by the hash of what lies there.
///
/// The table is kept at most half full, so that it can sweep out the marks of removed entries in
/// place: at a steady size it never allocates.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashIndex {
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

    /// The index with this hash that `is_it` recognises.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table.find(spread(hash), |&at| is_it(at)).copied()
    }

    /// Adds `at`, unless there is an index with this hash that `is_it` recognises. Returns whether
    /// it was added. `hash_of` tells the hash of any index that is there.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        hash: u32,
        at: u32,
        mut is_it: impl FnMut(u32) -> bool,
        hash_of: impl Fn(u32) -> u32,
    ) -> bool {
        if self.table.len() == self.capacity {
            self.grow(&hash_of);
        }
        match self
            .table
            .entry(spread(hash), |&at| is_it(at), |&at| spread(hash_of(at)))
        {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(at);
                true
            }
        }
    }

    /// Removes the index with this hash that `is_it` recognises.
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

    #[cold]
    fn grow(&mut self, hash_of: impl Fn(u32) -> u32) {
        let more = self.table.len() + 2;
        self.table.reserve(more, |&at| spread(hash_of(at)));
        self.capacity = self.table.capacity() / 2;
    }
}

/// Puts the bits where hashbrown looks for them: at both ends.
#[inline]
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

use hashbrown::HashTable;

/// Finds slab indices by the hash of what lies there.
///
/// Entries carry their hash, so neither growing nor removing hashes a key again.
#[derive(Clone, Debug, Default)]
pub(crate) struct HashIndex {
    table: HashTable<(u32, u32)>,
}

/// Spreads 32 bits so that hashbrown finds different ones at both ends.
fn spread(hash: u32) -> u64 {
    u64::from(hash) << 32 | u64::from(hash)
}

impl HashIndex {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// The index with this hash that `is_it` recognises.
    #[inline]
    pub(crate) fn find(&self, hash: u32, mut is_it: impl FnMut(u32) -> bool) -> Option<u32> {
        self.table
            .find(spread(hash), |&(stored, at)| stored == hash && is_it(at))
            .map(|&(_, at)| at)
    }

    /// Adds `at`, which must not be there yet.
    #[inline]
    pub(crate) fn insert(&mut self, hash: u32, at: u32) {
        self.table
            .insert_unique(spread(hash), (hash, at), |&(stored, _)| spread(stored));
    }

    #[inline]
    pub(crate) fn remove(&mut self, hash: u32, at: u32) -> bool {
        match self
            .table
            .find_entry(spread(hash), |&(_, stored)| stored == at)
        {
            Ok(entry) => {
                entry.remove();
                true
            }
            Err(_) => false,
        }
    }

    /// Forgets everything and keeps memory for `capacity` entries.
    pub(crate) fn reset(&mut self, capacity: usize) {
        self.table = HashTable::with_capacity(capacity);
    }
}

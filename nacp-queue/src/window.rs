use crate::hash_index::{HashIndex, Hashed};

/// The last keys of one source.
///
/// A ring with one place more than keys: a new key has its place before the oldest gives up its
/// own, so both are never confused in the index.
#[derive(Clone, Debug)]
pub(crate) struct Window<K> {
    /// Each key with its hash.
    ring: Vec<Option<(u32, K)>>,
    /// Where the next key goes; behind it lies the oldest.
    next: usize,
    index: HashIndex,
    forgotten: u64,
}

impl<K> Default for Window<K> {
    fn default() -> Self {
        Self {
            ring: Vec::new(),
            next: 0,
            index: HashIndex::default(),
            forgotten: 0,
        }
    }
}

impl<K> Window<K> {
    pub(crate) fn len(&self) -> usize {
        self.index.len()
    }

    /// How many keys were pushed out.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten
    }
}

impl<K: Eq> Window<K> {
    pub(crate) fn contains(&self, hash: u32, key: &K) -> bool {
        self.index
            .find(hash, |at| is_at(&self.ring, at, key))
            .is_some()
    }

    /// Adds a key and gives back the one that it pushed out of `most`, or the key itself if it is
    /// there.
    pub(crate) fn insert(&mut self, hash: u32, key: K, most: usize) -> Result<Option<K>, K> {
        if self.next == self.ring.len() {
            self.grow(most);
        }
        let at = self.next as u32;
        let is_it = |there| is_at(&self.ring, there, &key);
        if !self.index.insert(hash, at, &self.ring[..], is_it) {
            return Err(key);
        }
        self.ring[self.next] = Some((hash, key));
        self.next = (self.next + 1) % (most + 1);
        if self.index.len() > most {
            return Ok(self.forget_oldest());
        }
        Ok(None)
    }

    fn forget_oldest(&mut self) -> Option<K> {
        let oldest = self.next as u32;
        let (hash, key) = self.ring[self.next].take()?;
        self.index.remove(hash, |at| at == oldest);
        self.forgotten = self.forgotten.saturating_add(1);
        Some(key)
    }

    /// Adds a place. Doubles the memory, but not past what the window needs.
    #[cold]
    fn grow(&mut self, most: usize) {
        let len = self.ring.len();
        if len == self.ring.capacity() {
            self.ring.reserve_exact(len.max(4).min(most + 1 - len));
        }
        self.ring.push(None);
    }
}

fn is_at<K: Eq>(ring: &[Option<(u32, K)>], at: u32, key: &K) -> bool {
    ring[at as usize]
        .as_ref()
        .is_some_and(|(_, there)| there == key)
}

impl<K> Hashed for [Option<(u32, K)>] {
    fn hash_at(&self, at: u32) -> u32 {
        self[at as usize].as_ref().map_or(0, |&(hash, _)| hash)
    }

    fn places(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(self)
            .filter(|(_, key)| key.is_some())
            .map(|(at, _)| at)
    }
}

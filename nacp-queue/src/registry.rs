use std::hash::{BuildHasher, Hash};
use std::ops::{Index, IndexMut};

use hashbrown::DefaultHashBuilder;

use crate::hash_index::{HashIndex, Hashed};
use crate::list::{Link, Linked, List, NONE};

/// Values found by key or by place, of which some are on one list.
#[derive(Clone, Debug)]
pub(crate) struct Registry<K, V> {
    entries: Vec<Entry<K, V>>,
    free: u32,
    len: usize,
    index: HashIndex,
    hasher: DefaultHashBuilder,
    /// Looked up last, and likely to be next.
    recent: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Entry<K, V> {
    /// `None` when the entry is free and its link leads to the next free one.
    key: Option<K>,
    hash: u32,
    link: Link,
    value: V,
}

impl<K, V> Linked for Entry<K, V> {
    #[inline]
    fn link(&mut self, _: usize) -> &mut Link {
        &mut self.link
    }
}

impl<K, V> Hashed for [Entry<K, V>] {
    fn hash_at(&self, at: u32) -> u32 {
        self[at as usize].hash
    }

    fn places(&self) -> impl Iterator<Item = u32> {
        (0..)
            .zip(self)
            .filter(|(_, entry)| entry.key.is_some())
            .map(|(at, _)| at)
    }
}

impl<K, V> Index<u32> for Registry<K, V> {
    type Output = V;

    #[inline]
    fn index(&self, at: u32) -> &V {
        &self.entries[at as usize].value
    }
}

impl<K, V> IndexMut<u32> for Registry<K, V> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut V {
        &mut self.entries[at as usize].value
    }
}

impl<K: Hash + Eq + Clone, V: Default> Registry<K, V> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            len: 0,
            index: HashIndex::default(),
            hasher: DefaultHashBuilder::default(),
            recent: NONE,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn key(&self, at: u32) -> Option<&K> {
        self.entries[at as usize].key.as_ref()
    }

    #[inline]
    pub(crate) fn find(&self, key: &K) -> Option<u32> {
        if self.is_at(self.recent, key) {
            return Some(self.recent);
        }
        self.find_hashed(key, self.hash(key))
    }

    #[inline]
    pub(crate) fn find_or_insert(&mut self, key: &K) -> u32 {
        if !self.is_at(self.recent, key) {
            let hash = self.hash(key);
            self.recent = match self.find_hashed(key, hash) {
                Some(at) => at,
                None => self.insert(key.clone(), hash),
            };
        }
        self.recent
    }

    /// Removes the entry at `at`, which must be on no list. Gives back its key.
    pub(crate) fn remove(&mut self, at: u32) -> Option<K> {
        let entry = &mut self.entries[at as usize];
        let key = entry.key.take()?;
        entry.value = V::default();
        entry.link.next = self.free;
        self.free = at;
        self.len -= 1;
        self.index.remove(entry.hash, |there| there == at);
        Some(key)
    }

    pub(crate) fn push_back(&mut self, list: &mut List, at: u32) {
        list.push_back(&mut self.entries, 0, at);
    }

    pub(crate) fn unlink(&mut self, list: &mut List, at: u32) {
        list.unlink(&mut self.entries, 0, at);
    }

    /// Whether so many entries are free that they should be given up.
    #[inline]
    pub(crate) fn is_sparse(&self) -> bool {
        self.entries.len() > KEPT_ENTRIES && self.len < self.entries.len() / 4
    }

    /// How many entries there are, free ones included.
    #[inline]
    pub(crate) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Gives up the free entries. Returns where each entry went; `list` is kept in order.
    pub(crate) fn compact(&mut self, list: &mut List) -> Vec<u32> {
        let order = self.order(list);
        let old = std::mem::replace(&mut self.entries, Vec::with_capacity(self.len));
        let mut moved = vec![NONE; old.len()];
        self.free = NONE;
        self.index.reset(self.len);
        for (from, entry) in old
            .into_iter()
            .enumerate()
            .filter(|(_, entry)| entry.key.is_some())
        {
            let to = self.entries.len() as u32;
            moved[from] = to;
            self.index
                .insert(entry.hash, to, &self.entries[..], |_| false);
            self.entries.push(entry);
        }
        *list = List::EMPTY;
        for at in order {
            self.push_back(list, moved[at as usize]);
        }
        moved
    }

    fn order(&self, list: &List) -> Vec<u32> {
        let next = |&at: &u32| Some(self.entries[at as usize].link.next).filter(|&at| at != NONE);
        std::iter::successors(Some(list.head).filter(|&at| at != NONE), next).collect()
    }

    #[inline]
    fn find_hashed(&self, key: &K, hash: u32) -> Option<u32> {
        self.index.find(hash, |at| self.is_at(at, key))
    }

    #[inline]
    fn is_at(&self, at: u32, key: &K) -> bool {
        self.entries
            .get(at as usize)
            .is_some_and(|entry| entry.key.as_ref() == Some(key))
    }

    fn insert(&mut self, key: K, hash: u32) -> u32 {
        let at = match self.free {
            NONE => self.entries.len() as u32,
            at => at,
        };
        self.index.insert(hash, at, &self.entries[..], |_| false);
        let entry = Entry {
            key: Some(key),
            hash,
            link: Link::ALONE,
            value: V::default(),
        };
        match self.entries.get_mut(at as usize) {
            Some(free) => {
                self.free = free.link.next;
                *free = entry;
            }
            None => self.entries.push(entry),
        }
        self.len += 1;
        at
    }

    #[inline]
    fn hash(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }
}

/// Entries that are kept however few are in use: about 8 KiB of them.
const KEPT_ENTRIES: usize = 64;

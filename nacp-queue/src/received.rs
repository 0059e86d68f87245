use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;
use thiserror::Error;

use crate::hash_index::HashIndex;
use crate::list::{Link, Linked, List, NONE};

/// What was received: for each source the last so many keys, to tell a repeat from something new.
#[derive(Clone, Debug)]
pub struct Received<K, S> {
    window: usize,
    max_sources: usize,
    sources: Vec<Source<K, S>>,
    free: u32,
    len: usize,
    index: HashIndex,
    hasher: DefaultHashBuilder,
    /// Sources that may be forgotten, least recently heard first.
    unpinned: List,
    unpinned_len: usize,
}

/// What [`Received::insert`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a repeat must not be handled again"]
#[expect(clippy::exhaustive_enums, reason = "a key is known or it is not")]
pub enum Heard<K, S> {
    /// The key was not known; it is now, in place of what was forgotten.
    New(Forgotten<K, S>),
    /// The key was known. It is given back.
    Duplicate(K),
}

impl<K, S> Heard<K, S> {
    /// Whether the key was not known.
    #[must_use]
    pub const fn is_new(&self) -> bool {
        matches!(self, Self::New(_))
    }
}

/// What a new key pushed out.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Forgotten<K, S> {
    /// The oldest key of the same source, when its window was full.
    pub key: Option<K>,
    /// The source heard least recently, when a new one needed its place.
    pub source: Option<S>,
}

/// Why a [`Received`] could not be built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ReceivedError {
    /// The window is zero.
    #[error("dedup_window must be at least 1")]
    ZeroWindow,
    /// The number of sources is zero.
    #[error("max_sources must be at least 1")]
    ZeroSources,
}

#[derive(Clone, Debug)]
struct Source<K, S> {
    id: Option<S>,
    hash: u32,
    age: Link,
    pinned: bool,
    window: Window<K>,
}

impl<K, S> Linked for Source<K, S> {
    fn link(&mut self, _: usize) -> &mut Link {
        &mut self.age
    }
}

/// The last keys of one source.
#[derive(Clone, Debug)]
struct Window<K> {
    keys: Vec<(u32, K)>,
    oldest: usize,
    index: HashIndex,
    forgotten: u64,
}

impl<K: Eq> Window<K> {
    fn new() -> Self {
        Self {
            keys: Vec::new(),
            oldest: 0,
            index: HashIndex::default(),
            forgotten: 0,
        }
    }

    fn contains(&self, hash: u32, key: &K) -> bool {
        self.index
            .find(hash, |at| self.keys[at as usize].1 == *key)
            .is_some()
    }

    fn index_new(&mut self, hash: u32, at: u32) {
        self.index
            .insert(hash, at, |_| false, |there| self.keys[there as usize].0);
    }

    /// Adds a key that is not there; gives back the one that it pushed out.
    fn insert(&mut self, hash: u32, key: K, window: usize) -> Option<K> {
        if self.keys.len() < window {
            let at = self.keys.len() as u32;
            self.keys.push((hash, key));
            self.index_new(hash, at);
            return None;
        }
        let at = self.oldest as u32;
        let (old_hash, old) = std::mem::replace(&mut self.keys[self.oldest], (hash, key));
        self.index.remove(old_hash, |there| there == at);
        self.index_new(hash, at);
        self.oldest = (self.oldest + 1) % window;
        self.forgotten = self.forgotten.saturating_add(1);
        Some(old)
    }
}

impl<K: Hash + Eq, S: Hash + Eq + Clone> Received<K, S> {
    /// Remembers the last `window` keys of each source, for all pinned sources and at most
    /// `max_sources` others.
    ///
    /// `usize::MAX` means no limit. Memory grows with use.
    ///
    /// # Errors
    ///
    /// Zero is refused with the name of the option.
    pub fn new(window: usize, max_sources: usize) -> Result<Self, ReceivedError> {
        if window == 0 {
            return Err(ReceivedError::ZeroWindow);
        }
        if max_sources == 0 {
            return Err(ReceivedError::ZeroSources);
        }
        Ok(Self {
            window: window.min(NONE as usize),
            max_sources,
            sources: Vec::new(),
            free: NONE,
            len: 0,
            index: HashIndex::default(),
            hasher: DefaultHashBuilder::default(),
            unpinned: List::EMPTY,
            unpinned_len: 0,
        })
    }

    /// Notes that `key` came from `source`. Says whether it came before.
    ///
    /// A source that is not known yet becomes known, unpinned; the least recently heard one is
    /// forgotten if there are too many.
    pub fn insert(&mut self, source: &S, key: K) -> Heard<K, S> {
        let (at, evicted) = self.hear(source);
        let hash = self.hash(&key);
        let window = &mut self.sources[at as usize].window;
        if window.contains(hash, &key) {
            return Heard::Duplicate(key);
        }
        let key = window.insert(hash, key, self.window);
        Heard::New(Forgotten {
            key,
            source: evicted,
        })
    }

    /// Whether `key` of `source` is remembered.
    #[must_use]
    pub fn contains(&self, source: &S, key: &K) -> bool {
        self.find(source).is_some_and(|at| {
            self.sources[at as usize]
                .window
                .contains(self.hash(key), key)
        })
    }

    /// How many keys of a source were forgotten since it became known. As long as this is zero, a
    /// key that is reported new cannot be an old one that was forgotten.
    #[must_use]
    pub fn forgotten_of(&self, source: &S) -> u64 {
        self.find(source)
            .map_or(0, |at| self.sources[at as usize].window.forgotten)
    }

    /// Makes a source known and keeps it until it is forgotten explicitly.
    pub fn pin(&mut self, source: &S) {
        let at = match self.find(source) {
            Some(at) => at,
            None => self.add(source),
        };
        if !self.sources[at as usize].pinned {
            self.sources[at as usize].pinned = true;
            self.unpinned.unlink(&mut self.sources, 0, at);
            self.unpinned_len -= 1;
        }
    }

    /// Lets a source be forgotten again, as the most recently heard one. Returns the source that
    /// had to go if there are too many now.
    pub fn unpin(&mut self, source: &S) -> Option<S> {
        let at = self.find(source)?;
        if !self.sources[at as usize].pinned {
            return None;
        }
        self.sources[at as usize].pinned = false;
        self.unpinned.push_back(&mut self.sources, 0, at);
        self.unpinned_len += 1;
        self.evict_source()
    }

    /// Forgets a source and all its keys. Returns how many keys there were.
    pub fn forget_source(&mut self, source: &S) -> usize {
        match self.find(source) {
            None => 0,
            Some(at) => {
                let keys = self.sources[at as usize].window.keys.len();
                self.forget(at);
                keys
            }
        }
    }

    /// How many keys of a source are remembered.
    #[must_use]
    pub fn len_of(&self, source: &S) -> usize {
        self.find(source)
            .map_or(0, |at| self.sources[at as usize].window.keys.len())
    }

    /// How many sources are known.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.len
    }

    fn hear(&mut self, source: &S) -> (u32, Option<S>) {
        let Some(at) = self.find(source) else {
            let at = self.add(source);
            return (at, self.evict_source());
        };
        if !self.sources[at as usize].pinned && self.unpinned.tail != at {
            self.unpinned.unlink(&mut self.sources, 0, at);
            self.unpinned.push_back(&mut self.sources, 0, at);
        }
        (at, None)
    }

    fn find(&self, source: &S) -> Option<u32> {
        let hash = self.hash(source);
        self.index.find(hash, |at| {
            self.sources[at as usize].id.as_ref() == Some(source)
        })
    }

    fn add(&mut self, source: &S) -> u32 {
        let hash = self.hash(source);
        let entry = Source {
            id: Some(source.clone()),
            hash,
            age: Link::ALONE,
            pinned: false,
            window: Window::new(),
        };
        let at = match self.free {
            NONE => {
                self.sources.push(entry);
                self.sources.len() as u32 - 1
            }
            at => {
                self.free = self.sources[at as usize].age.next;
                self.sources[at as usize] = entry;
                at
            }
        };
        self.index
            .insert(hash, at, |_| false, |at| self.sources[at as usize].hash);
        self.len += 1;
        self.unpinned.push_back(&mut self.sources, 0, at);
        self.unpinned_len += 1;
        at
    }

    fn evict_source(&mut self) -> Option<S> {
        if self.unpinned_len <= self.max_sources {
            return None;
        }
        self.forget(self.unpinned.head)
    }

    fn forget(&mut self, at: u32) -> Option<S> {
        if !self.sources[at as usize].pinned {
            self.unpinned.unlink(&mut self.sources, 0, at);
            self.unpinned_len -= 1;
        }
        let entry = &mut self.sources[at as usize];
        let id = entry.id.take();
        entry.window = Window::new();
        entry.age.next = self.free;
        self.free = at;
        self.len -= 1;
        self.index.remove(entry.hash, |there| there == at);
        id
    }

    fn hash<T: Hash>(&self, value: &T) -> u32 {
        self.hasher.hash_one(value) as u32
    }
}

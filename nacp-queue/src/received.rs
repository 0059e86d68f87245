use std::fmt;
use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;
use thiserror::Error;

use crate::list::{List, NONE};
use crate::registry::Registry;
use crate::window::Window;

/// What was received: the last so many keys of each source, to tell a repeat from something new
/// (specification, section 6).
///
/// Every operation is O(1), amortised over growth; forgetting a source with `k` keys is O(k). None
/// allocates once the window of the source is full.
///
/// ```
/// use nacp_queue::{Heard, Received};
///
/// let mut received = Received::new(2, 1024)?;
/// assert!(received.insert(&"alice", 1).is_new());
/// assert_eq!(received.insert(&"alice", 1), Heard::Duplicate(1));
/// assert!(received.insert(&"bob", 1).is_new(), "each source has its own keys");
///
/// assert!(received.insert(&"alice", 2).is_new());
/// let Heard::New(forgotten) = received.insert(&"alice", 3) else { unreachable!() };
/// assert_eq!(forgotten.key, Some(1));
/// # Ok::<(), nacp_queue::ReceivedError>(())
/// ```
#[derive(Clone)]
pub struct Received<K, S> {
    window: usize,
    max_sources: usize,
    sources: Registry<S, Source<K>>,
    /// Sources that may be forgotten, least recently heard first.
    unpinned: List,
    unpinned_len: usize,
    hasher: DefaultHashBuilder,
}

#[derive(Clone, Debug)]
struct Source<K> {
    pinned: bool,
    window: Window<K>,
}

impl<K> Default for Source<K> {
    fn default() -> Self {
        Self {
            pinned: false,
            window: Window::default(),
        }
    }
}

/// What [`Received::insert`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a repeat must not be handled again"]
#[expect(clippy::exhaustive_enums, reason = "a key is remembered or it is not")]
pub enum Heard<K, S> {
    /// The key was not remembered; now it is, in place of what was forgotten.
    ///
    /// It was never received before, or so long ago that it was forgotten;
    /// [`Received::forgotten_of`] tells whether that is possible.
    New(Forgotten<K, S>),
    /// The key is remembered. It is given back.
    Duplicate(K),
}

impl<K, S> Heard<K, S> {
    /// Whether the key was not remembered.
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

impl<K: Hash + Eq, S: Hash + Eq + Clone> Received<K, S> {
    /// Remembers the last `window` keys of each source, for all pinned sources and at most
    /// `max_sources` others.
    ///
    /// `usize::MAX` means no limit; in truth there is one of 2^32 - 3 keys a source and as many
    /// sources. Memory grows with use.
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
            window: window.min(MOST),
            max_sources: max_sources.min(MOST),
            sources: Registry::new(),
            unpinned: List::EMPTY,
            unpinned_len: 0,
            hasher: DefaultHashBuilder::default(),
        })
    }

    /// Notes that `key` came from `source`, and tells whether it came before.
    ///
    /// A source that is not known yet becomes known, unpinned; the one heard least recently is
    /// forgotten if there are too many.
    pub fn insert(&mut self, source: &S, key: K) -> Heard<K, S> {
        let (at, source) = self.hear(source);
        let hash = self.hash(&key);
        match self.sources[at].window.insert(hash, key, self.window) {
            Ok(key) => Heard::New(Forgotten { key, source }),
            Err(key) => Heard::Duplicate(key),
        }
    }

    /// Whether `key` of `source` is remembered.
    #[must_use]
    pub fn contains(&self, source: &S, key: &K) -> bool {
        self.window_of(source)
            .is_some_and(|window| window.contains(self.hash(key), key))
    }

    /// How many keys of a source were forgotten since it became known. As long as it is zero, a key
    /// that is new cannot be an old one that was forgotten.
    #[must_use]
    pub fn forgotten_of(&self, source: &S) -> u64 {
        self.window_of(source).map_or(0, Window::forgotten)
    }

    /// Makes a source known and keeps it until it is unpinned or forgotten.
    pub fn pin(&mut self, source: &S) {
        let at = match self.sources.find(source) {
            Some(at) => at,
            None => self.add(source),
        };
        if !self.sources[at].pinned {
            self.sources[at].pinned = true;
            self.leave_unpinned(at);
        }
    }

    /// Lets a source be forgotten again, as the one heard last. Returns the source that has to go
    /// if there are too many now.
    pub fn unpin(&mut self, source: &S) -> Option<S> {
        let at = self
            .sources
            .find(source)
            .filter(|&at| self.sources[at].pinned)?;
        self.sources[at].pinned = false;
        self.join_unpinned(at);
        self.evict_source()
    }

    /// Forgets a source and all its keys. Returns how many keys there were.
    pub fn forget_source(&mut self, source: &S) -> usize {
        let Some(at) = self.sources.find(source) else {
            return 0;
        };
        let keys = self.sources[at].window.len();
        self.forget(at);
        keys
    }

    /// How many keys of a source are remembered.
    #[must_use]
    pub fn len_of(&self, source: &S) -> usize {
        self.window_of(source).map_or(0, Window::len)
    }

    /// How many sources are known.
    #[must_use]
    pub fn sources(&self) -> usize {
        self.sources.len()
    }

    fn window_of(&self, source: &S) -> Option<&Window<K>> {
        self.sources.find(source).map(|at| &self.sources[at].window)
    }

    /// Where a source is that was heard now, and the one that had to go for it.
    fn hear(&mut self, source: &S) -> (u32, Option<S>) {
        let Some(at) = self.sources.find(source) else {
            let at = self.add(source);
            return (at, self.evict_source());
        };
        if !self.sources[at].pinned && self.unpinned.tail != at {
            self.leave_unpinned(at);
            self.join_unpinned(at);
        }
        (at, None)
    }

    fn add(&mut self, source: &S) -> u32 {
        let at = self.sources.find_or_insert(source);
        self.join_unpinned(at);
        at
    }

    fn evict_source(&mut self) -> Option<S> {
        if self.unpinned_len <= self.max_sources {
            return None;
        }
        self.forget(self.unpinned.head)
    }

    fn forget(&mut self, at: u32) -> Option<S> {
        if !self.sources[at].pinned {
            self.leave_unpinned(at);
        }
        let source = self.sources.remove(at);
        if self.sources.is_sparse() {
            self.sources.compact(&mut self.unpinned);
        }
        source
    }

    fn join_unpinned(&mut self, at: u32) {
        self.sources.push_back(&mut self.unpinned, at);
        self.unpinned_len += 1;
    }

    fn leave_unpinned(&mut self, at: u32) {
        self.sources.unlink(&mut self.unpinned, at);
        self.unpinned_len -= 1;
    }

    fn hash(&self, key: &K) -> u32 {
        self.hasher.hash_one(key) as u32
    }
}

/// Indices are 32 bits wide, one value of them means "none", and what arrives has a place before
/// what it pushes out gives up its own.
const MOST: usize = NONE as usize - 2;

impl<K, S> fmt::Debug for Received<K, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Received")
            .field("window", &self.window)
            .field("max_sources", &self.max_sources)
            .field("unpinned", &self.unpinned_len)
            .finish_non_exhaustive()
    }
}

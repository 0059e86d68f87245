mod trie;

use std::fmt;
use std::iter::successors;

use slab::Slab;
use smallvec::SmallVec;

use self::trie::{NONE, NodeId, Trie};
use crate::Pattern;

/// Values under patterns, found by the name of an event.
///
/// The table under the [`EventBus`](crate::EventBus), for whoever wants matching without callbacks:
/// it has no lock and calls nobody back but the closure it is given.
///
/// Each insertion is an entry of its own with its own [`Key`], also under a pattern that is there
/// already. Entries are visited in the order of their insertion, whatever their patterns.
///
/// # Cost
///
/// A search looks once at the patterns without a star, by one hash of the whole name. Patterns with
/// a star are walked segment by segment, through the nodes whose path matches the name so far: per
/// segment at most twice as many as before, and never more than there are distinct beginnings of
/// patterns of that length. How many entries there are does not matter. Hits under one pattern are
/// in order already, others are sorted. Eight nodes at a time and 16 hits need no allocation.
///
/// Inserting and removing cost the segments of the pattern. Memory follows the largest number of
/// entries there ever was.
///
/// # Example
///
/// ```
/// use nacp_bus::{Matcher, Pattern};
///
/// let mut matcher = Matcher::new();
/// let all = matcher.insert(&Pattern::parse("disk:*")?, "all");
/// matcher.insert(&Pattern::parse("disk:sda")?, "sda");
///
/// let mut hits = Vec::new();
/// matcher.for_each_match("disk:sda", |_, &value| hits.push(value));
/// assert_eq!(hits, ["all", "sda"]);
///
/// assert_eq!(matcher.remove(all), Some("all"));
/// assert_eq!(matcher.remove(all), None);
/// assert!(!matcher.has_match("disk:sdb"));
/// # Ok::<(), nacp_bus::PatternError>(())
/// ```
pub struct Matcher<T> {
    entries: Slab<Entry<T>>,
    trie: Trie,
    next_sequence: u64,
}

/// Names one entry of a [`Matcher`].
///
/// No matcher gives the same key twice. Keys of one matcher are ordered like their insertions; to
/// another matcher they mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    sequence: u64,
    slot: usize,
}

/// The entries under one pattern are a doubly linked list, so that one goes without a search.
struct Entry<T> {
    sequence: u64,
    node: NodeId,
    previous: usize,
    next: usize,
    value: T,
}

impl<T> Matcher<T> {
    /// A matcher without entries.
    #[must_use]
    pub fn new() -> Self {
        Self {
            entries: Slab::new(),
            trie: Trie::new(),
            next_sequence: 0,
        }
    }

    /// How many entries there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// How many nodes the patterns take up: one for each pattern without a star, for the others one
    /// for each distinct beginning. 0 when there is no entry.
    #[must_use]
    pub fn node_count(&self) -> usize {
        self.trie.len()
    }

    /// Adds an entry, after all others.
    pub fn insert(&mut self, pattern: &Pattern, value: T) -> Key {
        let node = self.trie.insert(pattern);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        let previous = self.trie.list(node).last;
        let slot = self.entries.insert(Entry {
            sequence,
            node,
            previous,
            next: NONE,
            value,
        });
        self.link(node, previous, slot);
        self.trie.list_mut(node).last = slot;
        Key { sequence, slot }
    }

    /// Takes an entry out; `None` if it is out already.
    pub fn remove(&mut self, key: Key) -> Option<T> {
        self.get(key)?;
        let Entry {
            node,
            previous,
            next,
            value,
            ..
        } = self.entries.try_remove(key.slot)?;
        self.link(node, previous, next);
        match self.entries.get_mut(next) {
            Some(after) => after.previous = previous,
            None => self.trie.list_mut(node).last = previous,
        }
        self.trie.prune(node);
        Some(value)
    }

    /// Takes every entry out, in the order of their insertion. Keys given so far stay used.
    pub fn drain(&mut self) -> Vec<T> {
        self.trie = Trie::new();
        let mut entries: Vec<_> = std::mem::take(&mut self.entries).into_iter().collect();
        entries.sort_unstable_by_key(|(_, entry)| entry.sequence);
        entries.into_iter().map(|(_, entry)| entry.value).collect()
    }

    /// The value of an entry; `None` if it was removed.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        let entry = self.entries.get(key.slot)?;
        (entry.sequence == key.sequence).then_some(&entry.value)
    }

    /// The value of an entry, to change it; `None` if it was removed.
    #[must_use]
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let entry = self.entries.get_mut(key.slot)?;
        (entry.sequence == key.sequence).then_some(&mut entry.value)
    }

    /// Whether any entry's pattern matches `name`.
    #[must_use]
    pub fn has_match(&self, name: &str) -> bool {
        !self.trie.leaves(name).is_empty()
    }

    /// Visits the entries whose patterns match `name`, in the order of their insertion.
    pub fn for_each_match(&self, name: &str, mut visit: impl FnMut(Key, &T)) {
        match self.trie.leaves(name)[..] {
            [] => {}
            [leaf] => self
                .under(leaf)
                .for_each(|(key, entry)| visit(key, &entry.value)),
            ref leaves => self
                .in_order(leaves)
                .for_each(|(key, entry)| visit(key, &entry.value)),
        }
    }

    fn in_order(&self, leaves: &[NodeId]) -> impl Iterator<Item = Hit<'_, T>> {
        let hits = leaves.iter().flat_map(|&leaf| self.under(leaf));
        let mut hits: SmallVec<[Hit<'_, T>; 16]> = hits.collect();
        hits.sort_unstable_by_key(|&(key, _)| key);
        hits.into_iter()
    }

    fn under(&self, node: NodeId) -> impl Iterator<Item = Hit<'_, T>> {
        let hit = |slot: usize| {
            let entry = self.entries.get(slot)?;
            Some((
                Key {
                    sequence: entry.sequence,
                    slot,
                },
                entry,
            ))
        };
        successors(hit(self.trie.list(node).first), move |(_, entry)| {
            hit(entry.next)
        })
    }

    /// Lets `next` follow `previous`, or begin the list of `node` if there is none before it.
    fn link(&mut self, node: NodeId, previous: usize, next: usize) {
        match self.entries.get_mut(previous) {
            Some(before) => before.next = next,
            None => self.trie.list_mut(node).first = next,
        }
    }
}

type Hit<'a, T> = (Key, &'a Entry<T>);

impl<T> Default for Matcher<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> fmt::Debug for Matcher<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Matcher")
            .field("entries", &self.len())
            .field("nodes", &self.node_count())
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.sequence)
    }
}

use std::hash::{BuildHasher, Hash};

use hashbrown::DefaultHashBuilder;

use crate::caps::{Caps, Usage};
use crate::hash_index::HashIndex;
use crate::list::{Link, Linked, List, NONE};
use crate::slot::Classes;

/// What a table knows of one destination.
#[derive(Clone, Debug)]
pub(crate) struct Destination<D> {
    pub(crate) id: Option<D>,
    hash: u32,
    pub(crate) lists: Classes,
    pub(crate) used: Usage,
    pub(crate) caps: Caps,
    turn: Link,
    pub(crate) ready: bool,
    takes_turns: bool,
}

impl<D> Linked for Destination<D> {
    fn link(&mut self, _: usize) -> &mut Link {
        &mut self.turn
    }
}

impl<D> Destination<D> {
    fn new(id: D, hash: u32) -> Self {
        Self {
            id: Some(id),
            hash,
            lists: [List::EMPTY; 2],
            used: Usage::default(),
            caps: Caps::NONE,
            turn: Link::ALONE,
            ready: false,
            takes_turns: false,
        }
    }

    fn matters(&self) -> bool {
        self.used.count > 0 || self.ready || self.caps != Caps::NONE
    }
}

/// The destinations that have records, caps or are ready.
#[derive(Clone, Debug)]
pub(crate) struct Destinations<D> {
    entries: Vec<Destination<D>>,
    free: u32,
    len: usize,
    index: HashIndex,
    hasher: DefaultHashBuilder,
    /// Those that are ready and have records, next turn first.
    rotation: List,
}

impl<D: Hash + Eq + Clone> Destinations<D> {
    pub(crate) fn new() -> Self {
        Self {
            entries: Vec::new(),
            free: NONE,
            len: 0,
            index: HashIndex::default(),
            hasher: DefaultHashBuilder::default(),
            rotation: List::EMPTY,
        }
    }

    #[inline]
    pub(crate) fn at(&self, at: u32) -> &Destination<D> {
        &self.entries[at as usize]
    }

    #[inline]
    pub(crate) fn at_mut(&mut self, at: u32) -> &mut Destination<D> {
        &mut self.entries[at as usize]
    }

    pub(crate) fn get(&self, id: &D) -> Option<&Destination<D>> {
        self.find(id).map(|at| self.at(at))
    }

    #[inline]
    pub(crate) fn find(&self, id: &D) -> Option<u32> {
        self.find_hashed(id, self.hash(id))
    }

    #[inline]
    pub(crate) fn find_or_insert(&mut self, id: &D) -> u32 {
        let hash = self.hash(id);
        match self.find_hashed(id, hash) {
            Some(at) => at,
            None => self.insert(id.clone(), hash),
        }
    }

    /// Updates the rotation and forgets the destination if nothing is known of it any more.
    #[inline]
    pub(crate) fn settle(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        let takes_turns = entry.ready && entry.used.count > 0;
        if takes_turns != entry.takes_turns {
            entry.takes_turns = takes_turns;
            if takes_turns {
                self.rotation.push_back(&mut self.entries, 0, at);
            } else {
                self.rotation.unlink(&mut self.entries, 0, at);
            }
        }
        if !self.entries[at as usize].matters() {
            self.forget(at);
        }
    }

    /// Whose turn it is.
    #[inline]
    pub(crate) fn next_turn(&self) -> Option<u32> {
        Some(self.rotation.head).filter(|&at| at != NONE)
    }

    /// Moves the destination whose turn it is to the end of the rotation.
    #[inline]
    pub(crate) fn pass_turn(&mut self, at: u32) {
        if self.rotation.tail != at {
            self.rotation.unlink(&mut self.entries, 0, at);
            self.rotation.push_back(&mut self.entries, 0, at);
        }
    }

    /// Slots in use and slots held.
    pub(crate) fn occupancy(&self) -> (usize, usize) {
        (self.len, self.entries.len())
    }

    /// Gives up free slots. Returns where each old one went.
    pub(crate) fn compact(&mut self) -> Vec<u32> {
        let mut rotation = Vec::new();
        let mut at = self.rotation.head;
        while at != NONE {
            rotation.push(at);
            at = self.entries[at as usize].turn.next;
        }
        let mut moved = vec![NONE; self.entries.len()];
        let old = std::mem::replace(&mut self.entries, Vec::with_capacity(self.len));
        self.free = NONE;
        self.index.reset(self.len);
        for (from, entry) in old
            .into_iter()
            .enumerate()
            .filter(|(_, entry)| entry.id.is_some())
        {
            let to = self.entries.len() as u32;
            moved[from] = to;
            self.index.insert(entry.hash, to);
            self.entries.push(entry);
        }
        self.rotation = List::EMPTY;
        for at in rotation {
            self.rotation
                .push_back(&mut self.entries, 0, moved[at as usize]);
        }
        moved
    }

    #[inline]
    fn find_hashed(&self, id: &D, hash: u32) -> Option<u32> {
        self.index
            .find(hash, |at| self.entries[at as usize].id.as_ref() == Some(id))
    }

    fn insert(&mut self, id: D, hash: u32) -> u32 {
        let entry = Destination::new(id, hash);
        let at = match self.free {
            NONE => {
                self.entries.push(entry);
                self.entries.len() as u32 - 1
            }
            at => {
                self.free = self.entries[at as usize].turn.next;
                self.entries[at as usize] = entry;
                at
            }
        };
        self.index.insert(hash, at);
        self.len += 1;
        at
    }

    fn forget(&mut self, at: u32) {
        let entry = &mut self.entries[at as usize];
        entry.id = None;
        entry.turn.next = self.free;
        self.free = at;
        self.len -= 1;
        self.index.remove(entry.hash, at);
    }

    #[inline]
    fn hash(&self, id: &D) -> u32 {
        self.hasher.hash_one(id) as u32
    }
}

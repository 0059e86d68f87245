use std::hash::Hash;
use std::ops::{Index, IndexMut};

use crate::caps::{Caps, Usage};
use crate::list::{List, NONE};
use crate::registry::Registry;
use crate::slot::Classes;

/// What a table knows of one destination.
#[derive(Clone, Debug)]
pub(crate) struct Destination {
    pub(crate) lists: Classes,
    pub(crate) used: Usage,
    pub(crate) caps: Caps,
    pub(crate) ready: bool,
    takes_turns: bool,
}

impl Default for Destination {
    fn default() -> Self {
        Self {
            lists: [List::EMPTY; 2],
            used: Usage::default(),
            caps: Caps::NONE,
            ready: false,
            takes_turns: false,
        }
    }
}

impl Destination {
    #[inline]
    fn is_needed(&self) -> bool {
        self.used.count > 0 || self.ready || self.caps != Caps::NONE
    }
}

/// The destinations that have records, caps or are ready.
#[derive(Clone, Debug)]
pub(crate) struct Destinations<D> {
    registry: Registry<D, Destination>,
    /// Those that are ready and have records, next turn first.
    rotation: List,
    /// One of which there is nothing to know, kept because it is likely to come back.
    idle: u32,
}

impl<D> Index<u32> for Destinations<D> {
    type Output = Destination;

    #[inline]
    fn index(&self, at: u32) -> &Destination {
        &self.registry[at]
    }
}

impl<D> IndexMut<u32> for Destinations<D> {
    #[inline]
    fn index_mut(&mut self, at: u32) -> &mut Destination {
        &mut self.registry[at]
    }
}

impl<D: Hash + Eq + Clone> Destinations<D> {
    pub(crate) fn new() -> Self {
        Self {
            registry: Registry::new(),
            rotation: List::EMPTY,
            idle: NONE,
        }
    }

    pub(crate) fn get(&self, id: &D) -> Option<&Destination> {
        self.find(id).map(|at| &self[at])
    }

    #[inline]
    pub(crate) fn find(&self, id: &D) -> Option<u32> {
        self.registry.find(id)
    }

    #[inline]
    pub(crate) fn find_or_insert(&mut self, id: &D) -> u32 {
        self.registry.find_or_insert(id)
    }

    /// Lets the destination take turns or not, and forgets it some time after there is nothing
    /// left to know of it. To be called after every change to it.
    #[inline]
    pub(crate) fn settle(&mut self, at: u32) {
        let entry = &self.registry[at];
        if (entry.ready && entry.used.count > 0) != entry.takes_turns {
            self.change_turns(at);
        }
        if !self.registry[at].is_needed() && self.idle != at {
            self.forget_idle();
            self.idle = at;
        }
    }

    fn forget_idle(&mut self) {
        if self.idle != NONE && !self.registry[self.idle].is_needed() {
            self.registry.remove(self.idle);
        }
        self.idle = NONE;
    }

    fn change_turns(&mut self, at: u32) {
        let entry = &mut self.registry[at];
        entry.takes_turns = !entry.takes_turns;
        if entry.takes_turns {
            self.registry.push_back(&mut self.rotation, at);
        } else {
            self.registry.unlink(&mut self.rotation, at);
        }
    }

    /// The destination whose turn it is, which then goes to the end of the rotation.
    #[inline]
    pub(crate) fn take_turn(&mut self) -> Option<u32> {
        let at = self.turn()?;
        if self.rotation.tail != at {
            self.registry.unlink(&mut self.rotation, at);
            self.registry.push_back(&mut self.rotation, at);
        }
        Some(at)
    }

    /// The destination whose turn it is.
    #[inline]
    pub(crate) fn turn(&self) -> Option<u32> {
        Some(self.rotation.head).filter(|&at| at != NONE)
    }

    pub(crate) fn id(&self, at: u32) -> Option<&D> {
        self.registry.key(at)
    }

    /// For how many destinations memory is held, if that is far more than there are.
    #[inline]
    pub(crate) fn sparse(&self) -> Option<usize> {
        self.registry.is_sparse().then(|| self.registry.capacity())
    }

    /// Gives up memory that is not in use. Returns where each destination went.
    pub(crate) fn compact(&mut self) -> Vec<u32> {
        self.forget_idle();
        self.registry.compact(&mut self.rotation)
    }
}

//! The tables written as literally after the rules as possible: one `Vec`, scanned for everything.

use std::collections::{BTreeMap, VecDeque};

use nacp_queue::{Caps, Evicted, Record};

use super::Message;

#[derive(Clone, Debug)]
pub(crate) struct Naive<const KEYS: u8> {
    pub(crate) caps: Caps,
    pub(crate) own_caps: BTreeMap<u8, Caps>,
    pub(crate) records: Vec<Message<KEYS>>,
    pub(crate) ready: Vec<u8>,
    pub(crate) rotation: VecDeque<u8>,
}

/// What came of a push.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome<const KEYS: u8> {
    Full,
    Duplicate,
    Evicted(Vec<(Message<KEYS>, Evicted)>),
}

impl<const KEYS: u8> Naive<KEYS> {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            own_caps: BTreeMap::new(),
            records: Vec::new(),
            ready: Vec::new(),
            rotation: VecDeque::new(),
        }
    }

    pub(crate) fn count(&self, destination: Option<u8>) -> usize {
        self.of(destination).count()
    }

    pub(crate) fn bytes(&self, destination: Option<u8>) -> u128 {
        self.of(destination)
            .map(|record| u128::from(record.bytes))
            .sum()
    }

    pub(crate) fn of(
        &self,
        destination: Option<u8>,
    ) -> impl Iterator<Item = &Message<KEYS>> + Clone {
        let wanted = move |record: &&Message<KEYS>| {
            destination.is_none_or(|destination| record.destination == destination)
        };
        self.records.iter().filter(wanted)
    }

    fn caps_of(&self, destination: Option<u8>) -> Caps {
        match destination {
            None => self.caps,
            Some(destination) => self
                .own_caps
                .get(&destination)
                .copied()
                .unwrap_or(Caps::NONE),
        }
    }

    /// Within the caps, or one record that is alone.
    pub(crate) fn is_within(&self, destination: Option<u8>) -> bool {
        let caps = self.caps_of(destination);
        self.count(destination) <= 1
            || (self.count(destination) <= caps.count()
                && self.bytes(destination) <= u128::from(caps.bytes()))
    }

    /// Whether there is room for the record and nothing has to go.
    pub(crate) fn has_room_for(&self, record: &Message<KEYS>) -> bool {
        [None, Some(record.destination)]
            .into_iter()
            .all(|destination| {
                let caps = self.caps_of(destination);
                let bytes = self.bytes(destination) + u128::from(record.bytes);
                let fits =
                    self.count(destination) < caps.count() && bytes <= u128::from(caps.bytes());
                fits || (self.count(destination) == 0 && !record.droppable)
            })
    }

    /// The oldest droppable record goes, else the oldest.
    fn evict(&mut self, destination: Option<u8>) -> (Message<KEYS>, Evicted) {
        let is_of = |record: &Message<KEYS>| destination.is_none_or(|d| record.destination == d);
        let droppable = self.records.iter().position(|r| r.droppable && is_of(r));
        if let Some(at) = droppable {
            return (self.records.remove(at), Evicted::Droppable);
        }
        let oldest = self.records.iter().position(is_of).unwrap();
        (self.records.remove(oldest), Evicted::Oldest)
    }

    fn shed(&mut self, destination: Option<u8>) -> Vec<(Message<KEYS>, Evicted)> {
        let mut evicted = Vec::new();
        while !self.is_within(destination) {
            evicted.push(self.evict(destination));
        }
        evicted
    }

    pub(crate) fn push(&mut self, record: Message<KEYS>) -> Outcome<KEYS> {
        if record.droppable && !self.has_room_for(&record) {
            return Outcome::Full;
        }
        if self.has_key(record.key) {
            return Outcome::Duplicate;
        }
        let destination = record.destination;
        self.records.push(record);
        let mut evicted = self.shed(Some(destination));
        evicted.extend(self.shed(None));
        self.update_rotation(&[destination]);
        Outcome::Evicted(evicted)
    }

    /// What goes comes in three parts: duplicates, what breaks the caps of each destination (their
    /// order among each other is open), and what breaks those of the table.
    pub(crate) fn put_back(
        &mut self,
        run: Vec<Message<KEYS>>,
    ) -> [Vec<(Message<KEYS>, Evicted)>; 3] {
        let mut duplicates = Vec::new();
        let mut own = Vec::new();
        let mut joins = Vec::new();
        for record in run.into_iter().rev() {
            if self.has_key(record.key) {
                duplicates.insert(0, (record, Evicted::Duplicate));
            } else {
                joins.push(record.destination);
                self.records.insert(0, record);
            }
        }
        for destination in self.destinations() {
            own.extend(self.shed(Some(destination)));
        }
        self.update_rotation(&joins);
        let table = self.shed(None);
        self.update_rotation(&[]);
        [duplicates, own, table]
    }

    pub(crate) fn set_own_caps(
        &mut self,
        destination: u8,
        caps: Option<Caps>,
    ) -> Vec<(Message<KEYS>, Evicted)> {
        match caps {
            Some(caps) => self.own_caps.insert(destination, caps),
            None => self.own_caps.remove(&destination),
        };
        self.shed(Some(destination))
    }

    pub(crate) fn pop(&mut self, destination: u8) -> Option<Message<KEYS>> {
        let at = self
            .records
            .iter()
            .position(|record| record.destination == destination)?;
        let record = self.records.remove(at);
        self.update_rotation(&[]);
        Some(record)
    }

    pub(crate) fn remove(&mut self, key: u64) -> Option<Message<KEYS>> {
        let at = self.records.iter().position(|record| record.key == key)?;
        let record = self.records.remove(at);
        self.update_rotation(&[]);
        Some(record)
    }

    pub(crate) fn drain(&mut self, destination: Option<u8>) -> Vec<Message<KEYS>> {
        let is_of = |record: &Message<KEYS>| destination.is_none_or(|d| record.destination == d);
        let (drained, left) = std::mem::take(&mut self.records)
            .into_iter()
            .partition(is_of);
        self.records = left;
        self.update_rotation(&[]);
        drained
    }

    pub(crate) fn set_ready(&mut self, destination: u8, ready: bool) {
        self.ready.retain(|&other| other != destination);
        if ready {
            self.ready.push(destination);
        }
        self.update_rotation(&[destination]);
    }

    pub(crate) fn next_ready(&mut self) -> Option<u8> {
        let destination = self.rotation.pop_front()?;
        self.rotation.push_back(destination);
        Some(destination)
    }

    pub(crate) fn pop_ready(&mut self) -> Option<Message<KEYS>> {
        let destination = self.next_ready()?;
        self.pop(destination)
    }

    pub(crate) fn has_key(&self, key: u64) -> bool {
        self.records.iter().any(|record| record.key == key)
    }

    pub(crate) fn destinations(&self) -> Vec<u8> {
        let mut destinations: Vec<u8> = self.records.iter().map(|r| *r.destination()).collect();
        destinations.sort_unstable();
        destinations.dedup();
        destinations
    }

    /// Who has nothing ready leaves the rotation; who has something now joins at its end.
    fn update_rotation(&mut self, joins: &[u8]) {
        let has = |destination: u8, records: &[Message<KEYS>]| {
            records
                .iter()
                .any(|record| record.destination == destination)
        };
        let (ready, records) = (&self.ready, &self.records);
        self.rotation
            .retain(|d| ready.contains(d) && has(*d, records));
        for &destination in joins {
            let takes_turns = self.ready.contains(&destination) && has(destination, &self.records);
            if takes_turns && !self.rotation.contains(&destination) {
                self.rotation.push_back(destination);
            }
        }
    }
}

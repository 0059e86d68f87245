//! What plain collections cost.

use std::collections::VecDeque;
use std::hint::black_box;

use criterion::BenchmarkId;
use hashbrown::HashMap;
use indexmap::IndexMap;

use crate::{Group, Hashed, Id, Message, mix};

pub(crate) fn deque(group: &mut Group<'_>, resident: u64) {
    let mut deque: VecDeque<Hashed> = (0..resident).map(|n| Message::new(n, 1)).collect();
    let mut next = resident;
    group.bench_function(BenchmarkId::new("floor_deque_by_ends", resident), |b| {
        b.iter(|| {
            deque.push_back(Message::new(next, 1));
            next += 1;
            black_box(deque.pop_front())
        });
    });
}

/// A deque whose first element has a known sequence number, so that a key says where it lies.
pub(crate) fn addressed_deque(group: &mut Group<'_>, resident: u64) {
    let mut deque: VecDeque<Option<Hashed>> =
        (0..resident).map(|n| Some(Message::new(n, 1))).collect();
    let mut first = 0;
    let mut next = resident;
    group.bench_function(BenchmarkId::new("floor_deque_by_sequence", resident), |b| {
        b.iter(|| {
            deque.push_back(Some(Message::new(next, 1)));
            let key = Id::of(next - resident);
            next += 1;
            let slot = deque.get_mut((key.sequence - first) as usize);
            let found = slot.and_then(|slot| slot.take_if(|message| message.id == key));
            while matches!(deque.front(), Some(None)) {
                deque.pop_front();
                first += 1;
            }
            black_box(found)
        });
    });
}

pub(crate) fn hashbrown(group: &mut Group<'_>, resident: u64) {
    let mut map: HashMap<Id, Hashed> = (0..resident)
        .map(|n| (Id::of(n), Message::new(n, 1)))
        .collect();
    let mut next = resident;
    group.bench_function(BenchmarkId::new("floor_hashbrown", resident), |b| {
        b.iter(|| {
            map.insert(Id::of(next), Message::new(next, 1));
            next += 1;
            black_box(map.remove(&Id::of(next - 1 - resident)))
        });
    });
}

/// A slab with one linked list and a map from key to place: the least that keeps an order and
/// removes by key.
#[derive(Default)]
struct SlabList {
    slots: Vec<SlabSlot>,
    free: Vec<usize>,
    places: HashMap<Id, usize>,
    head: Option<usize>,
    tail: Option<usize>,
}

struct SlabSlot {
    prev: Option<usize>,
    next: Option<usize>,
    message: Option<Hashed>,
}

impl SlabList {
    fn push(&mut self, message: Hashed) {
        let id = message.id;
        let slot = SlabSlot {
            prev: self.tail,
            next: None,
            message: Some(message),
        };
        let at = match self.free.pop() {
            Some(at) => {
                self.slots[at] = slot;
                at
            }
            None => {
                self.slots.push(slot);
                self.slots.len() - 1
            }
        };
        match self.tail {
            Some(tail) => self.slots[tail].next = Some(at),
            None => self.head = Some(at),
        }
        self.tail = Some(at);
        self.places.insert(id, at);
    }

    fn remove(&mut self, id: &Id) -> Option<Hashed> {
        let at = self.places.remove(id)?;
        let SlabSlot { prev, next, .. } = self.slots[at];
        match prev {
            Some(prev) => self.slots[prev].next = next,
            None => self.head = next,
        }
        match next {
            Some(next) => self.slots[next].prev = prev,
            None => self.tail = prev,
        }
        self.free.push(at);
        self.slots[at].message.take()
    }
}

pub(crate) fn slab(group: &mut Group<'_>, resident: u64) {
    let mut slab = SlabList::default();
    (0..resident).for_each(|n| slab.push(Message::new(n, 1)));
    let mut next = resident;
    group.bench_function(BenchmarkId::new("floor_slab", resident), |b| {
        b.iter(|| {
            slab.push(Message::new(next, 1));
            next += 1;
            black_box(slab.remove(&Id::of(next - 1 - resident)))
        });
    });
}

/// The same with a message chosen at random, which comes back at the tail.
pub(crate) fn slab_middle(group: &mut Group<'_>, resident: u64) {
    let mut slab = SlabList::default();
    (0..resident).for_each(|n| slab.push(Message::new(n, 1)));
    let mut round = 0;
    let id = BenchmarkId::new("floor_slab", resident);
    group.bench_function(id, |b| {
        b.iter(|| {
            round += 1;
            let found = slab.remove(&Id::of(mix(round) % resident));
            found.map(|message| slab.push(message))
        });
    });
}

pub(crate) fn indexmap(group: &mut Group<'_>, resident: u64) {
    let mut map: IndexMap<Id, Hashed> = (0..resident)
        .map(|n| (Id::of(n), Message::new(n, 1)))
        .collect();
    let mut next = resident;
    group.bench_function(BenchmarkId::new("floor_indexmap", resident), |b| {
        b.iter(|| {
            map.insert(Id::of(next), Message::new(next, 1));
            next += 1;
            black_box(map.shift_remove(&Id::of(next - 1 - resident)))
        });
    });
}

use crate::hash_index::Hashed;
use crate::list::{Link, Linked, List, NONE};
use crate::record::Record;

/// Which list a link belongs to: that of the whole table, or that of the record's destination.
pub(crate) const WHOLE: usize = 0;
pub(crate) const OWN: usize = 1;

/// The hash of a key that is found by its sequence number.
pub(crate) const IN_RING: u32 = 0;

/// The records that are not droppable in order, and those that are.
///
/// The order of all is the merge of both by rank. It needs fewer links than a list of all beside
/// a list of the droppable ones.
pub(crate) type Classes = [List; 2];

/// One place in the slab: a record with its books, or a link of the free list.
///
/// `N` is what a table notes beside each record.
#[derive(Clone, Debug)]
pub(crate) struct Slot<R, N> {
    pub(crate) links: [Link; 2],
    pub(crate) destination: u32,
    /// The hash of the key, or [`IN_RING`].
    pub(crate) hash: u32,
    pub(crate) rank: Rank,
    pub(crate) bytes: u64,
    pub(crate) note: N,
    pub(crate) record: Option<R>,
}

/// A place in the order of a table, and the class of the record there in the lowest bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Rank(i64);

impl Rank {
    /// Ranks of the same class and order are those of one record.
    #[inline]
    pub(crate) fn new(order: i64, droppable: bool) -> Self {
        Self(order << 1 | i64::from(droppable))
    }

    #[inline]
    pub(crate) fn class(self) -> usize {
        (self.0 & 1) as usize
    }
}

impl<R, N> Linked for Slot<R, N> {
    #[inline]
    fn link(&mut self, which: usize) -> &mut Link {
        &mut self.links[which]
    }
}

impl<R, N> Hashed for [Slot<R, N>] {
    #[inline]
    fn hash_at(&self, at: u32) -> u32 {
        self[at as usize].hash
    }

    fn places(&self) -> impl Iterator<Item = u32> {
        let is_hashed = |slot: &Slot<R, N>| slot.record.is_some() && slot.hash != IN_RING;
        (0..)
            .zip(self)
            .filter(move |(_, slot)| is_hashed(slot))
            .map(|(at, _)| at)
    }
}

impl<R, N: Default> Slot<R, N> {
    pub(crate) fn vacant() -> Self {
        Self {
            links: [Link::ALONE; 2],
            destination: NONE,
            hash: IN_RING,
            rank: Rank(0),
            bytes: 0,
            note: N::default(),
            record: None,
        }
    }
}

impl<R: Record, N> Slot<R, N> {
    #[inline]
    pub(crate) fn has_key(&self, key: &R::Key) -> bool {
        self.record
            .as_ref()
            .is_some_and(|record| record.key() == key)
    }

    pub(crate) fn sequence(&self) -> Option<u64> {
        self.record
            .as_ref()
            .and_then(|record| R::sequence(record.key()))
    }
}

/// The one of two slots that comes first.
#[inline]
pub(crate) fn first<R, N>(slots: &[Slot<R, N>], [a, b]: [u32; 2]) -> u32 {
    if b == NONE || (a != NONE && slots[a as usize].rank < slots[b as usize].rank) {
        a
    } else {
        b
    }
}

/// The one of two slots that comes last.
#[inline]
pub(crate) fn last<R, N>(slots: &[Slot<R, N>], [a, b]: [u32; 2]) -> u32 {
    if b == NONE || (a != NONE && slots[a as usize].rank > slots[b as usize].rank) {
        a
    } else {
        b
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::Slot;

    fn books<R, N>() -> usize {
        size_of::<Slot<R, N>>() - size_of::<R>()
    }

    #[test]
    fn the_books_of_a_record_take_at_most_64_bytes() {
        assert_eq!(books::<Box<[u8]>, ()>(), 40);
        assert_eq!(books::<[u64; 4], ()>(), 48, "no niche for a vacant slot");
        assert_eq!(books::<Box<[u8]>, Option<Instant>>(), 56);
        assert_eq!(books::<[u64; 4], Option<Instant>>(), 64);
    }
}

use crate::list::{Link, Linked, NONE};
use crate::record::Record;

/// Which list a link belongs to.
pub(crate) const WHOLE: usize = 0;
pub(crate) const OWN: usize = 1;

/// One place in the slab: a record and its books, or a link of the free list.
#[derive(Clone, Debug)]
pub(crate) struct Slot<R> {
    /// Place in the list of the whole table and in that of the destination, among its own class.
    pub(crate) links: [Link; 2],
    pub(crate) destination: u32,
    pub(crate) hash: u32,
    /// Order in the table, and in the lowest bit the class.
    pub(crate) rank: i64,
    pub(crate) bytes: u64,
    pub(crate) record: Option<R>,
}

impl<R> Linked for Slot<R> {
    #[inline]
    fn link(&mut self, which: usize) -> &mut Link {
        &mut self.links[which]
    }
}

impl<R: Record> Slot<R> {
    /// 1 for a droppable record, 0 for any other.
    #[inline]
    pub(crate) fn class(&self) -> usize {
        (self.rank & 1) as usize
    }

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

/// The records of one class in order, and those of the other.
pub(crate) type Classes = [crate::list::List; 2];

/// The one of two nodes that comes first.
#[inline]
pub(crate) fn earlier<R>(slots: &[Slot<R>], a: u32, b: u32) -> u32 {
    match (a, b) {
        (NONE, b) => b,
        (a, NONE) => a,
        (a, b) if slots[a as usize].rank < slots[b as usize].rank => a,
        (_, b) => b,
    }
}

/// The one of two nodes that comes last.
#[inline]
pub(crate) fn later<R>(slots: &[Slot<R>], a: u32, b: u32) -> u32 {
    match (a, b) {
        (NONE, b) => b,
        (a, NONE) => a,
        (a, b) if slots[a as usize].rank > slots[b as usize].rank => a,
        (_, b) => b,
    }
}

//! What the tables allocate, counted by the allocator. One test, because the count is of the whole
//! process.

#![expect(clippy::unwrap_used, reason = "a failed helper fails its test")]

use std::time::Instant;

use nacp_queue::{AckPending, Backlog, Caps, Received, Record};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// 48 bytes; its `Option` needs no more.
#[derive(Debug)]
struct Message<const SEQUENCED: bool> {
    key: u64,
    destination: u16,
    droppable: bool,
    bytes: u64,
    _encoded: [u64; 3],
}

impl<const SEQUENCED: bool> Message<SEQUENCED> {
    fn new(key: u64, droppable: bool) -> Self {
        Self {
            key,
            destination: (key % 50) as u16,
            droppable,
            bytes: 100,
            _encoded: [0; 3],
        }
    }
}

impl<const SEQUENCED: bool> Record for Message<SEQUENCED> {
    type Key = u64;
    type Destination = u16;

    fn key(&self) -> &u64 {
        &self.key
    }

    fn destination(&self) -> &u16 {
        &self.destination
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn droppable(&self) -> bool {
        self.droppable
    }

    fn sequence(key: &u64) -> Option<u64> {
        SEQUENCED.then_some(*key)
    }
}

/// How many blocks `work` allocates.
fn allocations(work: impl FnOnce()) -> u64 {
    let before = dhat::HeapStats::get().total_blocks;
    work();
    dhat::HeapStats::get().total_blocks - before
}

/// How many bytes are held by what `make` returns.
fn held<T>(make: impl FnOnce() -> T) -> (usize, T) {
    let before = dhat::HeapStats::get().curr_bytes;
    let made = make();
    (dhat::HeapStats::get().curr_bytes - before, made)
}

const ROUNDS: u64 = 200_000;

fn filled<const S: bool>(records: u64, caps: Caps) -> Backlog<Message<S>> {
    let mut backlog = Backlog::new(caps);
    for key in 0..records {
        assert!(
            backlog
                .push(Message::new(key, key.is_multiple_of(4)))
                .is_ok()
        );
    }
    backlog
}

fn a_steady_backlog_allocates_nothing<const S: bool>(resident: u64) {
    let mut backlog = filled::<S>(resident, Caps::NONE);
    let mut next = resident;
    let mut round = |backlog: &mut Backlog<Message<S>>| {
        next += 1;
        assert!(
            backlog
                .push(Message::new(next, next.is_multiple_of(4)))
                .is_ok()
        );
        let oldest = backlog.iter_all().next().map(|record| record.key);
        assert!(oldest.is_some_and(|key| backlog.remove(&key).is_some()));
        let popped = backlog.pop(&((next % 50) as u16));
        popped
            .into_iter()
            .for_each(|record| assert!(backlog.push(record).is_ok()));
    };
    // Records that come back are stragglers, some of which the hash table takes from the ring.
    (0..ROUNDS).for_each(|_| round(&mut backlog));
    let blocks = allocations(|| (0..ROUNDS).for_each(|_| round(&mut backlog)));
    assert_eq!(blocks, 0, "resident {resident}, sequenced {S}");
}

fn a_full_backlog_evicts_without_allocating<const S: bool>(resident: u64) {
    let caps = Caps::new(resident as usize, u64::MAX).unwrap();
    let mut backlog = filled::<S>(resident, caps);
    let mut next = resident;
    let mut round = |backlog: &mut Backlog<Message<S>>| {
        next += 1;
        let evicted = backlog.push(Message::new(next, false)).map(Iterator::count);
        assert!(matches!(evicted, Ok(1)), "{evicted:?}");
    };
    round(&mut backlog);
    let blocks = allocations(|| (0..ROUNDS).for_each(|_| round(&mut backlog)));
    assert_eq!(blocks, 0, "resident {resident}, sequenced {S}");
}

fn a_cut_and_its_replay_allocate_nothing<const S: bool>(deadline: Option<Instant>) {
    let mut backlog = filled::<S>(1_000, Caps::NONE);
    let mut pending: AckPending<Message<S>> = AckPending::new(Caps::NONE);
    let round = |backlog: &mut Backlog<Message<S>>, pending: &mut AckPending<Message<S>>| {
        for destination in 0..50 {
            while let Some(record) = backlog.pop(&destination) {
                assert!(pending.insert(record, deadline).is_ok());
            }
        }
        for destination in 0..50 {
            let back = pending.drain(&destination).map(|(record, _)| record);
            assert_eq!(backlog.put_back(back).count(), 0);
        }
    };
    round(&mut backlog, &mut pending);
    let blocks = allocations(|| (0..20).for_each(|_| round(&mut backlog, &mut pending)));
    assert_eq!(blocks, 0, "sequenced {S}");
}

fn a_full_window_forgets_without_allocating() {
    let mut received = Received::new(1_000, 8).unwrap();
    for key in 0..=1_000_u64 {
        assert!(received.insert(&0_u16, key).is_new());
    }
    let blocks = allocations(|| {
        for key in 1_001..ROUNDS {
            assert!(received.insert(&0, key).is_new());
            assert!(!received.insert(&0, key - 500).is_new());
        }
    });
    assert_eq!(blocks, 0);
}

/// The slab holds exactly as many records as the caps allow and one that arrives, so what is left
/// without the records is their books and the index.
fn books_and_index_of_a_record_are_small<const S: bool>(most: usize) {
    let records = 100_000_usize;
    let caps = Caps::new(records, u64::MAX).unwrap();
    let (bytes, backlog) = held(|| filled::<S>(records as u64, caps));
    assert_eq!(backlog.capacity(), records + 1);
    let beside = bytes / records - size_of::<Message<S>>();
    assert!(beside <= most, "{beside}");
}

fn memory_follows_use_down_after_a_burst<const S: bool>() {
    let (small, first) = held(|| filled::<S>(1_000, Caps::NONE));
    drop(first);
    let mut backlog = filled::<S>(1_000, Caps::NONE);
    let (burst, ()) = held(|| {
        for key in 1_000..300_000 {
            assert!(backlog.push(Message::new(key, false)).is_ok());
        }
    });
    assert!(burst > 100 * small);
    let before = dhat::HeapStats::get().curr_bytes;
    for key in 1_000..300_000 {
        assert!(backlog.remove(&key).is_some());
    }
    let given_back = before - dhat::HeapStats::get().curr_bytes;
    let left = small + burst - given_back;
    assert!(left < 5 * small, "{left} of {burst} left, {small} at first");

    assert_eq!(backlog.drain_all().count(), 1_000);
    backlog.shrink_to_fit();
    assert_eq!(backlog.capacity(), 0);
}

fn draining_gives_memory_back() {
    let mut backlog = filled::<false>(100_000, Caps::NONE);
    for destination in 0..50 {
        assert_eq!(backlog.drain(&destination).count(), 2_000);
        let room = backlog.len().max(512) * 4;
        assert!(
            backlog.capacity() <= room,
            "{} for {}",
            backlog.capacity(),
            backlog.len()
        );
    }
    assert!(backlog.is_empty());
}

#[expect(clippy::disallowed_methods, reason = "std offers no other Instant")]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn steady_tables_allocate_nothing_and_memory_follows_use() {
    let _profiler = dhat::Profiler::builder().testing().build();
    for resident in [100, 1_000, 30_000] {
        a_steady_backlog_allocates_nothing::<false>(resident);
        a_steady_backlog_allocates_nothing::<true>(resident);
        a_full_backlog_evicts_without_allocating::<false>(resident);
        a_full_backlog_evicts_without_allocating::<true>(resident);
    }
    a_cut_and_its_replay_allocate_nothing::<false>(Some(now()));
    a_cut_and_its_replay_allocate_nothing::<true>(None);
    a_full_window_forgets_without_allocating();
    // At most seven sixteenths of the hash table are in use, and at least half of that: it takes 5
    // bytes a place. At most half of the ring is in use, and at least a quarter: 4 bytes a place.
    books_and_index_of_a_record_are_small::<false>(64 + 23);
    books_and_index_of_a_record_are_small::<true>(64 + 16);
    memory_follows_use_down_after_a_burst::<false>();
    memory_follows_use_down_after_a_burst::<true>();
    draining_gives_memory_back();
}

//! Criterion benches of `nacp-queue`, and beside each in the same run what the operation costs with
//! plain collections: no caps, no destinations, no books.
//!
//! Ids read `queue/operation/variant/resident`. Time is per iteration: one record in and one out,
//! unless the throughput says otherwise.

#[path = "queue/floors.rs"]
mod floors;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::measurement::WallTime;
use criterion::{
    BenchmarkGroup, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main,
};
use nacp_queue::{AckPending, Backlog, Caps, Received, Record};

const RESIDENT: [u64; 3] = [1, 1_000, 100_000];
const DESTINATIONS: [u64; 2] = [1, 1_000];

/// 16 bytes like a message id: random bits and a sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Id {
    random: u64,
    sequence: u64,
}

impl Id {
    fn of(sequence: u64) -> Self {
        Self {
            random: mix(sequence),
            sequence,
        }
    }
}

/// The finaliser of splitmix64.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    n ^ (n >> 31)
}

/// A record as heavy as a message with its encoded bytes; `SEQUENCED` lets the table use the
/// sequence number in its key.
#[derive(Clone, Copy, Debug)]
struct Message<const SEQUENCED: bool> {
    id: Id,
    destination: u32,
    droppable: bool,
    bytes: u64,
    _encoded: [usize; 4],
}

impl<const SEQUENCED: bool> Message<SEQUENCED> {
    fn new(sequence: u64, destinations: u64) -> Self {
        Self {
            id: Id::of(sequence),
            destination: (sequence % destinations) as u32,
            droppable: false,
            bytes: 64,
            _encoded: [0; 4],
        }
    }

    fn droppable(mut self) -> Self {
        self.droppable = true;
        self
    }
}

impl<const SEQUENCED: bool> Record for Message<SEQUENCED> {
    type Key = Id;
    type Destination = u32;

    fn key(&self) -> &Id {
        &self.id
    }
    fn destination(&self) -> &u32 {
        &self.destination
    }
    fn bytes(&self) -> u64 {
        self.bytes
    }
    fn droppable(&self) -> bool {
        self.droppable
    }
    fn sequence(key: &Id) -> Option<u64> {
        SEQUENCED.then_some(key.sequence)
    }
}

type Hashed = Message<false>;

fn backlog<const S: bool>(resident: u64, destinations: u64, caps: Caps) -> Backlog<Message<S>> {
    let mut backlog = Backlog::new(caps);
    for n in 0..resident {
        let _ = backlog.push(Message::new(n, destinations));
    }
    backlog
}

fn pending<const S: bool>(resident: u64, destinations: u64) -> AckPending<Message<S>> {
    let mut pending = AckPending::new(Caps::NONE);
    for n in 0..resident {
        let _ = pending.insert(Message::new(n, destinations), None);
    }
    pending
}

/// A cap on records and none on bytes.
fn capped(count: u64) -> Caps {
    Caps::new(count as usize, u64::MAX).unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "benches read the clock")]
fn now() -> Instant {
    Instant::now()
}

type Group<'a> = BenchmarkGroup<'a, WallTime>;

fn group<'a>(c: &'a mut Criterion, name: &str) -> Group<'a> {
    let mut group = c.benchmark_group(format!("queue/{name}"));
    group.warm_up_time(Duration::from_millis(300));
    group.measurement_time(Duration::from_millis(1_000));
    group.sample_size(30);
    group
}

fn push_pop(c: &mut Criterion) {
    let mut group = group(c, "push_pop");
    for resident in RESIDENT {
        floors::deque(&mut group, resident);
        for destinations in DESTINATIONS {
            bench_push_pop::<false>(&mut group, "hashed", resident, destinations);
            bench_push_pop::<true>(&mut group, "sequenced", resident, destinations);
        }
    }
    group.finish();
}

fn bench_push_pop<const S: bool>(g: &mut Group<'_>, keys: &str, resident: u64, destinations: u64) {
    let mut backlog = backlog::<S>(resident, destinations, Caps::NONE);
    let mut next = resident;
    g.bench_function(
        BenchmarkId::new(format!("{keys}/{destinations}_dest"), resident),
        |b| {
            b.iter(|| {
                let _ = backlog.push(Message::new(next, destinations));
                next += 1;
                let oldest = (next - 1 - resident) % destinations;
                black_box(backlog.pop(&(oldest as u32)))
            });
        },
    );
}

fn push_settle(c: &mut Criterion) {
    let mut group = group(c, "push_settle");
    for resident in RESIDENT {
        floors::indexmap(&mut group, resident);
        floors::hashbrown(&mut group, resident);
        floors::slab(&mut group, resident);
        floors::addressed_deque(&mut group, resident);
        for destinations in DESTINATIONS {
            bench_push_settle::<true>(&mut group, "sequenced", resident, destinations);
            bench_push_settle::<false>(&mut group, "hashed", resident, destinations);
        }
    }
    group.finish();
}

fn bench_push_settle<const S: bool>(
    g: &mut Group<'_>,
    keys: &str,
    resident: u64,
    destinations: u64,
) {
    let mut pending = pending::<S>(resident, destinations);
    let deadline = Some(now());
    let mut next = resident;
    g.bench_function(
        BenchmarkId::new(format!("{keys}/{destinations}_dest"), resident),
        |b| {
            b.iter(|| {
                let _ = pending.insert(Message::new(next, destinations), deadline);
                next += 1;
                black_box(pending.settle(&Id::of(next - 1 - resident)))
            });
        },
    );
}

/// The floor of eviction is push and pop of a table that is not full.
fn push_at_cap(c: &mut Criterion) {
    let mut group = group(c, "push_at_cap");
    for resident in RESIDENT {
        for destinations in DESTINATIONS {
            bench_push_pop::<false>(&mut group, "floor_push_pop", resident, destinations);
            bench_evict_oldest(&mut group, resident, destinations);
            bench_evict_droppable(&mut group, resident, destinations);
        }
    }
    group.finish();
}

fn bench_evict_oldest(group: &mut Group<'_>, resident: u64, destinations: u64) {
    let mut backlog = backlog::<false>(resident, destinations, capped(resident));
    let mut next = resident;
    group.bench_function(
        BenchmarkId::new(format!("oldest/{destinations}_dest"), resident),
        |b| {
            b.iter(|| {
                next += 1;
                backlog
                    .push(Message::new(next - 1, destinations))
                    .map(|gone| gone.for_each(drop_seen))
            });
        },
    );
}

fn drop_seen<T>(record: T) {
    black_box(record);
}

/// Each round a droppable record goes for one that is not, which then leaves by key so that the
/// next droppable one fits again.
fn bench_evict_droppable(group: &mut Group<'_>, resident: u64, destinations: u64) {
    let mut backlog: Backlog<Hashed> = Backlog::new(capped(resident));
    for n in 0..resident {
        let _ = backlog.push(Message::new(n, destinations).droppable());
    }
    let mut next = resident;
    group.throughput(Throughput::Elements(2));
    group.bench_function(
        BenchmarkId::new(format!("droppable/{destinations}_dest"), resident),
        |b| {
            b.iter(|| {
                let _ = backlog
                    .push(Message::new(next, destinations))
                    .map(|gone| gone.for_each(drop_seen));
                black_box(backlog.remove(&Id::of(next)));
                let _ = backlog
                    .push(Message::new(next + 1, destinations).droppable())
                    .map(|gone| gone.for_each(drop_seen));
                next += 2;
            });
        },
    );
    group.throughput(Throughput::Elements(1));
}

fn remove_middle(c: &mut Criterion) {
    let mut group = group(c, "remove_middle");
    for resident in RESIDENT {
        floors::slab_middle(&mut group, resident);
        for destinations in DESTINATIONS {
            bench_remove_middle::<false>(&mut group, "hashed", resident, destinations);
            bench_remove_middle::<true>(&mut group, "sequenced", resident, destinations);
        }
    }
    group.finish();
}

/// A record chosen at random leaves and comes back at the tail.
fn bench_remove_middle<const S: bool>(
    group: &mut Group<'_>,
    keys: &str,
    resident: u64,
    destinations: u64,
) {
    let mut backlog = backlog::<S>(resident, destinations, Caps::NONE);
    let mut round = 0;
    let id = BenchmarkId::new(format!("{keys}/{destinations}_dest"), resident);
    group.bench_function(id, |b| {
        b.iter(|| {
            round += 1;
            let key = Id::of(mix(round) % resident);
            let found = backlog.remove(&key);
            found.map(|record| backlog.push(record).is_ok())
        });
    });
}

/// A run of records goes back to the head of one destination and is popped again.
fn put_back(c: &mut Criterion) {
    let mut group = group(c, "put_back_1024");
    group.throughput(Throughput::Elements(1_024));
    for resident in RESIDENT {
        for destinations in DESTINATIONS {
            let mut backlog = backlog::<false>(resident, destinations, Caps::NONE);
            let run = (0..1_024).map(|n| Message::<false>::new(1_000_000_000 + n, 1));
            let id = BenchmarkId::new(format!("hashed/{destinations}_dest"), resident);
            group.bench_function(id, |b| {
                b.iter(|| {
                    backlog.put_back(run.clone()).for_each(drop_seen);
                    for _ in 0..1_024 {
                        black_box(backlog.pop(&0));
                    }
                });
            });
        }
    }
    group.finish();
}

/// Only the drain is timed; the records are pushed again behind the clock's back.
fn drain(c: &mut Criterion) {
    let mut group = group(c, "drain_one_of_1000_dest");
    for resident in &RESIDENT[1..] {
        let mut backlog = backlog::<false>(*resident, 1_000, Caps::NONE);
        let mut drained = Vec::with_capacity(100);
        group.throughput(Throughput::Elements(resident / 1_000));
        group.bench_function(BenchmarkId::new("hashed", resident), |b| {
            b.iter_custom(|rounds| {
                let mut spent = Duration::ZERO;
                for round in 0..rounds {
                    let start = now();
                    drained.extend(backlog.drain(&((round % 1_000) as u32)));
                    spent += start.elapsed();
                    drained
                        .drain(..)
                        .for_each(|record| drop_seen(backlog.push(record).is_ok()));
                }
                spent
            });
        });
    }
    group.finish();
}

fn dedup(c: &mut Criterion) {
    let mut group = group(c, "dedup");
    for window in [4_096_u64, 100_000] {
        let Ok(mut received) = Received::new(window as usize, 1_024) else {
            continue;
        };
        let mut next = 0;
        for _ in 0..window {
            let _ = received.insert(&7_u32, Id::of(next));
            next += 1;
        }
        group.bench_function(BenchmarkId::new("insert", window), |b| {
            b.iter(|| {
                next += 1;
                black_box(received.insert(&7, Id::of(next - 1)))
            });
        });
        group.bench_function(BenchmarkId::new("hit", window), |b| {
            let mut round = 0;
            b.iter(|| {
                round += 1;
                black_box(received.insert(&7, Id::of(next - 1 - mix(round) % window)))
            });
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    push_pop,
    push_settle,
    push_at_cap,
    remove_middle,
    put_back,
    drain,
    dedup
);
criterion_main!(benches);

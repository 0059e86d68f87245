//! Criterion benches of `nacp-bus`: what an emit costs, beside two floors.
//!
//! `exact_map` is the least a bus can do: it knows exact names only, one hash map from name to a
//! list of callbacks, no lock. `linear` is the naive design: every pattern is tried.

use std::collections::HashMap;
use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicU64, Ordering};

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use nacp_bus::{EventBus, Matcher, Pattern};

type Bus = EventBus<u64>;
type Call = Box<dyn Fn(&str, &u64)>;

const LISTENERS: [usize; 3] = [1, 100, 100_000];

fn pattern(text: &str) -> Pattern {
    match Pattern::parse(text) {
        Ok(pattern) => pattern,
        Err(error) => panic!("{text}: {error}"),
    }
}

/// Ends with the same length for each number, so that all names cost the same to hash.
fn name(number: usize) -> String {
    format!("shop:order:{number:06}:paid")
}

/// What every callback of every design does.
fn counting() -> impl Fn(&u64) + Send + Sync + 'static {
    let sum = AtomicU64::new(0);
    move |payload| {
        sum.fetch_add(*payload, Ordering::Relaxed);
    }
}

fn listen(bus: &Bus, pattern: &Pattern) {
    let count = counting();
    bus.listen(pattern, move |event| count(event.payload()));
}

fn call() -> Call {
    let count = counting();
    Box::new(move |_, payload| count(payload))
}

fn bus_of(patterns: &[Pattern]) -> Bus {
    let bus = Bus::new();
    patterns.iter().for_each(|pattern| listen(&bus, pattern));
    bus
}

/// One set of listeners and the event to emit.
struct Case {
    patterns: Vec<Pattern>,
    name: String,
    hits: usize,
}

impl Case {
    fn bus(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let bus = bus_of(&self.patterns);
        assert_eq!(bus.emit(&self.name, &1).called(), self.hits);
        group.bench_function(self.id("bus"), |b| {
            b.iter(|| bus.emit(black_box(&self.name), black_box(&1)));
        });
    }

    fn exact_map(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let mut calls: HashMap<&str, Vec<Call>> = HashMap::new();
        for pattern in &self.patterns {
            calls.entry(pattern.as_str()).or_default().push(call());
        }
        group.bench_function(self.id("exact_map"), |b| {
            b.iter(|| {
                let name = black_box(self.name.as_str());
                for call in calls.get(name).into_iter().flatten() {
                    call(name, black_box(&1));
                }
            });
        });
    }

    fn linear(&self, group: &mut BenchmarkGroup<'_, WallTime>) {
        let calls: Vec<(&Pattern, Call)> = self.patterns.iter().map(|p| (p, call())).collect();
        group.bench_function(self.id("linear"), |b| {
            b.iter(|| {
                let name = black_box(self.name.as_str());
                for (pattern, call) in &calls {
                    if pattern.matches(name) {
                        call(name, black_box(&1));
                    }
                }
            });
        });
    }

    fn id(&self, design: &str) -> BenchmarkId {
        BenchmarkId::new(design, self.patterns.len())
    }
}

/// Many listeners, each of a name of its own; one is hit.
fn emit_one_literal(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/emit_1_literal");
    for size in LISTENERS {
        let patterns = (0..size).map(|i| pattern(&name(i))).collect();
        let case = Case {
            patterns,
            name: name(size / 2),
            hits: 1,
        };
        case.bus(&mut group);
        case.exact_map(&mut group);
        case.linear(&mut group);
    }
    group.finish();
}

/// Many listeners, each with stars in a pattern of its own; one is hit.
fn emit_one_wildcard(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/emit_1_wildcard");
    for size in LISTENERS {
        let patterns = (0..size)
            .map(|i| pattern(&format!("shop:*:{i:06}:*")))
            .collect();
        let case = Case {
            patterns,
            name: name(size / 2),
            hits: 1,
        };
        case.bus(&mut group);
        case.linear(&mut group);
    }
    group.finish();
}

/// 100 listeners that are all hit: of one name, or spread over eight patterns that match it.
fn emit_100_hits(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/emit_100_hits/1_pattern");
    let patterns = vec![pattern(&name(0)); 100];
    let case = Case {
        patterns,
        name: name(0),
        hits: 100,
    };
    case.bus(&mut group);
    case.exact_map(&mut group);
    case.linear(&mut group);
    group.finish();

    let mut group = c.benchmark_group("bus/emit_100_hits/8_patterns");
    let patterns = (0..100)
        .map(|i| pattern(&starred(&name(0), i % 8)))
        .collect();
    let case = Case {
        patterns,
        name: name(0),
        hits: 100,
    };
    case.bus(&mut group);
    case.linear(&mut group);
    group.finish();
}

/// The name with a star for each of its first three segments whose bit is set.
fn starred(name: &str, bits: usize) -> String {
    let star = |(i, segment)| if bits >> i & 1 == 1 { "*" } else { segment };
    name.split(':')
        .enumerate()
        .map(star)
        .collect::<Vec<_>>()
        .join(":")
}

/// 100 000 listeners with stars in all places; eight are hit, one by each combination.
fn emit_mixed(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/emit_8_mixed");
    let name = |k: usize| format!("shop:{k:06}:order:{k:06}");
    let patterns = (0..100_000)
        .map(|i| pattern(&starred(&name(i / 8), i % 8)))
        .collect();
    let case = Case {
        patterns,
        name: name(5_000),
        hits: 8,
    };
    case.bus(&mut group);
    case.linear(&mut group);
    group.finish();
}

/// 10 000 patterns with the same 20 segments in front, every other one a star; one is hit.
fn emit_shared_beginning(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/emit_1_after_20_shared");
    let beginning = ["s:*"; 10].join(":");
    let patterns = (0..10_000)
        .map(|i| pattern(&format!("{beginning}:{i:06}")))
        .collect();
    let name = format!("{}:005000", ["s:x"; 10].join(":"));
    let case = Case {
        patterns,
        name,
        hits: 1,
    };
    case.bus(&mut group);
    case.linear(&mut group);
    group.finish();
}

/// What an event costs that nobody listens to, beside 100 000 listeners to others.
fn nobody_listens(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/nobody_listens");
    let patterns: Vec<Pattern> = (0..100_000)
        .map(|i| pattern(&starred(&name(i), (i % 2) * 4)))
        .collect();
    let bus = bus_of(&patterns);
    let name = "shop:order:none:cancelled";
    group.bench_function("emit_with", |b| {
        b.iter(|| bus.emit_with(black_box(name), || 1))
    });
    group.bench_function("has_listener", |b| {
        b.iter(|| bus.has_listener(black_box(name)))
    });
    let interest = bus.interest(name);
    group.bench_function("interest", |b| b.iter(|| black_box(&interest).exists()));
    group.bench_function("emit_with/empty_bus", |b| {
        let bus = Bus::new();
        b.iter(|| bus.emit_with(black_box(name), || 1));
    });
    group.finish();
}

/// One more listener and gone again, beside many of the same pattern.
fn listen_and_off(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/listen_off");
    for size in LISTENERS {
        for text in ["shop:order:000000:paid", "shop:*:000000:*"] {
            let pattern = pattern(text);
            let bus = bus_of(&vec![pattern.clone(); size]);
            group.bench_function(BenchmarkId::new(text, size), |b| {
                b.iter(|| bus.off(bus.listen(black_box(&pattern), |_| {})));
            });
        }
    }
    group.finish();
}

/// A hit that goes through a stream; without the waiting of a task.
fn through_a_stream(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/stream");
    for text in ["shop:order:000000:paid", "shop:*:000000:*"] {
        let bus = Bus::new();
        let mut stream = bus.stream(&pattern(text), NonZeroUsize::MIN);
        let name = name(0);
        group.bench_function(text, |b| {
            b.iter(|| {
                bus.emit(black_box(&name), &1);
                stream.try_recv()
            });
        });
    }
    group.finish();
}

/// The matcher alone: no lock, no reference counts, no calls.
fn matcher(c: &mut Criterion) {
    let mut group = c.benchmark_group("bus/matcher_1_hit");
    for (kind, bits) in [("literal", 0), ("wildcard", 2)] {
        let mut matcher = Matcher::new();
        for i in 0..100_000_usize {
            matcher.insert(&pattern(&starred(&name(i), bits)), i);
        }
        let name = name(50_000);
        group.bench_function(BenchmarkId::new(kind, 100_000), |b| {
            b.iter(|| matcher.for_each_match(black_box(&name), |_, value| _ = black_box(value)));
        });
    }
    group.finish();
}

criterion_group!(
    benches,
    emit_one_literal,
    emit_one_wildcard,
    emit_100_hits,
    emit_mixed,
    emit_shared_beginning,
    nobody_listens,
    listen_and_off,
    through_a_stream,
    matcher
);
criterion_main!(benches);

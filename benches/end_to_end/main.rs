//! The whole path between two nodes over loopback TCP, beside two floors in the same run: an echo with
//! `LengthDelimitedCodec`, and the same calls written by hand over raw bytes.
//!
//! Each side has a runtime of its own, as two processes would.
#![expect(
    clippy::unwrap_used,
    reason = "a bench that cannot be set up has nothing to measure"
)]

mod floors;

use std::future::Future;
use std::hint::black_box;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use nacp::{AppId, EventContext, HandlerError, Job, NApp, Payload, Reconnect};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::Notify;
use tokio::time::Instant;

/// Requests under way at once, in the benches that keep several.
const IN_FLIGHT: u64 = 64;

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Runs a measurement on a worker of its runtime, where an app's tasks live.
fn measure(near: &Runtime, work: impl Future<Output = Duration> + Send + 'static) -> Duration {
    near.block_on(async { tokio::spawn(work).await.unwrap() })
}

/// Two nodes, the second dialled by the first.
struct Pair {
    near: Runtime,
    app: NApp,
    _far: (NApp, Runtime),
    far_id: AppId,
}

fn pair() -> Pair {
    pair_with(None)
}

/// With heartbeats of the dialling side.
fn pair_with(beats: Option<Duration>) -> Pair {
    let (near, far) = (runtime(), runtime());
    let server = far.block_on(async {
        NApp::builder("server")
            .listen("127.0.0.1:0")
            .ability_raw("echo", async |_, payload| Ok(payload))
            .ability("length", async |_: Skipped| Ok::<_, HandlerError>(0))
            .event_raw("sink", async |ctx: EventContext, _| {
                while ctx.next_signal().await.is_some() {}
                Ok(Payload::empty())
            })
            .heartbeat_interval(None)
            .start()
            .await
            .unwrap()
    });
    let app = near.block_on(async {
        let app = NApp::builder("client")
            .heartbeat_interval(beats)
            .reconnect(Reconnect::off())
            .start()
            .await
            .unwrap();
        app.connect(server.listen_addrs()[0]).await.unwrap();
        app
    });
    Pair {
        near,
        app,
        _far: (server, far),
        far_id: AppId::new("server").unwrap(),
    }
}

/// Any argument, not looked at.
struct Skipped;

impl<'de> serde::Deserialize<'de> for Skipped {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        serde::de::IgnoredAny::deserialize(deserializer).map(|_| Self)
    }
}

fn payload(len: usize) -> Payload {
    Payload::byte_string(vec![7; len])
}

/// Calls one after another.
async fn in_turn<F: Future>(count: u64, mut call: impl FnMut() -> F) -> Duration {
    let start = Instant::now();
    for _ in 0..count {
        call().await;
    }
    start.elapsed()
}

/// Calls by [`IN_FLIGHT`] tasks, each one after another.
async fn side_by_side<F>(count: u64, call: impl Fn() -> F + Send + Sync + 'static) -> Duration
where
    F: Future + Send,
{
    let (call, left) = (Arc::new(call), Arc::new(AtomicU64::new(count)));
    let start = Instant::now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (call, left) = (Arc::clone(&call), Arc::clone(&left));
            tokio::spawn(async move {
                let take = |left: u64| left.checked_sub(1);
                while left
                    .fetch_update(Ordering::Relaxed, Ordering::Relaxed, take)
                    .is_ok()
                {
                    call().await;
                }
            })
        })
        .collect();
    for task in tasks {
        task.await.unwrap();
    }
    start.elapsed()
}

fn latency(c: &mut Criterion) {
    let mut group = c.benchmark_group("end_to_end/one_after_another/64");
    {
        let far = runtime();
        let near = runtime();
        let addr = far.block_on(floors::serve_codec());
        let raw = Arc::new(tokio::sync::Mutex::new(
            near.block_on(floors::dial_codec(addr)),
        ));
        group.bench_function("codec", |b| {
            b.iter_custom(|count| {
                let raw = Arc::clone(&raw);
                measure(&near, async move {
                    let mut raw = raw.lock().await;
                    let start = Instant::now();
                    for _ in 0..count {
                        floors::echo_codec(&mut raw).await;
                    }
                    start.elapsed()
                })
            });
        });
    }
    {
        let (near, far) = (runtime(), runtime());
        let addr = far.block_on(floors::serve_by_hand());
        let calls = near.block_on(floors::dial_by_hand(addr));
        group.bench_function("by_hand", |b| {
            b.iter_custom(|count| {
                let calls = Arc::clone(&calls);
                measure(&near, async move {
                    in_turn(count, || calls.call([7; 64])).await
                })
            });
        });
    }
    let pair = pair();
    group.bench_function("nacp", |b| {
        b.iter_custom(|count| {
            let (app, to) = (pair.app.clone(), pair.far_id.clone());
            measure(&pair.near, async move {
                in_turn(count, || app.request_raw(&to, "echo", payload(64))).await
            })
        });
    });
    group.finish();
}

fn in_flight(c: &mut Criterion) {
    let mut group = c.benchmark_group("end_to_end/64_in_flight/64");
    group.throughput(Throughput::Elements(1));
    {
        let (near, far) = (runtime(), runtime());
        let addr = far.block_on(floors::serve_by_hand());
        let calls = near.block_on(floors::dial_by_hand(addr));
        group.bench_function("by_hand", |b| {
            b.iter_custom(|count| {
                let calls = Arc::clone(&calls);
                let call = move || {
                    let calls = Arc::clone(&calls);
                    async move { calls.call([7; 64]).await }
                };
                measure(&near, side_by_side(count, call))
            });
        });
    }
    let pair = pair();
    group.bench_function("nacp", |b| {
        b.iter_custom(|count| {
            let (app, to) = (pair.app.clone(), pair.far_id.clone());
            let call = move || app.request_raw(&to, "echo", payload(64));
            measure(&pair.near, side_by_side(count, call))
        });
    });
    group.finish();
}

fn signals(c: &mut Criterion) {
    let mut group = c.benchmark_group("end_to_end/signals");
    group.throughput(Throughput::Elements(1));
    let pair = pair();
    let job: Job = (pair.near).block_on(async {
        let job = pair.app.run(&pair.far_id, "sink", &());
        job.await.unwrap()
    });
    let id = job.id().unwrap().clone();
    group.bench_function("acknowledged", |b| {
        b.iter_custom(|count| {
            let (app, to, id) = (pair.app.clone(), pair.far_id.clone(), id.clone());
            let call = move || {
                let (app, to, id) = (app.clone(), to.clone(), id.clone());
                async move { app.signal(to, id, nacp::Signal::Resume).await }
            };
            measure(&pair.near, side_by_side(count, call))
        });
    });
    group.finish();
}

/// Notifies that are emitted and not heard, at most.
const UNHEARD: u64 = 1024;

/// Emits at the far side and waits until the last has come.
fn notifies(c: &mut Criterion) {
    let mut group = c.benchmark_group("end_to_end/notifies");
    for subscribers in [1, 100] {
        group.throughput(Throughput::Elements(subscribers));
        let pair = pair();
        let (heard, done) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
        for _ in 0..subscribers {
            let (app, to) = (pair.app.clone(), pair.far_id.clone());
            let (heard, done) = (Arc::clone(&heard), Arc::clone(&done));
            let mut stream = (pair.near)
                .block_on(async move { app.subscribe(to, "tick").await })
                .unwrap();
            pair.near.spawn(async move {
                while let Some(item) = stream.next().await {
                    let count = 1 + item.missed.unwrap_or_default();
                    heard.fetch_add(count, Ordering::Relaxed);
                    done.notify_one();
                }
            });
        }
        group.bench_function(format!("to_{subscribers}"), |b| {
            b.iter_custom(|count| {
                let (server, far) = &pair._far;
                let server = server.clone();
                let (heard, done) = (Arc::clone(&heard), Arc::clone(&done));
                let before = heard.load(Ordering::Relaxed);
                far.block_on(async move {
                    let emitting = tokio::spawn(async move {
                        let start = Instant::now();
                        let arrived = || heard.load(Ordering::Relaxed) - before;
                        for n in 1..=count {
                            server.emit_raw("tick", payload(64));
                            // More than the queues hold would be refused.
                            while n * subscribers - arrived() > UNHEARD {
                                done.notified().await;
                            }
                        }
                        while arrived() < count * subscribers {
                            done.notified().await;
                        }
                        start.elapsed()
                    });
                    emitting.await.unwrap()
                })
            });
        });
    }
    group.finish();
}

/// One large payload there and an empty answer back, and what a heartbeat takes meanwhile.
fn large(c: &mut Criterion) {
    const LARGE: usize = 256 << 20;
    let mut group = c.benchmark_group("end_to_end/large");
    group.sample_size(10);
    group.throughput(Throughput::Bytes(LARGE as u64));
    // Often enough to meet every transfer.
    let pair = pair_with(Some(Duration::from_millis(100)));
    let large = payload(LARGE);
    let slowest = Arc::new(AtomicU64::new(0));
    group.bench_function("256_MiB", |b| {
        b.iter_custom(|count| {
            let (app, to, large) = (pair.app.clone(), pair.far_id.clone(), large.clone());
            let slowest = Arc::clone(&slowest);
            measure(&pair.near, async move {
                let (beats, beaten) = (app.clone(), to.clone());
                let beating = tokio::spawn(async move {
                    loop {
                        let link = beats.link(&beaten).unwrap();
                        let took = link.round_trip.unwrap_or_default();
                        slowest.fetch_max(took.as_micros() as u64, Ordering::Relaxed);
                        tokio::time::sleep(Duration::from_millis(20)).await;
                    }
                });
                let start = Instant::now();
                for _ in 0..count {
                    black_box(app.request_raw(&to, "length", large.clone()).await.unwrap());
                }
                let took = start.elapsed();
                beating.abort();
                took
            })
        });
    });
    // Criterion measures how long the transfers take; this is beside them.
    let slowest = slowest.load(Ordering::Relaxed);
    let mut out = std::io::stdout().lock();
    writeln!(out, "slowest heartbeat beside it: {slowest} us").unwrap();
    group.finish();
}

criterion_group!(benches, latency, in_flight, signals, notifies, large);
criterion_main!(benches);

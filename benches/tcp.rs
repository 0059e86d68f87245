//! Criterion benches of `nacp-transport-tcp`: encoded messages over loopback, beside the same bytes
//! under `LengthDelimitedCodec` with a flush a message.
//!
//! The far side runs on a thread of its own, as another process would.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{Bencher, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use futures_util::{SinkExt, StreamExt};
use nacp_proto::{AppId, Body, ChunkSize, Message, MessageId, Payload, RequestKind};
use nacp_transport_tcp::{Address, Lane, Listener, Options, Receiver, Sender, connect};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// What the far side does with what it gets.
#[derive(Clone, Copy)]
enum Far {
    /// Sends each message back.
    Echo,
    /// Sends one message back for every so many that came.
    Sink(usize),
}

fn runtime() -> Runtime {
    Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be built")
}

fn request(payload_len: usize) -> Bytes {
    let message = Message {
        id: MessageId::sequenced(1, 0x0123_4567_89ab_cdef),
        from: AppId::new("client").expect("a good AppId"),
        to: AppId::new("server").expect("a good AppId"),
        time: Some(1_700_000_000_000.0),
        body: Body::Request {
            kind: RequestKind::Ability,
            target: Some("echo".into()),
            payload: Payload::byte_string(vec![7; payload_len]),
        },
    };
    message.encode().to_bytes()
}

/// Our side of a connection.
struct Near {
    sender: Sender,
    receiver: Receiver,
}

impl Near {
    fn send(&self, message: &Bytes) {
        self.sender
            .queue(Lane::Bulk, message.clone().into())
            .expect("the connection is open");
    }

    async fn recv(&mut self) -> usize {
        loop {
            let batch = self
                .receiver
                .recv()
                .await
                .expect("no fault")
                .expect("no end");
            let came = batch.messages.drain(..).count();
            if came > 0 {
                return came;
            }
        }
    }
}

fn options() -> Options {
    let limits = nacp_proto::ReassemblyLimits::default().max_unregistered_bytes(u64::MAX);
    Options::default()
        .limits(limits)
        .chunk_size(ChunkSize::NATIVE)
}

fn nacp_far(far: Far) -> SocketAddr {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        runtime().block_on(async {
            let any = Address::to_listen_on("127.0.0.1:0").expect("a good address");
            let listener = Listener::bind(&any, options())
                .await
                .expect("loopback can be bound");
            tell.send(listener.local_addr()).expect("the bench waits");
            let (sender, mut receiver, writer) = listener.accept().await.split();
            tokio::spawn(writer.run(|_| ()));
            let mut count = 0;
            while let Ok(Some(batch)) = receiver.recv().await {
                for message in batch.messages.drain(..) {
                    count += 1;
                    if let Far::Sink(every) = far
                        && count % every != 0
                    {
                        continue;
                    }
                    let answer = match far {
                        Far::Echo => message.bytes,
                        Far::Sink(_) => request(0),
                    };
                    let _ = sender.queue(Lane::Bulk, answer.into());
                }
                sender.flush();
            }
        });
    });
    told.recv().expect("the far side listens")
}

async fn nacp_near(far: Far) -> Near {
    let connection = connect(&nacp_far(far).into(), &options())
        .await
        .expect("it listens");
    let (sender, receiver, writer) = connection.split();
    tokio::spawn(writer.run(|_| ()));
    Near { sender, receiver }
}

type Raw = Framed<TcpStream, LengthDelimitedCodec>;

fn framed(stream: TcpStream) -> Raw {
    stream
        .set_nodelay(true)
        .expect("a socket takes this option");
    LengthDelimitedCodec::builder()
        .max_frame_length(1 << 30)
        .new_framed(stream)
}

fn raw_far(far: Far) -> SocketAddr {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        runtime().block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0")
                .await
                .expect("loopback can be bound");
            tell.send(listener.local_addr().expect("it is bound"))
                .expect("the bench waits");
            let mut raw = framed(listener.accept().await.expect("a connection comes").0);
            let mut count = 0;
            while let Some(Ok(message)) = raw.next().await {
                count += 1;
                let answer = match far {
                    Far::Echo => message.freeze(),
                    Far::Sink(every) if count % every == 0 => Bytes::from_static(b"got it"),
                    Far::Sink(_) => continue,
                };
                if raw.send(answer).await.is_err() {
                    return;
                }
            }
        });
    });
    told.recv().expect("the far side listens")
}

async fn raw_near(far: Far) -> Raw {
    framed(TcpStream::connect(raw_far(far)).await.expect("it listens"))
}

/// Times `run`, which is told how many messages to send.
fn measure<N>(
    bencher: &mut Bencher<'_>,
    near: impl AsyncFn() -> N,
    run: impl AsyncFn(&mut N, u64) -> (),
) {
    let runtime = runtime();
    let mut near = runtime.block_on(near());
    bencher.iter_custom(|count| -> Duration {
        let start = Instant::now();
        runtime.block_on(run(&mut near, count));
        start.elapsed()
    });
}

/// One message at a time, there and back.
fn round_trip(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp/round_trip");
    let message = request(64);
    group.bench_function(BenchmarkId::new("nacp", 64), |b| {
        measure(
            b,
            || nacp_near(Far::Echo),
            async |near, count| {
                for _ in 0..count {
                    near.send(&message);
                    near.sender.flush();
                    near.recv().await;
                }
            },
        );
    });
    group.bench_function(BenchmarkId::new("length_delimited", 64), |b| {
        measure(
            b,
            || raw_near(Far::Echo),
            async |raw, count| {
                for _ in 0..count {
                    raw.send(message.clone())
                        .await
                        .expect("the connection is open");
                    raw.next().await.expect("no end").expect("no fault");
                }
            },
        );
    });
    group.finish();
}

/// 64 messages under way; each that comes back sends another one off.
fn in_flight(c: &mut Criterion) {
    const WINDOW: u64 = 64;
    let mut group = c.benchmark_group("tcp/64_in_flight");
    group.throughput(Throughput::Elements(1));
    let message = request(64);
    group.bench_function(BenchmarkId::new("nacp", 64), |b| {
        measure(
            b,
            || nacp_near(Far::Echo),
            async |near, count| {
                let (mut sent, mut came) = (0, 0);
                while came < count {
                    while sent < count && sent - came < WINDOW {
                        near.send(&message);
                        sent += 1;
                    }
                    near.sender.flush();
                    came += near.recv().await as u64;
                }
            },
        );
    });
    group.bench_function(BenchmarkId::new("length_delimited", 64), |b| {
        measure(
            b,
            || raw_near(Far::Echo),
            async |raw, count| {
                let (mut sent, mut came) = (0, 0);
                while came < count {
                    while sent < count && sent - came < WINDOW {
                        raw.send(message.clone())
                            .await
                            .expect("the connection is open");
                        sent += 1;
                    }
                    raw.next().await.expect("no end").expect("no fault");
                    came += 1;
                }
            },
        );
    });
    group.finish();
}

/// Messages that nobody answers, each flushed by itself, no more than 1024 of them unaccepted; a
/// round trip for every 1024 ends a measurement.
fn one_way(c: &mut Criterion) {
    const EVERY: usize = 1024;
    let mut group = c.benchmark_group("tcp/one_way");
    group.throughput(Throughput::Elements(EVERY as u64));
    let message = request(64);
    group.bench_function(BenchmarkId::new("nacp", 64), |b| {
        measure(
            b,
            || nacp_near(Far::Sink(EVERY)),
            async |near, count| {
                let mut answers = 0;
                for _ in 0..count {
                    for _ in 0..EVERY {
                        near.send(&message);
                        near.sender.flush();
                    }
                    answers += near.recv().await as u64;
                }
                assert_eq!(answers, count);
            },
        );
    });
    group.bench_function(BenchmarkId::new("nacp_flushed_by_64", 64), |b| {
        measure(
            b,
            || nacp_near(Far::Sink(EVERY)),
            async |near, count| {
                for _ in 0..count {
                    for _ in 0..EVERY / 64 {
                        (0..64).for_each(|_| near.send(&message));
                        near.sender.flush();
                    }
                    near.recv().await;
                }
            },
        );
    });
    group.bench_function(BenchmarkId::new("length_delimited", 64), |b| {
        measure(
            b,
            || raw_near(Far::Sink(EVERY)),
            async |raw, count| {
                for _ in 0..count {
                    for _ in 0..EVERY {
                        raw.send(message.clone())
                            .await
                            .expect("the connection is open");
                    }
                    raw.next().await.expect("no end").expect("no fault");
                }
            },
        );
    });
    group.finish();
}

/// Large messages, each answered by a small one.
fn large(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp/large");
    group.sample_size(10);
    for (name, len) in [("1MiB", 1 << 20), ("64MiB", 64 << 20)] {
        group.throughput(Throughput::Bytes(len));
        let message = request(len as usize);
        group.bench_function(BenchmarkId::new("nacp", name), |b| {
            measure(
                b,
                || nacp_near(Far::Sink(1)),
                async |near, count| {
                    for _ in 0..count {
                        near.send(&message);
                        near.sender.flush();
                        near.recv().await;
                    }
                },
            );
        });
        group.bench_function(BenchmarkId::new("length_delimited", name), |b| {
            measure(
                b,
                || raw_near(Far::Sink(1)),
                async |raw, count| {
                    for _ in 0..count {
                        raw.send(message.clone())
                            .await
                            .expect("the connection is open");
                        raw.next().await.expect("no end").expect("no fault");
                    }
                },
            );
        });
    }
    group.finish();
}

criterion_group!(benches, round_trip, in_flight, one_way, large);
criterion_main!(benches);

//! Benches of `nacp-proto`: `cargo bench -p nacp-proto`.

use std::hint::black_box;
use std::time::Instant;

use bytes::{BufMut, Bytes, BytesMut};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use nacp_proto::{
    AppId, Body, ChunkSize, Chunker, FrameDecoder, Message, MessageId, MsgId, Payload,
    ReassemblyLimits, RequestKind,
};
use serde::{Deserialize, Serialize};

const SIZES: [usize; 3] = [64, 4 << 10, 1 << 20];

fn request(payload_bytes: usize) -> Message {
    let app = |name| AppId::new(name).expect("a good name");
    Message {
        id: MessageId::sequenced(1_234_567, 0x0123_4567_89ab_cdef),
        from: app("bench-client"),
        to: app("bench-server"),
        time: Some(1_700_000_000_123.0),
        body: Body::Request {
            kind: RequestKind::Ability,
            target: Some("echo".into()),
            payload: Payload::byte_string(vec![0x5a; payload_bytes]),
        },
    }
}

fn ack() -> Message {
    let request = request(0);
    let body = Body::Ack {
        parent_id: request.id.clone(),
    };
    Message { body, ..request }
}

/// The same message for ciborium and serde: the floor.
#[derive(Clone, Serialize, Deserialize)]
struct PlainRequest {
    v: PlainVersion,
    r#type: String,
    id: String,
    from: String,
    to: String,
    t: f64,
    payload: Bytes,
    meta: PlainMeta,
}

#[derive(Clone, Serialize, Deserialize)]
struct PlainVersion {
    major: u64,
    minor: u64,
}

#[derive(Clone, Serialize, Deserialize)]
struct PlainMeta {
    kind: String,
    target: Option<String>,
}

fn plain(message: &Message) -> PlainRequest {
    ciborium::from_reader(&*message.encode().to_bytes()).expect("a message that we encoded")
}

fn encode(c: &mut Criterion) {
    let mut group = c.benchmark_group("proto/encode");
    let (ack, mut out) = (ack(), BytesMut::with_capacity(1024));
    group.bench_function("ack", |b| {
        b.iter(|| {
            out.clear();
            black_box(&ack).encode_into(&mut out);
            out.len()
        });
    });
    for size in SIZES {
        let message = request(size);
        let plain = plain(&message);
        let bytes = message.encode().to_bytes();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        let mut out = BytesMut::with_capacity(2 * bytes.len() + 256);
        group.bench_with_input(BenchmarkId::from_parameter(size), &message, |b, message| {
            b.iter(|| {
                out.clear();
                black_box(message).encode_into(&mut out);
                out.len()
            });
        });
        group.bench_with_input(BenchmarkId::new("apart", size), &message, |b, message| {
            b.iter(|| black_box(message).encode());
        });
        let mut out = Vec::with_capacity(2 * bytes.len());
        group.bench_with_input(BenchmarkId::new("ciborium", size), &plain, |b, plain| {
            b.iter(|| {
                out.clear();
                ciborium::into_writer(black_box(plain), &mut out).expect("a Vec takes everything");
                out.len()
            });
        });
    }
    group.finish();
}

fn decode(c: &mut Criterion) {
    let mut group = c.benchmark_group("proto/decode");
    let ack = ack().encode().to_bytes();
    group.bench_function("ack", |b| b.iter(|| Message::decode(black_box(&ack))));
    for size in SIZES {
        let bytes = request(size).encode().to_bytes();
        group.throughput(Throughput::Bytes(bytes.len() as u64));
        group.bench_with_input(BenchmarkId::from_parameter(size), &bytes, |b, bytes| {
            b.iter(|| Message::decode(black_box(bytes)));
        });
        group.bench_with_input(BenchmarkId::new("ciborium", size), &bytes, |b, bytes| {
            b.iter(|| ciborium::from_reader::<PlainRequest, _>(black_box(&**bytes)));
        });
    }
    group.finish();
}

/// A value of a user, into a payload and back.
#[derive(Clone, Serialize, Deserialize)]
struct Order {
    customer: String,
    items: Vec<Item>,
    paid: bool,
}

#[derive(Clone, Serialize, Deserialize)]
struct Item {
    article: String,
    count: u32,
    price: f64,
}

fn payload(c: &mut Criterion) {
    let item = Item {
        article: "sprocket, 12 teeth".into(),
        count: 4,
        price: 1.25,
    };
    let order = Order {
        customer: "Ada".into(),
        items: vec![item; 8],
        paid: true,
    };
    let payload = Payload::new(&order).expect("a serializable value");
    let mut group = c.benchmark_group("proto/payload");
    group.throughput(Throughput::Bytes(payload.len() as u64));
    group.bench_function("new", |b| b.iter(|| Payload::new(black_box(&order))));
    group.bench_function("decode", |b| {
        b.iter(|| black_box(&payload).decode::<Order>())
    });
    group.bench_function("decode/ciborium", |b| {
        b.iter(|| ciborium::from_reader::<Order, _>(black_box(payload.as_cbor())));
    });
    group.finish();
}

/// A message as frames of the native chunk size, as it comes over a stream.
fn framed(message: &Bytes) -> Bytes {
    let mut stream = BytesMut::new();
    let chunker = Chunker::new(message.clone().into(), MsgId([7; 16])).expect("not too large");
    for frame in chunker.frames(ChunkSize::NATIVE) {
        stream.put_slice(&frame.header.to_bytes());
        stream.put_slice(&frame.body.to_bytes());
    }
    stream.freeze()
}

/// Puts a stream through a decoder, read by read, and counts the messages.
fn join_frames(decoder: &mut FrameDecoder, now: Instant, mut stream: &[u8]) -> usize {
    let mut messages = 0;
    while !stream.is_empty() {
        let mut room = decoder.read_buf();
        let (read, rest) = stream.split_at(stream.len().min(room.remaining_mut()));
        room.put_slice(read);
        stream = rest;
        while let Some(message) = decoder.poll_message(now).expect("good frames") {
            black_box(message);
            messages += 1;
        }
    }
    messages
}

/// The floor: the same copy into a read buffer, cut at lengths that are known.
fn join_known(buf: &mut BytesMut, message_len: usize, mut stream: &[u8]) -> usize {
    let mut messages = 0;
    while !stream.is_empty() {
        buf.reserve(64 << 10);
        let (read, rest) = stream.split_at(stream.len().min(64 << 10));
        buf.put_slice(read);
        stream = rest;
        while buf.len() >= message_len {
            black_box(buf.split_to(message_len).freeze());
            messages += 1;
        }
    }
    messages
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to make an instant"
)]
fn frames(c: &mut Criterion) {
    let now = Instant::now();
    let mut group = c.benchmark_group("proto/frames");
    for size in SIZES {
        let message = request(size).encode().to_bytes();
        group.throughput(Throughput::Bytes(message.len() as u64));
        group.bench_with_input(BenchmarkId::new("cut", size), &message, |b, message| {
            b.iter(|| {
                let chunker = Chunker::new(message.clone().into(), MsgId([7; 16]));
                let frames = chunker.expect("not too large").frames(ChunkSize::NATIVE);
                frames.for_each(|frame| {
                    black_box((frame.header.to_bytes(), frame.body));
                });
            });
        });
        let one = framed(&message);
        let count = ((64 << 10) / one.len()).max(1);
        let stream = one.repeat(count);
        group.throughput(Throughput::Bytes(stream.len() as u64));
        let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
        decoder.handle_registered();
        let name = |what| BenchmarkId::new(what, format!("{size}x{count}"));
        group.bench_with_input(name("join"), &stream, |b, stream| {
            b.iter(|| join_frames(&mut decoder, now, black_box(stream)));
        });
        let mut buf = BytesMut::new();
        group.bench_with_input(name("join/known_lengths"), &stream, |b, stream| {
            b.iter(|| join_known(&mut buf, one.len(), black_box(stream)));
        });
    }
    group.finish();
}

criterion_group!(benches, encode, decode, payload, frames);
criterion_main!(benches);

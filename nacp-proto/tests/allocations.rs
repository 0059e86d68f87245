//! What encoding and decoding take from the heap. One test, because the count is the process's own.

#![expect(
    clippy::unwrap_used,
    reason = "what a test builds is good, or the test fails"
)]

use std::hint::black_box;

use bytes::{Bytes, BytesMut};
use nacp_proto::{AppId, Body, Message, MessageId, Payload, RequestKind, Response};

#[global_allocator]
static ALLOCATOR: dhat::Alloc = dhat::Alloc;

/// How many blocks `work` takes from the heap.
fn blocks<T>(work: impl FnOnce() -> T) -> u64 {
    let before = dhat::HeapStats::get().total_blocks;
    black_box(work());
    dhat::HeapStats::get().total_blocks - before
}

/// How many bytes more than before are in use at the peak of `work`.
fn peak<T>(work: impl FnOnce() -> T) -> usize {
    let profiler = dhat::Profiler::builder().testing().build();
    black_box(work());
    let peak = dhat::HeapStats::get().max_bytes;
    drop(profiler);
    peak
}

fn message(body: Body) -> Message {
    let app = |name| AppId::new(name).unwrap();
    let id = MessageId::sequenced(1, 2);
    Message {
        time: Some(1.0),
        ..Message::new(id, app("bench-client"), app("bench-server"), body)
    }
}

fn request(payload: Payload) -> Message {
    message(Body::Request {
        kind: RequestKind::Ability,
        target: Some("echo".into()),
        payload,
    })
}

/// The messages that a call exchanges.
fn of_a_call() -> [Message; 3] {
    let id = || MessageId::sequenced(3, 4);
    let answer = Response {
        kind: Some(RequestKind::Ability),
        ..Response::ok(id(), Payload::null())
    };
    [
        request(Payload::byte_string([7; 64])),
        message(Body::Response(answer)),
        message(Body::Ack { parent_id: id() }),
    ]
}

#[test]
fn encoding_into_room_and_decoding_allocate_nothing_and_memory_follows_the_bytes() {
    the_counters_count();
    encoding_into_room_and_decoding_allocate_nothing();
    a_large_payload_is_not_copied();
    t_01_memory_does_not_follow_declared_lengths();
}

fn the_counters_count() {
    assert!(peak(|| vec![0_u8; 1 << 20]) >= 1 << 20);
    let _profiler = dhat::Profiler::builder().testing().build();
    assert_eq!(blocks(|| Box::new(5)), 1);
}

fn encoding_into_room_and_decoding_allocate_nothing() {
    let _profiler = dhat::Profiler::builder().testing().build();
    for message in of_a_call() {
        let mut out = BytesMut::with_capacity(message.encode().len() + 256);
        assert_eq!(blocks(|| message.encode_into(&mut out)), 0, "{message:?}");
        let bytes = message.encode().to_bytes();
        // The first share of a buffer makes its counter; a receiver's buffer has one already.
        let _shared = bytes.clone();
        assert_eq!(blocks(|| Message::decode(&bytes)), 0, "{message:?}");
    }
}

fn a_large_payload_is_not_copied() {
    let message = request(Payload::byte_string(vec![7; 1 << 20]));
    let bytes = message.encode().to_bytes();
    assert!(peak(|| message.encode()) < 1024);
    assert!(peak(|| Message::decode(&bytes)) < 1024);
}

fn t_01_memory_does_not_follow_declared_lengths() {
    let whole = request(Payload::null()).encode().to_bytes();
    let key = b"\x67payload";
    let at = whole
        .windows(key.len())
        .position(|window| window == key)
        .unwrap()
        + key.len();
    for major in [0x9b, 0xbb, 0x7b, 0x5b] {
        let item = [&[major][..], &u64::to_be_bytes(1 << 32)].concat();
        let as_payload = Bytes::from([&whole[..at], &item, &whole[at + 1..]].concat());
        assert!(peak(|| Message::decode(&as_payload)) < 1024);
        assert!(peak(|| Message::decode(&Bytes::from(item.clone()))) < 1024);
        assert!(peak(|| Payload::from_cbor(item.clone())) < 1024);
    }
    let deep = Bytes::from([&whole[..at], &[0x81; 100_000], &whole[at..]].concat());
    assert!(peak(|| Message::decode(&deep)) < 1024);
}

//! T-01: memory grows by no more than twice the bytes that came, plus 1 MiB, whatever the frames.
//!
//! One test alone in its binary, because the heap of a process is counted.
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::time::Instant;

use bytes::BufMut;
use nacp_proto::{FrameDecoder, FrameHeader, MsgId, ReassemblyLimits};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

/// Where the frames of a message of `total` bytes start that have one byte each.
type Order = fn(total: u32) -> Vec<u32>;

/// Feeds frames, and asserts after each that the heap follows the bytes that came.
fn feed(msg_id: MsgId, total: u32, body_len: u32, offsets: Vec<u32>) {
    let now = now();
    let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
    decoder.handle_registered();
    let body = vec![7; body_len as usize];
    let before = dhat::HeapStats::get().curr_bytes;
    let mut came = 0;
    for offset in offsets {
        let header = FrameHeader::new(msg_id, offset, total, body_len).unwrap();
        for bytes in [&header.to_bytes()[..], &body] {
            let mut rest = bytes;
            while !rest.is_empty() {
                let mut room = decoder.read_buf();
                let (read, later) = rest.split_at(rest.len().min(room.remaining_mut()));
                room.put_slice(read);
                rest = later;
                came += read.len();
                drop(decoder.poll_message(now).unwrap());
                let grown = dhat::HeapStats::get().curr_bytes - before;
                assert!(
                    grown <= 2 * came + (1 << 20),
                    "{grown} bytes of heap for {came}"
                );
            }
        }
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to make an instant"
)]
fn now() -> Instant {
    Instant::now()
}

#[test]
fn memory_grows_by_no_more_than_twice_what_came_and_a_mebibyte() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let count = 60_000;
    let orders: [Order; 4] = [
        |total| (0..total).collect(),
        |total| (0..total).rev().collect(),
        |total| (0..total).map(|at| (at * 2 + 1) % (total | 1)).collect(),
        |total| (0..total).map(|at| at * 7919 % total).collect(),
    ];
    for order in orders {
        feed(MsgId([1; 16]), count, 1, order(count));
    }
    feed(MsgId([1; 16]), 2 << 30, 24 << 20, vec![0]);
    feed(MsgId([1; 16]), 2 << 30, 24 << 20, vec![1 << 30]);
    feed(
        MsgId([1; 16]),
        4 << 20,
        1 << 20,
        vec![1 << 20, 3 << 20, 2 << 20, 0],
    );

    let now = now();
    let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
    let before = dhat::HeapStats::get().curr_bytes;
    for number in 0..64 {
        let header = FrameHeader::new(MsgId([number; 16]), 0, 1 << 30, 1).unwrap();
        decoder.read_buf().put_slice(&header.to_bytes());
        decoder.read_buf().put_slice(b"x");
        assert_eq!(decoder.poll_message(now), Ok(None));
    }
    let grown = dhat::HeapStats::get().curr_bytes - before;
    assert!(
        grown <= 64 << 10,
        "{grown} bytes of heap for 64 messages begun"
    );
}

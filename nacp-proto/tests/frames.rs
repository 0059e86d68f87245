//! Frame headers, and the decoder that cuts a stream into messages.
//! Scenarios T-01 and T-02, as far as they concern frames.
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::time::Instant;

use bytes::{BufMut, Bytes};
use nacp_proto::{
    ChunkSize, Chunker, FrameDecoder, FrameError, FrameHeader, MsgId, ReassemblyLimits,
};

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to make an instant"
)]
fn now() -> Instant {
    Instant::now()
}

fn decoder() -> FrameDecoder {
    let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
    decoder.handle_registered();
    decoder
}

/// Puts `bytes` in as reads of whatever size the decoder has room for, and collects what comes out.
fn feed(decoder: &mut FrameDecoder, mut bytes: &[u8]) -> Result<Vec<Bytes>, FrameError> {
    let now = now();
    let mut messages = Vec::new();
    while !bytes.is_empty() {
        let mut room = decoder.read_buf();
        let (read, rest) = bytes.split_at(bytes.len().min(room.remaining_mut()));
        room.put_slice(read);
        bytes = rest;
        while let Some(message) = decoder.poll_message(now)? {
            messages.push(message);
        }
    }
    Ok(messages)
}

fn reason(bytes: &[u8]) -> &'static str {
    feed(&mut decoder(), bytes).unwrap_err().reason()
}

const MSG_ID: MsgId = MsgId([7; 16]);

fn message(len: usize) -> Bytes {
    (0..len).map(|at| (at * 31 % 251) as u8).collect()
}

fn framed(message: &Bytes, chunk_size: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    let chunker = Chunker::new(message.clone().into(), MSG_ID).unwrap();
    for frame in chunker.frames(ChunkSize::new(chunk_size).unwrap()) {
        bytes.extend_from_slice(&frame.header.to_bytes());
        bytes.extend_from_slice(&frame.body.to_bytes());
    }
    bytes
}

/// A header with any numbers, right or wrong, and a body.
fn raw(offset: u32, total_size: u32, frame_size: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = MSG_ID.0.to_vec();
    for number in [offset, total_size, frame_size] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 0xCF, 0x01]);
    bytes.extend_from_slice(body);
    bytes
}

fn frame(offset: u32, total_size: u32, body: &[u8]) -> Vec<u8> {
    raw(offset, total_size, 32 + body.len() as u32, body)
}

#[test]
fn header_lies_on_the_wire_as_specified() {
    let header = FrameHeader::new(MsgId([0xAB; 16]), 0x0102_0304, 0x1112_1314, 0x20).unwrap();
    let expected = [
        [0xAB; 16].as_slice(),
        &[
            1, 2, 3, 4, 0x11, 0x12, 0x13, 0x14, 0, 0, 0, 0x40, 0, 0, 0xCF, 0x01,
        ],
    ]
    .concat();
    assert_eq!(header.to_bytes(), *expected);
    assert_eq!(FrameHeader::parse(&header.to_bytes()), Ok(header));
}

#[test]
fn blank_bytes_are_ignored() {
    let mut bytes = frame(0, 3, b"abc");
    bytes[28..30].copy_from_slice(&[0xFF, 0xFF]);
    assert_eq!(feed(&mut decoder(), &bytes).unwrap(), [&b"abc"[..]]);
}

#[test]
fn version_is_looked_at_before_the_magic() {
    let with = |magic, version| {
        let mut bytes = frame(0, 3, b"abc");
        bytes[30..32].copy_from_slice(&[magic, version]);
        reason(&bytes)
    };
    assert_eq!(with(0xCF, 2), "version-mismatch");
    assert_eq!(with(0x00, 1), "bad-magic");
    assert_eq!(with(0x00, 2), "version-mismatch");
}

#[test]
fn frame_size_has_room_for_its_header_and_is_at_most_2_to_the_31() {
    for (frame_size, expected) in [
        (0, "frame-too-small"),
        (1, "frame-too-small"),
        (31, "frame-too-small"),
        (0x8000_0001, "frame-too-large"),
        (0xFFFF_FFFF, "frame-too-large"),
    ] {
        assert_eq!(
            reason(&raw(0, 0xFFFF_FFFF, frame_size, b"")),
            expected,
            "{frame_size:#x}"
        );
    }
    let largest = raw(0, 0x8000_0000, 0x8000_0000, b"");
    assert_eq!(feed(&mut decoder(), &largest), Ok(vec![]));
}

#[test]
fn empty_body_is_a_frame() {
    let mut decoder = decoder();
    assert_eq!(feed(&mut decoder, &frame(0, 3, b"")), Ok(vec![]));
    assert_eq!(decoder.unfinished_messages(), 1);
    assert_eq!(
        feed(&mut decoder, &frame(0, 3, b"abc")).unwrap(),
        [&b"abc"[..]]
    );
    assert_eq!(
        (decoder.unfinished_messages(), decoder.held_bytes()),
        (0, 0)
    );
}

#[test]
fn message_of_no_bytes_is_handed_on() {
    assert_eq!(
        feed(&mut decoder(), &frame(0, 0, b"")).unwrap(),
        [Bytes::new()]
    );
}

#[test]
fn body_ends_within_its_message() {
    let mut decoder = decoder();
    assert_eq!(feed(&mut decoder, &frame(8, 10, b"ab")), Ok(vec![]));
    assert_eq!(reason(&frame(9, 10, b"ab")), "frame-out-of-bounds");
    assert_eq!(
        reason(&frame(0xFFFF_FFFF, 10, b"ab")),
        "frame-out-of-bounds"
    );
    assert_eq!(
        reason(&frame(0xFFFF_FFFF, 0xFFFF_FFFF, b"ab")),
        "frame-out-of-bounds"
    );
    assert_eq!(reason(&frame(11, 10, b"")), "frame-out-of-bounds");
}

#[test]
fn total_size_stays_the_same_within_a_message() {
    let bytes = [frame(0, 10, b"abc"), frame(3, 11, b"d")].concat();
    assert_eq!(reason(&bytes), "total-size-changed");
}

#[test]
fn bytes_that_came_do_not_come_again() {
    let twice = |first: &[u8], second: &[u8]| reason(&[first, second].concat());
    let middle = frame(4, 12, b"abcd");
    assert_eq!(
        twice(&frame(0, 12, b"abcd"), &frame(0, 12, b"abcd")),
        "overlapping-frame"
    );
    assert_eq!(
        twice(&frame(0, 12, b"abcd"), &frame(3, 12, b"d")),
        "overlapping-frame"
    );
    assert_eq!(twice(&middle, &middle), "overlapping-frame");
    assert_eq!(twice(&middle, &frame(7, 12, b"de")), "overlapping-frame");
    assert_eq!(twice(&middle, &frame(1, 12, b"abcd")), "overlapping-frame");
    assert_eq!(
        twice(&middle, &frame(0, 12, b"............")),
        "overlapping-frame"
    );
    assert_eq!(twice(&middle, &frame(5, 12, b".")), "overlapping-frame");
    let around = [middle, frame(8, 12, b"efgh"), frame(0, 12, b"0123")].concat();
    assert_eq!(
        feed(&mut decoder(), &around).unwrap(),
        [&b"0123abcdefgh"[..]]
    );
}

/// T-02, line 1.
#[test]
fn stream_cut_anywhere_gives_the_same_messages() {
    // All positions where they are cheap; with the large message, all residues of its frames.
    for (large, chunk_size, step) in [(7000, 128, 1), (70_000, 1024, 127)] {
        let messages = [message(1), message(4096), message(large)];
        let bytes = [
            framed(&messages[0], 4128),
            framed(&messages[1], 4128),
            framed(&messages[2], chunk_size),
        ]
        .concat();
        assert_eq!(
            feed(&mut decoder(), &bytes).unwrap(),
            messages,
            "all at once"
        );

        let mut one_by_one = decoder();
        let came: Vec<_> = bytes
            .iter()
            .flat_map(|byte| feed(&mut one_by_one, &[*byte]).unwrap())
            .collect();
        assert_eq!(came, messages, "one byte at a time");

        for cut in (0..=bytes.len()).step_by(step) {
            let mut decoder = decoder();
            let mut came = feed(&mut decoder, &bytes[..cut]).unwrap();
            came.extend(feed(&mut decoder, &bytes[cut..]).unwrap());
            assert!(came == messages, "cut at {cut} of {}", bytes.len());
        }
    }
}

#[test]
fn random_bytes_are_one_fault_and_nothing_after_it() {
    let mut state = 0x1234_5678_9ABC_DEF0_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    })
    .take(1 << 20)
    .collect();
    let mut decoder = decoder();
    let fault = feed(&mut decoder, &noise).unwrap_err();
    assert_eq!(fault.reason(), "version-mismatch");
    assert_eq!(feed(&mut decoder, &frame(0, 3, b"abc")), Err(fault));
    assert_eq!(decoder.handle_end(), Err(fault));
    assert_eq!(decoder.handle_timeout(now()), Err(fault));
}

#[test]
fn nothing_is_decided_before_a_header_is_whole() {
    let mut decoder = decoder();
    assert_eq!(feed(&mut decoder, b"GET / HTTP/1.1\r\n\r\n"), Ok(vec![]));
    let fault = feed(&mut decoder, b"Host: example.test").unwrap_err();
    assert_eq!(fault.reason(), "version-mismatch");
}

#[test]
fn messages_before_a_fault_are_handed_on() {
    let bytes = [frame(0, 3, b"abc"), frame(0, 2, b"de"), raw(0, 1, 31, b"")].concat();
    let mut decoder = decoder();
    decoder.read_buf().put_slice(&bytes);
    let now = now();
    assert_eq!(decoder.poll_message(now).unwrap().unwrap(), "abc");
    assert_eq!(decoder.poll_message(now).unwrap().unwrap(), "de");
    let fault = FrameError::TooSmall { frame_size: 31 };
    assert_eq!(decoder.poll_message(now), Err(fault));
    assert_eq!(decoder.poll_message(now), Err(fault));
}

/// T-02, line 6.
#[test]
fn end_of_the_stream_is_clean_between_two_frames_only() {
    let bytes = frame(0, 3, b"abc");
    for len in (1..32).chain([32, 34]) {
        let mut decoder = decoder();
        assert_eq!(feed(&mut decoder, &bytes[..len]), Ok(vec![]), "{len} bytes");
        let fault = decoder.handle_end().unwrap_err();
        assert_eq!(
            (fault, fault.reason()),
            (FrameError::Truncated, "transport-error")
        );
    }
    for bytes in [&b""[..], &bytes, &frame(0, 10, b"abc"), &frame(0, 10, b"")] {
        let mut decoder = decoder();
        feed(&mut decoder, bytes).unwrap();
        assert_eq!(decoder.handle_end(), Ok(()));
    }
}

#[test]
fn whole_message_in_the_read_buffer_is_not_copied() {
    let mut decoder = decoder();
    let mut room = decoder.read_buf();
    let start = room.chunk_mut().as_mut_ptr() as usize;
    room.put_slice(&frame(0, 3, b"abc"));
    room.put_slice(&frame(0, 2, b"de"));
    let now = now();
    let first = decoder.poll_message(now).unwrap().unwrap();
    let second = decoder.poll_message(now).unwrap().unwrap();
    assert_eq!(first.as_ptr() as usize, start + 32);
    assert_eq!(second.as_ptr() as usize, start + 32 + 3 + 32);
}

#[test]
fn large_body_is_read_into_the_buffer_that_is_handed_on() {
    let mut decoder = decoder();
    let body = message(600_000);
    let bytes = frame(0, 600_000, &body);
    let (before, rest) = bytes.split_at(32 + 560_000);
    feed(&mut decoder, before).unwrap();
    let read_to = decoder.read_buf().chunk_mut().as_mut_ptr() as usize;
    let came = feed(&mut decoder, rest).unwrap();
    assert_eq!(came, [body]);
    assert_eq!(came[0].as_ptr() as usize + 560_000, read_to);
}

/// T-01: memory follows the bytes that came, not the sizes that were declared.
#[test]
fn declared_size_reserves_no_memory() {
    let mut decoder = decoder();
    feed(&mut decoder, &raw(0, 0x7FFF_FFFF, 0x8000_0000 - 1, b"x")).unwrap();
    assert_eq!(decoder.held_bytes(), 1);
    assert!(decoder.read_buf().remaining_mut() <= 8192);
    feed(&mut decoder, &vec![0; 100_000]).unwrap();
    assert_eq!(decoder.held_bytes(), 100_001);
    assert!(decoder.read_buf().remaining_mut() <= 100_001 + 8192);
}

#[test]
fn read_room_follows_what_reads_bring() {
    let mut decoder = decoder();
    assert_eq!(decoder.read_buf().remaining_mut(), 4096);
    let whole = framed(&message(1000), 4096);
    for _ in 0..400 {
        feed(&mut decoder, &whole.repeat(64)).unwrap();
    }
    let busy = decoder.read_buf().remaining_mut();
    assert!((16 << 10..=64 << 10).contains(&busy), "{busy}");
    for _ in 0..400 {
        feed(&mut decoder, &whole).unwrap();
    }
    let idle = decoder.read_buf().remaining_mut();
    assert!(idle <= 8192, "{idle}");
}

#[test]
fn frame_that_came_as_one_piece_is_as_long_as_it_says() {
    let mut reassembler = nacp_proto::Reassembler::new(ReassemblyLimits::default());
    let header = FrameHeader::new(MSG_ID, 0, 4, 4).unwrap();
    let fault = reassembler
        .handle_frame(now(), &header, Bytes::from_static(b"abc"))
        .unwrap_err();
    assert_eq!(
        fault,
        FrameError::SizeMismatch {
            declared: 4,
            actual: 3
        }
    );
    assert_eq!(fault.reason(), "frame-size-mismatch");
}

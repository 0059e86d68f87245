//! Frames of several messages mixed, in any order, and the limits: scenarios T-01 and T-03.
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::time::{Duration, Instant};

use bytes::{BufMut, Bytes};
use nacp_proto::{
    ChunkSize, Chunker, Encoded, Frame, FrameDecoder, FrameError, FrameHeader, MsgId, Reassembler,
    ReassemblyLimits,
};
use proptest::prelude::*;

#[expect(
    clippy::disallowed_methods,
    reason = "std has no other way to make an instant"
)]
fn now() -> Instant {
    Instant::now()
}

fn reassembler() -> Reassembler {
    let mut reassembler = Reassembler::new(ReassemblyLimits::default());
    reassembler.handle_registered();
    reassembler
}

fn id(number: u8) -> MsgId {
    MsgId([number; 16])
}

/// Bytes that differ from those of any other seed.
fn message(seed: u8, len: usize) -> Bytes {
    (0..len).map(|at| (at * 31 % 251) as u8 ^ seed).collect()
}

/// Frames of 16 bytes of body.
fn frames(id: MsgId, message: &Bytes) -> Vec<Frame> {
    let chunker = Chunker::new(message.clone().into(), id).unwrap();
    chunker.frames(ChunkSize::new(48).unwrap()).collect()
}

fn give(reassembler: &mut Reassembler, frame: &Frame) -> Option<Bytes> {
    reassembler
        .handle_frame(now(), &frame.header, frame.body.to_bytes())
        .unwrap()
}

fn give_all<'a>(
    reassembler: &mut Reassembler,
    frames: impl IntoIterator<Item = &'a Frame>,
) -> Vec<Bytes> {
    frames
        .into_iter()
        .filter_map(|frame| give(reassembler, frame))
        .collect()
}

fn assert_nothing_left(reassembler: &Reassembler) {
    assert_eq!(reassembler.unfinished_messages(), 0);
    assert_eq!(reassembler.held_bytes(), 0);
    assert_eq!(reassembler.poll_timeout(), None);
}

/// T-03, line 1.
#[test]
fn message_of_whole_frames_has_no_frame_more_or_less() {
    for (len, count) in [
        (1, 1),
        (15, 1),
        (16, 1),
        (17, 2),
        (32, 2),
        (33, 3),
        (1600, 100),
    ] {
        let message = message(0, len);
        let frames = frames(id(1), &message);
        assert_eq!(frames.len(), count, "{len} bytes");
        let mut reassembler = reassembler();
        assert_eq!(give_all(&mut reassembler, &frames), [message]);
        assert_nothing_left(&reassembler);
    }
}

/// T-03, line 2.
#[test]
fn frames_of_several_messages_may_be_mixed() {
    let (x, y, z) = (message(1, 100), message(2, 100), message(3, 16));
    let (of_x, of_y, of_z) = (frames(id(1), &x), frames(id(2), &y), frames(id(3), &z));
    let mixed = of_x.iter().zip(&of_y).flat_map(|(x, y)| [x, y]);
    let order: Vec<_> = mixed
        .clone()
        .take(3)
        .chain(&of_z)
        .chain(mixed.skip(3))
        .collect();
    let mut reassembler = reassembler();
    assert_eq!(give_all(&mut reassembler, order), [z, x, y]);
    assert_nothing_left(&reassembler);
}

/// T-03, line 3.
#[test]
fn frames_may_come_in_any_order() {
    let long = message(1, 1600);
    let mut reassembler = reassembler();
    assert_eq!(
        give_all(&mut reassembler, frames(id(1), &long).iter().rev()),
        [long]
    );

    let short = message(2, 70);
    let frames = frames(id(2), &short);
    let mut orders = 0;
    permutations(&mut [0, 1, 2, 3, 4], 0, &mut |order| {
        orders += 1;
        let frames = order.iter().map(|&at| &frames[at]);
        assert_eq!(give_all(&mut reassembler, frames), [&short], "{order:?}");
        assert_nothing_left(&reassembler);
    });
    assert_eq!(orders, 120);
}

fn permutations(items: &mut [usize; 5], fixed: usize, visit: &mut impl FnMut(&[usize; 5])) {
    if fixed == items.len() {
        return visit(items);
    }
    for at in fixed..items.len() {
        items.swap(fixed, at);
        permutations(items, fixed + 1, visit);
        items.swap(fixed, at);
    }
}

/// T-03, line 4.
#[test]
fn one_msg_id_on_two_peers_is_two_messages() {
    let (x, y) = (message(1, 100), message(2, 100));
    let (mut at_x, mut at_y) = (reassembler(), reassembler());
    let mut came = Vec::new();
    for (of_x, of_y) in frames(id(7), &x).iter().zip(&frames(id(7), &y)) {
        came.extend(give(&mut at_x, of_x));
        came.extend(give(&mut at_y, of_y));
    }
    assert_eq!(came, [x, y]);
    assert_nothing_left(&at_x);
    assert_nothing_left(&at_y);
}

/// T-03, line 5.
#[test]
fn msg_id_may_be_used_again_when_its_message_is_complete() {
    let messages = [message(1, 100), message(2, 16), message(3, 50)];
    let frames: Vec<_> = messages
        .iter()
        .flat_map(|message| frames(id(7), message))
        .collect();
    let mut reassembler = reassembler();
    assert_eq!(give_all(&mut reassembler, &frames), messages);
    assert_nothing_left(&reassembler);
}

/// T-01, line 1.
#[test]
fn message_above_the_limit_is_refused_by_its_first_header() {
    let limits = ReassemblyLimits::default();
    let largest = FrameHeader::new(id(1), 0, 1 << 31, 0).unwrap();
    let larger = FrameHeader::new(id(2), 0, (1 << 31) + 1, 0).unwrap();
    let mut reassembler = Reassembler::new(limits);
    assert_eq!(
        reassembler.handle_frame(now(), &largest, Bytes::new()),
        Ok(None)
    );
    let fault = reassembler
        .handle_frame(now(), &larger, Bytes::new())
        .unwrap_err();
    assert_eq!(
        (fault, fault.reason()),
        (too_large(1 << 31), "message-too-large")
    );

    let mut reassembler = Reassembler::new(limits.max_message_bytes(4));
    let whole = FrameHeader::new(id(1), 0, 5, 5).unwrap();
    assert_eq!(
        reassembler.handle_frame(now(), &whole, Bytes::from_static(b"abcde")),
        Err(too_large(4))
    );
}

const fn too_large(limit: u64) -> FrameError {
    FrameError::MessageTooLarge { limit }
}

/// T-01, line 3.
#[test]
fn one_more_unfinished_message_than_allowed_is_refused() {
    let mut reassembler = reassembler();
    let first = |number| FrameHeader::new(id(number), 0, 1 << 30, 1).unwrap();
    for number in 0..64 {
        reassembler
            .handle_frame(now(), &first(number), Bytes::from_static(b"x"))
            .unwrap();
    }
    assert_eq!(
        (reassembler.unfinished_messages(), reassembler.held_bytes()),
        (64, 64)
    );
    let whole = frames(id(100), &message(0, 16));
    assert_eq!(
        give_all(&mut reassembler, &whole).len(),
        1,
        "a message in one frame is none more"
    );

    let fault = reassembler
        .handle_frame(now(), &first(64), Bytes::from_static(b"x"))
        .unwrap_err();
    assert_eq!(fault, FrameError::TooManyMessages { limit: 64 });
    assert_eq!(fault.reason(), "limit-reached");
    assert_nothing_left(&reassembler);
}

#[test]
fn stranger_may_declare_much_and_send_one_mebibyte() {
    let mebibyte = 1 << 20;
    let mut stranger = Reassembler::new(ReassemblyLimits::default());
    let halves = [0, 1]
        .map(|half| FrameHeader::new(id(1), half * mebibyte / 2, 1 << 30, mebibyte / 2).unwrap());
    for header in &halves {
        let body = Bytes::from(vec![0; mebibyte as usize / 2]);
        assert_eq!(stranger.handle_frame(now(), header, body), Ok(None));
    }
    let one_more = FrameHeader::new(id(1), mebibyte, 1 << 30, 1).unwrap();
    let body = Bytes::from_static(b"x");
    let mut registered = Reassembler::new(ReassemblyLimits::default());
    registered.handle_registered();
    assert_eq!(
        stranger.handle_frame(now(), &one_more, body.clone()),
        Err(too_large(1 << 20))
    );
    assert_eq!(registered.handle_frame(now(), &one_more, body), Ok(None));

    let whole = FrameHeader::new(id(2), 0, mebibyte + 1, mebibyte + 1).unwrap();
    let body = Bytes::from(vec![0; mebibyte as usize + 1]);
    let mut stranger = Reassembler::new(ReassemblyLimits::default());
    assert_eq!(
        stranger.handle_frame(now(), &whole, body.clone()),
        Err(too_large(1 << 20))
    );
    assert_eq!(
        registered
            .handle_frame(now(), &whole, body)
            .unwrap()
            .unwrap()
            .len(),
        1_048_577
    );
}

#[test]
fn frames_that_came_too_early_are_counted_with_what_it_costs_to_keep_them() {
    let mut reassembler = reassembler();
    for at in 0..1000 {
        let header = FrameHeader::new(id(1), 1 + 2 * at, 10_000, 1).unwrap();
        reassembler
            .handle_frame(now(), &header, Bytes::from_static(b"x"))
            .unwrap();
    }
    assert_eq!(reassembler.held_bytes(), 1000 * (1 + 32));
    for at in 0..1000 {
        let header = FrameHeader::new(id(1), 2 * at, 10_000, 1).unwrap();
        reassembler
            .handle_frame(now(), &header, Bytes::from_static(b"x"))
            .unwrap();
    }
    assert_eq!(reassembler.held_bytes(), 2000);
}

/// T-01, line 6.
#[test]
fn empty_frames_are_no_progress() {
    let start = now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let header = FrameHeader::new(id(1), 0, 10, 0).unwrap();
    let mut reassembler = reassembler();
    assert_eq!(
        reassembler.handle_frame(at(0), &header, Bytes::new()),
        Ok(None)
    );
    assert_eq!(
        reassembler.handle_frame(at(20), &header, Bytes::new()),
        Ok(None)
    );
    assert_eq!(reassembler.poll_timeout(), Some(at(30)));
    assert_eq!(
        reassembler.handle_timeout(at(30) - Duration::from_nanos(1)),
        Ok(())
    );
    let fault = reassembler.handle_timeout(at(30)).unwrap_err();
    assert_eq!(
        (fault, fault.reason()),
        (FrameError::ReassemblyTimeout, "reassembly-timeout")
    );
    assert_nothing_left(&reassembler);
}

#[test]
fn bytes_restart_the_timeout_of_their_own_message_only() {
    let start = now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let (x, y) = (
        frames(id(1), &message(1, 48)),
        frames(id(2), &message(2, 48)),
    );
    let mut reassembler = reassembler();
    let mut give = |seconds, frame: &Frame| {
        reassembler
            .handle_frame(at(seconds), &frame.header, frame.body.to_bytes())
            .unwrap();
        reassembler.poll_timeout()
    };
    assert_eq!(give(0, &x[0]), Some(at(30)));
    assert_eq!(give(5, &y[0]), Some(at(30)));
    assert_eq!(give(10, &x[1]), Some(at(35)));
    assert_eq!(give(12, &x[2]), Some(at(35)));
    assert_eq!(give(15, &y[1]), Some(at(45)));
    assert_eq!(give(15, &y[2]), None);
}

#[test]
fn bytes_inside_one_large_frame_restart_the_timeout() {
    let start = now();
    let header = FrameHeader::new(id(1), 0, 1000, 1000).unwrap();
    let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
    decoder.read_buf().put_slice(&header.to_bytes());
    for second in 0..1000 {
        decoder.read_buf().put_slice(b"x");
        let now = start + Duration::from_secs(second);
        assert_eq!(decoder.handle_timeout(now), Ok(()));
        let message = decoder.poll_message(now).unwrap();
        assert_eq!(message.is_some(), second == 999);
        let due = (second < 999).then(|| now + Duration::from_secs(30));
        assert_eq!(decoder.poll_timeout(), due);
    }
}

#[test]
fn timeout_of_duration_max_is_never() {
    let mut reassembler = Reassembler::new(ReassemblyLimits::default().timeout(Duration::MAX));
    let header = FrameHeader::new(id(1), 0, 10, 1).unwrap();
    reassembler
        .handle_frame(now(), &header, Bytes::from_static(b"x"))
        .unwrap();
    assert_eq!(reassembler.poll_timeout(), None);
}

#[test]
fn time_in_which_we_did_not_read_is_not_the_peers() {
    let start = now();
    let at = |seconds| start + Duration::from_secs(seconds);
    let mut reassembler = reassembler();
    let header = FrameHeader::new(id(1), 0, 10, 1).unwrap();
    reassembler
        .handle_frame(at(0), &header, Bytes::from_static(b"x"))
        .unwrap();
    reassembler.postpone(Duration::from_secs(60));
    assert_eq!(reassembler.poll_timeout(), Some(at(90)));
    assert_eq!(reassembler.handle_timeout(at(89)), Ok(()));
    assert_eq!(
        reassembler.handle_timeout(at(90)),
        Err(FrameError::ReassemblyTimeout)
    );
}

#[test]
fn progress_is_new_bytes_of_messages_that_are_unfinished() {
    let (x, y) = (
        frames(id(1), &message(1, 48)),
        frames(id(2), &message(2, 48)),
    );
    let mut reassembler = reassembler();
    give(&mut reassembler, &x[0]);
    give(&mut reassembler, &y[0]);
    assert_eq!(reassembler.take_progress(), 32);
    assert_eq!(reassembler.take_progress(), 0);
    give(&mut reassembler, &x[1]);
    give(&mut reassembler, &x[2]);
    give(&mut reassembler, &y[2]);
    assert_eq!(reassembler.take_progress(), 16);
    give(&mut reassembler, &y[1]);
    assert_eq!(reassembler.take_progress(), 0);
}

#[test]
fn chunk_size_has_room_for_a_body_and_is_at_most_2_to_the_31() {
    assert!(ChunkSize::new(32).is_err());
    assert_eq!(ChunkSize::new(33), Ok(ChunkSize::MIN));
    assert_eq!(ChunkSize::new(1 << 31), Ok(ChunkSize::MAX));
    assert!(ChunkSize::new((1 << 31) + 1).is_err());
    assert_eq!(ChunkSize::NATIVE.bytes(), 262_144);
    assert_eq!(ChunkSize::FOREIGN.bytes(), 104_857_600);
    assert_eq!(ChunkSize::default(), ChunkSize::NATIVE);
}

#[test]
fn bodies_share_the_bytes_of_their_message() {
    let [head, payload, tail] = [message(1, 10), message(2, 60), message(3, 10)];
    let message = Encoded::from_pieces(head.clone(), payload.clone(), tail.clone());
    let frames: Vec<_> = Chunker::new(message, id(1))
        .unwrap()
        .frames(ChunkSize::new(32 + 50).unwrap())
        .collect();
    let pieces = |frame: &Frame| {
        let pieces = frame.body.pieces().iter();
        let places: Vec<_> = pieces
            .map(|piece| (piece.as_ptr() as usize, piece.len()))
            .collect();
        places
    };
    let start = |bytes: &Bytes| bytes.as_ptr() as usize;
    assert_eq!(frames.len(), 2);
    assert_eq!(
        pieces(&frames[0])[..2],
        [(start(&head), 10), (start(&payload), 40)]
    );
    assert_eq!(
        pieces(&frames[1])[1..],
        [(start(&payload) + 40, 20), (start(&tail), 10)]
    );
}

#[test]
fn message_that_no_frame_can_describe_comes_back() {
    // Zeroed memory that is never touched, three times the same.
    let piece = Bytes::from(vec![0; (1 << 32) / 3 + 1]);
    let message = Encoded::from_pieces(piece.clone(), piece.clone(), piece);
    let error = Chunker::new(message, id(1)).unwrap_err();
    assert_eq!(error.into_message().len(), 4_294_967_298);
}

/// A message, the size of its chunks, and where its frames are sent in between the others.
#[derive(Debug, Clone)]
struct Sent {
    bytes: Vec<u8>,
    chunk_size: u32,
    places: Vec<prop::sample::Index>,
}

fn sent() -> impl Strategy<Value = Sent> {
    (0..3000_usize, 33..400_u32).prop_flat_map(|(len, chunk_size)| {
        let count = len / (chunk_size as usize - 32) + 1;
        let bytes = prop::collection::vec(any::<u8>(), len);
        let places = prop::collection::vec(any::<prop::sample::Index>(), count);
        (bytes, places).prop_map(move |(bytes, places)| Sent {
            bytes,
            chunk_size,
            places,
        })
    })
}

proptest! {
    #[test]
    fn any_mix_of_frames_cut_into_any_reads_gives_every_message_once(
        sent in prop::collection::vec(sent(), 1..8),
        reads in prop::collection::vec(1..5000_usize, 1..20),
    ) {
        let mut frames: Vec<Vec<u8>> = Vec::new();
        for (number, Sent { bytes, chunk_size, places }) in sent.iter().enumerate() {
            let message = Bytes::from(bytes.clone()).into();
            let chunker = Chunker::new(message, id(number as u8)).unwrap();
            let chunks = chunker.frames(ChunkSize::new(*chunk_size).unwrap());
            for (frame, place) in chunks.zip(places) {
                let bytes = [&frame.header.to_bytes()[..], &frame.body.to_bytes()].concat();
                frames.insert(place.index(frames.len() + 1), bytes);
            }
        }
        let stream = frames.concat();
        let mut came = Vec::new();
        let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
        let (mut left, mut sizes, now) = (&stream[..], reads.iter().cycle(), now());
        while !left.is_empty() {
            let mut room = decoder.read_buf();
            let len = sizes.next().unwrap().min(&left.len()).min(&room.remaining_mut()).to_owned();
            room.put_slice(&left[..len]);
            left = &left[len..];
            while let Some(message) = decoder.poll_message(now).unwrap() {
                came.push(message.to_vec());
            }
        }
        let mut expected: Vec<_> = sent.into_iter().map(|sent| sent.bytes).collect();
        expected.sort();
        came.sort();
        prop_assert_eq!(came, expected);
        prop_assert_eq!((decoder.unfinished_messages(), decoder.held_bytes()), (0, 0));
        prop_assert_eq!(decoder.handle_end(), Ok(()));
    }
}

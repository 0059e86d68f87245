//! Sending: lanes, batches, acceptance.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use nacp_proto::{ChunkSize, Decoded, Encoded, FrameHeader, Message};
use nacp_transport_tcp::{Accepted, Connection, Lane, Options};
use tokio::io::{AsyncReadExt, BufStream, DuplexStream, duplex};

use crate::support::{End, ack, encoded, memory_pair, message, number_of, recv, soon, tcp_pair};

/// The next frame that comes out of the other end of a stream.
async fn next_frame(stream: &mut DuplexStream) -> (FrameHeader, Bytes) {
    let mut header = [0; FrameHeader::LEN];
    stream.read_exact(&mut header).await.unwrap();
    let header = FrameHeader::parse(&header).unwrap();
    let mut body = vec![0; header.body_len() as usize];
    stream.read_exact(&mut body).await.unwrap();
    (header, body.into())
}

#[tokio::test]
async fn message_goes_there_and_back() {
    let (mut near, mut far) = tcp_pair(&Options::default()).await;
    let there = message(1, 64);
    near.send(&there.encode().to_bytes());
    let came = soon(far.recv()).await.unwrap().remove(0);
    assert_eq!(came.bytes, there.encode().to_bytes());
    assert_eq!(came.decoded, Decoded::Message(there));
    far.send(&came.bytes);
    assert_eq!(soon(near.recv_many(1)).await, [came.bytes]);
}

#[tokio::test]
async fn one_read_hands_on_all_it_brought_and_one_write_takes_all_there_is() {
    let (mut near, far) = duplex(64 << 10);
    let messages: Vec<_> = (0..100).map(|number| encoded(number, 64)).collect();
    let (sender, _receiver, _writer) = Connection::from_io(far, &Options::default()).split();
    for message in &messages {
        sender.queue(Lane::Bulk, message.clone().into()).unwrap();
    }
    assert_eq!(
        sender.flush(),
        Accepted {
            control: 0,
            bulk: 100
        }
    );

    let mut bytes = vec![0; 64 << 10];
    let len = near.read(&mut bytes).await.unwrap();
    let expected: usize = messages
        .iter()
        .map(|message| message.len() + FrameHeader::LEN)
        .sum();
    assert_eq!(len, expected, "everything is there for one read");

    let (mut stream, far) = duplex(64 << 10);
    tokio::io::AsyncWriteExt::write_all(&mut stream, &bytes[..len])
        .await
        .unwrap();
    let (_sender, mut receiver, _writer) = Connection::from_io(far, &Options::default()).split();
    // Reads start with a page and grow while they are filled.
    let mut batches = Vec::new();
    while batches.iter().sum::<usize>() < 100 {
        batches.push(receiver.recv().await.unwrap().unwrap().messages.len());
    }
    assert!(batches.len() <= 6, "{batches:?}");
    assert!(batches[0] > 10, "{batches:?}");
}

#[tokio::test]
async fn order_is_kept_within_a_lane() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    let messages: Vec<_> = (0..2000)
        .map(|number| encoded(number, if number % 100 == 0 { 300_000 } else { 50 }))
        .collect();
    for message in &messages {
        near.queue(message);
        near.sender.flush();
    }
    assert!(soon(far.recv_many(2000)).await == messages);
}

#[tokio::test]
async fn payload_of_any_size_arrives_whole() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    for len in [
        0,
        1,
        2047,
        2048,
        4096,
        4097,
        262_000,
        262_144,
        1 << 20,
        20 << 20,
    ] {
        let sent = message(7, len);
        near.sender.queue(Lane::Bulk, sent.encode()).unwrap();
        near.sender.flush();
        let came = soon(far.recv()).await.unwrap().remove(0);
        assert!(came.bytes == sent.encode().to_bytes(), "{len} bytes");
    }
}

#[tokio::test]
async fn control_lane_overtakes_between_the_frames_of_a_larger_message() {
    let (mut stream, far) = duplex(1024);
    let end = End::over(far, &Options::default());
    let large = encoded(1, 2 << 20);
    end.send(&large);
    end.sender.queue_control(&ack(2)).unwrap();
    end.sender
        .queue(Lane::Control, message(3, 10).encode())
        .unwrap();
    end.send(&encoded(4, 10));

    let mut order = Vec::new();
    let mut body = Vec::new();
    while order.len() < 12 {
        let (header, bytes) = soon(next_frame(&mut stream)).await;
        if header.total_size() as usize == large.len() {
            body.extend_from_slice(&bytes);
            order.push(1);
        } else {
            let decoded = Message::decode(&bytes).unwrap().into_message().unwrap();
            order.push(decoded.id.sequence().unwrap());
        }
    }
    assert_eq!(order, [1, 2, 3, 1, 1, 1, 1, 1, 1, 1, 1, 4]);
    assert!(body == large);
}

#[tokio::test]
async fn frames_are_no_larger_than_the_chunk_size_of_the_moment() {
    let (mut stream, far) = duplex(64 << 10);
    let end = End::over(
        far,
        &Options::default().chunk_size(ChunkSize::new(1000).unwrap()),
    );
    let sizes = |frames: &[(FrameHeader, Bytes)]| -> Vec<u32> {
        frames
            .iter()
            .map(|(header, _)| header.body_len() + 32)
            .collect()
    };
    let small = encoded(1, 2000);
    end.send(&small);
    let mut frames = Vec::new();
    for _ in 0..3 {
        frames.push(soon(next_frame(&mut stream)).await);
    }
    assert_eq!(sizes(&frames), [1000, 1000, small.len() as u32 + 96 - 2000]);
    assert!(
        frames
            .iter()
            .all(|(header, _)| header.msg_id() == frames[0].0.msg_id())
    );

    end.sender.set_chunk_size(ChunkSize::FOREIGN);
    end.send(&encoded(2, 50_000));
    let (header, _) = soon(next_frame(&mut stream)).await;
    assert!(header.is_whole());
    assert_ne!(header.msg_id(), frames[0].0.msg_id());
}

#[tokio::test]
async fn control_message_that_needs_several_frames_arrives_whole() {
    let small_chunks = Options::default().chunk_size(ChunkSize::new(64).unwrap());
    let (near, mut far) = memory_pair(64 << 10, &small_chunks);
    near.sender.queue_control(&message(1, 500)).unwrap();
    near.sender.queue_control(&ack(2)).unwrap();
    near.sender
        .queue(Lane::Control, message(3, 500).encode())
        .unwrap();
    assert_eq!(
        near.sender.flush(),
        Accepted {
            control: 3,
            bulk: 0
        }
    );
    let sent = [message(1, 500), ack(2), message(3, 500)];
    assert_eq!(
        soon(far.recv_many(3)).await,
        sent.map(|message| message.encode().to_bytes())
    );
}

#[tokio::test]
async fn payload_in_pieces_is_joined_on_the_wire() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    let whole = encoded(1, 9000);
    let pieces = Encoded::from_pieces(
        whole.slice(..50),
        whole.slice(50..8000),
        whole.slice(8000..),
    );
    near.sender.queue(Lane::Bulk, pieces).unwrap();
    near.sender.flush();
    assert_eq!(soon(far.recv_many(1)).await, [whole]);
}

#[tokio::test]
async fn message_is_accepted_when_its_last_byte_is_out() {
    let (mut stream, far) = duplex(300_000);
    let mut end = End::over(far, &Options::default());
    let first = encoded(1, 200_000);
    let second = encoded(2, 200_000);
    end.queue(&first);
    end.queue(&second);
    assert_eq!(
        end.sender.flush(),
        Accepted {
            control: 0,
            bulk: 1
        }
    );
    end.sender.queue_control(&ack(3)).unwrap();
    assert_eq!(
        end.sender.flush(),
        Accepted {
            control: 0,
            bulk: 1
        },
        "it waits for the batch"
    );

    let (header, _) = next_frame(&mut stream).await;
    assert!(header.is_whole());
    end.accepted_bulk(2).await;
    let told = *soon(end.accepted.wait_for(|told| told.control == 1))
        .await
        .unwrap();
    assert_eq!(
        told,
        Accepted {
            control: 1,
            bulk: 2
        }
    );
    assert_eq!(end.sender.accepted(), told);
}

#[tokio::test]
async fn message_that_the_stream_itself_holds_back_is_flushed_before_it_is_accepted() {
    let (mut stream, far) = duplex(100);
    let mut end = End::new(Connection::from_io(
        BufStream::new(far),
        &Options::default(),
    ));
    let message = encoded(1, 500);
    end.send(&message);
    assert_eq!(end.sender.accepted().bulk, 0);
    let (_, body) = soon(next_frame(&mut stream)).await;
    assert_eq!(body, message);
    soon(end.accepted_bulk(1)).await;
}

#[tokio::test]
async fn every_acceptance_is_returned_or_told() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    let count = 300;
    let mut threads = Vec::new();
    for thread in 0..3 {
        let sender = near.sender.clone();
        threads.push(std::thread::spawn(move || {
            let mut greatest = Accepted::default();
            for number in 0..count {
                let message = message(thread * 1000 + number, 3000).encode();
                sender.queue(Lane::Bulk, message).unwrap();
                let accepted = sender.flush();
                greatest.bulk = greatest.bulk.max(accepted.bulk);
            }
            greatest.bulk
        }));
    }
    let mut came = Vec::new();
    while came.len() < 3 * count as usize {
        came.extend(soon(far.recv()).await.unwrap().iter().map(number_of));
    }
    for thread in 0..3 {
        let numbers: Vec<_> = came
            .iter()
            .filter(|number| *number / 1000 == thread)
            .collect();
        assert!(numbers.is_sorted() && numbers.len() == count as usize);
    }
    let returned = threads
        .into_iter()
        .map(|thread| thread.join().unwrap())
        .max()
        .unwrap();
    let told = near.accepted.borrow().bulk;
    assert_eq!(returned.max(told), 3 * count);
}

/// Who finds another one writing leaves, so the other one must look again before it leaves too.
#[tokio::test]
async fn nothing_stays_behind_when_flushes_meet() {
    const ROUNDS: u64 = 20_000;
    let (near, mut far) = memory_pair(16 << 20, &Options::default());
    let arrived = Arc::new(AtomicU64::new(0));
    let meet = |arrived: &AtomicU64, goal: u64| {
        arrived.fetch_add(1, Ordering::SeqCst);
        while arrived.load(Ordering::SeqCst) < goal {
            std::thread::yield_now();
        }
    };
    let message = ack(1).encode();
    let threads = [(); 2].map(|()| {
        let (sender, arrived) = (near.sender.clone(), Arc::clone(&arrived));
        let message = message.clone();
        std::thread::spawn(move || {
            for round in 1..=ROUNDS {
                meet(&arrived, 4 * round - 2);
                sender.queue(Lane::Bulk, message.clone()).unwrap();
                sender.flush();
                meet(&arrived, 4 * round);
                assert_eq!(sender.accepted().bulk, 2 * round);
            }
        })
    });
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
    assert_eq!(
        soon(far.recv_many(2 * ROUNDS as usize)).await.len(),
        2 * ROUNDS as usize
    );
}

#[tokio::test]
async fn what_nobody_writes_is_finished_by_the_task() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    let large = encoded(1, 32 << 20);
    near.send(&large);
    assert_eq!(near.sender.accepted().bulk, 0, "the peer does not read yet");
    assert!(soon(far.recv_many(1)).await == [large]);
    let mut near = near;
    near.accepted_bulk(1).await;
}

#[tokio::test]
async fn progress_of_a_large_message_is_told_while_it_comes() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    let large = encoded(1, 8 << 20);
    near.send(&large);
    let (mut progress, mut times) = (0, 0);
    let whole = loop {
        let batch = soon(far.receiver.recv()).await.unwrap().unwrap();
        progress += batch.progress;
        times += 1;
        if let Some(whole) = batch.messages.pop() {
            break whole;
        }
        assert!(batch.progress > 0);
    };
    assert!(whole.bytes == large);
    assert!(times > 4, "{times}");
    assert!(
        progress as usize <= large.len() && progress > 4 << 20,
        "{progress}"
    );
}

#[tokio::test]
async fn batch_has_at_most_256_messages_and_the_rest_comes_next() {
    let (mut near, far) = duplex(1 << 20);
    let whole: Vec<u8> = (0..1000)
        .flat_map(|number| crate::support::framed(ack(number).encode(), 4096))
        .collect();
    tokio::io::AsyncWriteExt::write_all(&mut near, &whole)
        .await
        .unwrap();
    drop(near);
    let (_sender, mut receiver, _writer) = Connection::from_io(far, &Options::default()).split();
    let mut numbers = Vec::new();
    while let Some(batch) = recv(&mut receiver).await.unwrap() {
        assert!(batch.len() <= 256);
        numbers.extend(batch.iter().map(number_of));
    }
    assert!(numbers.into_iter().eq(0..1000));
}

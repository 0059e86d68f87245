//! How connections end.

use std::io;

use bytes::Bytes;
use nacp_transport_tcp::{Close, Connection, Fault, Lane, Options, Refusal, connect};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{End, ack, encoded, framed, memory_pair, message, recv, soon, tcp_pair};

/// Our end over TCP, and the bare socket of the other side.
async fn end_and_socket(options: &Options) -> (End, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().into();
    let (dialled, accepted) =
        soon(async { tokio::join!(connect(&address, options), listener.accept()) }).await;
    (End::new(dialled.unwrap()), accepted.unwrap().0)
}

async fn read_all(socket: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    soon(socket.read_to_end(&mut bytes)).await.map(|_| bytes)
}

#[tokio::test]
async fn flushed_close_writes_everything_first() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    let messages: Vec<_> = (0..20).map(|number| encoded(number, 1 << 20)).collect();
    messages.iter().for_each(|message| near.queue(message));
    near.sender.close(Close::Flush);
    assert!(soon(far.recv_many(20)).await == messages);
    assert!(soon(far.recv()).await.is_none());
    drop(near.receiver);
    far.sender.close(Close::Flush);
    assert!(soon(near.writer).await.unwrap().is_ok());
    assert!(soon(far.writer).await.unwrap().is_ok());
    assert_eq!(near.sender.accepted().bulk, 20);
}

#[tokio::test]
async fn flushed_close_survives_what_the_peer_still_sends() {
    let (near, mut socket) = end_and_socket(&Options::default()).await;
    socket
        .write_all(&framed(encoded(9, 100_000), 1 << 20))
        .await
        .unwrap();
    let last = encoded(1, 3 << 20);
    near.queue(&last);
    // Nobody receives on this side any more, so what comes must be read away for the close.
    drop(near.receiver);
    near.sender.close(Close::Flush);
    let (mut read, mut write) = socket.into_split();
    let flood = tokio::spawn(async move { while write.write_all(&[0; 10_000]).await.is_ok() {} });
    let mut came = Vec::new();
    soon(read.read_to_end(&mut came)).await.unwrap();
    assert!(came.len() > last.len());
    flood.abort();
    assert!(soon(near.writer).await.unwrap().is_ok());
}

#[tokio::test]
async fn flushed_close_leaves_the_other_direction_open() {
    let (mut near, mut far) = tcp_pair(&Options::default()).await;
    near.sender.close(Close::Flush);
    assert!(soon(far.recv()).await.is_none());
    far.send(&encoded(1, 10));
    assert_eq!(soon(near.recv_many(1)).await, [encoded(1, 10)]);
    far.sender.close(Close::Flush);
    assert!(soon(near.recv()).await.is_none());
}

#[tokio::test]
async fn flushed_close_takes_nothing_away_from_the_receiver() {
    let (mut near, far) = memory_pair(64 << 10, &Options::default());
    near.sender.close(Close::Flush);
    far.send(&encoded(1, 10));
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
    assert_eq!(soon(near.recv_many(1)).await, [encoded(1, 10)]);
}

#[tokio::test]
async fn dropping_the_last_sender_closes_as_a_flush_does() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    near.queue(&encoded(1, 10));
    let clone = near.sender.clone();
    drop(near.sender);
    clone.queue(Lane::Bulk, message(2, 10).encode()).unwrap();
    drop(clone);
    assert_eq!(
        soon(far.recv_many(2)).await,
        [encoded(1, 10), encoded(2, 10)]
    );
    assert!(soon(far.recv()).await.is_none());
    drop((far.sender, far.receiver, near.receiver));
    assert!(soon(near.writer).await.unwrap().is_ok());
}

#[tokio::test]
async fn refused_peer_gets_the_answer_although_it_keeps_sending() {
    let (mut near, mut socket) = end_and_socket(&Options::default()).await;
    socket
        .write_all(&framed(encoded(9, 500_000), 1 << 20))
        .await
        .unwrap();
    near.sender.queue_control(&ack(1)).unwrap();
    near.sender
        .queue(Lane::Control, message(2, 100).encode())
        .unwrap();
    near.sender.close(Close::Refuse);
    assert!(
        soon(near.recv()).await.is_none(),
        "nothing more is handed on"
    );
    let expected = [
        framed(ack(1).encode(), 1 << 20),
        framed(encoded(2, 100), 1 << 20),
    ]
    .concat();
    let came = read_all(&mut socket).await.unwrap();
    // Frames differ in their random msgId only.
    assert_eq!(came.len(), expected.len());
    assert!(came.ends_with(&encoded(2, 100)));
    socket.write_all(&[0; 1000]).await.unwrap();
    drop(socket);
    assert!(soon(near.writer).await.unwrap().is_ok());
}

#[tokio::test]
async fn abort_resets_the_connection_at_once() {
    let (mut near, mut socket) = end_and_socket(&Options::default()).await;
    near.send(&encoded(1, 30 << 20));
    near.sender.close(Close::Abort);
    let error = read_all(&mut socket).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(soon(near.recv()).await.is_none());
    assert!(soon(near.writer).await.unwrap().is_ok());
}

#[tokio::test]
async fn abort_wakes_who_receives() {
    let (mut near, _far) = tcp_pair(&Options::default()).await;
    let sender = near.sender.clone();
    let receiving = tokio::spawn(async move { near.recv().await.is_none() });
    tokio::task::yield_now().await;
    sender.close(Close::Abort);
    assert!(soon(receiving).await.unwrap());
}

#[tokio::test]
async fn closing_again_is_harmless_and_may_be_harder() {
    let (near, mut socket) = end_and_socket(&Options::default()).await;
    near.send(&encoded(1, 30 << 20));
    near.sender.close(Close::Refuse);
    near.sender.close(Close::Flush);
    near.sender.close(Close::Abort);
    near.sender.close(Close::Abort);
    near.sender.close(Close::Flush);
    assert_eq!(
        read_all(&mut socket).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
    assert!(soon(near.writer).await.unwrap().is_ok());
}

#[tokio::test]
async fn closed_sender_gives_messages_back() {
    let (near, _far) = tcp_pair(&Options::default()).await;
    near.sender.close(Close::Flush);
    let refused = near
        .sender
        .queue(Lane::Bulk, encoded(1, 10).into())
        .unwrap_err();
    assert_eq!(refused.refusal, Refusal::Closed);
    assert_eq!(refused.message.to_bytes(), encoded(1, 10));
    assert_eq!(near.sender.queue_control(&ack(1)), Err(Refusal::Closed));
}

#[tokio::test]
async fn message_larger_than_a_frame_can_describe_comes_back() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    // Zeroed memory that is never touched, three times the same.
    let piece = Bytes::from(vec![0; (1 << 32) / 3 + 1]);
    let message = nacp_proto::Encoded::from_pieces(piece.clone(), piece.clone(), piece);
    let refused = near.sender.queue(Lane::Bulk, message.clone()).unwrap_err();
    assert_eq!(
        (refused.refusal, refused.message.len()),
        (Refusal::Oversized, message.len())
    );
    near.send(&encoded(1, 10));
    assert_eq!(soon(far.recv_many(1)).await, [encoded(1, 10)]);
}

#[tokio::test]
async fn reset_by_the_peer_is_a_transport_error_behind_its_last_messages() {
    let (mut near, mut socket) = end_and_socket(&Options::default()).await;
    socket
        .write_all(&framed(encoded(1, 10), 4096))
        .await
        .unwrap();
    assert_eq!(soon(near.recv_many(1)).await, [encoded(1, 10)]);
    socket.set_zero_linger().unwrap();
    drop(socket);
    let fault = soon(near.try_recv()).await.unwrap_err();
    assert_eq!(fault.reason(), "transport-error");
    let Fault::Io(error) = fault else {
        panic!("{fault:?}")
    };
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert!(soon(near.recv()).await.is_none(), "one fault, one report");
}

#[tokio::test]
async fn writing_to_a_peer_that_is_gone_is_a_transport_error_and_its_last_words_are_heard() {
    let (mut near, mut socket) = end_and_socket(&Options::default()).await;
    near.send(&encoded(1, 10));
    socket
        .write_all(&framed(encoded(2, 10), 4096))
        .await
        .unwrap();
    drop(socket);
    let fault = soon(async {
        loop {
            if near.writer.is_finished() {
                break (&mut near.writer).await.unwrap().unwrap_err();
            }
            let _ = near.sender.queue(Lane::Bulk, encoded(3, 10).into());
            near.sender.flush();
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(fault.reason(), "transport-error");
    assert_eq!(soon(near.recv_many(1)).await, [encoded(2, 10)]);
}

#[tokio::test]
async fn end_on_a_frame_boundary_is_clean_and_elsewhere_a_transport_error() {
    let whole = framed(encoded(1, 3000), 1000);
    for (len, clean) in [
        (0, true),
        (1, false),
        (31, false),
        (32, false),
        (999, false),
        (1000, true),
    ] {
        let (mut near, mut socket) = end_and_socket(&Options::default()).await;
        socket.write_all(&whole[..len]).await.unwrap();
        drop(socket);
        match soon(near.try_recv()).await {
            Ok(end) => assert!(end.is_none() && clean, "{len} bytes"),
            Err(fault) => assert_eq!((fault.reason(), clean), ("transport-error", false), "{len}"),
        }
        assert!(soon(near.recv()).await.is_none());
    }
}

#[tokio::test]
async fn dropping_the_writer_task_resets_the_connection() {
    let (near, mut socket) = end_and_socket(&Options::default()).await;
    near.send(&encoded(1, 30 << 20));
    near.writer.abort();
    assert!(soon(near.writer).await.unwrap_err().is_cancelled());
    assert_eq!(
        read_all(&mut socket).await.unwrap_err().kind(),
        io::ErrorKind::ConnectionReset
    );
    assert!(near.sender.queue(Lane::Bulk, encoded(2, 1).into()).is_err());
}

#[tokio::test]
async fn dropping_everything_closes() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    let connection = near;
    drop((connection.sender, connection.receiver));
    assert!(soon(far.recv()).await.is_none());
    drop((far.sender, far.receiver));
    assert!(soon(connection.writer).await.unwrap().is_ok());

    let (stream, mut peer) = duplex(100);
    drop(Connection::from_io(stream, &Options::default()).split());
    assert_eq!(peer.read(&mut [0; 1]).await.unwrap(), 0);
}

#[tokio::test]
async fn receiver_that_is_dropped_lets_the_sender_go_on() {
    let (near, mut far) = tcp_pair(&Options::default()).await;
    drop(near.receiver);
    near.sender
        .queue(Lane::Bulk, message(1, 10).encode())
        .unwrap();
    near.sender.flush();
    assert_eq!(
        soon(recv(&mut far.receiver)).await.unwrap().unwrap()[0].bytes,
        encoded(1, 10)
    );
}

//! What peers do wrong: T-01 and T-02 over loopback.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_util::FutureExt;
use nacp_proto::{FrameHeader, MsgId, ReassemblyLimits};
use nacp_transport_tcp::{Connection, MemoryBudget, Options, connect};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::support::{End, encoded, framed, listen, number_of, recv, soon};

fn raw(offset: u32, total_size: u32, frame_size: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![7; 16];
    for number in [offset, total_size, frame_size] {
        bytes.extend_from_slice(&number.to_be_bytes());
    }
    bytes.extend_from_slice(&[0, 0, 0xCF, 0x01]);
    bytes.extend_from_slice(body);
    bytes
}

fn whole(body: &[u8]) -> Vec<u8> {
    raw(0, body.len() as u32, 32 + body.len() as u32, body)
}

/// Sends bytes to a listener, and returns the messages and the fault that came of them.
async fn attack(options: &Options, bytes: &[u8]) -> (Vec<u64>, &'static str) {
    let listener = listen("127.0.0.1:0", options).await;
    let (socket, accepted) =
        soon(async { tokio::join!(TcpStream::connect(listener.local_addr()), listener.accept()) })
            .await;
    let (mut socket, mut end) = (socket.unwrap(), End::new(accepted));
    let mut numbers = Vec::new();
    let receive = async {
        loop {
            match end.try_recv().await {
                Ok(batch) => numbers.extend(batch.expect("a fault first").iter().map(number_of)),
                Err(fault) => break fault.reason(),
            }
        }
    };
    // The peer may be refused before it has sent everything.
    let (_, reason) = soon(async { tokio::join!(socket.write_all(bytes), receive) }).await;
    assert!(soon(end.recv()).await.is_none(), "one fault, one report");
    assert_eq!(end.receiver.held_bytes(), 0);

    // The listener goes on serving others.
    let address = listener.local_addr().into();
    let (next, accepted) =
        soon(async { tokio::join!(connect(&address, options), listener.accept()) }).await;
    let (next, mut accepted) = (End::new(next.unwrap()), End::new(accepted));
    next.send(&encoded(1, 1));
    assert_eq!(soon(accepted.recv_many(1)).await, [encoded(1, 1)]);
    (numbers, reason)
}

async fn reason(bytes: &[u8]) -> &'static str {
    attack(&Options::default(), bytes).await.1
}

/// T-02, lines 2 to 5.
#[tokio::test]
async fn frames_that_lie_are_faults_by_their_names() {
    let two = |first: Vec<u8>, second: Vec<u8>| [first, second].concat();
    let with = |at: usize, byte: u8| {
        let mut bytes = whole(b"abc");
        bytes[at] = byte;
        bytes
    };
    assert_eq!(reason(&raw(0, 9, 0, b"")).await, "frame-too-small");
    assert_eq!(reason(&raw(0, 9, 31, b"")).await, "frame-too-small");
    assert_eq!(
        reason(&raw(0, 9, 0x8000_0001, b"")).await,
        "frame-too-large"
    );
    assert_eq!(reason(&raw(9, 10, 34, b"ab")).await, "frame-out-of-bounds");
    assert_eq!(
        reason(&raw(0xFFFF_FFFF, 10, 34, b"ab")).await,
        "frame-out-of-bounds"
    );
    let changed = two(raw(0, 10, 33, b"a"), raw(1, 11, 33, b"b"));
    assert_eq!(reason(&changed).await, "total-size-changed");
    let again = two(raw(0, 10, 33, b"a"), raw(0, 10, 33, b"a"));
    assert_eq!(reason(&again).await, "overlapping-frame");
    assert_eq!(reason(&with(31, 2)).await, "version-mismatch");
    assert_eq!(reason(&with(30, 0)).await, "bad-magic");
    assert_eq!(
        reason(b"GET / HTTP/1.1\r\nHost: example.test\r\n\r\n").await,
        "version-mismatch"
    );
}

/// T-01, lines 1, 3 and 4.
#[tokio::test]
async fn declared_sizes_are_not_believed() {
    assert_eq!(
        reason(&raw(0, 0xFFFF_FFFF, 0x8000_0000, b"")).await,
        "message-too-large"
    );
    let many: Vec<u8> = (0..70)
        .flat_map(|number| {
            let header = FrameHeader::new(MsgId([number; 16]), 0, 1 << 30, 1).unwrap();
            [&header.to_bytes()[..], b"x"].concat()
        })
        .collect();
    assert_eq!(reason(&many).await, "limit-reached");
    for head in [0x9B, 0xBB, 0x7B, 0x5B] {
        let item = [head, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(reason(&whole(&item)).await, "decode-failed", "{head:#x}");
    }
    assert_eq!(reason(&whole(b"")).await, "decode-failed");
}

#[tokio::test]
async fn messages_of_the_same_read_come_before_the_fault() {
    let good = |number| framed(encoded(number, 20), 4096);
    let bytes = [good(1), good(2), whole(b"\x01"), good(3)].concat();
    assert_eq!(
        attack(&Options::default(), &bytes).await,
        (vec![1, 2], "decode-failed")
    );
    let bytes = [good(1), raw(0, 1, 1, b""), good(2)].concat();
    assert_eq!(
        attack(&Options::default(), &bytes).await,
        (vec![1], "frame-too-small")
    );
}

#[tokio::test]
async fn stranger_sends_one_mebibyte_and_a_registered_peer_more() {
    let large = encoded(1, (1 << 20) + 1);
    assert_eq!(
        reason(&framed(large.clone(), 1 << 21)).await,
        "message-too-large"
    );

    let (near, far) = tokio::io::duplex(64 << 10);
    let (mut near, mut far) = (near, End::over(far, &Options::default()));
    far.receiver.registered();
    let bytes = framed(large.clone(), 1 << 21);
    let (written, came) =
        soon(async { tokio::join!(near.write_all(&bytes), far.recv_many(1)) }).await;
    written.unwrap();
    assert!(came == [large]);
}

#[tokio::test]
async fn largest_message_can_be_set() {
    let limits = ReassemblyLimits::default().max_message_bytes(500);
    let options = Options::default().limits(limits);
    let bytes = [framed(encoded(1, 100), 4096), framed(encoded(2, 500), 4096)].concat();
    assert_eq!(
        attack(&options, &bytes).await,
        (vec![1], "message-too-large")
    );
}

#[tokio::test]
async fn memory_for_unfinished_messages_is_shared_by_all_peers() {
    let memory = MemoryBudget::new(150_000);
    let options = Options::default().memory(memory.clone());
    let unfinished = |number| {
        let header = FrameHeader::new(MsgId([number; 16]), 0, 1 << 30, 100_000).unwrap();
        [&header.to_bytes()[..], &[0; 100_000]].concat()
    };
    let (mut first, far) = tokio::io::duplex(1 << 20);
    let mut end = End::over(far, &options);
    first.write_all(&unfinished(1)).await.unwrap();
    let mut progress = 0;
    while progress < 100_000 {
        progress += soon(end.receiver.recv()).await.unwrap().unwrap().progress;
    }
    assert_eq!(memory.used(), 100_000);

    let (mut second, far) = tokio::io::duplex(1 << 20);
    let (_sender, mut receiver, _writer) = Connection::from_io(far, &options).split();
    second.write_all(&unfinished(2)).await.unwrap();
    let fault = soon(recv(&mut receiver)).await.unwrap_err();
    assert_eq!(fault.reason(), "limit-reached");
    assert_eq!(memory.used(), 100_000, "what the second held is given back");
    drop(end.receiver);
    assert_eq!(memory.used(), 0);
}

#[tokio::test]
async fn who_does_not_receive_slows_the_peer_down() {
    let (mut near, far) = tokio::io::duplex(64 << 10);
    let mut far = End::over(far, &Options::default());
    let bytes = framed(encoded(1, 1000), 4096).repeat(1000);
    let mut written = 0;
    while let Some(len) = near.write(&bytes[written..]).now_or_never() {
        written += len.unwrap();
    }
    assert_eq!(written, 64 << 10, "nothing is read before someone asks");
    far.receiver.recv().await.unwrap().unwrap();
    let mut more = 0;
    while let Some(len) = near.write(&bytes[written + more..]).now_or_never() {
        more += len.unwrap();
    }
    assert_eq!(more, 4096, "one read is made room for");
}

/// A stream that always has one more empty frame of a message that never ends.
struct Endless {
    frame: Vec<u8>,
    left: usize,
}

impl AsyncRead for Endless {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Some(left) = self.left.checked_sub(1) {
            self.left = left;
            buf.put_slice(&self.frame);
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Endless {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn flood_of_empty_frames_hides_no_timeout_and_lets_others_run() {
    let limits = ReassemblyLimits::default().timeout(std::time::Duration::from_millis(20));
    let endless = Endless {
        frame: raw(0, 10, 32, b""),
        left: 1_000_000,
    };
    let connection = Connection::from_io(endless, &Options::default().limits(limits));
    let (_sender, mut receiver, _writer) = connection.split();
    let mut turns = 0;
    let fault = loop {
        tokio::select! {
            biased;
            received = receiver.recv() => break received.unwrap_err(),
            () = tokio::task::yield_now() => turns += 1,
        }
    };
    assert_eq!(fault.reason(), "reassembly-timeout");
    assert!(turns > 0);
}

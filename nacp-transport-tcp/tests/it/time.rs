//! Everything timed, with a clock that stands still until all wait.

use std::time::Duration;

use nacp_proto::{FrameHeader, MsgId, ReassemblyLimits};
use nacp_transport_tcp::{Close, Connection, Fault, Options};
use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};
use tokio::time::{Instant, advance, sleep};

use crate::support::{End, encoded, recv};

const SECOND: Duration = Duration::from_secs(1);

fn frame(offset: u32, total_size: u32, body: &[u8]) -> Vec<u8> {
    let header = FrameHeader::new(MsgId([7; 16]), offset, total_size, body.len() as u32).unwrap();
    [&header.to_bytes()[..], body].concat()
}

#[tokio::test(start_paused = true)]
async fn write_without_progress_for_30_s_is_a_fault() {
    let (_peer, far) = duplex(1000);
    let end = End::over(far, &Options::default());
    let start = Instant::now();
    end.send(&encoded(1, 5000));
    let fault = end.writer.await.unwrap().unwrap_err();
    assert_eq!(start.elapsed(), 30 * SECOND);
    assert!(matches!(fault, Fault::WriteStalled { limit } if limit == 30 * SECOND));
    assert_eq!(fault.reason(), "write-stalled");
    let refused = end
        .sender
        .queue(nacp_transport_tcp::Lane::Bulk, encoded(2, 1).into());
    assert_eq!(refused.unwrap_err().message, encoded(2, 1).into());
}

#[tokio::test(start_paused = true)]
async fn every_byte_taken_restarts_the_stall_clock() {
    let (mut peer, far) = duplex(1000);
    let end = End::over(far, &Options::default());
    let start = Instant::now();
    end.send(&encoded(1, 5000));
    for _ in 0..4 {
        sleep(29 * SECOND).await;
        peer.read_exact(&mut [0; 1]).await.unwrap();
    }
    let fault = end.writer.await.unwrap().unwrap_err();
    assert_eq!(fault.reason(), "write-stalled");
    assert_eq!(start.elapsed(), (4 * 29 + 30) * SECOND);
}

#[tokio::test(start_paused = true)]
async fn idle_connection_never_stalls() {
    let (mut peer, far) = duplex(1000);
    let mut end = End::over(far, &Options::default());
    end.send(&encoded(1, 2000));
    let mut read = vec![0; encoded(1, 2000).len() + 32];
    peer.read_exact(&mut read).await.unwrap();
    end.accepted_bulk(1).await;
    sleep(3600 * SECOND).await;
    assert!(!end.writer.is_finished());
    end.send(&encoded(2, 5000));
    let start = Instant::now();
    assert_eq!(
        end.writer.await.unwrap().unwrap_err().reason(),
        "write-stalled"
    );
    assert_eq!(start.elapsed(), 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn stall_limit_of_duration_max_is_never() {
    let (_peer, far) = duplex(1000);
    let end = End::over(far, &Options::default().write_stall_timeout(Duration::MAX));
    end.send(&encoded(1, 5000));
    sleep(365 * 86_400 * SECOND).await;
    assert!(!end.writer.is_finished());
}

/// T-01, line 6.
#[tokio::test(start_paused = true)]
async fn empty_frames_do_not_keep_a_message_alive() {
    let (mut peer, far) = duplex(1000);
    let mut end = End::over(far, &Options::default());
    let start = Instant::now();
    let flood = tokio::spawn(async move {
        for _ in 0..30 {
            if peer.write_all(&frame(0, 10, b"")).await.is_err() {
                return;
            }
            sleep(20 * SECOND).await;
        }
    });
    let fault = end.try_recv().await.unwrap_err();
    assert_eq!(
        (start.elapsed(), fault.reason()),
        (30 * SECOND, "reassembly-timeout")
    );
    assert!(end.recv().await.is_none(), "one fault, one report");
    flood.abort();
}

#[tokio::test(start_paused = true)]
async fn bytes_inside_one_large_frame_keep_its_message_alive() {
    let (mut peer, far) = duplex(1000);
    let mut end = End::over(far, &Options::default());
    let message = encoded(1, 500);
    let bytes = frame(0, message.len() as u32, &message);
    let start = Instant::now();
    tokio::spawn(async move {
        for byte in bytes {
            sleep(25 * SECOND).await;
            peer.write_all(&[byte]).await.unwrap();
        }
        std::future::pending::<()>().await;
    });
    assert_eq!(end.recv_many(1).await, std::slice::from_ref(&message));
    assert_eq!(start.elapsed(), (message.len() as u32 + 32) * 25 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn message_that_stays_unfinished_while_others_come_is_a_fault() {
    let (mut peer, far) = duplex(4000);
    let mut end = End::over(far, &Options::default());
    let start = Instant::now();
    peer.write_all(&frame(0, 10, b"x")).await.unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            sleep(SECOND).await;
            let whole = encoded(number, 1);
            let header =
                FrameHeader::new(MsgId([8; 16]), 0, whole.len() as u32, whole.len() as u32);
            let frame = [&header.unwrap().to_bytes()[..], &whole].concat();
            if peer.write_all(&frame).await.is_err() {
                return;
            }
        }
    });
    let fault = loop {
        match end.try_recv().await {
            Ok(batch) => assert_eq!(batch.unwrap().len(), 1),
            Err(fault) => break fault,
        }
    };
    assert_eq!(
        (start.elapsed(), fault.reason()),
        (30 * SECOND, "reassembly-timeout")
    );
}

#[tokio::test(start_paused = true)]
async fn time_in_which_nobody_receives_is_not_the_peers() {
    let (mut peer, far) = duplex(4000);
    let mut end = End::over(far, &Options::default());
    let message = encoded(1, 100);
    let (first, second) = (message.slice(..50), message.slice(50..));
    let len = message.len() as u32;
    peer.write_all(&frame(0, len, &first)).await.unwrap();
    assert_eq!(end.receiver.recv().await.unwrap().unwrap().progress, 50);
    advance(3600 * SECOND).await;
    tokio::spawn(async move {
        sleep(29 * SECOND).await;
        peer.write_all(&frame(50, len, &second)).await.unwrap();
        std::future::pending::<()>().await;
    });
    assert_eq!(end.recv_many(1).await, std::slice::from_ref(&message));
}

#[tokio::test(start_paused = true)]
async fn reassembly_timeout_can_be_set() {
    let (mut peer, far) = duplex(4000);
    let limits = ReassemblyLimits::default().timeout(3 * SECOND);
    let (_sender, mut receiver, _writer) =
        Connection::from_io(far, &Options::default().limits(limits)).split();
    let start = Instant::now();
    peer.write_all(&frame(0, 10, b"x")).await.unwrap();
    let fault = recv(&mut receiver).await.unwrap_err();
    assert_eq!(
        (start.elapsed(), fault.reason()),
        (3 * SECOND, "reassembly-timeout")
    );
}

#[tokio::test(start_paused = true)]
async fn refused_peer_that_does_not_close_is_closed_after_1_s() {
    let (mut peer, far) = duplex(4000);
    let mut end = End::over(far, &Options::default());
    let start = Instant::now();
    end.queue(&encoded(1, 10));
    end.sender.close(Close::Refuse);
    assert!(end.recv().await.is_none());
    assert!(end.writer.await.unwrap().is_ok());
    assert_eq!(start.elapsed(), SECOND);
    let mut read = Vec::new();
    peer.read_to_end(&mut read).await.unwrap();
    assert_eq!(
        read.len(),
        encoded(1, 10).len() + 32,
        "what was queued, then the end"
    );
    assert!(peer.write_all(b"anyone there?").await.is_err());
}

#[tokio::test(start_paused = true)]
async fn close_that_cannot_write_ends_after_its_limit() {
    let (_peer, far) = duplex(1000);
    let end = End::over(far, &Options::default().flush_timeout(5 * SECOND));
    let start = Instant::now();
    end.send(&encoded(1, 5000));
    end.sender.close(Close::Flush);
    assert_eq!(
        end.writer.await.unwrap().unwrap_err().reason(),
        "write-stalled"
    );
    assert_eq!(start.elapsed(), 5 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn flushed_close_waits_1_s_for_the_other_side() {
    let (mut peer, far) = duplex(1000);
    let end = End::over(far, &Options::default());
    let start = Instant::now();
    end.sender.close(Close::Flush);
    assert_eq!(peer.read(&mut [0; 1]).await.unwrap(), 0);
    assert_eq!(start.elapsed(), Duration::ZERO);
    assert!(end.writer.await.unwrap().is_ok());
    assert_eq!(start.elapsed(), SECOND);
}

//! The transport's part of T-23: nothing that is dropped tears a frame.

use std::time::Duration;

use nacp_transport_tcp::{Lane, Options, Refusal};
use tokio::io::duplex;
use tokio::time::{sleep, timeout};

use crate::support::{End, encoded, framed, message, number_of, recv, soon, tcp_pair};

/// Numbers that look random; the seed is printed by the test that fails.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

#[expect(clippy::print_stdout, reason = "to run a failed test again")]
fn seed() -> u64 {
    let seed = std::env::var("NACP_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or_else(|| u64::from(std::process::id()) * 0x9e37_79b9 + 1);
    println!("NACP_SEED={seed}");
    seed
}

/// T-23, lines 1 and 4: sends in tasks that are aborted, to a peer that reads slowly.
#[tokio::test(start_paused = true)]
async fn aborted_senders_leave_every_message_whole_or_absent() {
    let mut random = numbers(seed());
    let (near, far) = duplex(64 << 10);
    let (near, mut far) = (
        End::over(near, &Options::default()),
        End::over(far, &Options::default()),
    );
    far.receiver.registered();
    let reader = tokio::spawn(async move {
        let mut came = Vec::new();
        while let Some(batch) = far.receiver.recv().await.unwrap() {
            came.append(&mut batch.messages);
            sleep(Duration::from_micros(100)).await;
        }
        came
    });
    let mut kept = Vec::new();
    for number in 0..1000 {
        let sender = near.sender.clone();
        let len = (random.next().unwrap() % (100 << 10)) as usize;
        let sending = tokio::spawn(async move {
            sender
                .queue(Lane::Bulk, message(number, len).encode())
                .unwrap();
            sender.flush();
            sleep(Duration::from_millis(5)).await;
        });
        sleep(Duration::from_micros(random.next().unwrap() % 10_000)).await;
        sending.abort();
        near.send(&encoded(1_000_000 + number, 10));
        kept.push(1_000_000 + number);
    }
    drop(near.sender);
    let came = reader.await.unwrap();
    let small: Vec<_> = came
        .iter()
        .map(number_of)
        .filter(|number| *number >= 1_000_000)
        .collect();
    assert_eq!(small, kept, "all that was kept, in order");
    for inbound in &came {
        let number = number_of(inbound);
        let len = inbound
            .decoded
            .clone()
            .into_message()
            .map(|message| message.encode().len());
        assert_eq!(len, Some(inbound.bytes.len()), "message {number} is whole");
    }
}

#[tokio::test]
async fn dropped_recv_loses_no_message() {
    let mut random = numbers(seed());
    let (near, mut far) = tcp_pair(&Options::default()).await;
    far.receiver.registered();
    let sending = tokio::spawn(async move {
        for number in 0..2000 {
            near.send(&encoded(
                number,
                if number % 50 == 0 { 200_000 } else { 100 },
            ));
            tokio::task::yield_now().await;
        }
        near
    });
    let mut came = Vec::new();
    soon(async {
        while came.len() < 2000 {
            let patience = Duration::from_micros(random.next().unwrap() % 50);
            if let Ok(batch) = timeout(patience, recv(&mut far.receiver)).await {
                came.extend(batch.unwrap().unwrap().iter().map(number_of));
            }
        }
    })
    .await;
    assert!(came.into_iter().eq(0..2000));
    drop(sending.await.unwrap());
}

#[tokio::test]
async fn recv_dropped_after_each_poll_loses_no_message() {
    let (mut near, far) = duplex(7);
    let mut far = End::over(far, &Options::default());
    let bytes = [framed(encoded(1, 200), 100), framed(encoded(2, 20), 4096)].concat();
    let writing = tokio::spawn(async move {
        tokio::io::AsyncWriteExt::write_all(&mut near, &bytes)
            .await
            .unwrap();
    });
    let mut came = Vec::new();
    soon(async {
        while came.len() < 2 {
            tokio::select! {
                biased;
                batch = far.receiver.recv() => came.append(&mut batch.unwrap().unwrap().messages),
                () = tokio::task::yield_now() => {}
            }
        }
    })
    .await;
    assert_eq!(came.iter().map(number_of).collect::<Vec<_>>(), [1, 2]);
    writing.await.unwrap();
}

#[tokio::test]
async fn aborted_writer_task_ends_the_connection_between_whole_messages() {
    let messages: Vec<_> = (0..40).map(|number| encoded(number, 300_000)).collect();
    for rounds in 0..20 {
        let (near, mut far) = tcp_pair(&Options::default()).await;
        far.receiver.registered();
        messages.iter().for_each(|message| near.queue(message));
        near.sender.flush();
        let aborting = tokio::spawn(async move {
            for _ in 0..rounds {
                tokio::task::yield_now().await;
            }
            near.writer.abort();
            let refused = loop {
                match near.sender.queue(Lane::Bulk, encoded(99, 1).into()) {
                    Ok(()) => tokio::task::yield_now().await,
                    Err(refused) => break refused,
                }
            };
            assert_eq!(refused.refusal, Refusal::Closed);
        });
        let mut expected = 0;
        let fault = soon(async {
            loop {
                match far.try_recv().await {
                    Ok(Some(batch)) => {
                        for inbound in batch {
                            assert_eq!(number_of(&inbound), expected);
                            expected += 1;
                        }
                    }
                    Ok(None) => panic!("a clean end in the middle"),
                    Err(fault) => break fault,
                }
            }
        })
        .await;
        assert_eq!(fault.reason(), "transport-error");
        soon(aborting).await.unwrap();
    }
}

//! What connections and messages cost in memory.
//!
//! One test alone in its binary, because the heap of a process is counted.
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

use std::io::Read;
use std::net::SocketAddr;
use std::sync::mpsc;

use bytes::Bytes;
use nacp_proto::{AppId, Body, Message, MessageId, Payload, RequestKind};
use nacp_transport_tcp::{Address, Lane, Listener, Options, Receiver, Sender, connect};
use tokio::runtime::{Builder, Runtime};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn message(body: Body) -> Message {
    Message {
        id: MessageId::sequenced(1, 0x0123_4567_89ab_cdef),
        from: AppId::new("near").unwrap(),
        to: AppId::new("far").unwrap(),
        time: Some(0.0),
        body,
    }
}

fn request(payload_len: usize) -> Bytes {
    let payload = Payload::byte_string(vec![7; payload_len]);
    let body = Body::Request {
        kind: RequestKind::Ability,
        target: Some("x".into()),
        payload,
    };
    message(body).encode().to_bytes()
}

struct End {
    sender: Sender,
    receiver: Receiver,
}

async fn pair(listener: &Listener, options: &Options) -> [End; 2] {
    let address: Address = listener.local_addr().into();
    let (dialled, accepted) = tokio::join!(connect(&address, options), listener.accept());
    [dialled.unwrap(), accepted].map(|connection| {
        let (sender, receiver, writer) = connection.split();
        tokio::spawn(writer.run(|_| ()));
        End { sender, receiver }
    })
}

async fn pass(from: &End, to: &mut End, message: &Bytes, count: usize) {
    for _ in 0..count {
        from.sender
            .queue(Lane::Bulk, message.clone().into())
            .unwrap();
    }
    from.sender.flush();
    let mut came = 0;
    while came < count {
        came += to.receiver.recv().await.unwrap().unwrap().messages.len();
    }
}

/// Heap of an end that has exchanged a few messages, and of one that was busy and then had beats.
fn idle_and_formerly_busy() -> (usize, usize) {
    const PAIRS: usize = 10;
    runtime().block_on(async {
        let options = Options::default();
        let any = Address::to_listen_on("127.0.0.1:0").unwrap();
        let listener = Listener::bind(&any, options.clone()).await.unwrap();
        let (small, mut ends) = (request(64), Vec::with_capacity(PAIRS));
        drop(pair(&listener, &options).await);
        let before = dhat::HeapStats::get().curr_bytes;
        for _ in 0..PAIRS {
            let [mut near, mut far] = pair(&listener, &options).await;
            pass(&near, &mut far, &small, 3).await;
            pass(&far, &mut near, &small, 3).await;
            ends.push([near, far]);
        }
        let idle = dhat::HeapStats::get().curr_bytes - before;
        for [near, far] in &mut ends {
            for _ in 0..4 {
                pass(near, far, &small, 2000).await;
                pass(far, near, &small, 2000).await;
            }
            for _ in 0..100 {
                pass(near, far, &small, 1).await;
                pass(far, near, &small, 1).await;
            }
        }
        let formerly_busy = dhat::HeapStats::get().curr_bytes - before;
        (idle / (2 * PAIRS), formerly_busy / (2 * PAIRS))
    })
}

/// How many allocations a thousand ACKs and a thousand small messages need on the sending side.
fn allocations_of_a_thousand(send: impl Fn(&Sender)) -> u64 {
    let (tell, told) = mpsc::channel::<SocketAddr>();
    let peer = std::thread::spawn(move || {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        let mut socket = listener.accept().unwrap().0;
        let mut buffer = [0; 1 << 16];
        while socket.read(&mut buffer).unwrap() > 0 {}
    });
    let runtime = runtime();
    let allocations = runtime.block_on(async {
        let address: Address = told.recv().unwrap().into();
        let connection = connect(&address, &Options::default()).await.unwrap();
        let (sender, receiver, writer) = connection.split();
        let writer = tokio::spawn(writer.run(|_| ()));
        let thousand = async || {
            for _ in 0..100 {
                let goal = total(&sender) + 10;
                (0..10).for_each(|_| send(&sender));
                sender.flush();
                while total(&sender) < goal {
                    tokio::task::yield_now().await;
                }
            }
        };
        thousand().await;
        // A connection makes one timer when its socket first takes no more, whenever that is.
        let mut fewest = u64::MAX;
        for _ in 0..3 {
            let before = dhat::HeapStats::get().total_blocks;
            thousand().await;
            fewest = fewest.min(dhat::HeapStats::get().total_blocks - before);
        }
        drop((sender, receiver));
        writer.await.unwrap().unwrap();
        fewest
    });
    peer.join().unwrap();
    allocations
}

fn total(sender: &Sender) -> u64 {
    let accepted = sender.accepted();
    accepted.control + accepted.bulk
}

#[test]
fn connections_and_messages_are_cheap() {
    let _profiler = dhat::Profiler::builder().testing().build();
    let (idle, formerly_busy) = idle_and_formerly_busy();
    assert!(idle <= 12 << 10, "{idle} bytes for an idle connection");
    assert!(
        formerly_busy <= 48 << 10,
        "{formerly_busy} bytes for one that was busy"
    );

    let ack = message(Body::Ack {
        parent_id: MessageId::sequenced(2, 0),
    });
    let of_acks = allocations_of_a_thousand(|sender| sender.queue_control(&ack).unwrap());
    let small = request(64);
    let of_messages = allocations_of_a_thousand(|sender| {
        sender.queue(Lane::Bulk, small.clone().into()).unwrap();
    });
    assert_eq!((of_acks, of_messages), (0, 0));
}

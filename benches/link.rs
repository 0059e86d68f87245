//! Criterion benches of `nacp-link`.
//!
//! `link/message`: one signal from a node to another in memory: send, encode, decode, dedup, ACK
//! back, settle, acceptance on both sides. `link/replay`: a backlog of 1024 goes out and is ACKed
//! after a bind. `link/beats`: one virtual second of 10 000 idle links.
#![expect(clippy::unwrap_used, reason = "a bench ends where it cannot go on")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::Bytes;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nacp_link::{
    Accepted, Config, Connect, Inbound, Lane, Node, Origin, PeerId, Token, Transmit, Trust,
};
use nacp_proto::{AppId, Message, MessageId, Payload, Signal};

/// One end of a connection: a node, its name for the peer, and what went out there.
struct End {
    node: Node,
    peer: PeerId,
    sent: Accepted,
}

/// Two nodes and the connection between them.
struct Pair {
    now: Instant,
    a: End,
    b: End,
}

#[expect(clippy::disallowed_methods, reason = "std offers no other epoch")]
fn epoch() -> Instant {
    Instant::now()
}

fn app(name: &str) -> AppId {
    AppId::new(name).unwrap()
}

fn node(name: &str, now: Instant, seed: u8) -> Node {
    let config = Config::new(app(name)).heartbeat_interval(None);
    Node::new(config, now, 0.0, [seed; 32]).unwrap()
}

impl End {
    fn new(node: Node) -> Self {
        let (peer, sent) = (PeerId::default(), Accepted::default());
        Self { node, peer, sent }
    }

    fn dial(&mut self, now: Instant, acceptor: &mut Self) {
        let target = Some(acceptor.node.app_id().clone());
        let Connect::Dial(dial) = self.node.connect(target, None, None) else {
            unreachable!("the link is not online")
        };
        self.peer = self
            .node
            .handle_connected(now, Origin::Dialled(dial), Trust::Proven);
        acceptor.peer = acceptor
            .node
            .handle_connected(now, Origin::Accepted, Trust::Proven);
        (self.sent, acceptor.sent) = (Accepted::default(), Accepted::default());
        settle(now, self, acceptor);
    }

    fn drain_events(&mut self) {
        while let Some(event) = self.node.poll_event() {
            black_box(event);
        }
    }
}

/// Carries messages until both are quiet.
fn settle(now: Instant, a: &mut End, b: &mut End) {
    loop {
        let moved = carry(now, a, b) + carry(now, b, a);
        a.drain_events();
        b.drain_events();
        if moved == 0 {
            return;
        }
    }
}

/// Moves everything that `from` wants to send, and reports its acceptance.
fn carry(now: Instant, from: &mut End, to: &mut End) -> usize {
    let mut moved = 0;
    while let Some(transmit) = from.node.poll_transmit() {
        let Transmit::Send { lane, encoded, .. } = transmit else {
            continue;
        };
        moved += 1;
        match lane {
            Lane::Control => from.sent.control += 1,
            Lane::Bulk => from.sent.bulk += 1,
        }
        let bytes = Bytes::from(encoded);
        let decoded = Message::decode(&bytes).unwrap();
        to.node
            .handle_message(now, to.peer, Inbound { bytes, decoded });
    }
    if moved > 0 {
        from.node.handle_accepted(now, from.peer, from.sent);
    }
    moved
}

impl Pair {
    fn new() -> Self {
        let now = epoch();
        let (mut a, mut b) = (End::new(node("a", now, 1)), End::new(node("b", now, 2)));
        a.dial(now, &mut b);
        Self { now, a, b }
    }

    fn cut(&mut self) {
        for end in [&mut self.a, &mut self.b] {
            end.node.handle_disconnected(self.now, end.peer, None);
            end.drain_events();
        }
    }

    fn reconnect(&mut self) {
        self.a.dial(self.now, &mut self.b);
    }

    fn signal(&mut self, request: &MessageId, signal: Signal, token: u64) {
        let to = self.b.node.app_id();
        self.a
            .node
            .signal(self.now, to, request.clone(), signal, Some(Token(token)));
    }

    fn settle(&mut self) {
        settle(self.now, &mut self.a, &mut self.b);
    }
}

fn messages(c: &mut Criterion) {
    let mut group = c.benchmark_group("link/message");
    for in_flight in [1_u64, 64] {
        let mut pair = Pair::new();
        let request = MessageId::sequenced(0, 0);
        let payload = Payload::new(&[7_u8; 32]).unwrap();
        group.throughput(Throughput::Elements(in_flight));
        group.bench_function(format!("{in_flight}"), |b| {
            b.iter(|| {
                for token in 0..in_flight {
                    pair.signal(&request, Signal::Normal(payload.clone()), token);
                }
                pair.settle();
            });
        });
    }
    group.finish();
}

fn replay(c: &mut Criterion) {
    let mut group = c.benchmark_group("link/replay");
    group.throughput(Throughput::Elements(1024));
    group.bench_function("1024", |b| {
        b.iter_batched_ref(
            || {
                let mut pair = Pair::new();
                pair.cut();
                for token in 0..1024 {
                    pair.signal(&MessageId::sequenced(0, 0), Signal::Pause, token);
                }
                pair
            },
            Pair::reconnect,
            BatchSize::LargeInput,
        );
    });
    group.finish();
}

/// A node with so many idle links, which accepted them all.
fn crowd(links: usize, interval: Option<Duration>) -> (Node, Instant) {
    let now = epoch();
    let config = Config::new(app("hub"))
        .heartbeat_interval(interval)
        .max_peers(usize::MAX);
    let mut hub = End::new(Node::new(config, now, 0.0, [3; 32]).unwrap());
    for index in 0..links {
        End::new(node(&format!("guest-{index}"), now, 4)).dial(now, &mut hub);
    }
    (hub.node, now)
}

/// Answers every beat of the hub as a good peer does.
fn answer_beats(
    hub: &mut Node,
    now: Instant,
    counts: &mut std::collections::HashMap<PeerId, Accepted>,
) {
    while let Some(transmit) = hub.poll_transmit() {
        let Transmit::Send {
            peer,
            lane: Lane::Control,
            encoded,
        } = transmit
        else {
            continue;
        };
        let accepted = counts.entry(peer).or_insert(Accepted {
            control: 2,
            bulk: 0,
        });
        accepted.control += 1;
        hub.handle_accepted(now, peer, *accepted);
        let beat = Message::decode(&encoded.to_bytes()).unwrap();
        let Some(message) = beat.into_message() else {
            continue;
        };
        let nacp_proto::Body::Request { .. } = message.body else {
            continue;
        };
        let response = nacp_proto::Response::ok(message.id.clone(), Payload::empty());
        let id = MessageId::sequenced(accepted.control, 9);
        let answer = Message::new(
            id,
            message.to,
            message.from,
            nacp_proto::Body::Response(response),
        );
        let decoded = nacp_proto::Decoded::Message(answer);
        hub.handle_message(
            now,
            peer,
            Inbound {
                bytes: Bytes::new(),
                decoded,
            },
        );
    }
    while hub.poll_event().is_some() {}
}

fn beats(c: &mut Criterion) {
    let mut group = c.benchmark_group("link/beats");
    for links in [100_usize, 10_000] {
        let (mut hub, mut now) = crowd(links, Some(Duration::from_secs(60)));
        let mut counts = std::collections::HashMap::new();
        group.throughput(Throughput::Elements(links as u64));
        group.bench_function(format!("{links}"), |b| {
            b.iter(|| {
                now += Duration::from_secs(1);
                hub.handle_timeout(now);
                answer_beats(&mut hub, now, &mut counts);
            });
        });
        assert_eq!(hub.snapshot().links, links, "every link has stayed online");
    }
    group.finish();
}

criterion_group!(benches, messages, replay, beats);
criterion_main!(benches);

//! Criterion benches of `nacp-link`.
//!
//! `link/message`: one signal from a node to another in memory: send, encode, decode, dedup, ACK
//! back, settle, acceptance on both sides. `link/replay`: a backlog of 1024 goes out and is ACKed
//! after a bind. `link/beats`: one virtual second of 10 000 idle links.
#![expect(clippy::unwrap_used, reason = "a bench ends where it cannot go on")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use nacp_link::{
    Accepted, Config, Connect, Content, Event, Inbound, Lane, Node, Origin, PeerId, Token,
    Transmit, Trust,
};
use nacp_proto::{AppId, Message, MessageId, Payload, Signal};

/// Two nodes and the connection between them.
struct Pair {
    now: Instant,
    a: Node,
    b: Node,
    at_a: PeerId,
    at_b: PeerId,
    sent_a: Accepted,
    sent_b: Accepted,
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

impl Pair {
    fn new() -> Self {
        let now = epoch();
        let (mut a, mut b) = (node("a", now, 1), node("b", now, 2));
        let Connect::Dial(dial) = a.connect(Some(app("b")), None, None) else {
            unreachable!("a new node is linked with nobody")
        };
        let at_a = a.handle_connected(now, Origin::Dialled(dial), Trust::Proven);
        let at_b = b.handle_connected(now, Origin::Accepted, Trust::Proven);
        let mut pair = Self {
            now,
            a,
            b,
            at_a,
            at_b,
            sent_a: Accepted::default(),
            sent_b: Accepted::default(),
        };
        pair.settle();
        pair
    }

    fn cut(&mut self) {
        self.a.handle_disconnected(self.now, self.at_a, None);
        self.b.handle_disconnected(self.now, self.at_b, None);
        self.drain_events();
    }

    fn reconnect(&mut self) {
        let Connect::Dial(dial) = self.a.connect(Some(app("b")), None, None) else {
            unreachable!("the link is offline")
        };
        self.at_a = self
            .a
            .handle_connected(self.now, Origin::Dialled(dial), Trust::Proven);
        self.at_b = self
            .b
            .handle_connected(self.now, Origin::Accepted, Trust::Proven);
        (self.sent_a, self.sent_b) = (Accepted::default(), Accepted::default());
        self.settle();
    }

    /// Carries messages until both are quiet.
    fn settle(&mut self) {
        loop {
            let moved = carry(
                self.now,
                &mut self.a,
                &mut self.sent_a,
                self.at_a,
                &mut self.b,
                self.at_b,
            ) + carry(
                self.now,
                &mut self.b,
                &mut self.sent_b,
                self.at_b,
                &mut self.a,
                self.at_a,
            );
            self.drain_events();
            if moved == 0 {
                return;
            }
        }
    }

    fn drain_events(&mut self) -> usize {
        let mut settled = 0;
        for node in [&mut self.a, &mut self.b] {
            while let Some(event) = node.poll_event() {
                settled += usize::from(matches!(event, Event::Settled { .. }));
                black_box(event);
            }
        }
        settled
    }
}

/// Moves everything that `from` wants to send, and reports its acceptance.
fn carry(
    now: Instant,
    from: &mut Node,
    sent: &mut Accepted,
    at_from: PeerId,
    to: &mut Node,
    at_to: PeerId,
) -> usize {
    let mut moved = 0;
    while let Some(transmit) = from.poll_transmit() {
        let Transmit::Send { lane, content, .. } = transmit else {
            continue;
        };
        moved += 1;
        match lane {
            Lane::Control => sent.control += 1,
            Lane::Bulk => sent.bulk += 1,
        }
        let bytes = match content {
            Content::Encoded(encoded) => encoded.to_bytes(),
            Content::Message(message) => message.encode().to_bytes(),
        };
        let decoded = Message::decode(&bytes).unwrap();
        to.handle_message(now, at_to, Inbound { bytes, decoded });
    }
    if moved > 0 {
        from.handle_accepted(now, at_from, *sent);
    }
    moved
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
                    let signal = Signal::Normal(payload.clone());
                    pair.a.signal(
                        pair.now,
                        &app("b"),
                        request.clone(),
                        signal,
                        Some(Token(token)),
                    );
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
                    let request = MessageId::sequenced(0, 0);
                    pair.a.signal(
                        pair.now,
                        &app("b"),
                        request,
                        Signal::Pause,
                        Some(Token(token)),
                    );
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
    let mut hub = Node::new(config, now, 0.0, [3; 32]).unwrap();
    for index in 0..links {
        let mut guest = node(&format!("guest-{index}"), now, 4);
        let Connect::Dial(dial) = guest.connect(Some(app("hub")), None, None) else {
            continue;
        };
        let at_guest = guest.handle_connected(now, Origin::Dialled(dial), Trust::Proven);
        let at_hub = hub.handle_connected(now, Origin::Accepted, Trust::Proven);
        let (mut sent_guest, mut sent_hub) = (Accepted::default(), Accepted::default());
        while carry(now, &mut guest, &mut sent_guest, at_guest, &mut hub, at_hub)
            + carry(now, &mut hub, &mut sent_hub, at_hub, &mut guest, at_guest)
            > 0
        {}
        while hub.poll_event().is_some() {}
    }
    (hub, now)
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
            content: Content::Message(message),
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
                bytes: bytes::Bytes::new(),
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

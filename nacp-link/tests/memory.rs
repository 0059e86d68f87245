//! What an idle link costs, and that a busy one allocates nothing for the node itself.
#![expect(clippy::unwrap_used, reason = "a test fails where it cannot go on")]
#![expect(
    clippy::print_stdout,
    reason = "the figures are what the test is run by hand for"
)]

use std::time::Instant;

use nacp_link::{
    Accepted, Config, Connect, Inbound, Lane, Node, Origin, PeerId, Token, Transmit, Trust,
};
use nacp_proto::{AppId, Message, MessageId, Payload, Signal};

#[global_allocator]
static HEAP: dhat::Alloc = dhat::Alloc;

#[expect(clippy::disallowed_methods, reason = "std offers no other epoch")]
fn epoch() -> Instant {
    Instant::now()
}

fn node(name: &str, seed: u8, now: Instant) -> Node {
    let config = Config::new(AppId::new(name).unwrap());
    Node::new(config, now, 0.0, [seed; 32]).unwrap()
}

/// One end of a connection: a node, its name for the peer, and what it has sent there.
struct End<'a> {
    node: &'a mut Node,
    peer: PeerId,
    sent: Accepted,
}

fn carry(now: Instant, from: &mut End<'_>, to: &mut End<'_>) -> usize {
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
        let bytes = encoded.to_bytes();
        let decoded = Message::decode(&bytes).unwrap();
        to.node
            .handle_message(now, to.peer, Inbound { bytes, decoded });
    }
    from.node.handle_accepted(now, from.peer, from.sent);
    moved
}

fn settle(now: Instant, a: &mut End<'_>, b: &mut End<'_>) {
    while carry(now, a, b) + carry(now, b, a) > 0 {
        while a.node.poll_event().is_some() {}
        while b.node.poll_event().is_some() {}
    }
}

fn link(now: Instant, guest: &mut Node, hub: &mut Node) -> (PeerId, PeerId) {
    let Connect::Dial(dial) = guest.connect(Some(hub.app_id().clone()), None, None) else {
        panic!("the guest is linked with nobody");
    };
    let at_guest = guest.handle_connected(now, Origin::Dialled(dial), Trust::Proven);
    let at_hub = hub.handle_connected(now, Origin::Accepted, Trust::Proven);
    let mut a = End {
        node: guest,
        peer: at_guest,
        sent: Accepted::default(),
    };
    let mut b = End {
        node: hub,
        peer: at_hub,
        sent: Accepted::default(),
    };
    settle(now, &mut a, &mut b);
    (at_guest, at_hub)
}

/// One test, because the heap is counted for the whole process.
#[test]
fn an_idle_link_costs_at_most_2_kib_and_a_busy_one_settles_back_to_what_it_had() {
    let profiler = dhat::Profiler::builder().testing().build();
    let now = epoch();
    let mut hub = node("hub", 1, now);
    const LINKS: usize = 2048;
    for index in 0..LINKS {
        let mut guest = node(&format!("guest-{index}"), 2, now);
        link(now, &mut guest, &mut hub);
    }
    assert_eq!(hub.snapshot().links, LINKS);
    let per_link = dhat::HeapStats::get().curr_bytes / LINKS;
    println!("{per_link} bytes per idle link");
    assert!(per_link <= 2048, "an idle link costs {per_link} bytes");
    drop(hub);

    let (mut a, mut b) = (node("a", 3, now), node("b", 4, now));
    let (at_a, at_b) = link(now, &mut a, &mut b);
    let mut a = End {
        node: &mut a,
        peer: at_a,
        sent: Accepted {
            control: 3,
            bulk: 0,
        },
    };
    let mut b = End {
        node: &mut b,
        peer: at_b,
        sent: Accepted {
            control: 4,
            bulk: 0,
        },
    };
    let round = |a: &mut End<'_>, b: &mut End<'_>| {
        for token in 0..64 {
            let signal = Signal::Normal(Payload::empty());
            let to = b.node.app_id().clone();
            a.node.signal(
                now,
                &to,
                MessageId::sequenced(0, 0),
                signal,
                Some(Token(token)),
            );
        }
        settle(now, a, b);
    };
    // The dedup window fills before anything is in its steady state.
    for _ in 0..128 {
        round(&mut a, &mut b);
    }
    let before = dhat::HeapStats::get();
    for _ in 0..64 {
        round(&mut a, &mut b);
    }
    let after = dhat::HeapStats::get();
    let allocations = (after.total_blocks - before.total_blocks) as f64 / 4096.0;
    println!("{allocations:.2} allocations per acknowledged signal");
    // Two for the signal's bytes, which the record and its transmit share, one for the payload that
    // shares the bytes it came in, one for the bytes of the ACK, which a transport need not make.
    assert!(
        allocations <= 4.0,
        "{allocations} allocations per acknowledged signal"
    );
    assert_eq!(
        after.curr_bytes, before.curr_bytes,
        "the steady state keeps nothing"
    );
    drop(profiler);
}

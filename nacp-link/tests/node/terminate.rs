//! The end of a node (specification, section 12).

use nacp_link::{Connect, Event, Origin, OverflowPolicy, Token, Trust};

use crate::support::{ACCEPTOR, DIALLER, Intake, World, app, ms, quiet, secs};

fn terminated_events(world: &World, site: usize) -> usize {
    world.sites[site]
        .events
        .iter()
        .filter(|(_, event)| matches!(event, Event::Terminated))
        .count()
}

#[test]
fn a_polite_end_says_good_bye_and_ends_at_once_when_every_peer_answers() {
    let mut world = World::with([quiet("a"), quiet("b"), quiet("c")]);
    let wires = [world.link(0, 1), world.link(0, 2)];
    let mark = world.mark();
    let token = world.terminate(0);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.settled_at(0, token), Some(secs(0)));
    for wire in wires {
        assert_eq!(world.said_since(mark, wire, DIALLER)[0], "unregister");
    }
    assert_eq!(world.changes(1, "a")[1], (0, "dropped"));
    assert_eq!(world.changes(2, "a")[1], (0, "dropped"));
    assert_eq!(world.node(0).snapshot().peers, 0);
    assert_eq!(world.node(0).poll_timeout(), None);
    assert_eq!(terminated_events(&world, 0), 1);
}

#[test]
fn all_good_byes_share_one_deadline_of_ten_seconds() {
    let mut world = World::with([quiet("b")]);
    let hands: Vec<_> = (0..5)
        .map(|number| {
            let hand = world.native(0, &format!("a{number}"));
            hand.ack_all(&mut world, true);
            hand
        })
        .collect();
    world.advance_to(secs(1));
    let token = world.terminate(0);
    world.advance_to(ms(10_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(11));
    assert_eq!(world.outcome(0, token), "delivered");
    for hand in hands {
        assert!(!hand.is_open(&world));
    }
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn what_waits_on_offline_links_settles_at_once() {
    let mut world = World::with([quiet("b")]);
    let offline = world.native(0, "a");
    let online = world.native(0, "c");
    online.ack_all(&mut world, true);
    offline.hang_up(&mut world);
    world.run();
    let waiting = [world.signal(0, "a", "m1"), world.request(0, "a", "r1")];
    let request = world.request(0, "c", "r1");
    world.run();
    let token = world.terminate(0);
    world.run();
    assert_eq!(world.outcomes(0, &waiting), ["terminated"; 2]);
    assert_eq!(world.outcomes(0, &[request, token]), ["pending"; 2]);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, request), "terminated");
}

/// A node with everything in it that can wait, and all tokens.
fn busy() -> (World, Vec<Token>) {
    let mut world = World::with([quiet("node")
        .overflow(OverflowPolicy::Wait)
        .queue_max_count(30)]);
    let b = world.native(0, "b");
    let c = world.native(0, "c");
    b.ack_all(&mut world, true);
    c.ack_all(&mut world, true);
    c.subscribe(&mut world, "x");
    world.run();
    let mut tokens = Vec::new();
    for number in 0..5 {
        tokens.push(world.request(0, "b", &format!("acked{number}")));
    }
    for pattern in ["s1", "s2", "s3", "s4"] {
        tokens.push(world.subscribe(0, "b", pattern).0);
    }
    tokens.push(world.start(0, "b", "run").0);
    world.run();
    b.respond(&mut world, "subscribe s4", "fine");
    world.run();
    b.ack_all(&mut world, false);
    let (_, stream) = world.subscribe(0, "b", "s5");
    tokens.extend(world.signals(0, "b", 1..=10));
    tokens.push(world.unsubscribe(0, stream.unwrap()));
    world.run();
    world.set_intake(b.wire, ACCEPTOR, Intake::Stalled);
    tokens.extend(world.signals(0, "b", 11..=15));
    c.hang_up(&mut world);
    world.run();
    tokens.extend(world.signals(0, "c", 1..=20));
    tokens.push(world.emit(0, "x", "n1")[0]);
    // A dial without a connection, a register without an answer, and a caller that joined it.
    let dialling = world.token();
    assert!(matches!(
        world
            .node(0)
            .connect(Some(app("far")), None, Some(dialling)),
        Connect::Dial(_)
    ));
    let (_, registering) = world.dialled_by(0, "near");
    let joined = world.token();
    assert_eq!(
        world.node(0).connect(Some(app("near")), None, Some(joined)),
        Connect::Joined
    );
    tokens.extend([dialling, registering, joined]);
    world.run();
    assert!(world.node(0).snapshot().blocked > 0);
    (world, tokens)
}

#[test]
fn t26_an_end_at_once_settles_every_waiter_terminated() {
    let (mut world, tokens) = busy();
    let open: Vec<_> = tokens
        .into_iter()
        .filter(|token| world.outcome(0, *token) == "pending")
        .collect();
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    assert_eq!(world.outcomes(0, &open), vec!["terminated"; open.len()]);
    world.assert_at_rest(0);
    let snapshot = world.node(0).snapshot();
    assert_eq!(
        (snapshot.peers, snapshot.links, snapshot.streams),
        (0, 0, 0)
    );
    assert_eq!(snapshot.timers, 0);
    assert_eq!(world.node(0).poll_timeout(), None);
    assert_eq!(terminated_events(&world, 0), 1);
}

#[test]
fn t26_a_polite_end_settles_every_waiter_terminated_within_its_deadline() {
    let (mut world, tokens) = busy();
    let open: Vec<_> = tokens
        .into_iter()
        .filter(|token| world.outcome(0, *token) == "pending")
        .collect();
    let end = world.terminate(0);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, end), "delivered");
    let ends: Vec<_> = world
        .outcomes(0, &open)
        .into_iter()
        .filter(|end| end != "terminated")
        .collect();
    assert_eq!(ends, Vec::<String>::new());
    world.assert_at_rest(0);
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn t26_ending_twice_is_ending_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let mark = world.mark();
    let tokens = [world.terminate(0), world.terminate(0)];
    world.run();
    let after = world.terminate(0);
    let now = world.now();
    world.node(0).terminate_now(now);
    world.node(0).terminate_now(now);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 2]);
    assert_eq!(world.outcome(0, after), "delivered");
    assert_eq!(terminated_events(&world, 0), 1);
    let said = world.said_since(mark, wire, DIALLER);
    assert_eq!(said.iter().filter(|line| **line == "unregister").count(), 1);
}

#[test]
fn an_end_at_once_cuts_a_polite_one_short() {
    let mut world = World::with([quiet("b")]);
    world.native(0, "a");
    let token = world.terminate(0);
    world.advance_to(secs(3));
    assert_eq!(world.outcome(0, token), "pending");
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn t26_calls_after_the_end_fail_at_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    let tokens = [
        world.signal(0, "b", "m1"),
        world.request(0, "b", "r1"),
        world.subscribe(0, "b", "x").0,
    ];
    let dial = world.token();
    let connect = world.node(0).connect(Some(app("b")), None, Some(dial));
    let goodbye = world.disconnect(0, "b");
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["terminated"; 3]);
    assert_eq!(connect, Connect::Settled);
    assert_eq!(world.outcome(0, dial), "terminated");
    assert!(world.outcome(0, goodbye) != "pending");
}

#[test]
fn calls_during_a_polite_end_are_not_accepted() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    world.terminate(0);
    let tokens = [world.signal(0, "a", "m1"), world.request(0, "a", "r1")];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["terminated"; 2]);
    assert!(!hand.heard(&world).contains(&"signal m1"));
}

#[test]
fn a_connection_after_the_end_is_closed() {
    let mut world = World::with([quiet("b")]);
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.run();
    assert!(!hand.is_open(&world));
    assert_eq!(hand.heard(&world), Vec::<&str>::new());
    let now = world.now();
    let peer = world
        .node(0)
        .handle_connected(now, Origin::Accepted, Trust::Proven);
    let _ = peer;
    assert_eq!(world.node(0).snapshot().peers, 0);
}

#[test]
fn handlers_are_cancelled_and_remote_subscriptions_end() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    world.subscribe(1, "a", "x");
    world.request(1, "a", "r1");
    world.subscribe(0, "b", "y");
    world.run();
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    let mut told: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Cancelled { reason, .. } => Some(format!("cancelled {reason}")),
            Event::StreamEnded { reason, .. } => Some(format!("ended {reason:?}")),
            _ => None,
        })
        .collect();
    told.sort();
    assert_eq!(
        told,
        ["cancelled terminated", "ended Undelivered(Terminated)"]
    );
    let answer = world.answer(0, "r1");
    world.run();
    assert_eq!(world.outcome(0, answer), "terminated");
}

#[test]
fn whatever_ends_after_the_end_began_ends_terminated() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let request = world.request(0, "b", "r1");
    world.run();
    world.terminate(0);
    world.run();
    assert_eq!(world.outcome(0, request), "terminated");
    assert_eq!(world.wires[wire].gone, [true, true]);
}

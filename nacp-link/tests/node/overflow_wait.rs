//! Full tables under the policy `Wait` (specification, sections 5 and 6).

use nacp_link::{Config, OverflowPolicy};

use crate::support::{Hand, World, quiet, secs};

fn waiting(count: usize) -> Config {
    quiet("b")
        .queue_max_count(count)
        .overflow(OverflowPolicy::Wait)
}

fn start(count: usize) -> (World, Hand) {
    let mut world = World::with([waiting(count)]);
    let hand = world.native(0, "a");
    (world, hand)
}

#[test]
fn every_record_counts_from_admission_until_its_ack() {
    let (mut world, hand) = start(2);
    let mark = world.mark();
    let tokens = world.signals(0, "a", 1..=4);
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["signal m1", "signal m2"]);
    assert_eq!(world.node(0).snapshot().blocked, 2);
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 4]);
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(
        hand.heard_since(&world, mark),
        ["signal m1", "signal m2", "signal m3"]
    );
    assert_eq!(world.node(0).snapshot().blocked, 1);
    hand.ack_line(&mut world, "signal m2");
    hand.ack_line(&mut world, "signal m3");
    world.run();
    hand.ack_line(&mut world, "signal m4");
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 4]);
    world.assert_at_rest(0);
}

#[test]
fn sends_wait_for_room_offline_too_and_nothing_reliable_is_evicted() {
    let (mut world, hand) = start(2);
    hand.hang_up(&mut world);
    world.run();
    let tokens = world.signals(0, "a", 1..=5);
    world.advance_to(secs(60));
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 5]);
    assert_eq!(world.node(0).snapshot().blocked, 3);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.ack_all(&mut world, true);
    back.register(&mut world);
    world.run();
    assert_eq!(
        back.heard(&world)[2..],
        [
            "signal m1",
            "signal m2",
            "signal m3",
            "signal m4",
            "signal m5"
        ]
    );
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 5]);
}

#[test]
fn putting_back_always_fits() {
    let (mut world, hand) = start(3);
    let tokens = world.signals(0, "a", 1..=6);
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.backlog.count, snapshot.blocked), (3, 3));
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 6]);
}

#[test]
fn a_notify_that_finds_no_room_is_refused_and_one_counts_until_its_acceptance() {
    let (mut world, hand) = start(2);
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    hand.ack_all(&mut world, false);
    let first = world.emit(0, "x", "n1")[0];
    world.run();
    assert_eq!(world.outcome(0, first), "delivered");
    let signals = world.signals(0, "a", 1..=2);
    let second = world.emit(0, "x", "n2")[0];
    world.run();
    assert_eq!(world.outcome(0, second), "refused");
    assert_eq!(world.outcomes(0, &signals), ["pending"; 2]);
}

#[test]
fn blocked_sends_settle_when_their_link_is_dropped_and_when_the_node_ends() {
    let (mut world, hand) = start(1);
    let tokens = world.signals(0, "a", 1..=3);
    world.run();
    hand.hang_up(&mut world);
    world.advance_to(secs(120));
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 3]);
    world.assert_at_rest(0);

    let (mut world, _hand) = start(1);
    let tokens = world.signals(0, "a", 1..=3);
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["terminated"; 3]);
}

#[test]
fn what_the_node_sends_by_itself_passes_the_caps_by_1024_records_then_the_peer_is_closed() {
    let mut world = World::with([waiting(1).max_subscriptions(5000)]);
    let hand = world.native(0, "a");
    for _ in 0..1025 {
        hand.subscribe(&mut world, "x");
    }
    world.run();
    assert!(hand.is_open(&world));
    for _ in 0..2 {
        hand.subscribe(&mut world, "x");
    }
    world.run();
    assert!(!hand.is_open(&world));
    assert_eq!(world.peer_errors(0), [(0, "limit-reached")]);
}

#[test]
fn what_waits_for_room_settles_too_large_when_the_peer_comes_back_smaller() {
    let (mut world, hand) = start(1);
    hand.hang_up(&mut world);
    world.run();
    let tokens = [
        world.signal(0, "a", "m1"),
        world.signal(0, "a", &"x".repeat(1000)),
        world.signal(0, "a", "m2"),
    ];
    assert_eq!(world.node(0).snapshot().blocked, 2);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.max_message_bytes = Some(1000);
    back.ack_all(&mut world, true);
    back.register(&mut world);
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["delivered", "too-large", "delivered"]
    );
    assert_eq!(back.heard(&world)[2..], ["signal m1", "signal m2"]);
    world.assert_at_rest(0);
}

#[test]
fn two_nodes_with_tiny_tables_deliver_everything_in_order() {
    let tiny = |name| {
        quiet(name)
            .queue_max_count(4)
            .submit_max_count(4)
            .overflow(OverflowPolicy::Wait)
    };
    let mut world = World::with([tiny("a"), tiny("b")]);
    world.link(0, 1);
    let tokens = world.signals(0, "b", 1..=500);
    let back = world.signals(1, "a", 1..=500);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; 500]);
    assert_eq!(world.outcomes(1, &back), vec!["delivered"; 500]);
    let expected: Vec<_> = (1..=500).map(|number| format!("m{number}")).collect();
    assert_eq!(world.handled(0), expected);
    assert_eq!(world.handled(1), expected);
    world.assert_at_rest(0);
    world.assert_at_rest(1);
}

#[test]
fn links_take_turns_when_room_comes_back() {
    let mut world = World::with([waiting(2)]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    let marks = world.mark();
    world.signals(0, "a", 1..=5);
    world.signals(0, "c", 6..=10);
    world.run();
    assert_eq!(a.heard_since(&world, marks), ["signal m1", "signal m2"]);
    for line in ["signal m1", "signal m2"] {
        a.ack_line(&mut world, line);
    }
    world.run();
    // Two places for two links that wait: one each.
    assert_eq!(
        a.heard_since(&world, marks),
        ["signal m1", "signal m2", "signal m3"]
    );
    assert_eq!(c.heard_since(&world, marks), ["signal m6"]);
}

//! Replay after a return (specification, section 4.4).

use nacp_proto::MessageId;

use crate::support::{ACCEPTOR, DIALLER, Dice, Hand, Intake, World, quiet, secs};

fn names(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers
        .into_iter()
        .map(|number| format!("m{number}"))
        .collect()
}

fn signals(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers
        .into_iter()
        .map(|number| format!("signal m{number}"))
        .collect()
}

/// The signals among what a node said.
fn signals_said(world: &World, mark: usize, wire: usize, end: usize) -> Vec<&str> {
    let mut said = world.said_since(mark, wire, end);
    said.retain(|line| line.starts_with("signal"));
    said
}

fn back(world: &mut World, before: &Hand) -> Hand {
    let mut hand = world.hand(0, before.app.as_str());
    hand.holds = vec![before.session(world)];
    hand.register(world);
    hand
}

#[test]
fn t06_a_replay_is_in_original_order_with_the_same_ids_and_the_same_bytes() {
    for count in [1, 2, 3, 5, 1024] {
        let mut world = World::with([
            quiet("a").queue_max_count(2048).dedup_window(8192),
            quiet("b"),
        ]);
        let first = world.link(0, 1);
        world.hold(first, ACCEPTOR);
        let mut tokens = world.signals(0, "b", 1..=count);
        world.run();
        world.set_intake(first, DIALLER, Intake::Stalled);
        tokens.extend(world.signals(0, "b", count + 1..=count + 3));
        world.advance_to(secs(2));
        world.cut(first);
        world.run();
        tokens.extend(world.signals(0, "b", count + 4..=count + 5));
        let last = count + 5;
        let snapshot = world.node(0).snapshot();
        assert_eq!(snapshot.backlog.count, usize::try_from(last).unwrap());
        assert_eq!(
            (snapshot.submitted.count, snapshot.ack_pending.count),
            (0, 0)
        );
        world.advance_to(secs(5));
        let second = world.link(0, 1);
        let said = world.said(second, DIALLER);
        assert_eq!(said[..2], ["register", "ack answer register"]);
        assert_eq!(said[2..], signals(1..=last));
        assert_eq!(world.handled(1), names(1..=last));
        let acks: Vec<_> = names(1..=last)
            .iter()
            .map(|name| format!("ack {name}"))
            .collect();
        assert_eq!(world.said(second, ACCEPTOR)[2..], acks);
        assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; tokens.len()]);
        for line in signals(1..=count) {
            let copies: Vec<_> = world
                .log
                .iter()
                .filter(|crossing| crossing.line == line)
                .map(|crossing| crossing.bytes.clone())
                .collect();
            assert_eq!(copies.len(), 2);
            assert_eq!(copies[0], copies[1]);
        }
        world.assert_at_rest(0);
        world.assert_at_rest(1);
    }
}

#[test]
fn nothing_new_overtakes_a_replay() {
    let mut world = World::with([quiet("a").submit_max_count(2), quiet("b")]);
    let first = world.link(0, 1);
    world.cut(first);
    world.run();
    world.signals(0, "b", 1..=10);
    let (second, _) = world.dial(0, 1);
    world.set_intake(second, DIALLER, Intake::Stalled);
    for _ in 0..40 {
        world.accept(second, DIALLER, 1);
        world.run();
        if world.state(0, "b") == Some(nacp_link::LinkState::Online) {
            break;
        }
    }
    world.signals(0, "b", 11..=12);
    for _ in 0..40 {
        world.accept(second, DIALLER, 1);
        world.run();
    }
    assert_eq!(signals_said(&world, 0, second, DIALLER), signals(1..=12));
    assert_eq!(world.handled(1), names(1..=12));
}

#[test]
fn t07_a_second_cut_in_the_middle_of_a_replay_keeps_the_rest_in_its_place() {
    let mut world = World::with([quiet("a").submit_max_count(10).poison_limit(0), quiet("b")]);
    let first = world.link(0, 1);
    world.cut(first);
    world.run();
    let mut tokens = world.signals(0, "b", 1..=100);
    let (second, _) = world.dial(0, 1);
    world.hold(second, ACCEPTOR);
    world.set_intake(second, DIALLER, Intake::Stalled);
    world.run();
    world.accept(second, DIALLER, 1);
    world.run();
    world.release_some(second, ACCEPTOR, 2);
    world.run();
    world.accept(second, DIALLER, 1);
    for _ in 0..40 {
        world.run();
        assert!(world.waiting(second, DIALLER).len() <= 10);
        world.accept(second, DIALLER, 1);
    }
    world.run();
    assert_eq!(signals_said(&world, 0, second, DIALLER), signals(1..=40));
    world.release_some(second, ACCEPTOR, 25);
    world.run();
    assert_eq!(world.outcomes(0, &tokens[..25]), vec!["delivered"; 25]);
    assert_eq!(world.outcomes(0, &tokens[25..]), vec!["pending"; 75]);
    world.cut(second);
    world.run();
    tokens.extend(world.signals(0, "b", 101..=110));
    assert_eq!(world.node(0).snapshot().backlog.count, 85);
    let third = world.link(0, 1);
    assert_eq!(signals_said(&world, 0, third, DIALLER), signals(26..=110));
    assert_eq!(world.handled(1), names(1..=110));
    assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; 110]);
    world.assert_at_rest(0);
}

#[test]
fn t07_five_cuts_at_random_points_lose_repeat_and_reorder_nothing() {
    for seed in 1..=1000 {
        let mut dice = Dice::new(seed);
        let mut world = World::with([quiet("a").submit_max_count(10).poison_limit(0), quiet("b")]);
        let mut wire = world.link(0, 1);
        world.cut(wire);
        world.run();
        let tokens = world.signals(0, "b", 1..=110);
        for _ in 0..5 {
            wire = world.dial(0, 1).0;
            world.set_intake(wire, DIALLER, Intake::Stalled);
            for _ in 0..dice.roll(60) {
                world.accept(wire, DIALLER, 1 + dice.roll(3));
                if dice.roll(4) == 0 {
                    world.hold(wire, ACCEPTOR);
                }
                world.run();
            }
            world.cut(wire);
            world.run();
        }
        world.link(0, 1);
        assert_eq!(world.handled(1), names(1..=110), "seed {seed}");
        assert_eq!(
            world.outcomes(0, &tokens),
            vec!["delivered"; 110],
            "seed {seed}"
        );
        world.assert_at_rest(0);
    }
}

#[test]
fn a_replay_waits_for_room_in_ack_pending_but_always_sends_one_record_a_link() {
    let mut world = World::with([quiet("b").queue_max_count(4)]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    for hand in [&a, &c] {
        hand.hang_up(&mut world);
    }
    world.run();
    world.signals(0, "a", 1..=2);
    world.signals(0, "c", 3..=4);
    // One more each while both are offline does not fit, so the table stays at four.
    let d = world.native(0, "d");
    let filling = world.signals(0, "d", 11..=14);
    world.run();
    assert_eq!(world.node(0).snapshot().ack_pending.count, 4);
    let a = back(&mut world, &a);
    let c = back(&mut world, &c);
    world.run();
    assert_eq!(a.heard(&world)[2..], ["signal m1"]);
    assert_eq!(c.heard(&world)[2..], ["signal m3"]);
    // ACKs make room, and the replays go on.
    for line in ["signal m11", "signal m12", "signal m13", "signal m14"] {
        d.ack_line(&mut world, line);
    }
    a.ack_line(&mut world, "signal m1");
    c.ack_line(&mut world, "signal m3");
    world.run();
    assert_eq!(a.heard(&world)[2..], ["signal m1", "signal m2"]);
    assert_eq!(c.heard(&world)[2..], ["signal m3", "signal m4"]);
    let _ = filling;
}

#[test]
fn a_replay_is_acked_again_and_not_handled_again() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let first = world.link(0, 1);
    world.hold(first, ACCEPTOR);
    let token = world.request(0, "b", "r1");
    world.run();
    assert_eq!(world.handled(1), ["r1"]);
    world.cut(first);
    let second = world.link(0, 1);
    assert_eq!(world.said(second, DIALLER)[2..], ["request r1"]);
    assert_eq!(world.said(second, ACCEPTOR)[2..], ["ack r1"]);
    assert_eq!(world.handled(1), ["r1"]);
    world.answer(1, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "ok r1");
}

#[test]
fn all_kinds_keep_their_relative_order_notifies_too() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    world.signal(0, "a", "s1");
    world.emit(0, "x", "n1");
    world.request(0, "a", "r1");
    world.emit(0, "x", "n2");
    world.subscribe(0, "a", "y");
    world.signal(0, "a", "s2");
    let hand = back(&mut world, &hand);
    world.run();
    assert_eq!(
        hand.heard(&world)[2..],
        [
            "signal s1",
            "notify n1",
            "request r1",
            "notify n2",
            "subscribe y",
            "signal s2"
        ]
    );
}

#[test]
fn an_accepted_notify_is_never_repeated() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    hand.ack_all(&mut world, false);
    world.emit(0, "x", "n1");
    world.signal(0, "a", "s1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let hand = back(&mut world, &hand);
    world.run();
    assert_eq!(hand.heard(&world)[2..], ["signal s1"]);
}

#[test]
fn the_dialler_starts_its_own_replay_when_it_has_the_response() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let first = world.link(0, 1);
    world.cut(first);
    world.run();
    world.signal(0, "b", "m1");
    let (second, _) = world.dial(0, 1);
    world.hold(second, ACCEPTOR);
    world.run();
    assert_eq!(world.said(second, DIALLER), ["register"]);
    world.release(second, ACCEPTOR);
    world.run();
    assert_eq!(
        world.said(second, DIALLER),
        ["register", "ack answer register", "signal m1"]
    );
}

#[test]
fn replays_are_counted_per_link() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signals(0, "a", 1..=3);
    world.run();
    hand.hang_up(&mut world);
    world.run();
    back(&mut world, &hand);
    world.run();
    assert_eq!(world.node(0).totals().replayed(), 3);
    let link = world.sites[0].node.link(&crate::support::app("a")).unwrap();
    assert_eq!(link.replayed, 3);
}

#[test]
fn ids_of_one_node_are_all_different() {
    let mut world = World::with([quiet("b")]);
    world.native(0, "a");
    world.signals(0, "a", 1..=500);
    world.run();
    let mut ids: Vec<MessageId> = world
        .log
        .iter()
        .map(|crossing| crossing.message().id.clone())
        .collect();
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count);
}

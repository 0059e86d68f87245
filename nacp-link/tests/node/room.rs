//! Room that comes back by other ways than an ACK (specification, sections 4.4, 5 and 6).

use nacp_link::{Interest, OverflowPolicy, Token};
use nacp_proto::{Body, RequestKind};

use crate::support::{ACCEPTOR, Dice, Hand, Intake, World, ms, quiet, secs};

fn back(world: &mut World, before: &Hand) -> Hand {
    let mut hand = world.hand(0, before.app.as_str());
    hand.holds = vec![before.session(world)];
    hand.register(world);
    world.run();
    hand
}

/// `a` has `m1` to `m3` in its backlog and has come back, while `d` fills ack-pending: only `m1` is out.
fn starving() -> (World, Hand, Hand, Vec<Token>) {
    let mut world = World::with([quiet("b").queue_max_count(4)]);
    let a = world.native(0, "a");
    a.hang_up(&mut world);
    world.run();
    let tokens = world.signals(0, "a", 1..=3);
    let d = world.native(0, "d");
    world.signals(0, "d", 11..=14);
    world.run();
    let a = back(&mut world, &a);
    assert_eq!(a.heard(&world)[2..], ["signal m1"]);
    (world, a, d, tokens)
}

const WHOLE: [&str; 3] = ["signal m1", "signal m2", "signal m3"];

#[test]
fn a_replay_goes_on_when_another_link_goes_offline() {
    let (mut world, a, d, _) = starving();
    d.hang_up(&mut world);
    world.run();
    assert_eq!(a.heard(&world)[2..], WHOLE);
}

#[test]
fn a_replay_goes_on_when_another_link_is_dropped() {
    let (mut world, a, d, _) = starving();
    d.say(&mut world, Body::Unregister);
    world.run();
    assert_eq!(a.heard(&world)[2..], WHOLE);
}

#[test]
fn a_replay_goes_on_when_its_only_record_is_acked_or_evicted() {
    let (mut world, a, _, tokens) = starving();
    // Another message to d evicts the oldest of ack-pending, one after the other.
    world.signals(0, "d", 15..=20);
    world.run();
    assert!(world.node(0).snapshot().ack_pending.count <= 4);
    a.ack_line(&mut world, "signal m1");
    world.run();
    assert!(a.heard(&world)[2..].len() >= 2, "{:?}", a.heard(&world));
    assert!(world.outcome(0, tokens[0]) != "pending");
}

#[test]
fn one_at_a_time_goes_on_when_the_record_alone_fails_to_be_sent() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    for _ in 0..2 {
        hand.hang_up(&mut world);
        world.run();
        let mut next = world.hand(0, "a");
        next.holds = vec![hand.session(&world)];
        world.set_intake(next.wire, ACCEPTOR, Intake::Stalled);
        next.register(&mut world);
        world.run();
        world.accept(next.wire, ACCEPTOR, 2);
        world.run();
        hand = next;
    }
    assert_eq!(world.waiting(hand.wire, ACCEPTOR), ["signal m1"]);
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.node(0).handle_send_failed(peer, 0);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["send-failed", "pending"]);
    world.set_intake(hand.wire, ACCEPTOR, Intake::Open);
    world.run();
    assert!(hand.heard(&world).contains(&"signal m2"));
}

#[test]
fn one_at_a_time_goes_on_when_the_record_alone_is_evicted() {
    let mut world = World::with([quiet("b").queue_max_count(2)]);
    let mut hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    for _ in 0..2 {
        hand.hang_up(&mut world);
        world.run();
        hand = back(&mut world, &hand);
    }
    assert_eq!(hand.heard(&world)[2..], ["signal m1"]);
    world.native(0, "d");
    world.signals(0, "d", 11..=12);
    world.run();
    assert_eq!(world.outcome(0, tokens[0]), "evicted");
    assert_eq!(hand.heard(&world)[2..], ["signal m1", "signal m2"]);
}

/// `Wait` with one place; `a` is offline and `c` online.
fn waiting_for_room() -> (World, Hand) {
    let config = quiet("b").queue_max_count(1).overflow(OverflowPolicy::Wait);
    let mut world = World::with([config]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    a.hang_up(&mut world);
    world.run();
    (world, c)
}

#[test]
fn a_blocked_send_goes_when_another_app_is_dropped() {
    let (mut world, c) = waiting_for_room();
    world.signal(0, "a", "m1");
    let blocked = world.signal(0, "c", "m2");
    world.run();
    assert_eq!(world.node(0).snapshot().blocked, 1);
    world.disconnect(0, "a");
    world.run();
    assert_eq!(c.heard(&world).last(), Some(&"signal m2"));
    assert_eq!(world.outcome(0, blocked), "pending");
    assert_eq!(world.node(0).snapshot().blocked, 0);
}

#[test]
fn a_blocked_send_goes_when_a_call_is_withdrawn() {
    let (mut world, c) = waiting_for_room();
    let (call, _) = world.ask(0, "a", "r1", RequestKind::Ability, Some(secs(5)));
    world.signal(0, "c", "m2");
    world.advance_to(ms(4_999));
    assert!(!c.heard(&world).contains(&"signal m2"));
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, call), "timeout");
    assert_eq!(c.heard(&world).last(), Some(&"signal m2"));
}

#[test]
fn a_blocked_send_goes_when_a_session_is_lost() {
    let (mut world, c) = waiting_for_room();
    world.signal(0, "a", "m1");
    world.signal(0, "c", "m2");
    world.run();
    world.native(0, "a");
    assert_eq!(c.heard(&world).last(), Some(&"signal m2"));
}

#[test]
fn a_blocked_send_goes_when_an_app_whose_grace_is_over_is_disconnected() {
    let mut world = World::with([quiet("b").queue_max_count(2).overflow(OverflowPolicy::Wait)]);
    let a = world.native(0, "a");
    a.hang_up(&mut world);
    world.run();
    world.signals(0, "a", 1..=2);
    let c = world.native(0, "c");
    let blocked = world.signal(0, "c", "m3");
    world.advance_to(secs(119));
    // Our own register keeps `a` beyond the end of its grace.
    world.dialled_by(0, "a");
    world.advance_to(secs(125));
    let mark = world.mark();
    assert_eq!(world.outcome(0, blocked), "pending");
    world.disconnect(0, "a");
    world.run();
    assert_eq!(c.heard_since(&world, mark), ["signal m3"]);
}

#[test]
fn a_blocked_send_goes_when_a_larger_one_before_it_is_given_up() {
    let config = quiet("b").overflow(OverflowPolicy::Wait);
    let mut world = World::with([config.queue_max_bytes(500)]);
    let a = world.native(0, "a");
    world.signal(0, "a", "m1");
    let mark = world.mark();
    let (_, large) = world.subscribe(0, "a", &"x".repeat(400));
    world.signal(0, "a", "m2");
    world.run();
    assert_eq!(world.node(0).snapshot().blocked, 2);
    world.unsubscribe(0, large.unwrap());
    world.run();
    assert_eq!(a.heard_since(&world, mark), ["signal m1", "signal m2"]);
}

#[test]
fn a_blocked_send_goes_when_a_message_fails_to_be_sent() {
    let config = quiet("b").queue_max_count(1).overflow(OverflowPolicy::Wait);
    let mut world = World::with([config]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.node(0).handle_send_failed(peer, 0);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["send-failed", "pending"]);
    assert_eq!(world.node(0).snapshot().blocked, 0);
    assert_eq!(
        world
            .waiting(hand.wire, ACCEPTOR)
            .last()
            .map(String::as_str),
        Some("signal m2")
    );
}

#[test]
fn a_message_that_failed_leaves_the_window_when_the_acceptance_passes_it() {
    let mut world = World::with([quiet("b").submit_max_count(1)]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.node(0).handle_send_failed(peer, 0);
    world.accept(hand.wire, ACCEPTOR, 1);
    world.run();
    assert_eq!(world.waiting(hand.wire, ACCEPTOR), ["signal m2"]);
    assert_eq!(world.outcomes(0, &tokens), ["send-failed", "pending"]);
    assert_eq!(world.node(0).snapshot().ack_pending.count, 0);
}

/// One random step of a node with two apps; the hands as they are now.
fn step(world: &mut World, dice: &mut Dice, hands: &mut [Hand; 2], tokens: &mut Vec<Token>) {
    let which = usize::from(dice.roll(2) == 1);
    let name = ["a", "c"][which];
    let wire = hands[which].wire;
    match dice.roll(12) {
        0..=3 => tokens.push(world.signal(0, name, "m")),
        4 => tokens.push(world.request(0, name, "r")),
        5 => tokens.push(
            world
                .ask(0, name, "l", RequestKind::Ability, Some(secs(3)))
                .0,
        ),
        6 => {
            let intake = [Intake::Open, Intake::Stalled, Intake::Unreported];
            world.set_intake(wire, ACCEPTOR, intake[dice.roll(3)]);
        }
        7 => world.accept(wire, ACCEPTOR, dice.roll(4)),
        8 => {
            let acks = dice.roll(2) == 0;
            hands[which].ack_all(world, acks);
        }
        9 => {
            let peer = world.wires[wire].peer(ACCEPTOR);
            let index = world.wires[wire].ways[ACCEPTOR].accepted.bulk;
            world.node(0).handle_send_failed(peer, index);
        }
        10 => world.advance(ms(100 * dice.roll(50) as u64)),
        _ => {
            if hands[which].is_open(world) {
                hands[which].hang_up(world);
                world.run();
            }
            let mut next = world.hand(0, name);
            if dice.roll(4) > 0 {
                next.holds = hands[which]
                    .registered(world)
                    .and_then(|had| had.session)
                    .into_iter()
                    .collect();
            }
            next.register(world);
            world.run();
            hands[which] = next;
        }
    }
    world.run();
}

#[test]
fn t08_whatever_happens_caps_hold_and_books_and_waiters_come_back_to_zero() {
    for (seed, policy) in
        (1..=60).flat_map(|seed| [(seed, OverflowPolicy::Evict), (seed, OverflowPolicy::Wait)])
    {
        let mut dice = Dice::new(seed);
        let config = quiet("b")
            .queue_max_count(6)
            .submit_max_count(3)
            .max_unregistered_peers(1000)
            .overflow(policy);
        let mut world = World::with([config]);
        world.node(0).set_interest(Interest::NONE);
        let mut hands = [world.native(0, "a"), world.native(0, "c")];
        let mut tokens = Vec::new();
        for _ in 0..150 {
            step(&mut world, &mut dice, &mut hands, &mut tokens);
            let snapshot = world.node(0).snapshot();
            assert!(
                snapshot.backlog.count <= 6,
                "seed {seed}, {policy:?}: {snapshot:?}"
            );
            assert!(
                snapshot.ack_pending.count <= 6,
                "seed {seed}, {policy:?}: {snapshot:?}"
            );
            let mut links = [(0, 0); 2];
            for link in world.sites[0].node.links() {
                links[0].0 += link.backlog.count;
                links[0].1 += link.backlog.bytes;
                links[1].0 += link.ack_pending.count;
                links[1].1 += link.ack_pending.bytes;
            }
            let totals =
                [snapshot.backlog, snapshot.ack_pending].map(|table| (table.count, table.bytes));
            assert_eq!(links, totals, "seed {seed}, {policy:?}");
        }
        for name in ["a", "c"] {
            world.disconnect(0, name);
        }
        world.advance(secs(300));
        for token in tokens {
            assert!(
                world.outcome(0, token) != "pending",
                "seed {seed}, {policy:?}: {token:?}"
            );
        }
        world.assert_at_rest(0);
        let snapshot = world.node(0).snapshot();
        assert_eq!(
            (snapshot.links, snapshot.timers),
            (0, 0),
            "seed {seed}, {policy:?}"
        );
    }
}

//! A message that makes the other side close (specification, section 4.4).

use nacp_link::MessageReport;
use nacp_proto::{Body, Response};

use crate::support::{Hand, World, payload, quiet, secs};

/// The app comes back: the hand, after everything that the node sends by itself.
fn back(world: &mut World, before: &Hand) -> Hand {
    let mut hand = world.hand(0, "a");
    hand.holds = vec![before.session(world)];
    hand.register(world);
    world.run();
    hand.ack_last_response(world);
    world.run();
    hand
}

fn hang_up(world: &mut World, hand: &Hand) {
    hand.hang_up(world);
    world.run();
}

fn replayed<'a>(world: &'a World, hand: &Hand) -> Vec<&'a str> {
    hand.heard(world)[2..].to_vec()
}

/// `m1` to `m3` are sent, and two disconnects in a row bring no ACK.
fn after_two_disconnects(limit: u32) -> (World, Hand, Vec<nacp_link::Token>) {
    let mut world = World::with([quiet("b").poison_limit(limit)]);
    let hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=3);
    world.run();
    hang_up(&mut world, &hand);
    let hand = back(&mut world, &hand);
    assert_eq!(
        replayed(&world, &hand),
        ["signal m1", "signal m2", "signal m3"]
    );
    hang_up(&mut world, &hand);
    (world, hand, tokens)
}

#[test]
fn after_two_disconnects_without_an_ack_the_replay_sends_one_at_a_time() {
    let (mut world, hand, _) = after_two_disconnects(3);
    let hand = back(&mut world, &hand);
    assert_eq!(replayed(&world, &hand), ["signal m1"]);
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(replayed(&world, &hand), ["signal m1", "signal m2"]);
    hand.ack_line(&mut world, "signal m2");
    world.run();
    assert_eq!(
        replayed(&world, &hand),
        ["signal m1", "signal m2", "signal m3"]
    );
}

#[test]
fn one_at_a_time_lasts_until_the_backlog_found_at_the_register_is_through() {
    let (mut world, hand, _) = after_two_disconnects(3);
    let hand = back(&mut world, &hand);
    world.signals(0, "a", 4..=5);
    world.run();
    for number in 1..=3 {
        assert_eq!(replayed(&world, &hand).len(), number);
        hand.ack_line(&mut world, &format!("signal m{number}"));
        world.run();
    }
    assert_eq!(
        replayed(&world, &hand),
        [
            "signal m1",
            "signal m2",
            "signal m3",
            "signal m4",
            "signal m5"
        ]
    );
}

#[test]
fn a_record_alone_at_three_disconnects_settles_poisoned_and_is_reported() {
    let (mut world, mut hand, tokens) = after_two_disconnects(3);
    for turn in 1..=3 {
        hand = back(&mut world, &hand);
        assert_eq!(replayed(&world, &hand), ["signal m1"]);
        assert_eq!(world.outcome(0, tokens[0]), "pending");
        world.advance(secs(1));
        hang_up(&mut world, &hand);
        let expected = if turn == 3 { "poisoned" } else { "pending" };
        assert_eq!(world.outcome(0, tokens[0]), expected, "turn {turn}");
    }
    assert_eq!(
        world.reported_of(0, MessageReport::BacklogWarning),
        ["poisoned m1"]
    );
    let hand = back(&mut world, &hand);
    assert_eq!(replayed(&world, &hand), ["signal m2"]);
    hand.ack_line(&mut world, "signal m2");
    world.run();
    hand.ack_line(&mut world, "signal m3");
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["poisoned", "delivered", "delivered"]
    );
    world.assert_at_rest(0);
}

#[test]
fn a_poisoned_request_rejects_its_caller_too() {
    let mut world = World::with([quiet("b").poison_limit(1)]);
    let mut hand = world.native(0, "a");
    let token = world.request(0, "a", "r1");
    world.run();
    for _ in 0..3 {
        assert_eq!(world.outcome(0, token), "pending");
        hang_up(&mut world, &hand);
        hand = back(&mut world, &hand);
    }
    assert_eq!(world.outcome(0, token), "poisoned");
}

/// It was read every time, and it began something there.
#[test]
fn a_poisoned_subscribe_that_is_answered_after_all_is_ended() {
    let mut world = World::with([quiet("b").poison_limit(1)]);
    let mut hand = world.native(0, "a");
    let (token, _) = world.subscribe(0, "a", "x");
    world.run();
    let parent_id = hand.last_id(&world, "subscribe x");
    for _ in 0..3 {
        hang_up(&mut world, &hand);
        hand = back(&mut world, &hand);
    }
    assert_eq!(world.outcome(0, token), "poisoned");
    hand.say(
        &mut world,
        Body::Response(Response::ok(parent_id, payload("fine"))),
    );
    world.run();
    assert_eq!(hand.heard(&world).last(), Some(&"unsubscribe x"));
}

#[test]
fn any_ack_of_a_replayable_record_resets_the_row() {
    let (mut world, hand, _) = after_two_disconnects(3);
    let hand = back(&mut world, &hand);
    hand.ack_line(&mut world, "signal m1");
    world.run();
    hang_up(&mut world, &hand);
    // One disconnect in a row: everything at once again.
    let hand = back(&mut world, &hand);
    assert_eq!(replayed(&world, &hand), ["signal m2", "signal m3"]);
}

#[test]
fn timeouts_do_not_count() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=2);
    for _ in 0..10 {
        world.advance(secs(10));
        assert_eq!(world.state(0, "a"), Some(nacp_link::LinkState::Offline));
        hand = back(&mut world, &hand);
        assert_eq!(replayed(&world, &hand), ["signal m1", "signal m2"]);
    }
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 2]);
}

#[test]
fn takeovers_do_not_count() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    for _ in 0..10 {
        hand = back(&mut world, &hand);
        assert_eq!(replayed(&world, &hand), ["signal m1", "signal m2"]);
    }
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 2]);
}

#[test]
fn a_record_that_was_not_fully_accepted_does_not_count() {
    let (mut world, mut hand, tokens) = after_two_disconnects(1);
    for _ in 0..5 {
        hand = {
            let mut next = world.hand(0, "a");
            next.holds = vec![hand.session(&world)];
            world.set_intake(
                next.wire,
                crate::support::ACCEPTOR,
                crate::support::Intake::Stalled,
            );
            next.register(&mut world);
            world.run();
            world.accept(next.wire, crate::support::ACCEPTOR, 2);
            world.run();
            assert_eq!(
                world.waiting(next.wire, crate::support::ACCEPTOR),
                ["signal m1"]
            );
            hang_up(&mut world, &next);
            next
        };
    }
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 3]);
}

#[test]
fn with_a_limit_of_zero_everything_is_replayed_for_ever() {
    let mut world = World::with([quiet("b").poison_limit(0)]);
    let mut hand = world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=3);
    world.run();
    for _ in 0..20 {
        hang_up(&mut world, &hand);
        hand = back(&mut world, &hand);
        assert_eq!(
            replayed(&world, &hand),
            ["signal m1", "signal m2", "signal m3"]
        );
    }
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 3]);
}

#[test]
fn one_at_a_time_is_over_at_once_if_the_backlog_is_empty() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.native(0, "a");
    for _ in 0..3 {
        hang_up(&mut world, &hand);
        hand = back(&mut world, &hand);
    }
    world.signals(0, "a", 1..=3);
    world.run();
    assert_eq!(
        replayed(&world, &hand),
        ["signal m1", "signal m2", "signal m3"]
    );
}

#[test]
fn an_app_that_restarts_at_the_message_each_time_meets_the_poison_rule_too() {
    let mut world = World::with([quiet("b")]);
    world.trust = nacp_link::Trust::Proven;
    let hand = world.native(0, "a");
    let token = world.request(0, "a", "r1");
    world.run();
    hang_up(&mut world, &hand);
    for start in 1..=4 {
        assert_eq!(world.outcome(0, token), "pending", "start {start}");
        let mut hand = world.hand(0, "a");
        hand.instance = Some(nacp_proto::Instance([start; 16]));
        hand.register(&mut world);
        world.run();
        assert_eq!(replayed(&world, &hand), ["request r1"], "start {start}");
        hang_up(&mut world, &hand);
    }
    assert_eq!(world.outcome(0, token), "poisoned");
}

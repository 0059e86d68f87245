//! How sends and calls end (specification, section 5).

use nacp_link::{Answer, LinkState, MessageReport, Undelivered};
use nacp_proto::{Body, RequestKind};

use crate::support::{ACCEPTOR, Hand, Intake, World, app, ms, payload, quiet, secs};

fn pair() -> (World, usize) {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    (world, wire)
}

fn with_hand() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    (world, hand)
}

#[test]
fn a_request_settles_when_its_response_arrives() {
    let (mut world, _) = pair();
    let token = world.request(0, "b", "r1");
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, token), "pending");
    world.answer(1, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "ok r1");
    assert_eq!(world.settled_at(0, token), Some(secs(5)));
}

#[test]
fn a_request_answered_no_settles_with_why_and_payload() {
    let (mut world, _) = pair();
    let token = world.request(0, "b", "r1");
    world.run();
    world.answer_with(1, "r1", Answer::not_ok("not today", payload("why")));
    world.run();
    assert_eq!(world.outcome(0, token), "not ok: not today");
}

#[test]
fn a_response_settles_at_its_ack() {
    let (mut world, hand) = with_hand();
    ask(&mut world, &hand, "r1");
    world.run();
    let token = world.answer(0, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
    hand.ack_line(&mut world, "answer r1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
}

#[test]
fn a_signal_settles_at_its_ack_also_when_nothing_runs_there() {
    let (mut world, _) = pair();
    let token = world.signal(0, "b", "m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(
        world.reported(1, MessageReport::SignalError),
        [(0, "no-event-processor")]
    );
}

#[test]
fn a_notify_settles_at_its_acceptance_and_is_pending_while_offline() {
    let (mut world, wire) = pair();
    world.subscribe(1, "a", "x");
    world.run();
    let online = world.emit(0, "x", "n1");
    world.run();
    assert_eq!(world.outcomes(0, &online), ["delivered"]);
    world.cut(wire);
    world.run();
    let offline = world.emit(0, "x", "n2");
    world.advance_to(secs(100));
    assert_eq!(world.outcomes(0, &offline), ["pending"]);
    world.link(0, 1);
    assert_eq!(world.outcomes(0, &offline), ["delivered"]);
}

#[test]
fn a_notify_is_never_ack_pending() {
    let (mut world, hand) = with_hand();
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    world.emit(0, "x", "n1");
    world.run();
    assert_eq!(world.node(0).snapshot().ack_pending.count, 0);
    assert_eq!(world.node(0).snapshot().submitted.count, 0);
}

#[test]
fn subscribe_and_unsubscribe_settle_at_their_response() {
    let (mut world, hand) = with_hand();
    let (subscribe, stream) = world.subscribe(0, "a", "x");
    world.run();
    hand.ack_line(&mut world, "subscribe x");
    world.run();
    assert_eq!(world.outcome(0, subscribe), "pending");
    hand.respond(&mut world, "subscribe x", "fine");
    world.run();
    assert_eq!(world.outcome(0, subscribe), "ok fine");
    let unsubscribe = world.unsubscribe(0, stream.unwrap());
    world.run();
    assert_eq!(world.outcome(0, unsubscribe), "pending");
    hand.respond(&mut world, "unsubscribe x", "fine");
    world.run();
    assert_eq!(world.outcome(0, unsubscribe), "ok fine");
}

#[test]
fn subscribe_and_unsubscribe_time_out_after_ten_seconds() {
    let (mut world, hand) = with_hand();
    hand.ack_all(&mut world, true);
    let (subscribe, stream) = world.subscribe(0, "a", "x");
    world.run();
    world.advance_to(secs(1));
    hand.respond(&mut world, "subscribe x", "fine");
    world.run();
    let unsubscribe = world.unsubscribe(0, stream.unwrap());
    let (late, _) = world.subscribe(0, "a", "y");
    world.advance_to(ms(10_999));
    assert_eq!(world.outcomes(0, &[unsubscribe, late]), ["pending"; 2]);
    world.advance_to(secs(11));
    assert_eq!(world.outcomes(0, &[unsubscribe, late]), ["timeout"; 2]);
    assert_eq!(world.outcome(0, subscribe), "ok fine");
}

#[test]
fn what_is_addressed_to_the_own_app_or_to_nobody_settles_at_once() {
    let mut world = World::with([quiet("b")]);
    let tokens = [
        world.signal(0, "b", "m1"),
        world.request(0, "b", "r1"),
        world.subscribe(0, "b", "x").0,
        world.signal(0, "z", "m1"),
        world.request(0, "z", "r1"),
        world.subscribe(0, "z", "x").0,
    ];
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        [
            "self-addressed",
            "self-addressed",
            "self-addressed",
            "no-route",
            "no-route",
            "no-route"
        ]
    );
    assert_eq!(
        world
            .reported(0, MessageReport::RouteError)
            .iter()
            .map(|(_, reason)| *reason)
            .collect::<Vec<_>>(),
        [
            "self-addressed",
            "self-addressed",
            "self-addressed",
            "no-route",
            "no-route",
            "no-route"
        ]
    );
    world.assert_at_rest(0);
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn a_provider_failure_for_one_message_settles_it_alone_send_failed() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens = [
        world.signal(0, "a", "m1"),
        world.request(0, "a", "r1"),
        world.signal(0, "a", "m2"),
    ];
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.node(0).handle_send_failed(peer, 1);
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["pending", "send-failed", "pending"]
    );
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    assert_eq!(
        world.reported(0, MessageReport::RouteError),
        [(0, "send-failed")]
    );
}

#[test]
fn an_ack_before_the_acceptance_settles_all_the_same() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    world.report_accepted(hand.wire, ACCEPTOR);
    world.run();
    world.assert_at_rest(0);
    world.advance_to(secs(60));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn a_response_before_the_ack_settles_and_the_record_still_waits_for_its_ack() {
    let (mut world, hand) = with_hand();
    let token = world.request(0, "a", "r1");
    world.run();
    hand.respond(&mut world, "request r1", "fine");
    world.run();
    assert_eq!(world.outcome(0, token), "ok fine");
    assert_eq!(world.node(0).snapshot().ack_pending.count, 1);
    world.advance_to(secs(10));
    assert_eq!(world.changes(0, "a")[1], (10_000, "offline"));
}

#[test]
fn an_answer_counts_its_waiter_once() {
    let (mut world, hand) = with_hand();
    let token = world.request(0, "a", "r1");
    world.run();
    hand.ack_line(&mut world, "request r1");
    for _ in 0..3 {
        hand.respond(&mut world, "request r1", "fine");
    }
    world.run();
    assert_eq!(world.outcome(0, token), "ok fine");
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(0, "has-no-consumer"); 2]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn a_request_that_is_abandoned_is_still_delivered_and_never_settles() {
    let (mut world, _) = pair();
    let (token, id) = world.ask(0, "b", "r1", RequestKind::Ability, None);
    world.node(0).abandon(&id.unwrap());
    world.run();
    assert_eq!(world.handled(1), ["r1"]);
    world.answer(1, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
    world.assert_at_rest(0);
}

#[test]
fn a_message_larger_than_the_peer_takes_fails_at_the_call_too_large() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.hand(0, "a");
    hand.max_message_bytes = Some(1000);
    hand.register(&mut world);
    world.run();
    let mark = world.mark();
    let large = "x".repeat(1000);
    let tokens = [
        world.signal(0, "a", &large),
        world.request(0, "a", &large),
        world.signal(0, "a", "m1"),
    ];
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["too-large", "too-large", "pending"]
    );
    assert_eq!(hand.heard_since(&world, mark), ["signal m1"]);
    assert_eq!(
        world.reported(0, MessageReport::RouteError),
        [(0, "too-large"), (0, "too-large")]
    );
}

#[test]
fn a_message_of_exactly_the_peers_size_goes_and_one_byte_more_does_not() {
    let size = {
        let (mut world, hand) = with_hand();
        world.signal(0, "a", &"x".repeat(300));
        world.run();
        world
            .crossings_since(0, hand.wire, ACCEPTOR)
            .last()
            .unwrap()
            .bytes
            .len() as u64
    };
    for (limit, expected) in [(size, "pending"), (size - 1, "too-large")] {
        let mut world = World::with([quiet("b")]);
        let mut hand = world.hand(0, "a");
        hand.max_message_bytes = Some(limit);
        hand.register(&mut world);
        world.run();
        let token = world.signal(0, "a", &"x".repeat(300));
        world.run();
        assert_eq!(world.outcome(0, token), expected);
    }
}

#[test]
fn queued_messages_settle_too_large_when_the_peer_comes_back_smaller() {
    let (mut world, hand) = with_hand();
    hand.hang_up(&mut world);
    world.run();
    let tokens = [
        world.signal(0, "a", &"x".repeat(1000)),
        world.signal(0, "a", "m1"),
    ];
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.max_message_bytes = Some(1000);
    back.register(&mut world);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["too-large", "pending"]);
    assert_eq!(back.heard(&world)[2..], ["signal m1"]);
}

#[test]
fn a_second_answer_settles_discarded_and_sends_nothing() {
    let (mut world, hand) = with_hand();
    ask(&mut world, &hand, "r1");
    world.run();
    world.answer(0, "r1");
    world.run();
    let mark = world.mark();
    let second = world.answer(0, "r1");
    world.run();
    assert_eq!(world.outcome(0, second), "discarded");
    assert_eq!(hand.heard_since(&world, mark), Vec::<&str>::new());
}

#[test]
fn every_reason_has_the_specifications_name() {
    let reasons = [
        (Undelivered::SelfAddressed, "self-addressed"),
        (Undelivered::NoRoute, "no-route"),
        (Undelivered::SendFailed, "send-failed"),
        (Undelivered::Refused, "refused"),
        (Undelivered::Evicted, "evicted"),
        (Undelivered::PeerGone, "peer-gone"),
        (Undelivered::Terminated, "terminated"),
        (Undelivered::Timeout, "timeout"),
        (Undelivered::TooLarge, "too-large"),
        (Undelivered::UnroutableRelay, "unroutable-relay"),
        (Undelivered::SessionLost, "session-lost"),
        (Undelivered::Poisoned, "poisoned"),
        (Undelivered::Discarded, "discarded"),
    ];
    for (reason, name) in reasons {
        assert_eq!(reason.as_str(), name);
        assert_eq!(reason.to_string(), name);
    }
}

#[test]
fn messages_are_encoded_once_with_our_version_and_a_time() {
    let (mut world, hand) = with_hand();
    world.advance_to(secs(2));
    world.signal(0, "a", "m1");
    world.run();
    let message = hand.last(&world, "signal m1").clone();
    assert_eq!(message.time, Some(crate::support::UNIX_MS + 2000.0));
    assert_eq!(message.from, app("b"));
    assert_eq!(message.to, app("a"));
}

fn ask(world: &mut World, hand: &Hand, label: &str) {
    hand.say(
        world,
        Body::Request {
            kind: RequestKind::Ability,
            target: Some("work".into()),
            payload: payload(label),
        },
    );
}

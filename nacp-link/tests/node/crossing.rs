//! Two nodes that dial each other at once (specification, section 4.2).

use nacp_link::{Connect, LinkState};
use nacp_proto::{Body, Outcome, Payload, Response};
use serde_json::json;

use crate::support::{ACCEPTOR, DIALLER, Hand, World, ms, quiet, secs};

#[test]
fn the_greater_app_refuses_crossed_the_other_accepts_and_both_attempts_succeed() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let (from_a, token_a) = world.dial(0, 1);
    let (from_b, token_b) = world.dial(1, 0);
    world.run();
    assert_eq!(world.outcome(0, token_a), "connected b");
    assert_eq!(world.outcome(1, token_b), "connected a");
    assert_eq!(
        world.said(from_a, ACCEPTOR),
        ["ack register", "answer register: appId-in-use"]
    );
    assert_eq!(
        world.said(from_b, ACCEPTOR),
        ["ack register", "answer register"]
    );
    assert_eq!(world.changes(0, "b"), [(0, "online")]);
    assert_eq!(world.changes(1, "a"), [(0, "online")]);
    assert_eq!(world.register_warnings(1), [(0, "crossed")]);
}

#[test]
fn the_refusal_of_a_crossing_register_says_so_in_its_payload() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let (from_a, _) = world.dial(0, 1);
    world.dial(1, 0);
    world.run();
    let refusal = world
        .crossings_since(0, from_a, ACCEPTOR)
        .find(|crossing| crossing.line == "answer register: appId-in-use")
        .unwrap();
    let Body::Response(response) = &refusal.message().body else {
        panic!("not a response: {refusal:?}");
    };
    let crossed: serde_json::Value = response.payload.decode().unwrap();
    assert_eq!(crossed, json!({"crossed": true}));
}

#[test]
fn crossing_registers_that_travel_for_a_while_end_in_one_link() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let (from_a, token_a) = world.dial(0, 1);
    let (from_b, token_b) = world.dial(1, 0);
    world.set_delay(from_a, ms(30));
    world.set_delay(from_b, ms(50));
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, token_a), "connected b");
    assert_eq!(world.outcome(1, token_b), "connected a");
    for (site, of) in [(0, "b"), (1, "a")] {
        assert_eq!(world.state(site, of), Some(LinkState::Online));
        assert_eq!(world.changes(site, of).len(), 1);
        assert_eq!(world.node(site).snapshot().peers, 1);
    }
    let tokens = [world.signal(0, "b", "m1"), world.signal(1, "a", "x1")];
    world.advance(secs(1));
    assert_eq!(world.outcome(0, tokens[0]), "delivered");
    assert_eq!(world.outcome(1, tokens[1]), "delivered");
}

/// A node `a` whose register to the hand `b` was refused as crossing, at 1 s.
fn refused_as_crossing() -> (World, nacp_link::Token) {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.advance_to(secs(1));
    refuse_as_crossing(&mut world, &hand);
    (world, token)
}

fn refuse_as_crossing(world: &mut World, hand: &Hand) {
    let parent_id = hand.last_id(world, "register");
    hand.ack(world, &parent_id);
    let response = Response {
        outcome: Outcome::NotOk {
            why: Some("appId-in-use".into()),
        },
        ..Response::ok(parent_id, Payload::new(&json!({"crossed": true})).unwrap())
    };
    hand.say(world, Body::Response(response));
    world.run();
}

#[test]
fn an_attempt_refused_as_crossing_waits_for_the_other_register() {
    let (mut world, token) = refused_as_crossing();
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(ms(9_900));
    world.native(0, "b");
    assert_eq!(world.outcome(0, token), "connected b");
}

#[test]
fn an_attempt_refused_as_crossing_fails_in_use_at_its_ten_seconds_when_no_register_comes() {
    let (mut world, token) = refused_as_crossing();
    world.advance_to(ms(9_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "appId-in-use");
    assert_eq!(world.state(0, "b"), None);
}

#[test]
fn a_foreign_register_that_crosses_is_accepted_and_the_own_attempt_given_up() {
    // `b` is the greater: it would refuse a native `a`.
    let mut world = World::with([quiet("b")]);
    let (dialled, token) = world.dialled_by(0, "a");
    world.run();
    world.foreign(0, "a");
    assert_eq!(world.outcome(0, token), "connected a");
    assert!(!dialled.is_open(&world));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn a_native_register_that_crosses_is_refused_by_the_greater_and_its_own_attempt_goes_on() {
    let mut world = World::with([quiet("b")]);
    let (dialled, token) = world.dialled_by(0, "a");
    world.run();
    let crossing = world.hand(0, "a");
    crossing.register(&mut world);
    world.run();
    assert_eq!(
        crossing.heard(&world),
        ["ack register", "answer register: appId-in-use"]
    );
    dialled.admit(&mut world, Some(nacp_proto::Session([1; 16])), Some(false));
    world.run();
    assert_eq!(world.outcome(0, token), "connected a");
    assert!(dialled.is_open(&world));
}

#[test]
fn links_that_come_back_by_crossing_registers_lose_nothing() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.hold(wire, DIALLER);
    world.hold(wire, ACCEPTOR);
    let tokens = [world.signal(0, "b", "m1"), world.signal(1, "a", "x1")];
    world.run();
    world.cut(wire);
    world.advance_to(secs(1));
    let dials = [world.dial(0, 1).1, world.dial(1, 0).1];
    world.run();
    assert_eq!(world.outcome(0, dials[0]), "connected b");
    assert_eq!(world.outcome(1, dials[1]), "connected a");
    assert_eq!(world.outcome(0, tokens[0]), "delivered");
    assert_eq!(world.outcome(1, tokens[1]), "delivered");
    assert_eq!(world.handled(0), ["x1"]);
    assert_eq!(world.handled(1), ["m1"]);
    assert_eq!(
        world.app_reports(0, "b").last(),
        Some(&(1_000, "bound", Some(true)))
    );
    assert_eq!(
        world.app_reports(1, "a").last(),
        Some(&(1_000, "bound", Some(true)))
    );
}

#[test]
fn an_attempt_at_whoever_answers_that_crosses_succeeds_with_the_other_register() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let token = world.token();
    let Connect::Dial(dial) = world.node(0).connect(None, None, Some(token)) else {
        panic!("no dial");
    };
    let from_a = world.lay(0, dial, 1);
    let (from_b, token_b) = world.dial(1, 0);
    world.run();
    assert_eq!(
        world.said(from_a, ACCEPTOR),
        ["ack register", "answer register: appId-in-use"]
    );
    assert_eq!(world.said(from_b, ACCEPTOR).len(), 2);
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(world.outcome(1, token_b), "connected a");
    world.advance_to(secs(20));
    assert_eq!(world.node(0).snapshot().timers, 0);
}

#[test]
fn an_attempt_at_whoever_answers_that_crosses_waits_with_the_one_by_name() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_unnamed(0, "b");
    world.run();
    let (_, named) = world.dialled_by(0, "b");
    world.run();
    refuse_as_crossing(&mut world, &hand);
    assert_eq!(world.outcomes(0, &[token, named]), ["pending"; 2]);
    world.foreign(0, "b");
    assert_eq!(world.outcomes(0, &[token, named]), ["connected b"; 2]);
}

//! Beats end to end (specification, sections 4.7, 9 and 11).

use nacp_link::Config;
use nacp_proto::{AppId, Body, Instance, Message, Payload, Response};

use crate::support::{ACCEPTOR, Hand, World, app, payload, quiet, secs};

/// A leaf with a gateway `g` under control of the test.
fn with_gateway(config: Config) -> (World, Hand) {
    let mut world = World::with([config]);
    let gateway = gateway(&mut world, "g");
    (world, gateway)
}

fn gateway(world: &mut World, name: &str) -> Hand {
    let mut hand = world.hand(0, name);
    hand.is_gateway = true;
    hand.register(world);
    world.run();
    hand.ack_last_response(world);
    world.run();
    hand
}

/// A message of an app behind the gateway.
fn from(world: &mut World, gateway: &Hand, source: &str, body: Body) {
    let (fresh, node) = (world.fresh_id(), gateway.node.clone());
    gateway.say_as(world, fresh, &app(source), &node, body);
}

fn ack_as(world: &mut World, gateway: &Hand, source: &str, line: &str) {
    let parent_id = gateway.last_id(world, line);
    from(world, gateway, source, Body::Ack { parent_id });
}

/// A node that beats, with a request ACKed by `z` behind the gateway and not answered.
fn waiting_behind() -> (World, Hand, nacp_link::Token) {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(60)))]);
    let hand = gateway(&mut world, "g");
    let token = world.request(0, "z", "r1");
    world.run();
    ack_as(&mut world, &hand, "z", "request r1");
    world.run();
    (world, hand, token)
}

/// Answers every beat of the node so far, those to the gateway as the gateway, and those to `z` as
/// `z` if that is alive.
fn answer_beats(world: &mut World, hand: &Hand, seen: &mut usize, z: Option<Instance>) {
    let beats: Vec<Message> = world
        .crossings_since(*seen, hand.wire, ACCEPTOR)
        .filter(|crossing| crossing.line == "beat")
        .map(|crossing| crossing.message().clone())
        .collect();
    *seen = world.mark();
    for beat in beats {
        let to: AppId = beat.to.clone();
        let instance = if to == app("z") { z } else { None };
        if to == app("z") && z.is_none() {
            continue;
        }
        let response = Response {
            instance,
            ..Response::ok(beat.id.clone(), Payload::new(&true).unwrap())
        };
        from(world, hand, to.as_str(), Body::Ack { parent_id: beat.id });
        from(world, hand, to.as_str(), Body::Response(response));
    }
    world.run();
}

#[test]
fn a_waiter_behind_a_gateway_lives_as_long_as_its_app_answers_beats() {
    let (mut world, hand, token) = waiting_behind();
    let mut seen = 0;
    for second in 1..=900 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([5; 16])));
    }
    assert_eq!(world.outcome(0, token), "pending");
    let end_to_end = world
        .crossings_since(0, hand.wire, ACCEPTOR)
        .filter(|crossing| crossing.line == "beat" && crossing.message().to == app("z"))
        .count();
    assert!(
        end_to_end >= 10,
        "{end_to_end} beats end to end in 15 minutes"
    );
}

#[test]
fn two_unanswered_beats_end_to_end_end_the_waiters_of_that_app_unroutable_relay() {
    let (mut world, hand, token) = waiting_behind();
    let mut seen = 0;
    for second in 1..=240 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, None);
    }
    assert_eq!(world.outcome(0, token), "unroutable-relay");
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
    let beats: Vec<_> = world
        .crossings_since(0, hand.wire, ACCEPTOR)
        .filter(|crossing| crossing.line == "beat" && crossing.message().to == app("z"))
        .map(|crossing| crossing.message().id.clone())
        .collect();
    let mut ids = beats.clone();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 2, "two beats were tried");
}

#[test]
fn a_change_of_instance_in_the_answer_to_an_end_to_end_beat_is_that_apps_lost_session() {
    let (mut world, hand, token) = waiting_behind();
    let mut seen = 0;
    for second in 1..=120 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([5; 16])));
    }
    assert_eq!(world.outcome(0, token), "pending");
    for second in 121..=300 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([6; 16])));
    }
    assert_eq!(world.outcome(0, token), "session-lost");
}

/// The subscribe was answered and its ACK was lost, so it is still tried. Its subscription is made
/// again by another one, and would be doubled.
#[test]
fn a_subscribe_without_an_ack_is_not_tried_at_an_instance_that_was_given_another() {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(4)))]);
    let hand = gateway(&mut world, "g");
    let (token, _) = world.subscribe(0, "z", "x");
    world.run();
    let parent_id = hand.last_id(&world, "subscribe x");
    let answer = Response::ok(parent_id, payload("fine"));
    from(&mut world, &hand, "z", Body::Response(answer));
    let mut seen = 0;
    answer_beats(&mut world, &hand, &mut seen, Some(Instance([5; 16])));
    for second in 1..=4 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([6; 16])));
    }
    for line in ["unsubscribe x", "subscribe x"] {
        ack_as(&mut world, &hand, "z", line);
    }
    for second in 5..=30 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([6; 16])));
    }
    assert_eq!(world.outcome(0, token), "ok fine");
    let mut said = world.timed(hand.wire, ACCEPTOR);
    said.retain(|(_, line)| line.ends_with("subscribe x") && !line.starts_with("ack"));
    assert_eq!(
        said,
        [
            (0, "subscribe x"),
            (4000, "unsubscribe x"),
            (4000, "subscribe x")
        ]
    );
}

#[test]
fn without_waiters_no_beat_goes_end_to_end() {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(60)))]);
    let hand = gateway(&mut world, "g");
    let token = world.signal(0, "z", "m1");
    world.run();
    ack_as(&mut world, &hand, "z", "signal m1");
    let mut seen = 0;
    for second in 1..=300 {
        world.advance_to(secs(second));
        answer_beats(&mut world, &hand, &mut seen, None);
    }
    assert_eq!(world.outcome(0, token), "delivered");
    let end_to_end = world
        .crossings_since(0, hand.wire, ACCEPTOR)
        .any(|crossing| crossing.line == "beat" && crossing.message().to == app("z"));
    assert!(!end_to_end);
}

#[test]
fn the_answer_to_an_end_to_end_beat_carries_our_instance() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    from(
        &mut world,
        &gateway,
        "z",
        Body::Request {
            kind: nacp_proto::RequestKind::Ability,
            target: Some("NApp.heartbeat".into()),
            payload: Payload::new(&serde_json::json!({"from": "z"})).unwrap(),
        },
    );
    world.run();
    let Body::Response(response) = &gateway.last(&world, "answer beat").body else {
        panic!("not a response");
    };
    assert_eq!(response.instance, Some(world.sites[0].node.instance()));
}

//! Beats end to end (specification, sections 4.7, 9 and 11).

use nacp_link::{Config, Trust};
use nacp_proto::{AppId, Body, Instance, Message, MessageId, Payload, Response};

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

/// `z`, met behind the gateway as one instance, binds directly as another, with all that can wait
/// for it. How that ended, and what it is told.
fn returns_directly(instance: Option<Instance>, trust: Trust) -> (Vec<String>, Vec<String>) {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(60)))]);
    world.trust = trust;
    let hand = gateway(&mut world, "g");
    let (subscribed, _) = world.subscribe(0, "z", "x");
    let acked = world.request(0, "z", "acked");
    world.run();
    for line in ["subscribe x", "request acked"] {
        ack_as(&mut world, &hand, "z", line);
    }
    let parent_id = hand.last_id(&world, "subscribe x");
    let answer = Response::ok(parent_id, payload("fine"));
    from(&mut world, &hand, "z", Body::Response(answer));
    answer_beats(&mut world, &hand, &mut 0, Some(Instance([5; 16])));
    let unacked = [
        world.request(0, "z", "unacked"),
        world.signal(0, "z", "unacked"),
    ];
    world.run();
    let mut direct = world.hand(0, "z");
    direct.instance = instance;
    direct.register(&mut world);
    world.run();
    let outcomes = world.outcomes(0, &[subscribed, acked, unacked[0], unacked[1]]);
    let heard = direct
        .heard(&world)
        .into_iter()
        .map(str::to_owned)
        .collect();
    (outcomes, heard)
}

#[test]
fn an_app_met_behind_a_gateway_that_binds_directly_as_another_instance_has_lost_its_session() {
    let handshake = ["ack register", "answer register"];
    let again = ["unsubscribe x", "subscribe x"];
    let (outcomes, heard) = returns_directly(Some(Instance([6; 16])), Trust::Unproven);
    assert_eq!(
        outcomes,
        ["ok fine", "session-lost", "session-lost", "session-lost"]
    );
    assert_eq!(heard, [handshake, again].concat());
    let (outcomes, heard) = returns_directly(Some(Instance([6; 16])), Trust::Proven);
    assert_eq!(
        outcomes,
        ["ok fine", "session-lost", "pending", "session-lost"]
    );
    let sent = [&handshake[..], &["request unacked"], &again].concat();
    assert_eq!(heard, sent);
}

#[test]
fn an_app_met_behind_a_gateway_that_binds_directly_as_itself_goes_on() {
    let (outcomes, heard) = returns_directly(Some(Instance([5; 16])), Trust::Unproven);
    assert_eq!(outcomes, ["ok fine", "pending", "pending", "pending"]);
    assert_eq!(
        heard,
        [
            "ack register",
            "answer register",
            "request unacked",
            "signal unacked"
        ]
    );
}

fn stays_silent(world: &mut World, hand: &Hand, seconds: u64) {
    let mut seen = 0;
    let start = world.at().as_secs();
    for second in start + 1..=start + seconds {
        world.advance_to(secs(second));
        answer_beats(world, hand, &mut seen, None);
    }
}

fn hit(parent_id: MessageId) -> Body {
    Body::Notify {
        parent_id,
        target_sub_name: "x".into(),
        hit_sub_name: "x".into(),
        payload: payload("n1"),
        seq: Some(0),
    }
}

#[test]
fn a_hit_of_a_stream_that_ended_unroutable_relay_ends_it_at_the_other_side() {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(60)))]);
    let hand = gateway(&mut world, "g");
    world.subscribe(0, "z", "x");
    world.run();
    ack_as(&mut world, &hand, "z", "subscribe x");
    let parent_id = hand.last_id(&world, "subscribe x");
    let answer = Response::ok(parent_id.clone(), payload("fine"));
    from(&mut world, &hand, "z", Body::Response(answer));
    world.run();
    stays_silent(&mut world, &hand, 180);
    assert_eq!(world.node(0).snapshot().streams, 0);
    let mark = world.mark();
    from(&mut world, &hand, "z", hit(parent_id));
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["unsubscribe x"]);
}

#[test]
fn a_subscribe_that_ended_unroutable_relay_is_withdrawn_and_ended_if_it_succeeds() {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(2)))]);
    let hand = gateway(&mut world, "g");
    let (token, _) = world.subscribe(0, "z", "x");
    world.run();
    stays_silent(&mut world, &hand, 6);
    assert_eq!(world.outcome(0, token), "unroutable-relay");
    let mark = world.mark();
    stays_silent(&mut world, &hand, 20);
    assert!(!hand.heard_since(&world, mark).contains(&"subscribe x"));
    let parent_id = hand.last_id(&world, "subscribe x");
    let answer = Response::ok(parent_id, payload("fine"));
    from(&mut world, &hand, "z", Body::Response(answer));
    world.run();
    assert!(hand.heard_since(&world, mark).contains(&"unsubscribe x"));
}

/// `z` restarts behind the gateway, asks and subscribes at once, and is then found to be another:
/// by a beat, or since it binds directly. How answers to the old and the new request end, and how
/// many subscriptions the node still serves.
fn speaks_before_it_is_noticed(binds_directly: bool) -> (Vec<String>, usize) {
    let mut world = World::with([Config::new(app("a")).heartbeat_interval(Some(secs(4)))]);
    let hand = gateway(&mut world, "g");
    world.request(0, "z", "r1");
    world.run();
    ack_as(&mut world, &hand, "z", "request r1");
    let asks = |world: &mut World, label: &str| {
        let body = Body::Request {
            kind: nacp_proto::RequestKind::Event,
            target: Some("work".into()),
            payload: payload(label),
        };
        from(world, &hand, "z", body);
        let target_sub_name = label.into();
        from(world, &hand, "z", Body::Subscribe { target_sub_name });
        world.run();
    };
    asks(&mut world, "old");
    let mut seen = 0;
    answer_beats(&mut world, &hand, &mut seen, Some(Instance([5; 16])));
    asks(&mut world, "new");
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.running, snapshot.subscriptions), (2, 2));
    if binds_directly {
        let mut direct = world.hand(0, "z");
        direct.instance = Some(Instance([6; 16]));
        direct.register(&mut world);
        world.run();
    } else {
        world.advance_to(secs(4));
        answer_beats(&mut world, &hand, &mut seen, Some(Instance([6; 16])));
    }
    let answers = ["old", "new"].map(|label| world.answer(0, label));
    world.run();
    let subscriptions = world.node(0).snapshot().subscriptions;
    (world.outcomes(0, &answers), subscriptions)
}

#[test]
fn what_a_new_instance_has_asked_for_before_it_is_noticed_stays() {
    for binds_directly in [false, true] {
        let (answers, subscriptions) = speaks_before_it_is_noticed(binds_directly);
        assert_eq!(answers, ["session-lost", "pending"], "{binds_directly}");
        assert_eq!(subscriptions, 1, "{binds_directly}");
    }
}

#[test]
fn an_app_met_behind_a_gateway_that_binds_directly_without_an_instance_has_lost_its_session() {
    let (outcomes, _) = returns_directly(None, Trust::Unproven);
    assert_eq!(
        outcomes,
        ["ok fine", "session-lost", "session-lost", "session-lost"]
    );
}

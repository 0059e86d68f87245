//! Requests of both kinds and signals (specification, section 8).

use nacp_link::{Answer, Event, MessageReport};
use nacp_proto::{Body, Payload, RequestKind, Signal};
use serde_json::json;

use crate::support::{ACCEPTOR, Hand, World, app, id, payload, quiet};

fn ask(world: &mut World, hand: &Hand, kind: RequestKind, message: &str, label: &str) {
    let body = Body::Request {
        kind,
        target: Some("work".into()),
        payload: payload(label),
    };
    hand.say_with(world, id(message), body);
    world.run();
}

fn response_to(world: &World, hand: &Hand, line: &str) -> nacp_proto::Response {
    match &hand.last(world, line).body {
        Body::Response(response) => response.clone(),
        other => panic!("not a response: {other:?}"),
    }
}

fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    (world, hand)
}

#[test]
fn the_handler_gets_source_id_kind_target_and_payload() {
    let (mut world, hand) = start();
    ask(&mut world, &hand, RequestKind::Ability, "q1", "r1");
    let Some(Event::Request(requested)) = world.sites[0]
        .events
        .iter()
        .map(|(_, event)| event)
        .find(|event| matches!(event, Event::Request(_)))
    else {
        panic!("no request");
    };
    assert_eq!(requested.from, app("a"));
    assert_eq!(requested.id, id("q1"));
    assert_eq!(requested.kind, RequestKind::Ability);
    assert_eq!(requested.target.as_deref(), Some("work"));
    assert_eq!(requested.payload, payload("r1"));
}

#[test]
fn an_answer_names_the_request_and_its_kind() {
    for kind in [RequestKind::Ability, RequestKind::Event] {
        let (mut world, hand) = start();
        ask(&mut world, &hand, kind, "q1", "r1");
        world.answer(0, "r1");
        world.run();
        let response = response_to(&world, &hand, "answer r1");
        assert_eq!(response.parent_id, id("q1"));
        assert_eq!(response.kind, Some(kind));
        assert_eq!(response.payload, payload("r1"));
        assert!(response.outcome.is_ok());
    }
}

#[test]
fn no_processor_processor_failed_and_processor_rejected_have_their_words() {
    let lines = [
        (Answer::no_processor(), "no-processor", None),
        (
            Answer::failed("boom"),
            "processor-failed",
            Some(json!({"error": "boom"})),
        ),
        (
            Answer::rejected("busy"),
            "processor-rejected",
            Some(json!({"error": "busy"})),
        ),
    ];
    for (answer, why, error) in lines {
        let (mut world, hand) = start();
        ask(&mut world, &hand, RequestKind::Ability, "q1", "r1");
        world.answer_with(0, "r1", answer);
        world.run();
        let response = response_to(&world, &hand, &format!("answer r1: {why}"));
        assert_eq!(response.kind, Some(RequestKind::Ability));
        if let Some(error) = error {
            let found: serde_json::Value = response.payload.decode().unwrap();
            assert_eq!(found, error);
        }
    }
}

#[test]
fn a_request_without_a_processor_is_reported() {
    let (mut world, hand) = start();
    ask(&mut world, &hand, RequestKind::Ability, "q1", "r1");
    world.answer_with(0, "r1", Answer::no_processor());
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::RequestError),
        [(0, "no-processor")]
    );
}

#[test]
fn handlers_run_concurrently_and_may_answer_in_any_order() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let tokens: Vec<_> = (0..10)
        .map(|number| world.request(0, "b", &format!("r{number}")))
        .collect();
    world.run();
    for number in (0..10).rev() {
        world.answer(1, &format!("r{number}"));
    }
    world.run();
    for (number, token) in tokens.iter().enumerate() {
        assert_eq!(world.outcome(0, *token), format!("ok r{number}"));
    }
    world.assert_at_rest(0);
    world.assert_at_rest(1);
}

#[test]
fn running_requests_are_kept_by_app_and_id() {
    let mut world = World::with([quiet("b")]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    ask(&mut world, &a, RequestKind::Event, "q1", "of a");
    ask(&mut world, &c, RequestKind::Event, "q1", "of c");
    assert_eq!(world.handled(0), ["of a", "of c"]);
    world.answer(0, "of c");
    world.run();
    assert_eq!(a.heard(&world).last(), Some(&"ack of a"));
    assert!(
        c.heard(&world)
            .iter()
            .any(|line| line.starts_with("answer"))
    );
}

#[test]
fn more_requests_than_a_link_may_run_are_answered_processor_rejected() {
    let mut world = World::with([quiet("b").max_running(2)]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    for number in 1..=3 {
        ask(
            &mut world,
            &a,
            RequestKind::Ability,
            &format!("q{number}"),
            &format!("r{number}"),
        );
    }
    ask(&mut world, &c, RequestKind::Ability, "q1", "other");
    assert_eq!(world.handled(0), ["r1", "r2", "other"]);
    assert_eq!(
        a.heard(&world)[2..],
        [
            "ack r1",
            "ack r2",
            "ack r3",
            "answer r3: processor-rejected"
        ]
    );
    world.answer(0, "r1");
    world.run();
    ask(&mut world, &a, RequestKind::Ability, "q4", "r4");
    assert_eq!(world.handled(0), ["r1", "r2", "other", "r4"]);
}

#[test]
fn a_signal_goes_to_the_running_event_of_its_sender() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let (token, request) = world.start(0, "b", "e1");
    world.run();
    let now = world.now();
    for signal in [
        Signal::Normal(payload("more")),
        Signal::Pause,
        Signal::Resume,
        Signal::Abort,
    ] {
        world
            .node(0)
            .signal(now, &app("b"), request.clone(), signal, None);
    }
    world.run();
    let told: Vec<_> = world.sites[1]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Signal { running, signal } => Some((*running, signal.clone())),
            _ => None,
        })
        .collect();
    let running = world.sites[1].running["e1"];
    assert_eq!(
        told,
        [
            (running, Signal::Normal(payload("more"))),
            (running, Signal::Pause),
            (running, Signal::Resume),
            (running, Signal::Abort)
        ]
    );
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(world.reported(1, MessageReport::SignalError), []);
}

#[test]
fn a_signal_to_a_finished_event_or_an_unknown_id_has_no_event_processor_and_is_delivered() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let (_, request) = world.start(0, "b", "e1");
    world.run();
    world.answer(1, "e1");
    world.run();
    let (now, token) = (world.now(), world.token());
    let signal = Signal::Abort;
    world
        .node(0)
        .signal(now, &app("b"), request, signal, Some(token));
    let unknown = world.signal(0, "b", "m1");
    world.run();
    assert_eq!(world.outcomes(0, &[token, unknown]), ["delivered"; 2]);
    assert_eq!(
        world.reported(1, MessageReport::SignalError),
        [(0, "no-event-processor"); 2]
    );
}

#[test]
fn another_apps_signal_does_not_reach_a_running_event() {
    let mut world = World::with([quiet("b")]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    ask(&mut world, &a, RequestKind::Event, "q1", "e1");
    let parent_id = id("q1");
    let signal = Signal::Abort;
    c.say(&mut world, Body::Signal { parent_id, signal });
    world.run();
    assert_eq!(c.heard(&world).last(), Some(&"ack abort"));
    assert_eq!(
        world.reported(0, MessageReport::SignalError),
        [(0, "no-event-processor")]
    );
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn another_apps_response_does_not_settle_a_request() {
    let mut world = World::with([quiet("b")]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    let token = world.request(0, "a", "r1");
    world.run();
    let parent_id = a.last_id(&world, "request r1");
    c.say(
        &mut world,
        Body::Response(nacp_proto::Response::ok(parent_id, payload("forged"))),
    );
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(c.heard(&world).last(), Some(&"ack answer r1"));
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(0, "has-no-consumer")]
    );
}

#[test]
fn a_response_for_nothing_is_acked_and_reported() {
    let (mut world, hand) = start();
    let mark = world.mark();
    hand.say(
        &mut world,
        Body::Response(nacp_proto::Response::ok(id("never"), payload("late"))),
    );
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["ack answer ?never"]);
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(0, "has-no-consumer")]
    );
}

#[test]
fn an_answer_too_large_for_the_other_side_is_replaced_by_processor_rejected() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.hand(0, "a");
    hand.max_message_bytes = Some(1000);
    hand.register(&mut world);
    world.run();
    ask(&mut world, &hand, RequestKind::Ability, "q1", "r1");
    let token = world.answer_with(0, "r1", Answer::ok(payload(&"x".repeat(2000))));
    world.run();
    assert_eq!(world.outcome(0, token), "too-large");
    assert_eq!(
        hand.heard(&world).last(),
        Some(&"answer r1: processor-rejected")
    );
}

#[test]
fn odd_ids_work_like_any_other() {
    let (mut world, hand) = start();
    let long = "x".repeat(255);
    for message in ["a:b", "*", ":", "q1:process", "a\0b", long.as_str()] {
        ask(&mut world, &hand, RequestKind::Event, message, message);
        world.process(0, message, "item");
        world.answer(0, message);
        world.run();
        let mut items = world
            .crossings_since(0, hand.wire, ACCEPTOR)
            .filter_map(|crossing| match &crossing.message().body {
                Body::Notify {
                    parent_id,
                    target_sub_name,
                    ..
                } if *parent_id == id(message) => Some(target_sub_name.to_string()),
                _ => None,
            });
        assert_eq!(items.next(), Some(format!("nacp:event:{message}:process")));
        assert_eq!(items.next(), None);
    }
}

#[test]
fn a_missing_payload_and_a_null_one_reach_the_handler_as_they_are() {
    let (mut world, hand) = start();
    hand.say_json(
        &mut world,
        json!({"type": "request", "payload": null, "meta": {"kind": "ability", "target": "work"}}),
    );
    hand.say_json(
        &mut world,
        json!({"type": "request", "meta": {"kind": "ability", "target": "work"}}),
    );
    world.run();
    let payloads: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Request(requested) => Some(requested.payload.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(payloads, [Payload::null(), Payload::undefined()]);
}

#[test]
fn a_repeat_that_the_dedup_window_has_forgotten_starts_no_second_handler() {
    let mut world = World::with([quiet("b").queue_max_count(4).dedup_window(4)]);
    let hand = world.native(0, "a");
    ask(&mut world, &hand, RequestKind::Event, "q1", "r1");
    for number in 0..8 {
        hand.signal(&mut world, &format!("m{number}"));
    }
    world.run();
    let mark = world.mark();
    ask(&mut world, &hand, RequestKind::Event, "q1", "r1");
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["ack r1"]);
    assert_eq!(world.node(0).snapshot().running, 1);
    let runs = world
        .handled(0)
        .iter()
        .filter(|label| **label == "r1")
        .count();
    assert_eq!(runs, 1);
    world.answer(0, "r1");
    world.run();
    assert_eq!(world.node(0).snapshot().running, 0);
}

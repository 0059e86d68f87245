//! Beats (specification, section 4.7).

use nacp_link::{Cause, Config, Lane, LinkState, MessageReport};
use nacp_proto::{Body, Payload, RequestKind, Response, Session};
use serde_json::json;

use crate::support::{ACCEPTOR, DIALLER, Hand, World, app, ms, quiet, secs};

fn beating(name: &str) -> Config {
    Config::new(app(name)).heartbeat_interval(Some(secs(60)))
}

/// When beats left an end, in milliseconds.
fn beats(world: &World, wire: usize, end: usize) -> Vec<u128> {
    world
        .timed(wire, end)
        .into_iter()
        .filter(|(_, line)| *line == "beat")
        .map(|(at, _)| at)
        .collect()
}

/// A hand with a beating node that accepted it; it answers what `answer_beats` is told to.
fn accepted() -> (World, Hand) {
    let mut world = World::with([beating("b")]);
    let hand = world.native(0, "a");
    (world, hand)
}

#[test]
fn the_dialler_beats_at_once_the_acceptor_half_an_interval_later_then_each_every_interval() {
    let mut world = World::with([beating("a"), beating("b")]);
    let wire = world.link(0, 1);
    world.advance_to(secs(300));
    assert_eq!(
        beats(&world, wire, DIALLER),
        [0, 60_000, 120_000, 180_000, 240_000, 300_000]
    );
    assert_eq!(
        beats(&world, wire, ACCEPTOR),
        [30_000, 90_000, 150_000, 210_000, 270_000]
    );
    assert_eq!(world.changes(0, "b"), [(0, "online")]);
    assert_eq!(world.changes(1, "a"), [(0, "online")]);
}

#[test]
fn a_beat_is_an_ability_request_with_the_own_app_answered_true() {
    let mut world = World::with([beating("a"), beating("b")]);
    let wire = world.link(0, 1);
    let beat = world
        .crossings_since(0, wire, DIALLER)
        .find(|crossing| crossing.line == "beat")
        .unwrap();
    assert_eq!(beat.lane, Lane::Control);
    let Body::Request {
        kind,
        target,
        payload,
    } = &beat.message().body
    else {
        panic!("not a request: {beat:?}");
    };
    assert_eq!(*kind, RequestKind::Ability);
    assert_eq!(target.as_deref(), Some("NApp.heartbeat"));
    let payload: serde_json::Value = payload.decode().unwrap();
    assert_eq!(payload, json!({"from": "a"}));
    let answer = world
        .crossings_since(0, wire, ACCEPTOR)
        .find(|crossing| crossing.line == "answer beat")
        .unwrap();
    assert_eq!(answer.lane, Lane::Control);
    let Body::Response(response) = &answer.message().body else {
        panic!("not a response: {answer:?}");
    };
    assert_eq!(response.payload, Payload::new(&true).unwrap());
    assert_eq!(response.kind, Some(RequestKind::Ability));
}

#[test]
fn a_beat_is_not_given_to_the_user() {
    let mut world = World::with([beating("a"), beating("b")]);
    world.link(0, 1);
    world.advance_to(secs(100));
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(world.handled(1), Vec::<&str>::new());
}

#[test]
fn a_beat_received_brings_the_next_one_forward_to_half_an_interval_from_then() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    world.advance_to(secs(30));
    hand.answer_beat(&mut world);
    world.advance_to(secs(40));
    beat(&mut world, &hand);
    world.advance_to(ms(69_999));
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000]);
    world.advance_to(secs(70));
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000, 70_000]);
}

#[test]
fn a_beat_received_never_pushes_the_next_one_back() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    world.advance_to(secs(25));
    beat(&mut world, &hand);
    world.advance_to(secs(30));
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000]);
    hand.answer_beat(&mut world);
    world.advance_to(secs(85));
    beat(&mut world, &hand);
    world.advance_to(secs(90));
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000, 90_000]);
}

#[test]
fn a_beat_received_does_nothing_while_ours_is_unanswered() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    world.advance_to(secs(30));
    world.advance_to(secs(35));
    beat(&mut world, &hand);
    world.advance_to(ms(89_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000]);
    world.advance_to(secs(90));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (90_000, "offline")]);
}

#[test]
fn a_beat_without_a_response_when_the_next_is_due_puts_the_link_offline() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    world.advance_to(ms(89_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(90));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (90_000, "offline")]);
    assert_eq!(world.sites[0].links[1].1.cause, Cause::BeatTimeout);
    assert!(!hand.is_open(&world));
}

#[test]
fn a_beat_that_is_not_acked_puts_the_link_offline_at_its_ack_limit() {
    let (mut world, _hand) = accepted();
    world.advance_to(ms(39_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(40));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (40_000, "offline")]);
    assert_eq!(world.sites[0].links[1].1.cause, Cause::AckTimeout);
}

#[test]
fn a_response_serves_as_the_ack_of_a_beat() {
    let (mut world, hand) = accepted();
    world.advance_to(secs(30));
    hand.answer_beat(&mut world);
    world.advance_to(secs(89));
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
}

#[test]
fn a_response_that_says_no_proves_life() {
    let (mut world, hand) = accepted();
    world.advance_to(secs(30));
    let parent_id = hand.last_id(&world, "beat");
    hand.say(
        &mut world,
        Body::Response(Response::not_ok(parent_id, "processor-failed")),
    );
    world.advance_to(secs(99));
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    assert_eq!(beats(&world, hand.wire, ACCEPTOR), [30_000, 90_000]);
}

#[test]
fn other_messages_do_not_serve_as_an_answer_to_a_beat() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    for second in (5..=90).step_by(5) {
        world.advance_to(secs(second));
        hand.signal(&mut world, "m");
    }
    world.advance_to(secs(91));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (90_000, "offline")]);
}

#[test]
fn beats_are_never_replayed_and_start_afresh() {
    let mut world = World::with([beating("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(Session([1; 16])), Some(false));
    world.run();
    assert_eq!(
        hand.heard(&world),
        ["register", "ack answer register", "beat"]
    );
    let old = hand.last_id(&world, "beat");
    world.advance_to(secs(5));
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
    let (again, _) = world.dialled_by(0, "b");
    world.run();
    again.admit(&mut world, Some(Session([2; 16])), Some(true));
    world.run();
    assert_eq!(
        again.heard(&world),
        ["register", "ack answer register", "beat"]
    );
    assert_ne!(again.last_id(&world, "beat"), old);
}

#[test]
fn t13_a_beat_of_an_old_connection_is_not_judged_on_the_new_one() {
    let mut world = World::with([beating("a")]);
    world.advance_to(secs(3));
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(Session([1; 16])), Some(false));
    world.run();
    hand.ack_line(&mut world, "beat");
    world.advance_to(secs(50));
    hand.hang_up(&mut world);
    world.advance_to(secs(55));
    let (again, _) = world.dialled_by(0, "b");
    world.run();
    again.admit(&mut world, Some(Session([2; 16])), Some(true));
    world.run();
    again.ack_line(&mut world, "beat");
    world.advance_to(secs(114));
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    world.advance_to(secs(115));
    assert_eq!(
        world.changes(0, "b"),
        [
            (3_000, "online"),
            (50_000, "offline"),
            (55_000, "online"),
            (115_000, "offline")
        ]
    );
}

#[test]
fn with_beats_off_none_is_sent_and_others_are_still_answered() {
    let mut world = World::with([quiet("a"), beating("b")]);
    let wire = world.link(0, 1);
    world.advance_to(secs(300));
    assert_eq!(beats(&world, wire, DIALLER), Vec::<u128>::new());
    assert_eq!(beats(&world, wire, ACCEPTOR).len(), 5);
    assert_eq!(world.changes(1, "a"), [(0, "online")]);
}

#[test]
fn requests_that_wait_outlive_a_beat_that_was_not_answered() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    let token = world.request(0, "a", "r1");
    world.advance_to(secs(90));
    assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
}

#[test]
fn the_snapshot_tells_the_round_trip_of_the_last_beat() {
    let mut world = World::with([beating("a"), beating("b")]);
    let (wire, _) = world.dial(0, 1);
    world.set_delay(wire, ms(20));
    world.advance_to(secs(1));
    let link = world.sites[0].node.link(&app("b")).unwrap();
    assert_eq!(link.round_trip, Some(ms(40)));
}

#[test]
fn a_late_answer_to_an_old_beat_harms_nothing() {
    let (mut world, hand) = accepted();
    hand.ack_all(&mut world, true);
    world.advance_to(secs(30));
    hand.answer_beat(&mut world);
    world.run();
    hand.answer_beat(&mut world);
    world.run();
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(30_000, "has-no-consumer")]
    );
}

fn beat(world: &mut World, hand: &Hand) {
    hand.say(
        world,
        Body::Request {
            kind: RequestKind::Ability,
            target: Some("NApp.heartbeat".into()),
            payload: Payload::new(&json!({"from": "a"})).unwrap(),
        },
    );
}

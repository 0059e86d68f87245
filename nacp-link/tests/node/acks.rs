//! ACKs (specification, sections 7 and 8).

use nacp_link::{Lane, LinkState, MessageReport};
use nacp_proto::{Body, RequestKind, Signal};
use serde_json::json;

use crate::support::{ACCEPTOR, DIALLER, Intake, World, id, payload, quiet, secs};

#[test]
fn every_reliable_message_is_acked_before_it_is_handled_and_a_notify_is_not() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let mark = world.mark();
    let bodies = [
        Body::Subscribe {
            target_sub_name: "x".into(),
        },
        Body::Request {
            kind: RequestKind::Ability,
            target: Some("work".into()),
            payload: payload("r1"),
        },
        Body::Signal {
            parent_id: id("run"),
            signal: Signal::Pause,
        },
        Body::Response(nacp_proto::Response::ok(id("nothing"), payload("late"))),
        Body::Notify {
            parent_id: id("nothing"),
            target_sub_name: "x".into(),
            hit_sub_name: "x".into(),
            payload: payload("n1"),
            seq: None,
        },
        Body::Ack {
            parent_id: id("nothing"),
        },
        Body::Unsubscribe {
            target_sub_id: id("nothing"),
        },
    ];
    for body in bodies {
        hand.say(&mut world, body);
        world.run();
    }
    assert_eq!(
        hand.heard_since(&world, mark),
        [
            "ack subscribe x",
            "answer subscribe x",
            "ack r1",
            "ack pause",
            "ack answer ?nothing",
            "ack un?nothing",
            "answer un?nothing: unknown-subscription"
        ]
    );
}

#[test]
fn acks_and_beats_use_the_control_lane_and_everything_counted_the_other() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.subscribe(0, "b", "x");
    world.request(0, "b", "r1");
    world.run();
    world.answer(1, "r1");
    world.emit(1, "x", "n1");
    world.run();
    world.disconnect(0, "b");
    world.run();
    let lane = |line: &str| {
        let crossing = world.log.iter().find(|crossing| crossing.line == line);
        crossing.unwrap_or_else(|| panic!("no {line}")).lane
    };
    for line in [
        "register",
        "ack register",
        "answer register",
        "ack r1",
        "ack unregister",
    ] {
        assert_eq!(lane(line), Lane::Control, "{line}");
    }
    assert_eq!(lane("answer unregister"), Lane::Control);
    for line in [
        "subscribe x",
        "answer subscribe x",
        "request r1",
        "answer r1",
        "notify n1",
    ] {
        assert_eq!(lane(line), Lane::Bulk, "{line}");
    }
    assert_eq!(lane("unregister"), Lane::Bulk);
    assert_eq!(world.said(wire, DIALLER)[0], "register");
}

#[test]
fn t12_an_ack_for_nothing_is_reported_and_harms_nothing() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.ack(&mut world, &id("never-used"));
    for _ in 0..3 {
        hand.ack_line(&mut world, "signal m1");
    }
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(
        world.reported(0, MessageReport::AckError),
        [(0, "has-no-consumer"); 3]
    );
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.assert_at_rest(0);
}

#[test]
fn t12_acks_for_a_notify_or_for_what_the_peer_itself_sent_find_nobody() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    world.emit(0, "x", "n1");
    world.run();
    let own = hand.signal(&mut world, "x1");
    hand.ack(&mut world, &own);
    hand.ack_line(&mut world, "notify n1");
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::AckError),
        [(0, "has-no-consumer"); 2]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn t12_an_ack_of_another_app_settles_nothing() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let other = world.native(0, "c");
    let token = world.signal(0, "a", "m1");
    world.run();
    let m1 = hand.last_id(&world, "signal m1");
    other.ack(&mut world, &m1);
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(
        world.reported(0, MessageReport::AckError),
        [(0, "has-no-consumer")]
    );
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn t12_an_ack_after_the_app_was_dropped_is_not_registered() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.run();
    let m1 = hand.last_id(&world, "signal m1");
    hand.hang_up(&mut world);
    world.advance_to(secs(120));
    let stranger = world.hand(0, "a");
    stranger.ack(&mut world, &m1);
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(120_000, "not-registered")]
    );
}

#[test]
fn t12_a_late_acceptance_of_an_acked_record_leaves_nothing_behind() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let tokens = world.signals(0, "a", 1..=3);
    world.run();
    hand.ack_line(&mut world, "signal m2");
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["delivered", "delivered", "pending"]
    );
    world.report_accepted(hand.wire, ACCEPTOR);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!(
        (snapshot.submitted.count, snapshot.ack_pending.count),
        (0, 1)
    );
    assert_eq!(snapshot.backlog.count, 0);
}

#[test]
fn acks_are_discarded_at_a_disconnect_and_a_replay_is_acked_again() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let signal = Signal::Normal(payload("x1"));
    let body = Body::Signal {
        parent_id: id("run"),
        signal,
    };
    hand.say_with(&mut world, id("one"), body.clone());
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(back.heard(&world), ["ack register", "answer register"]);
    back.say_with(&mut world, id("one"), body);
    world.run();
    assert_eq!(back.heard(&world)[2..], ["ack x1"]);
    assert_eq!(world.handled(0), ["x1"]);
}

#[test]
fn an_acceptance_report_that_repeats_or_falls_back_is_ignored() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    let now = world.now();
    for bulk in [1, 0, 1] {
        let accepted = nacp_link::Accepted { control: 0, bulk };
        world.node(0).handle_accepted(now, peer, accepted);
    }
    world.run();
    assert_eq!(world.node(0).snapshot().ack_pending.count, 1);
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    world.assert_at_rest(0);
}

#[test]
fn an_unknown_type_is_acked_reported_and_ignored() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let mark = world.mark();
    hand.say_json(&mut world, json!({"type": "novelty", "meta": {}}));
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["ack novelty"]);
    assert_eq!(
        world.reported(0, MessageReport::MessageError),
        [(0, "unknown-type")]
    );
    assert!(hand.is_open(&world));
}

//! What is subscribed again, and what is not (specification, section 11).

use nacp_link::{Event, LinkState, StreamEnd, Trust};
use nacp_proto::{Body, Session};

use crate::support::{ACCEPTOR, DIALLER, World, app, quiet, secs};

#[test]
fn t21_what_our_user_listens_to_is_subscribed_again_after_a_lost_session() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Unproven;
    let wire = world.link(0, 1);
    let streams: Vec<_> = ["x:*", "x:y", "*:y"]
        .into_iter()
        .map(|pattern| world.subscribe(0, "b", pattern).1.unwrap())
        .collect();
    world.run();
    // `b` notices 60 s before `a`, and has dropped it when `a` is back.
    world.notice(wire, ACCEPTOR, None);
    world.advance_to(secs(60));
    world.notice(wire, DIALLER, None);
    world.advance_to(secs(121));
    assert_eq!(world.state(1, "a"), None);
    assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
    let again = world.link(0, 1);
    let mut subscribes = world.said(again, DIALLER);
    subscribes.retain(|line| line.starts_with("subscribe"));
    assert_eq!(
        subscribes,
        ["subscribe x:*", "subscribe x:y", "subscribe *:y"]
    );
    assert_eq!(world.node(1).snapshot().subscriptions, 3);
    world.emit(1, "x:y", "e3");
    world.run();
    let hits: Vec<_> = streams
        .iter()
        .map(|stream| (*stream, "e3".to_owned()))
        .collect();
    assert_eq!(world.sites[0].hits, hits);
}

#[test]
fn t21_a_resumed_session_subscribes_nothing_again_and_loses_no_event() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    for pattern in ["x:*", "x:y", "*:y"] {
        world.subscribe(0, "b", pattern);
    }
    world.run();
    world.cut(wire);
    for second in [1, 2, 3] {
        world.advance_to(secs(second));
        let now = world.now();
        let nacp_link::Connect::Dial(dial) = world.node(0).connect(Some(app("b")), None, None)
        else {
            panic!("expected a dial");
        };
        world.node(0).handle_dial_failed(now, dial);
        world.run();
    }
    world.emit(1, "x:y", "e1");
    world.advance_to(secs(4));
    let again = world.link(0, 1);
    world.emit(1, "x:y", "e2");
    world.run();
    assert!(
        !world
            .said(again, DIALLER)
            .iter()
            .any(|line| line.starts_with("subscribe"))
    );
    let labels: Vec<_> = world.sites[0]
        .hits
        .iter()
        .map(|(_, label)| label.as_str())
        .collect();
    assert_eq!(labels, ["e1", "e1", "e1", "e2", "e2", "e2"]);
    assert_eq!(world.node(1).snapshot().subscriptions, 3);
}

#[test]
fn t21_a_cut_in_the_middle_of_subscribing_again_doubles_and_loses_nothing() {
    let mut world = World::with([quiet("a").submit_max_count(1), quiet("b")]);
    let wire = world.link(0, 1);
    for pattern in ["x:*", "x:y", "*:y"] {
        world.subscribe(0, "b", pattern);
    }
    world.run();
    world.notice(wire, ACCEPTOR, None);
    world.advance_to(secs(60));
    world.notice(wire, DIALLER, None);
    world.advance_to(secs(121));
    let (half, _) = world.dial(0, 1);
    world.set_intake(half, DIALLER, crate::support::Intake::Stalled);
    let subscribes = |world: &World| {
        let mut said = world.said(half, DIALLER);
        said.retain(|line| line.starts_with("subscribe"));
        said.join(", ")
    };
    while subscribes(&world) != "subscribe x:*, subscribe x:y" {
        world.run();
        world.accept(half, DIALLER, 1);
    }
    world.run();
    world.cut(half);
    world.run();
    world.link(0, 1);
    assert_eq!(world.node(1).snapshot().subscriptions, 3);
    world.emit(1, "x:y", "e");
    world.run();
    assert_eq!(world.sites[0].hits.len(), 3);
}

#[test]
fn t21_a_stream_that_is_refused_when_subscribed_again_ends_with_an_error() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(Session([1; 16])), Some(false));
    hand.ack_all(&mut world, true);
    world.run();
    let streams = ["x", "y"].map(|pattern| world.subscribe(0, "b", pattern).1.unwrap());
    world.run();
    for line in ["subscribe x", "subscribe y"] {
        hand.respond(&mut world, line, "fine");
    }
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let (again, _) = world.dialled_by(0, "b");
    world.run();
    again.ack_all(&mut world, true);
    again.admit(&mut world, Some(Session([2; 16])), Some(false));
    world.run();
    assert_eq!(again.heard(&world)[2..], ["subscribe x", "subscribe y"]);
    let parent_id = again.last_id(&world, "subscribe x");
    again.say(
        &mut world,
        Body::Response(nacp_proto::Response::not_ok(parent_id, "limit-reached")),
    );
    again.respond(&mut world, "subscribe y", "fine");
    world.run();
    let ended: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::StreamEnded { stream, reason } => Some((*stream, reason.clone())),
            _ => None,
        })
        .collect();
    assert_eq!(
        ended,
        [(
            streams[0],
            StreamEnd::Refused {
                why: Some("limit-reached".into())
            }
        )]
    );
    assert_eq!(world.node(0).snapshot().streams, 1);
}

#[test]
fn t21_streams_end_with_their_link_and_no_later_register_revives_them() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.subscribe(0, "b", "x");
    world.run();
    world.cut(wire);
    world.advance_to(secs(120));
    assert_eq!(world.node(0).snapshot().streams, 0);
    let again = world.link(0, 1);
    assert_eq!(
        world.said(again, DIALLER),
        ["register", "ack answer register"]
    );
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
}

#[test]
fn t21_ten_turns_of_both_kinds_leave_one_subscription_each() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let mut wire = world.link(0, 1);
    for pattern in ["x:*", "x:y", "*:y"] {
        world.subscribe(0, "b", pattern);
    }
    world.run();
    for _ in 0..10 {
        world.cut(wire);
        world.advance(secs(1));
        wire = world.link(0, 1);
        world.notice(wire, ACCEPTOR, None);
        world.advance(secs(60));
        world.notice(wire, DIALLER, None);
        world.advance(secs(61));
        wire = world.link(0, 1);
        assert_eq!(world.node(1).snapshot().subscriptions, 3);
        let before = world.sites[0].hits.len();
        world.emit(1, "x:y", "e");
        world.run();
        assert_eq!(world.sites[0].hits.len(), before + 3);
    }
}

#[test]
fn more_streams_than_the_node_may_owe_are_subscribed_again_under_wait() {
    let config = quiet("b")
        .queue_max_count(8)
        .overflow(nacp_link::OverflowPolicy::Wait);
    let mut world = World::with([config]);
    let mut hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    let count = 1100;
    for number in 0..count {
        world.subscribe(0, "a", &format!("x{number}"));
        world.run();
        let line = format!("subscribe x{number}");
        hand.respond(&mut world, &line, "fine");
        world.run();
    }
    assert_eq!(world.node(0).snapshot().streams, count);
    hand.hang_up(&mut world);
    world.run();
    hand = world.hand(0, "a");
    hand.instance = Some(nacp_proto::Instance([9; 16]));
    hand.ack_all(&mut world, true);
    hand.register(&mut world);
    world.run();
    let again = hand
        .heard(&world)
        .iter()
        .filter(|line| line.starts_with("subscribe x"))
        .count();
    assert_eq!(again, count);
    assert!(hand.is_open(&world));
    assert_eq!(world.peer_errors(0), []);
}

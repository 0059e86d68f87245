//! Where two rules meet, and callers that err.

use nacp_link::{Admittance, Close, LinkState, MessageReport, Trust, Verdict};
use nacp_proto::{Body, Instance, Response, Session};

use crate::support::{ACCEPTOR, DIALLER, Intake, Mode, World, app, payload, quiet, secs};

#[test]
fn a_challenger_is_let_in_at_once_when_the_old_links_own_limit_strikes() {
    let mut world = World::with([quiet("b")]);
    let old = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.advance_to(secs(9));
    let new = world.hand(0, "a");
    new.register(&mut world);
    world.run();
    assert_eq!(new.heard(&world), ["ack register"]);
    world.advance_to(secs(10));
    assert_eq!(new.heard(&world)[..2], ["ack register", "answer register"]);
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (10_000, "offline"), (10_000, "online")]
    );
    assert_eq!(world.closed(0, old.wire), [(10_000, Close::Abort)]);
}

#[test]
fn a_session_takes_over_only_after_the_policy_agreed() {
    let mut world = World::with([quiet("b").admittance(Admittance::Ask)]);
    world.sites[0].verdict = Some(Verdict::Admit);
    let old = world.native(0, "a");
    world.sites[0].verdict = None;
    for (verdict, answer, changes) in [
        (Verdict::Refuse, "answer register: unauthorized", 1),
        (Verdict::Admit, "answer register", 3),
    ] {
        let mut new = world.hand(0, "a");
        new.holds = vec![old.session(&world)];
        new.register(&mut world);
        world.run();
        assert_eq!(new.heard(&world), ["ack register"]);
        assert_eq!(world.changes(0, "a"), [(0, "online")]);
        let peer = world.wires[new.wire].peer(ACCEPTOR);
        let now = world.now();
        world.node(0).handle_authorized(now, peer, verdict);
        world.run();
        assert_eq!(new.heard(&world), ["ack register", answer]);
        assert_eq!(world.changes(0, "a").len(), changes);
    }
}

#[test]
fn a_challenger_that_waits_when_we_say_good_bye_is_answered() {
    let mut world = World::with([quiet("b").takeover_probe(secs(60))]);
    world.native(0, "a");
    let new = world.hand(0, "a");
    new.register(&mut world);
    world.run();
    world.disconnect(0, "a");
    world.advance_to(secs(11));
    assert_eq!(new.heard(&world).len(), 2, "{:?}", new.heard(&world));
    let bound = new.registered(&world).is_some();
    assert_eq!(world.state(0, "a"), bound.then_some(LinkState::Online));
}

#[test]
fn a_native_link_is_not_resumed_by_a_foreign_register() {
    let mut world = World::with([quiet("b")]);
    let native = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    native.hang_up(&mut world);
    world.run();
    let foreign = world.foreign(0, "a");
    assert_eq!(world.outcome(0, token), "session-lost");
    assert!(!foreign.heard(&world).contains(&"signal m1"));
}

#[test]
fn blocked_sends_go_before_a_good_bye_that_was_called_later() {
    let mut world = World::with([quiet("b").submit_max_count(1).queue_max_count(1)]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let mark = world.mark();
    world.signals(0, "a", 1..=4);
    assert_eq!(world.node(0).snapshot().blocked, 2);
    world.disconnect(0, "a");
    for _ in 0..10 {
        world.run();
        world.accept(hand.wire, ACCEPTOR, 1);
    }
    assert_eq!(
        hand.heard_since(&world, mark),
        [
            "signal m1",
            "signal m2",
            "signal m3",
            "signal m4",
            "unregister"
        ]
    );
}

#[test]
fn an_unsubscribe_in_the_same_breath_leaves_nothing_on_either_side() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let (subscribe, stream) = world.subscribe(0, "b", "x");
    let unsubscribe = world.unsubscribe(0, stream.unwrap());
    world.run();
    for token in [subscribe, unsubscribe] {
        assert!(world.outcome(0, token) != "pending");
    }
    assert_eq!(world.node(0).snapshot().streams, 0);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
    world.assert_at_rest(0);
}

#[test]
fn an_unsubscribe_whose_subscribe_waits_in_the_backlog_leaves_nothing_on_either_side() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.cut(wire);
    world.run();
    let (_, stream) = world.subscribe(0, "b", "x");
    world.unsubscribe(0, stream.unwrap());
    world.advance_to(secs(1));
    world.link(0, 1);
    assert_eq!(world.node(0).snapshot().streams, 0);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
    world.assert_at_rest(0);
}

/// `a` at `b`, which dies while un-ACKed messages of `a` are on the way, and comes back as a new
/// process over a proven connection.
fn with_restart(before: impl FnOnce(&mut World)) -> World {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Proven;
    let wire = world.link(0, 1);
    world.set_mode(wire, DIALLER, Mode::Swallow);
    before(&mut world);
    world.run();
    world.restart(1, quiet("b"), [77; 32]);
    world.advance(secs(1));
    assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
    world.link(0, 1);
    world
}

#[test]
fn a_subscribe_that_was_never_acked_is_made_once_at_a_new_instance() {
    let mut world = with_restart(|world| {
        world.subscribe(0, "b", "x");
    });
    assert_eq!(world.node(1).snapshot().subscriptions, 1);
    world.emit(1, "x", "n1");
    world.run();
    assert_eq!(world.sites[0].hits.len(), 1);
    world.assert_at_rest(0);
}

#[test]
fn what_was_subscribed_and_unsubscribed_before_a_lost_session_does_not_come_alive() {
    let mut world = with_restart(|world| {
        let (_, stream) = world.subscribe(0, "b", "x");
        world.unsubscribe(0, stream.unwrap());
    });
    world.advance(secs(30));
    assert_eq!(world.node(0).snapshot().streams, 0);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
    world.assert_at_rest(0);
}

#[test]
fn an_unsubscribe_that_a_lost_session_took_leaves_no_stream() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Proven;
    let wire = world.link(0, 1);
    let (_, stream) = world.subscribe(0, "b", "x");
    world.run();
    world.swallow(wire);
    let token = world.unsubscribe(0, stream.unwrap());
    world.run();
    world.set_mode(wire, ACCEPTOR, Mode::Deliver);
    world.restart(1, quiet("b"), [77; 32]);
    world.advance(secs(1));
    world.link(0, 1);
    assert_eq!(world.outcome(0, token), "session-lost");
    assert_eq!(world.node(0).snapshot().streams, 0);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
}

#[test]
fn two_lost_sessions_in_a_row_subscribe_again_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Proven;
    world.link(0, 1);
    for pattern in ["x", "y", "z"] {
        world.subscribe(0, "b", pattern);
    }
    world.run();
    for turn in 1..=4 {
        world.restart(1, quiet("b"), [turn; 32]);
        world.advance(secs(1));
        let (wire, _) = world.dial(0, 1);
        // The subscribes are on their way when the next process dies as well.
        world.set_intake(wire, DIALLER, Intake::Stalled);
        world.run();
        world.accept(wire, DIALLER, 1);
        world.run();
        world.accept(wire, DIALLER, 2);
        world.run();
    }
    world.restart(1, quiet("b"), [9; 32]);
    world.advance(secs(1));
    world.link(0, 1);
    assert_eq!(world.node(1).snapshot().subscriptions, 3);
    for name in ["x", "y", "z"] {
        world.emit(1, name, name);
    }
    world.run();
    let labels: Vec<_> = world.sites[0]
        .hits
        .iter()
        .map(|(_, label)| label.as_str())
        .collect();
    assert_eq!(labels, ["x", "y", "z"]);
    assert_eq!(world.node(0).snapshot().streams, 3);
}

#[test]
fn a_subscribe_acked_and_not_answered_ends_with_its_session() {
    let mut world = World::with([quiet("b")]);
    world.trust = Trust::Proven;
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    let (token, _) = world.subscribe(0, "a", "x");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let mut back = world.hand(0, "a");
    back.instance = Some(Instance([5; 16]));
    back.register(&mut world);
    world.run();
    assert_eq!(world.outcome(0, token), "session-lost");
    assert_eq!(world.node(0).snapshot().streams, 0);
}

#[test]
fn a_stream_behind_a_gateway_is_subscribed_again_when_its_apps_instance_changes() {
    let config = nacp_link::Config::new(app("a")).heartbeat_interval(Some(secs(60)));
    let mut world = World::with([config]);
    let mut gateway = world.hand(0, "g");
    gateway.is_gateway = true;
    gateway.ack_all(&mut world, true);
    gateway.register(&mut world);
    world.run();
    world.subscribe(0, "z", "x");
    world.run();
    let node = app("a");
    let say = |world: &mut World, source: &str, body: Body| {
        let fresh = world.fresh_id();
        gateway.say_as(world, fresh, &app(source), &node, body);
    };
    let parent_id = gateway.last_id(&world, "subscribe x");
    say(
        &mut world,
        "z",
        Body::Ack {
            parent_id: parent_id.clone(),
        },
    );
    say(
        &mut world,
        "z",
        Body::Response(Response::ok(parent_id, payload("fine"))),
    );
    world.run();
    let (mut seen, mut answered) = (0, false);
    for second in 1..=300 {
        world.advance_to(secs(second));
        let instance = if second < 150 {
            Instance([1; 16])
        } else {
            Instance([2; 16])
        };
        let beats: Vec<_> = world
            .crossings_since(seen, gateway.wire, ACCEPTOR)
            .filter(|crossing| crossing.line == "beat")
            .map(|crossing| crossing.message().clone())
            .collect();
        seen = world.mark();
        for beat in beats {
            let response = Response {
                instance: (beat.to == app("z")).then_some(instance),
                ..Response::ok(beat.id.clone(), payload("alive"))
            };
            say(
                &mut world,
                beat.to.as_str(),
                Body::Ack { parent_id: beat.id },
            );
            say(&mut world, beat.to.as_str(), Body::Response(response));
        }
        if second > 150 && subscribes(&world, gateway.wire) == 2 && !answered {
            answered = true;
            let parent_id = gateway.last_id(&world, "subscribe x");
            let response = Response::ok(parent_id, payload("fine"));
            say(&mut world, "z", Body::Response(response));
        }
        world.run();
        if second == 149 {
            assert_eq!(subscribes(&world, gateway.wire), 1);
        }
    }
    assert_eq!(subscribes(&world, gateway.wire), 2);
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
    assert_eq!(world.node(0).snapshot().streams, 1);
}

fn subscribes(world: &World, wire: usize) -> usize {
    let said = world.said(wire, ACCEPTOR);
    said.iter().filter(|line| **line == "subscribe x").count()
}

#[test]
fn notifies_not_accepted_keep_their_place_among_reliable_messages() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    hand.ack_all(&mut world, false);
    world.signal(0, "a", "s1");
    world.emit(0, "x", "n1");
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    world.signal(0, "a", "s2");
    world.emit(0, "x", "n2");
    world.signal(0, "a", "s3");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    world.emit(0, "x", "n3");
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(
        back.heard(&world)[2..],
        [
            "signal s1",
            "signal s2",
            "notify n2",
            "signal s3",
            "notify n3"
        ]
    );
}

#[test]
fn above_a_mebibyte_beside_our_unanswered_register_the_node_stops_reading() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    let large = "x".repeat(400 * 1024);
    for _ in 0..4 {
        hand.signal(&mut world, &large);
    }
    world.run();
    assert!(world.wires[hand.wire].paused[DIALLER]);
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
    // The answer lies behind what is not read: the attempt ends by its limit.
    world.advance_to(secs(10));
    assert!(!hand.is_open(&world));
}

#[test]
fn a_relayed_record_without_room_is_dropped_under_wait() {
    let config = quiet("g")
        .is_gateway(true)
        .queue_max_count(1)
        .overflow(nacp_link::OverflowPolicy::Wait);
    let mut world = World::with([config]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    c.hang_up(&mut world);
    world.run();
    let own = world.signal(0, "c", "m1");
    let signal = nacp_proto::Signal::Pause;
    let parent_id = crate::support::id("run");
    let fresh = world.fresh_id();
    a.say_as(
        &mut world,
        fresh,
        &app("a"),
        &app("c"),
        Body::Signal { parent_id, signal },
    );
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 1);
    assert_eq!(world.outcome(0, own), "pending");
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
}

#[test]
fn a_session_that_another_app_held_resumes_nothing() {
    let mut world = World::with([quiet("b")]);
    let victim = world.native(0, "a");
    let thief = world.native(0, "c");
    let token = world.signal(0, "a", "m1");
    world.run();
    victim.hang_up(&mut world);
    world.run();
    // `c` knows its own session only: under the name of `a` it resumes nothing.
    let mut forged = world.hand(0, "a");
    forged.holds = vec![thief.session(&world), Session([0; 16])];
    forged.register(&mut world);
    world.run();
    assert_eq!(forged.registered(&world).unwrap().resumed, Some(false));
    assert_eq!(world.outcome(0, token), "session-lost");
    assert!(!forged.heard(&world).contains(&"signal m1"));
}

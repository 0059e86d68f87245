//! Deadlines (specification, sections 4.3, 4.6 and 5).

use nacp_link::{Cause, Config, Inbound, Interest, LinkState, MessageReport};
use nacp_proto::{Body, Message};

use crate::support::{ACCEPTOR, DIALLER, Intake, World, app, ms, quiet, secs};

#[test]
fn t11_the_first_limit_puts_the_link_offline_at_its_instant_and_the_others_do_nothing() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.swallow(wire);
    let mut tokens = Vec::new();
    for (second, number) in [(1, 1), (4, 2), (9, 3)] {
        world.advance_to(secs(second));
        tokens.extend(world.signals(0, "b", [number]));
    }
    world.advance_to(ms(10_999));
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    world.advance_to(secs(11));
    assert_eq!(world.changes(0, "b"), [(0, "online"), (11_000, "offline")]);
    assert_eq!(world.closed(0, wire).len(), 1);
    world.advance_to(secs(12));
    tokens.extend(world.signals(0, "b", [4]));
    assert_eq!(world.node(0).snapshot().backlog.count, 4);
    world.advance_to(secs(20));
    let again = world.link(0, 1);
    assert_eq!(
        world.said(again, DIALLER)[2..],
        ["signal m1", "signal m2", "signal m3", "signal m4"]
    );
    assert_eq!(world.handled(1), ["m1", "m2", "m3", "m4"]);
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 4]);
    assert_eq!(
        world.changes(0, "b"),
        [(0, "online"), (11_000, "offline"), (20_000, "online")]
    );
    assert_eq!(
        world.reported(0, MessageReport::AckWarning),
        [(11_000, "timeout")]
    );
}

#[test]
fn t11_the_grace_runs_from_going_offline() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.swallow(wire);
    world.advance_to(secs(1));
    let token = world.signal(0, "b", "m1");
    world.advance_to(ms(130_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(131));
    assert_eq!(world.outcome(0, token), "peer-gone");
}

#[test]
fn the_ack_limit_of_a_message_runs_from_its_own_acceptance() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    world.signal(0, "a", "m1");
    world.advance_to(secs(30));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.report_accepted(hand.wire, ACCEPTOR);
    world.advance_to(ms(39_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(40));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (40_000, "offline")]);
    assert_eq!(world.sites[0].links[1].1.cause, Cause::AckTimeout);
}

#[test]
fn the_ack_of_another_message_does_not_put_the_limit_off() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    for second in 1..10 {
        world.advance_to(secs(second));
        world.signal(0, "a", &format!("x{second}"));
        world.run();
        hand.ack_line(&mut world, &format!("signal x{second}"));
    }
    world.advance_to(secs(10));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (10_000, "offline")]);
}

#[test]
fn an_ack_just_before_its_limit_counts_and_one_at_its_limit_does_not() {
    for (at, expected) in [(9_999, LinkState::Online), (10_000, LinkState::Offline)] {
        let mut world = World::with([quiet("b")]);
        let hand = world.native(0, "a");
        world.signal(0, "a", "m1");
        world.run();
        world.set_delay(hand.wire, ms(at));
        hand.ack_line(&mut world, "signal m1");
        world.advance_to(secs(11));
        assert_eq!(world.state(0, "a"), Some(expected), "ACK at {at} ms");
    }
}

#[test]
fn every_replayable_kind_has_an_ack_limit_and_a_notify_has_none() {
    for kind in ["signal", "request", "subscribe", "response", "notify"] {
        let mut world = World::with([quiet("b")]);
        let hand = world.native(0, "a");
        if kind == "notify" {
            hand.ack_all(&mut world, true);
            hand.subscribe(&mut world, "x");
            world.run();
            hand.ack_all(&mut world, false);
        }
        match kind {
            "signal" => drop(world.signal(0, "a", "m")),
            "request" => drop(world.request(0, "a", "m")),
            "subscribe" => drop(world.subscribe(0, "a", "m")),
            "notify" => drop(world.emit(0, "x", "m")),
            _ => {
                hand.subscribe(&mut world, "y");
            }
        }
        world.advance_to(secs(60));
        let expected = if kind == "notify" {
            LinkState::Online
        } else {
            LinkState::Offline
        };
        assert_eq!(world.state(0, "a"), Some(expected), "{kind}");
        if expected == LinkState::Offline {
            assert_eq!(world.changes(0, "a")[1], (10_000, "offline"), "{kind}");
        }
    }
}

#[test]
fn an_ack_limit_is_not_the_limit_of_a_request() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.request(0, "a", "r1");
    world.run();
    hand.ack_line(&mut world, "request r1");
    world.advance_to(secs(100_000));
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    hand.respond(&mut world, "request r1", "late");
    world.run();
    assert_eq!(world.outcome(0, token), "ok late");
}

#[test]
fn t13_limits_of_an_old_connection_do_nothing_to_the_new_one() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.advance_to(secs(2));
    hand.hang_up(&mut world);
    world.advance_to(secs(3));
    let mut hand2 = world.hand(0, "a");
    hand2.holds = vec![hand.session(&world)];
    hand2.register(&mut world);
    world.advance_to(ms(3_100));
    hand2.ack_last_response(&mut world);
    hand2.ack_line(&mut world, "signal m1");
    world.advance_to(ms(9_500));
    let m2 = world.signal(0, "a", "m2");
    world.advance_to(secs(15));
    hand2.ack_line(&mut world, "signal m2");
    world.advance_to(secs(100));
    assert_eq!(world.outcome(0, m2), "delivered");
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (2_000, "offline"), (3_000, "online")]
    );
}

#[test]
fn t13_an_old_grace_never_fires() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let first = world.link(0, 1);
    world.advance_to(secs(200));
    world.cut(first);
    world.advance_to(ms(319_999));
    let second = world.link(0, 1);
    world.advance_to(secs(325));
    world.cut(second);
    world.advance_to(ms(444_999));
    assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
    world.advance_to(secs(445));
    assert_eq!(world.state(0, "b"), None);
    assert_eq!(world.changes(0, "b").last(), Some(&(445_000, "dropped")));
}

#[test]
fn t13_ten_thousand_cycles_leave_no_timer_behind() {
    let config = |name| Config::new(app(name));
    let mut world = World::with([config("a"), config("b")]);
    for site in [0, 1] {
        world.node(site).set_interest(Interest::NONE);
    }
    let mut armed = Vec::new();
    for cycle in 0..10_000 {
        let wire = world.link(0, 1);
        world.signal(0, "b", "m");
        world.run();
        if cycle == 0 || cycle == 9_999 {
            armed.push([0, 1].map(|site| world.sites[site].node.snapshot().timers));
        }
        world.cut(wire);
        world.advance(ms(10));
        world.log.clear();
    }
    assert_eq!(armed[0], armed[1]);
}

#[test]
fn a_late_driver_that_feeds_what_it_read_first_loses_nothing() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    let parent_id = hand.last_id(&world, "signal m1");
    let ack = Message::new(
        crate::support::id("ack"),
        app("a"),
        app("b"),
        Body::Ack { parent_id },
    );
    let bytes = ack.encode().to_bytes();
    let decoded = Message::decode(&bytes).unwrap();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.oversleep_to(secs(60));
    let now = world.now();
    world
        .node(0)
        .handle_message(now, peer, Inbound { bytes, decoded });
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
}

#[test]
fn deadlines_that_are_fired_late_fire_earliest_first() {
    let mut world = World::with([quiet("b")]);
    let names = ["a", "c", "d"];
    for (second, name) in (0..).zip(names) {
        world.advance_to(secs(second));
        let hand = world.native(0, name);
        world.signal(0, name, "m");
        world.run();
        let _ = hand;
    }
    world.oversleep_to(secs(500));
    world.run();
    let gone: Vec<_> = world.sites[0]
        .links
        .iter()
        .filter(|(_, change)| change.state == LinkState::Offline)
        .map(|(_, change)| change.app.as_str())
        .collect();
    assert_eq!(gone, names);
}

#[test]
fn an_early_or_needless_handle_timeout_is_harmless() {
    let mut world = World::with([quiet("b")]);
    world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    for millis in (0..10_000).step_by(500) {
        world.advance_to(ms(millis));
        let now = world.now();
        world.node(0).handle_timeout(now);
        world.run();
    }
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
}

#[test]
fn the_response_limit_runs_from_the_call_also_while_offline() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.advance_to(secs(5));
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(ms(14_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(15));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
}

#[test]
fn the_response_limit_runs_from_the_call_also_while_the_window_is_closed() {
    let mut world = World::with([quiet("b").submit_max_count(1)]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    world.signal(0, "a", "m1");
    world.run();
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
}

fn with_growth(bytes: u64, at: u64, defer: bool) -> World {
    let mut world = World::with([quiet("b").defer_limits(defer)]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.advance_to(ms(at));
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    let now = world.now();
    world.node(0).handle_progress(now, peer, bytes);
    world.run();
    world
}

#[test]
fn a_limit_is_put_off_while_a_large_message_keeps_coming_until_it_stalls() {
    let mut world = with_growth(64 * 1024, 8_000, true);
    world.advance_to(ms(12_900));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(14));
    assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
}

#[test]
fn a_limit_is_not_put_off_by_less_than_64_kib_or_by_growth_that_is_over() {
    for (bytes, at) in [(64 * 1024 - 1, 8_000), (64 * 1024, 4_000)] {
        let mut world = with_growth(bytes, at, true);
        world.advance_to(secs(10));
        assert_eq!(world.changes(0, "a"), [(0, "online"), (10_000, "offline")]);
    }
}

#[test]
fn without_defer_limits_a_limit_strikes_whatever_comes_in() {
    let mut world = with_growth(10 << 20, 9_999, false);
    world.advance_to(secs(10));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (10_000, "offline")]);
}

#[test]
fn a_limit_that_was_put_off_strikes_no_more_when_the_ack_comes_behind_the_large_message() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    for second in 1..=30 {
        world.advance_to(secs(second));
        let now = world.now();
        world.node(0).handle_progress(now, peer, 64 * 1024);
        world.run();
    }
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    hand.ack_line(&mut world, "signal m1");
    hand.signal(&mut world, "large");
    world.advance_to(secs(60));
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
}

#[test]
fn a_node_at_rest_has_no_deadline() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    assert_eq!(world.node(0).poll_timeout(), None);
    world.link(0, 1);
    let token = world.signal(0, "b", "m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    world.advance_to(secs(60));
    assert_eq!(world.node(0).poll_timeout(), None);
    assert_eq!(world.node(1).poll_timeout(), None);
}

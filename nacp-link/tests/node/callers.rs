//! Callers and drivers that err.

use std::time::Duration;

use nacp_link::{Accepted, Connect, LinkState, Verdict};
use nacp_proto::RequestKind;

use crate::support::{ACCEPTOR, Intake, World, app, ms, quiet, secs};

#[test]
fn a_request_with_a_limit_of_zero_times_out_at_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let (token, _) = world.ask(0, "b", "r1", RequestKind::Ability, Some(Duration::ZERO));
    world.run();
    assert_eq!(world.outcome(0, token), "timeout");
    let (token, _) = world.ask(0, "b", "r2", RequestKind::Ability, Some(Duration::MAX));
    world.advance_to(secs(1_000_000));
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn reports_of_a_provider_that_lies_harm_nothing() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let tokens = world.signals(0, "a", 1..=2);
    world.run();
    let now = world.now();
    world.node(0).handle_send_failed(peer, u64::MAX);
    world.node(0).handle_send_failed(peer, 0);
    world.node(0).handle_send_failed(peer, 0);
    let accepted = Accepted {
        control: u64::MAX,
        bulk: u64::MAX,
    };
    world.node(0).handle_accepted(now, peer, accepted);
    world.run();
    assert_eq!(world.outcome(0, tokens[0]), "send-failed");
    hand.ack_line(&mut world, "signal m2");
    world.run();
    assert_eq!(world.outcome(0, tokens[1]), "delivered");
    world.assert_at_rest(0);
    let later = world.signal(0, "a", "m3");
    world.run();
    hand.ack_line(&mut world, "signal m3");
    world.run();
    assert_eq!(world.outcome(0, later), "delivered");
}

#[test]
fn calls_about_things_that_are_over_are_ignored() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    let Connect::Dial(dial) = world.node(0).connect(Some(app("z")), None, None) else {
        panic!("expected a dial");
    };
    let now = world.now();
    for _ in 0..2 {
        world.node(0).handle_dial_failed(now, dial);
        world.node(0).handle_authorized(now, peer, Verdict::Refuse);
    }
    world.run();
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.notice(hand.wire, ACCEPTOR, None);
    for _ in 0..2 {
        world
            .node(0)
            .handle_disconnected(now, peer, Some("transport-error"));
        world.node(0).handle_accepted(
            now,
            peer,
            Accepted {
                control: 9,
                bulk: 9,
            },
        );
        world.node(0).handle_progress(now, peer, 1 << 30);
        world.node(0).handle_send_failed(peer, 0);
        world.node(0).handle_authorized(now, peer, Verdict::Admit);
    }
    world.run();
    assert_eq!(world.changes(0, "a"), [(0, "online"), (0, "offline")]);
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn a_clock_that_goes_back_is_a_clock_that_stands() {
    let mut world = World::with([quiet("b")]);
    world.native(0, "a");
    world.advance_to(secs(5));
    let earlier = world.now() - secs(4);
    world.signal(0, "a", "m1");
    world.run();
    world.node(0).handle_timeout(earlier);
    let token = world.token();
    let signal = nacp_proto::Signal::Pause;
    world.node(0).signal(
        earlier,
        &app("a"),
        crate::support::id("run"),
        signal,
        Some(token),
    );
    world.advance_to(ms(14_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(15));
    assert_eq!(world.changes(0, "a")[1], (15_000, "offline"));
}

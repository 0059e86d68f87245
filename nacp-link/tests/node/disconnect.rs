//! Saying good-bye to one app (specification, section 4.5).

use nacp_link::{Cause, Close, LinkState};
use nacp_proto::Body;

use crate::support::{ACCEPTOR, DIALLER, Hand, Intake, World, ms, quiet, secs};

fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    (world, hand)
}

#[test]
fn a_good_bye_is_unregister_ack_response_and_ack_and_drops_both_sides() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let mark = world.mark();
    let token = world.disconnect(0, "b");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(
        world.said_since(mark, wire, DIALLER),
        ["unregister", "ack answer unregister"]
    );
    assert_eq!(
        world.said_since(mark, wire, ACCEPTOR),
        ["ack unregister", "answer unregister"]
    );
    assert_eq!(world.changes(0, "b"), [(0, "online"), (0, "dropped")]);
    assert_eq!(world.changes(1, "a"), [(0, "online"), (0, "dropped")]);
    assert_eq!(world.sites[0].links[1].1.cause, Cause::Disconnecting);
    assert_eq!(world.sites[1].links[1].1.cause, Cause::Unregistered);
    for site in [0, 1] {
        assert_eq!(world.node(site).snapshot().peers, 0);
        assert_eq!(world.node(site).snapshot().links, 0);
        assert_eq!(world.node(site).poll_timeout(), None);
    }
}

#[test]
fn new_sends_settle_peer_gone_from_the_call_on() {
    let (mut world, _hand) = start();
    world.disconnect(0, "a");
    let tokens = [
        world.signal(0, "a", "m1"),
        world.request(0, "a", "r1"),
        world.subscribe(0, "a", "x").0,
    ];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 3]);
}

#[test]
fn what_was_queued_before_goes_first() {
    let mut world = World::with([quiet("b").submit_max_count(1)]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let mark = world.mark();
    world.signals(0, "a", 1..=4);
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
fn without_an_answer_the_link_is_dropped_after_ten_seconds() {
    let (mut world, hand) = start();
    hand.ack_all(&mut world, true);
    world.advance_to(secs(1));
    let token = world.disconnect(0, "a");
    world.advance_to(ms(10_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(11));
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a")[1], (11_000, "dropped"));
    assert!(!hand.is_open(&world));
}

#[test]
fn the_peers_end_completes_the_good_bye() {
    let (mut world, hand) = start();
    let token = world.disconnect(0, "a");
    world.advance_to(secs(3));
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a"), [(0, "online"), (3_000, "dropped")]);
}

#[test]
fn the_peers_own_unregister_completes_the_good_bye() {
    let (mut world, hand) = start();
    let token = world.disconnect(0, "a");
    world.run();
    hand.say(&mut world, Body::Unregister);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a"), [(0, "online"), (0, "dropped")]);
}

#[test]
fn two_good_byes_that_cross_complete_both() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let (wire, _) = world.dial(0, 1);
    world.set_delay(wire, ms(100));
    world.advance_to(secs(1));
    let tokens = [world.disconnect(0, "b"), world.disconnect(1, "a")];
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, tokens[0]), "delivered");
    assert_eq!(world.outcome(1, tokens[1]), "delivered");
    for (site, of) in [(0, "b"), (1, "a")] {
        assert_eq!(world.state(site, of), None);
        assert_eq!(world.node(site).snapshot().peers, 0);
    }
}

#[test]
fn a_good_bye_to_an_offline_app_drops_it_at_once() {
    let (mut world, hand) = start();
    hand.hang_up(&mut world);
    world.run();
    let waiting = world.signal(0, "a", "m1");
    let token = world.disconnect(0, "a");
    world.run();
    assert_eq!(
        world.outcomes(0, &[waiting, token]),
        ["peer-gone", "delivered"]
    );
    assert_eq!(world.state(0, "a"), None);
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn a_good_bye_to_an_unknown_app_is_delivered_at_once() {
    let mut world = World::with([quiet("b")]);
    let token = world.disconnect(0, "z");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
}

#[test]
fn two_good_byes_of_one_node_are_one_and_both_settle() {
    let (mut world, hand) = start();
    let mark = world.mark();
    let tokens = [world.disconnect(0, "a"), world.disconnect(0, "a")];
    world.run();
    assert_eq!(hand.heard_since(&world, mark), ["unregister"]);
    hand.respond(&mut world, "unregister", "bye");
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 2]);
}

#[test]
fn requests_that_wait_are_rejected_when_the_link_is_dropped() {
    let (mut world, hand) = start();
    let request = world.request(0, "a", "r1");
    world.run();
    hand.ack_line(&mut world, "request r1");
    world.run();
    world.disconnect(0, "a");
    world.run();
    hand.ack_line(&mut world, "unregister");
    hand.respond(&mut world, "unregister", "bye");
    world.run();
    assert_eq!(world.outcome(0, request), "peer-gone");
    assert_eq!(hand.heard(&world).last(), Some(&"ack answer unregister"));
    assert_eq!(world.closed(0, hand.wire), [(0, Close::Flush)]);
    world.assert_at_rest(0);
}

#[test]
fn messages_that_come_before_the_answer_are_still_handled() {
    let (mut world, hand) = start();
    world.disconnect(0, "a");
    world.run();
    hand.signal(&mut world, "m1");
    world.run();
    assert_eq!(world.handled(0), ["m1"]);
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn a_good_bye_gives_up_an_attempt_to_the_app() {
    let mut world = World::with([quiet("b")]);
    let (hand, dial) = world.dialled_by(0, "a");
    world.run();
    let token = world.disconnect(0, "a");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert!(world.outcome(0, dial) != "pending");
    assert!(!hand.is_open(&world));
}

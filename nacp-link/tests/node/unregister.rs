//! An unregister that arrives (specification, section 4.5).

use nacp_link::{Cause, Close, LinkState, MessageReport};

use crate::support::{ACCEPTOR, Intake, World, ms, quiet, secs};

fn causes(world: &World, site: usize) -> Vec<(LinkState, Cause)> {
    world.sites[site]
        .links
        .iter()
        .map(|(_, change)| (change.state, change.cause))
        .collect()
}

#[test]
fn an_unregister_is_acked_and_answered_first_and_drops_when_that_is_accepted() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    hand.say(&mut world, nacp_proto::Body::Unregister);
    world.run();
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    let mark = world.mark();
    world.advance_to(ms(400));
    world.accept(hand.wire, ACCEPTOR, 2);
    world.run();
    assert_eq!(
        hand.heard_since(&world, mark),
        ["ack unregister", "answer unregister"]
    );
    assert_eq!(world.changes(0, "a"), [(0, "online"), (400, "dropped")]);
    assert_eq!(world.closed(0, hand.wire), [(400, Close::Flush)]);
}

#[test]
fn an_answer_to_an_unregister_that_is_not_accepted_is_waited_for_one_second() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    hand.say(&mut world, nacp_proto::Body::Unregister);
    world.advance_to(ms(999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(1));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (1_000, "dropped")]);
}

#[test]
fn from_an_unregister_on_nothing_more_of_that_peer_is_handled() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.signal(&mut world, "m1");
    hand.say(&mut world, nacp_proto::Body::Unregister);
    hand.signal(&mut world, "m2");
    hand.register(&mut world);
    world.run();
    assert_eq!(world.handled(0), ["m1"]);
    assert_eq!(world.state(0, "a"), None);
    assert_eq!(world.app_reports(0, "a").len(), 2);
}

#[test]
fn an_unregister_needs_neither_ack_nor_grace_and_settles_what_waits() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let tokens = [world.signal(0, "a", "m1"), world.request(0, "a", "r1")];
    world.run();
    hand.say(&mut world, nacp_proto::Body::Unregister);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 2]);
    assert_eq!(
        causes(&world, 0)[1],
        (LinkState::Dropped, Cause::Unregistered)
    );
    assert_eq!(world.reported(0, MessageReport::AckWarning), []);
    assert_eq!(world.node(0).snapshot().links, 0);
}

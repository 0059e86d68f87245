//! Calls that reach their limit (specification, section 5).

use nacp_link::{LinkState, MessageReport};
use nacp_proto::{Body, RequestKind, Response};

use crate::support::{ACCEPTOR, Hand, Intake, World, ms, payload, quiet, secs};

fn with_hand() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    (world, hand)
}

#[test]
fn t27_a_call_that_times_out_leaves_the_backlog() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.cut(wire);
    let mut tokens = Vec::new();
    for second in [0, 11, 22] {
        world.advance_to(secs(second));
        tokens.push(world.subscribe(0, "b", "x:*").0);
    }
    world.advance_to(secs(30));
    assert_eq!(
        world.outcomes(0, &tokens),
        ["timeout", "timeout", "pending"]
    );
    world.link(0, 1);
    assert_eq!(world.outcomes(0, &tokens[..2]), ["timeout"; 2]);
    assert!(world.outcome(0, tokens[2]).starts_with("ok"));
    assert_eq!(world.node(1).snapshot().subscriptions, 1);
    world.emit(1, "x:1", "n1");
    world.run();
    assert_eq!(world.sites[0].hits.len(), 1);
    assert_eq!(world.reported(0, MessageReport::NotifyError), []);
}

#[test]
fn t27_a_submitted_call_that_times_out_is_not_put_back() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
    world.assert_at_rest(0);
}

#[test]
fn t27_a_submitted_call_that_times_out_keeps_its_ack_deadline() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(secs(4));
    world.report_accepted(hand.wire, ACCEPTOR);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    world.advance_to(ms(13_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(14));
    assert_eq!(world.changes(0, "a")[1], (14_000, "offline"));
    world.assert_at_rest(0);
}

#[test]
fn t27_a_subscribe_whose_success_comes_after_its_timeout_is_answered_with_an_unsubscribe() {
    let (mut world, hand) = with_hand();
    hand.ack_all(&mut world, true);
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(secs(12));
    assert_eq!(world.outcome(0, token), "timeout");
    let subscription = hand.last_id(&world, "subscribe x");
    hand.respond(&mut world, "subscribe x", "fine");
    world.run();
    assert_eq!(world.reported(0, MessageReport::ResponseError), []);
    assert_eq!(hand.heard(&world).last(), Some(&"unsubscribe x"));
    let unsubscribe = hand.last(&world, "unsubscribe x");
    assert_eq!(
        unsubscribe.body,
        Body::Unsubscribe {
            target_sub_id: subscription
        }
    );
}

/// The first hit finds the way out full: the next one ends the subscription.
#[test]
fn t27_a_hit_of_a_subscribe_that_timed_out_ends_it_also_if_the_first_try_found_no_room() {
    let mut world = World::with([quiet("b").submit_max_count(1).queue_max_count(1)]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    let (token, _) = world.subscribe(0, "a", "x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    let given_up = hand.last_id(&world, "subscribe x");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    world.signals(0, "a", 1..=2);
    hand.notify(&mut world, &given_up, "x", "n1");
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Open);
    world.run();
    assert!(!hand.heard(&world).contains(&"unsubscribe x"));
    hand.notify(&mut world, &given_up, "x", "n2");
    world.run();
    assert_eq!(
        hand.last(&world, "unsubscribe x").body,
        Body::Unsubscribe {
            target_sub_id: given_up
        }
    );
}

/// It was read, and the connection broke before its acceptance was told.
#[test]
fn t27_a_subscribe_that_went_out_unaccepted_and_timed_out_offline_is_ended_too() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let (token, _) = world.subscribe(0, "a", "x");
    world.run();
    let holds = vec![hand.session(&world)];
    hand.hang_up(&mut world);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    let mut back = world.hand(0, "a");
    back.holds = holds;
    back.register(&mut world);
    world.run();
    back.ack_last_response(&mut world);
    let parent_id = hand.last_id(&world, "subscribe x");
    let answer = Response::ok(parent_id, payload("fine"));
    back.say(&mut world, Body::Response(answer));
    world.run();
    assert_eq!(back.heard(&world).last(), Some(&"unsubscribe x"));
}

/// The same, and its user ends it before it is answered.
#[test]
fn t27_a_subscribe_that_went_out_unaccepted_and_was_given_up_offline_is_ended_too() {
    let (mut world, hand) = with_hand();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Unreported);
    let (_, stream) = world.subscribe(0, "a", "x");
    world.run();
    let holds = vec![hand.session(&world)];
    hand.hang_up(&mut world);
    world.run();
    world.unsubscribe(0, stream.unwrap());
    let mut back = world.hand(0, "a");
    back.holds = holds;
    back.register(&mut world);
    world.run();
    assert_eq!(back.heard(&world)[2..], ["unsubscribe x"]);
}

#[test]
fn t27_a_late_refusal_of_a_subscribe_needs_no_unsubscribe() {
    let (mut world, hand) = with_hand();
    hand.ack_all(&mut world, true);
    world.subscribe(0, "a", "x");
    world.advance_to(secs(12));
    let parent_id = hand.last_id(&world, "subscribe x");
    hand.say(
        &mut world,
        Body::Response(Response::not_ok(parent_id, "limit-reached")),
    );
    world.run();
    assert_eq!(hand.heard(&world).last(), Some(&"ack answer subscribe x"));
}

#[test]
fn t27_a_request_with_a_limit_is_rejected_at_it_and_withdrawn() {
    let (mut world, hand) = with_hand();
    hand.hang_up(&mut world);
    world.run();
    let (token, _) = world.ask(0, "a", "r1", RequestKind::Ability, Some(secs(5)));
    world.advance_to(ms(4_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
    world.assert_at_rest(0);
}

#[test]
fn a_withdrawn_request_that_leaves_a_full_ack_pending_leaves_no_trace() {
    let mut world = World::with([quiet("b").queue_max_count(1)]);
    world.native(0, "a");
    let (token, request) = world.ask(0, "a", "r1", RequestKind::Ability, Some(secs(5)));
    let request = format!("{:?}", request.unwrap());
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, token), "timeout");
    assert!(format!("{:?}", world.node(0)).contains(&request));
    world.signal(0, "a", "m1");
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::AckWarning),
        [(5_000, "pending-overflow")]
    );
    assert!(!format!("{:?}", world.node(0)).contains(&request));
}

#[test]
fn a_late_answer_to_a_request_past_its_limit_has_no_consumer() {
    let (mut world, hand) = with_hand();
    hand.ack_all(&mut world, true);
    let (token, _) = world.ask(0, "a", "r1", RequestKind::Ability, Some(secs(5)));
    world.advance_to(secs(6));
    hand.respond(&mut world, "request r1", "late");
    world.run();
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(6_000, "has-no-consumer")]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn t27_a_written_subscribe_whose_answer_was_cut_off_leaves_no_entry_after_its_timeout() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.hold(wire, ACCEPTOR);
    let (token, _) = world.subscribe(0, "b", "x:*");
    world.run();
    assert_eq!(world.node(1).snapshot().subscriptions, 1);
    world.advance_to(secs(1));
    world.cut(wire);
    world.advance_to(secs(12));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().backlog.count, 0);
    world.advance_to(secs(30));
    world.link(0, 1);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
    assert_eq!(world.node(0).snapshot().streams, 0);
    world.emit(1, "x:1", "n1");
    world.run();
    assert_eq!(world.sites[0].hits, []);
}

#[test]
fn t27_an_unsubscribe_that_timed_out_offline_leaves_no_entry() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let (_, stream) = world.subscribe(0, "b", "x");
    world.run();
    world.cut(wire);
    world.advance_to(secs(1));
    let token = world.unsubscribe(0, stream.unwrap());
    world.advance_to(secs(12));
    assert_eq!(world.outcome(0, token), "timeout");
    world.advance_to(secs(30));
    world.link(0, 1);
    world.emit(1, "x", "n1");
    world.advance(secs(1));
    assert_eq!(world.sites[0].hits, []);
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
}

//! Going offline, coming back, being dropped (specification, sections 4.3 to 4.5).

use nacp_link::{Cause, Close, Event, LinkState};

use crate::support::{ACCEPTOR, DIALLER, Intake, World, ms, quiet, secs};

fn causes(world: &World, site: usize) -> Vec<(LinkState, Cause)> {
    world.sites[site]
        .links
        .iter()
        .map(|(_, change)| (change.state, change.cause))
        .collect()
}

#[test]
fn the_end_of_the_peer_puts_the_link_offline_at_both_sides() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.advance_to(secs(5));
    world.cut(wire);
    world.run();
    assert_eq!(world.changes(0, "b"), [(0, "online"), (5_000, "offline")]);
    assert_eq!(world.changes(1, "a"), [(0, "online"), (5_000, "offline")]);
    assert_eq!(
        causes(&world, 0),
        [
            (LinkState::Online, Cause::Registered),
            (LinkState::Offline, Cause::Disconnected)
        ]
    );
}

#[test]
fn offline_is_reported_once_whatever_else_happens() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signals(0, "a", 1..=3);
    world.run();
    world.advance_to(secs(10));
    // The ACK limit has struck; the peer's own end comes later and changes nothing.
    assert_eq!(world.changes(0, "a"), [(0, "online"), (10_000, "offline")]);
    world.notice(hand.wire, ACCEPTOR, None);
    world.advance_to(secs(60));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (10_000, "offline")]);
    assert_eq!(world.app_reports(0, "a").len(), 2);
}

#[test]
fn a_second_cause_does_not_start_the_grace_again() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.advance_to(secs(20));
    world.notice(hand.wire, ACCEPTOR, None);
    world.advance_to(ms(129_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
    world.advance_to(secs(130));
    assert_eq!(world.state(0, "a"), None);
}

#[test]
fn an_old_peer_that_did_not_disconnect_is_reset() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.advance_to(secs(10));
    assert_eq!(world.closed(0, hand.wire), [(10_000, Close::Abort)]);
    assert!(!hand.is_open(&world));
}

#[test]
fn an_old_peer_that_disconnected_is_not_closed_again() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.closed(0, hand.wire), []);
}

#[test]
fn acceptance_that_preceded_the_end_counts_before_it() {
    // A notify that was accepted is delivered; one that was not is sent again.
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens = [world.emit(0, "x", "n1")[0], world.emit(0, "x", "n2")[0]];
    world.run();
    world.accept(hand.wire, ACCEPTOR, 1);
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered", "pending"]);
    assert_eq!(world.node(0).snapshot().backlog.count, 1);
}

#[test]
fn what_was_submitted_and_what_awaits_an_ack_goes_to_the_head_in_order() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signals(0, "a", 1..=2);
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    world.signals(0, "a", 3..=4);
    world.run();
    hand.hang_up(&mut world);
    world.run();
    world.signals(0, "a", 5..=6);
    let snapshot = world.node(0).snapshot();
    assert_eq!(snapshot.backlog.count, 6);
    assert_eq!(snapshot.submitted.count, 0);
    assert_eq!(snapshot.ack_pending.count, 0);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(
        back.heard(&world)[2..],
        (1..=6)
            .map(|number| format!("signal m{number}"))
            .collect::<Vec<_>>()
    );
}

#[test]
fn while_offline_new_messages_queue_and_stay_pending() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let mark = world.mark();
    let tokens = [
        world.signal(0, "a", "m1"),
        world.request(0, "a", "r1"),
        world.emit(0, "x", "n1")[0],
        world.subscribe(0, "a", "y").0,
    ];
    world.advance_to(secs(9));
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 4]);
    assert_eq!(world.mark(), mark);
    assert_eq!(world.node(0).snapshot().backlog.count, 4);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(
        back.heard(&world)[2..],
        ["signal m1", "request r1", "notify n1", "subscribe y"]
    );
}

#[test]
fn the_link_keeps_requests_and_subscriptions_of_both_sides_over_an_offline_time() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let request = world.request(0, "b", "r1");
    let (_, stream) = world.subscribe(0, "b", "x");
    world.subscribe(1, "a", "y");
    world.run();
    world.cut(wire);
    world.advance_to(secs(119));
    world.emit(1, "x", "n1");
    world.emit(0, "y", "n2");
    world.answer(1, "r1");
    world.link(0, 1);
    assert_eq!(world.outcome(0, request), "ok r1");
    assert_eq!(world.sites[0].hits, [(stream.unwrap(), "n1".to_owned())]);
    assert_eq!(world.sites[1].hits.len(), 1);
    assert_eq!(world.handled(1), ["r1"]);
}

#[test]
fn the_grace_ends_120_seconds_after_going_offline() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.advance_to(secs(7));
    hand.hang_up(&mut world);
    world.advance_to(ms(126_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
    world.advance_to(secs(127));
    assert_eq!(world.state(0, "a"), None);
    assert_eq!(
        causes(&world, 0)[2],
        (LinkState::Dropped, Cause::GraceEnded)
    );
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn a_register_within_the_grace_cancels_it() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.advance_to(ms(119_999));
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.advance_to(secs(600));
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (0, "offline"), (119_999, "online")]
    );
}

#[test]
fn a_register_at_the_very_end_of_the_grace_comes_too_late() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.advance_to(secs(119));
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    // The register arrives at the instant at which the grace ends.
    world.set_delay(back.wire, secs(1));
    let token = world.signal(0, "a", "m1");
    back.register(&mut world);
    world.advance_to(secs(122));
    assert_eq!(world.outcome(0, token), "peer-gone");
    assert_eq!(
        world.changes(0, "a"),
        [
            (0, "online"),
            (0, "offline"),
            (120_000, "dropped"),
            (120_000, "online")
        ]
    );
    assert_eq!(back.registered(&world).unwrap().resumed, Some(false));
}

#[test]
fn a_grace_that_ends_while_the_own_register_is_unanswered_waits_for_a_good_answer() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.advance_to(secs(1));
    // Only `a` has noticed; `b` is told at 100 s.
    world.notice(wire, DIALLER, None);
    let token = world.signal(0, "b", "m1");
    world.advance_to(secs(100));
    world.notice(wire, ACCEPTOR, None);
    world.advance_to(secs(120));
    let (slow, dial) = world.dial(0, 1);
    world.set_delay(slow, secs(2));
    world.advance_to(secs(122));
    assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
    world.advance_to(secs(130));
    assert_eq!(world.outcome(0, dial), "connected b");
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(
        world.changes(0, "b"),
        [(0, "online"), (1_000, "offline"), (124_000, "online")]
    );
}

#[test]
fn a_grace_that_ends_while_the_own_register_is_unanswered_drops_at_a_bad_answer() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(nacp_proto::Session([1; 16])), Some(false));
    world.run();
    hand.hang_up(&mut world);
    world.advance_to(secs(119));
    let token = world.signal(0, "b", "m1");
    let (again, _) = world.dialled_by(0, "b");
    world.advance_to(secs(125));
    assert_eq!(world.outcome(0, token), "pending");
    again.refuse(&mut world, "unauthorized");
    world.run();
    assert_eq!(world.outcome(0, token), "peer-gone");
    assert_eq!(world.changes(0, "b")[2], (125_000, "dropped"));
}

#[test]
fn a_dropped_app_is_forgotten_and_can_register_afresh() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.advance_to(secs(120));
    assert_eq!(world.node(0).snapshot().links, 0);
    let token = world.signal(0, "a", "m1");
    world.run();
    assert_eq!(world.outcome(0, token), "no-route");
    world.native(0, "a");
    assert_eq!(
        world.app_reports(0, "a").last(),
        Some(&(120_000, "bound", Some(false)))
    );
}

#[test]
fn dropping_settles_every_record_and_waiter_of_the_app_and_nothing_of_others() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let other = world.native(0, "c");
    hand.subscribe(&mut world, "x");
    let waiting = [world.request(0, "a", "r1"), world.request(0, "c", "r1")];
    world.run();
    hand.ack_line(&mut world, "request r1");
    other.ack_line(&mut world, "request r1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let queued = [
        world.signal(0, "a", "m1"),
        world.request(0, "a", "r2"),
        world.emit(0, "x", "n1")[0],
    ];
    world.advance_to(secs(120));
    assert_eq!(world.outcomes(0, &queued), ["peer-gone"; 3]);
    assert_eq!(world.outcomes(0, &waiting), ["peer-gone", "pending"]);
    assert_eq!(world.state(0, "c"), Some(LinkState::Online));
    let snapshot = world.node(0).snapshot();
    assert_eq!(snapshot.backlog.count, 0);
    assert_eq!(snapshot.subscriptions, 0);
    assert_eq!(snapshot.calls, 1);
}

#[test]
fn dropping_ends_subscriptions_in_both_directions_and_cancels_handlers() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.subscribe(0, "b", "x");
    world.subscribe(1, "a", "y");
    world.request(0, "b", "r1");
    world.run();
    world.cut(wire);
    world.advance_to(secs(120));
    let told: Vec<_> = world.sites[1]
        .events
        .iter()
        .filter(|(at, _)| *at == secs(120))
        .map(|(_, event)| match event {
            Event::Cancelled { reason, .. } => format!("cancelled {reason}"),
            Event::StreamEnded { .. } => "stream ended".to_owned(),
            Event::Unsubscribed { .. } => "unsubscribed".to_owned(),
            Event::Link(change) => format!("{:?}", change.state),
            other => format!("{other:?}"),
        })
        .collect();
    let mut sorted = told.clone();
    sorted.sort();
    assert_eq!(
        sorted,
        [
            "Dropped",
            "cancelled peer-gone",
            "stream ended",
            "unsubscribed"
        ]
    );
    // What the handler answers later settles, and goes nowhere.
    let token = world.answer(1, "r1");
    world.run();
    assert_eq!(world.outcome(1, token), "peer-gone");
    world.assert_at_rest(0);
    world.assert_at_rest(1);
}

#[test]
fn the_dedup_window_goes_with_the_link() {
    let mut world = World::with([quiet("b")]);
    for _ in 0..2 {
        let hand = world.native(0, "a");
        let signal = nacp_proto::Signal::Pause;
        let parent_id = crate::support::id("run");
        hand.say_with(
            &mut world,
            crate::support::id("one"),
            nacp_proto::Body::Signal { parent_id, signal },
        );
        world.run();
        hand.hang_up(&mut world);
        world.advance(secs(120));
    }
    assert_eq!(world.handled(0), ["pause", "pause"]);
}

#[test]
fn an_ack_of_a_record_that_is_back_in_the_backlog_settles_it() {
    // T-12, line 2: the ACK was on its way when the peer ended, and comes on the new one.
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    let m1 = hand.last_id(&world, "signal m1");
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 1);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    world.set_intake(back.wire, ACCEPTOR, Intake::Stalled);
    back.register(&mut world);
    back.ack(&mut world, &m1);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    world.assert_at_rest(0);
}

#[test]
fn dropping_settles_backlog_submitted_and_ack_pending_alike() {
    let mut world = World::with([quiet("b").submit_max_count(2)]);
    let hand = world.native(0, "a");
    let mut tokens = world.signals(0, "a", 1..=2);
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    tokens.extend(world.signals(0, "a", 3..=6));
    world.run();
    let snapshot = world.node(0).snapshot();
    let counts =
        [snapshot.ack_pending, snapshot.submitted, snapshot.backlog].map(|table| table.count);
    assert_eq!(counts, [2, 2, 2]);
    hand.say(&mut world, nacp_proto::Body::Unregister);
    world.advance_to(secs(1));
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 6]);
    world.assert_at_rest(0);
}

#[test]
fn a_dropped_app_that_returns_gets_nothing_of_before() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let request = world.request(0, "b", "r1");
    world.subscribe(0, "b", "x");
    world.run();
    world.cut(wire);
    world.advance_to(secs(121));
    let mark = world.mark();
    let again = world.link(0, 1);
    assert_eq!(world.outcome(0, request), "peer-gone");
    assert_eq!(
        world.said_since(mark, again, DIALLER),
        ["register", "ack answer register"]
    );
    world.emit(1, "x", "n1");
    world.run();
    assert_eq!(world.sites[0].hits, []);
}

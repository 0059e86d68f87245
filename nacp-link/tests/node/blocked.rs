//! Submission window, pass-through and blocked sends (specification, section 5).

use nacp_link::{Config, MessageReport};

use crate::support::{ACCEPTOR, Hand, Intake, World, quiet, secs};

/// A hand that does not read, at a node with a window of one.
fn stalled(config: Config) -> (World, Hand) {
    let mut world = World::with([config]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    (world, hand)
}

fn waiting(world: &mut World, hand: &Hand) -> Vec<String> {
    world.waiting(hand.wire, ACCEPTOR)
}

#[test]
fn at_most_the_window_is_submitted_and_not_accepted() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(3));
    world.signals(0, "a", 1..=10);
    world.run();
    assert_eq!(waiting(&mut world, &hand).len(), 3);
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.submitted.count, snapshot.backlog.count), (3, 7));
    world.accept(hand.wire, ACCEPTOR, 2);
    world.run();
    assert_eq!(
        waiting(&mut world, &hand),
        ["signal m3", "signal m4", "signal m5"]
    );
}

#[test]
fn the_window_is_counted_in_bytes_too_and_takes_one_larger_message_alone() {
    let (mut world, hand) = stalled(quiet("b").submit_max_bytes(1000));
    let large = "l".repeat(5000);
    world.signal(0, "a", &large);
    world.signal(0, "a", "m1");
    world.run();
    assert_eq!(waiting(&mut world, &hand).len(), 1);
    world.accept(hand.wire, ACCEPTOR, 1);
    world.run();
    assert_eq!(waiting(&mut world, &hand), ["signal m1"]);
    world.signal(0, "a", &large);
    world.run();
    assert_eq!(waiting(&mut world, &hand), ["signal m1"]);
}

#[test]
fn a_window_that_is_open_lets_a_message_pass_without_counting_it() {
    let mut world = World::with([quiet("b").queue_max_count(1)]);
    world.native(0, "a");
    let tokens = world.signals(0, "a", 1..=1);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.backlog.count, snapshot.ack_pending.count), (0, 1));
    assert_eq!(world.outcomes(0, &tokens), ["pending"]);
}

#[test]
fn a_send_that_finds_window_and_backlog_full_is_blocked() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(2));
    let tokens = world.signals(0, "a", 1..=6);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!(
        (
            snapshot.submitted.count,
            snapshot.backlog.count,
            snapshot.blocked
        ),
        (1, 2, 3)
    );
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 6]);
    assert_eq!(world.reported(0, MessageReport::BacklogWarning), []);
    for _ in 0..6 {
        world.accept(hand.wire, ACCEPTOR, 1);
        world.run();
    }
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 6]);
    let mut heard = hand.heard(&world);
    heard.retain(|line| line.starts_with("signal"));
    assert_eq!(
        heard,
        [
            "signal m1",
            "signal m2",
            "signal m3",
            "signal m4",
            "signal m5",
            "signal m6"
        ]
    );
}

#[test]
fn blocked_sends_are_admitted_before_later_sends() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    world.signals(0, "a", 1..=3);
    world.run();
    for number in 4..=8 {
        world.accept(hand.wire, ACCEPTOR, 1);
        world.signals(0, "a", [number]);
        world.run();
    }
    for _ in 0..8 {
        world.accept(hand.wire, ACCEPTOR, 1);
        world.run();
    }
    let mut heard = hand.heard(&world);
    heard.retain(|line| line.starts_with("signal"));
    let expected: Vec<_> = (1..=8).map(|number| format!("signal m{number}")).collect();
    assert_eq!(heard, expected);
}

#[test]
fn a_notify_of_the_bus_that_finds_window_and_backlog_full_is_refused() {
    let (mut world, _hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    world.signals(0, "a", 1..=2);
    let notify = world.emit(0, "x", "n1")[0];
    world.run();
    assert_eq!(world.outcome(0, notify), "refused");
    assert_eq!(
        world.reported(0, MessageReport::BacklogWarning),
        [(0, "notify-dropped")]
    );
}

/// A hit of what was ended is answered with an unsubscribe, unless that finds no room.
#[test]
fn a_refused_call_of_the_node_itself_leaves_no_waiter_and_is_no_dropped_notify() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    world.set_intake(hand.wire, ACCEPTOR, Intake::Open);
    let (_, stream) = world.subscribe(0, "a", "y");
    world.run();
    hand.respond(&mut world, "subscribe y", "fine");
    let ended = hand.last_id(&world, "subscribe y");
    world.run();
    world.unsubscribe(0, stream.unwrap());
    world.run();
    hand.respond(&mut world, "unsubscribe y", "fine");
    world.run();
    assert_eq!(world.node(0).snapshot().calls, 0);
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    world.signals(0, "a", 1..=2);
    for _ in 0..3 {
        hand.notify(&mut world, &ended, "y", "stray");
    }
    world.run();
    assert_eq!(world.node(0).snapshot().calls, 0);
    assert_eq!(world.reported(0, MessageReport::BacklogWarning), []);
}

#[test]
fn blocked_sends_follow_the_put_back_under_the_rules_of_a_full_backlog() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(2));
    let tokens = world.signals(0, "a", 1..=6);
    world.run();
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        [
            "evicted", "evicted", "evicted", "evicted", "pending", "pending"
        ]
    );
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.backlog.count, snapshot.blocked), (2, 0));
}

#[test]
fn blocked_sends_settle_when_their_link_is_dropped() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    let tokens = world.signals(0, "a", 1..=4);
    world.run();
    hand.say(&mut world, nacp_proto::Body::Unregister);
    world.advance_to(secs(1));
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 4]);
    world.assert_at_rest(0);
}

#[test]
fn a_blocked_call_that_times_out_is_withdrawn() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    world.signals(0, "a", 1..=2);
    let (token, _) = world.subscribe(0, "a", "y");
    world.run();
    assert_eq!(world.node(0).snapshot().blocked, 1);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().blocked, 0);
    for _ in 0..5 {
        world.accept(hand.wire, ACCEPTOR, 1);
        world.run();
    }
    assert!(!hand.heard(&world).contains(&"subscribe y"));
}

#[test]
fn a_slow_app_holds_up_no_other() {
    let (mut world, _hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    let other = world.native(0, "c");
    other.ack_all(&mut world, true);
    other.subscribe(&mut world, "z");
    world.run();
    world.signals(0, "a", 1..=5);
    world.run();
    let signal = world.signal(0, "c", "m1");
    world.run();
    let notify = world.emit(0, "z", "n1")[0];
    world.run();
    let request = world.request(0, "c", "r1");
    world.run();
    assert_eq!(
        world.outcomes(0, &[signal, notify, request]),
        ["delivered", "delivered", "pending"]
    );
    assert!(other.heard(&world).contains(&"request r1"));
}

#[test]
fn what_the_node_sends_by_itself_never_blocks_and_evicts_instead() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(2));
    let tokens = world.signals(0, "a", 1..=3);
    world.run();
    // The answer to a subscribe needs a place: the oldest of the backlog goes.
    hand.subscribe(&mut world, "y");
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["pending", "evicted", "pending"]
    );
    assert_eq!(world.node(0).snapshot().blocked, 0);
}

#[test]
fn control_messages_stand_outside_window_and_caps_and_overtake() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    world.signals(0, "a", 1..=3);
    for number in 1..=3 {
        hand.signal(&mut world, &format!("x{number}"));
    }
    world.run();
    assert_eq!(
        waiting(&mut world, &hand),
        ["ack x1", "ack x2", "ack x3", "signal m1"]
    );
}

#[test]
fn above_4096_control_messages_the_node_stops_reading_that_peer_until_they_drain() {
    let (mut world, hand) = stalled(quiet("b"));
    for number in 0..5000 {
        hand.signal(&mut world, &format!("x{number}"));
    }
    world.run();
    assert!(world.wires[hand.wire].paused[ACCEPTOR]);
    let queued = waiting(&mut world, &hand).len();
    assert!(
        (4096..=4200).contains(&queued),
        "{queued} control messages wait"
    );
    world.set_intake(hand.wire, ACCEPTOR, Intake::Open);
    world.run();
    assert!(!world.wires[hand.wire].paused[ACCEPTOR]);
    assert_eq!(world.handled(0).len(), 5000);
}

fn ask(world: &mut World, hand: &Hand, label: &str) {
    hand.say(
        world,
        nacp_proto::Body::Request {
            kind: nacp_proto::RequestKind::Ability,
            target: Some("work".into()),
            payload: crate::support::payload(label),
        },
    );
}

#[test]
fn an_answer_that_finds_window_and_backlog_full_waits_and_evicts_no_other() {
    let (mut world, hand) = stalled(quiet("b").submit_max_count(1).queue_max_count(1));
    for number in 1..=6 {
        ask(&mut world, &hand, &format!("r{number}"));
    }
    world.run();
    let tokens: Vec<_> = (1..=6)
        .map(|number| world.answer(0, &format!("r{number}")))
        .collect();
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 6]);
    assert_eq!(world.node(0).snapshot().blocked, 4);
    for _ in 0..20 {
        world.accept(hand.wire, ACCEPTOR, 1);
        world.run();
    }
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 6]);
    let mut heard = hand.heard(&world);
    heard.retain(|line| line.starts_with("answer r") && *line != "answer register");
    assert_eq!(
        heard,
        [
            "answer r1",
            "answer r2",
            "answer r3",
            "answer r4",
            "answer r5",
            "answer r6"
        ]
    );
}

#[test]
fn a_requester_that_reads_no_answers_is_bounded_by_the_limit_of_running_requests() {
    let config = quiet("b")
        .submit_max_count(1)
        .queue_max_count(1)
        .max_running(4);
    let (mut world, hand) = stalled(config);
    for number in 1..=20 {
        ask(&mut world, &hand, &format!("r{number}"));
        world.run();
        if world.sites[0].running.contains_key(&format!("r{number}")) {
            world.answer(0, &format!("r{number}"));
            world.run();
        }
    }
    // One is submitted, one waits in the backlog, four are blocked; the rest never reached a handler.
    assert!(world.handled(0).len() <= 6, "{:?}", world.handled(0));
    assert!(world.node(0).snapshot().blocked <= 4);
}

#[test]
fn blocked_sends_that_are_no_answers_leave_room_for_requests() {
    let config = quiet("b")
        .submit_max_count(1)
        .queue_max_count(1)
        .max_running(4);
    let (mut world, hand) = stalled(config);
    world.signals(0, "a", 1..=20);
    world.run();
    assert_eq!(world.node(0).snapshot().blocked, 18);
    ask(&mut world, &hand, "r1");
    world.run();
    assert_eq!(world.handled(0), ["r1"]);
}

#[test]
fn a_blocked_call_past_its_limit_is_blocked_no_more() {
    let config = quiet("b").submit_max_count(1).queue_max_count(1);
    let (mut world, hand) = stalled(config);
    world.signals(0, "a", 1..=3);
    let (token, _) = world.subscribe(0, "a", "y");
    world.run();
    assert_eq!(world.node(0).snapshot().blocked, 2);
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    assert_eq!(world.node(0).snapshot().blocked, 1);
    assert!(hand.is_open(&world));
}

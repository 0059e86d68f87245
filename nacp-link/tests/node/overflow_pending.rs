//! A full ack-pending table, and putting back into a full backlog (specification, section 6).

use nacp_link::{MessageReport, Token};

use crate::support::{ACCEPTOR, Hand, Intake, World, quiet};

/// Sends a notify, request or signal, as the label's first letter says.
fn send(world: &mut World, to: &str, label: &str) -> Token {
    match label.as_bytes()[0] {
        b'n' => world.emit(0, to, label)[0],
        b'r' => world.request(0, to, label),
        _ => world.signal(0, to, label),
    }
}

/// The app returns; what it gets of the backlog.
fn return_of(world: &mut World, before: &Hand) -> Vec<String> {
    let mut back = world.hand(0, before.app.as_str());
    back.holds = vec![before.session(world)];
    back.register(world);
    world.run();
    let heard = back.heard(world);
    heard[2..].iter().map(|line| (*line).to_owned()).collect()
}

#[test]
fn a_full_ack_pending_table_evicts_the_oldest_and_only_its_ack_waiter() {
    let mut world = World::with([quiet("b").queue_max_count(3)]);
    let hand = world.native(0, "a");
    let request = world.request(0, "a", "r1");
    let tokens = world.signals(0, "a", 1..=4);
    world.run();
    assert_eq!(world.node(0).snapshot().ack_pending.count, 3);
    assert_eq!(
        world.outcomes(0, &tokens),
        ["evicted", "pending", "pending", "pending"]
    );
    assert_eq!(world.outcome(0, request), "pending");
    assert_eq!(
        world.reported_of(0, MessageReport::AckWarning),
        ["pending-overflow r1", "pending-overflow m1"]
    );
    hand.respond(&mut world, "request r1", "fine");
    for number in 1..=4 {
        hand.ack_line(&mut world, &format!("signal m{number}"));
    }
    world.run();
    assert_eq!(world.outcome(0, request), "ok fine");
    assert_eq!(
        world.outcomes(0, &tokens),
        ["evicted", "delivered", "delivered", "delivered"]
    );
    // The ACK of the evicted one finds nobody.
    assert_eq!(world.reported_of(0, MessageReport::AckError).len(), 1);
}

#[test]
fn ack_pending_is_capped_by_bytes_too() {
    let mut world = World::with([quiet("b").queue_max_bytes(1000)]);
    world.native(0, "a");
    let tokens = [
        world.signal(0, "a", &"x".repeat(600)),
        world.signal(0, "a", &"y".repeat(600)),
    ];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["evicted", "pending"]);
    let table = world.node(0).snapshot().ack_pending;
    assert_eq!(table.count, 1);
    assert!(table.bytes <= 1000);
}

#[test]
fn an_evicted_ack_waiter_is_not_replayed() {
    let mut world = World::with([quiet("b").queue_max_count(2)]);
    let hand = world.native(0, "a");
    world.signals(0, "a", 1..=3);
    world.run();
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(return_of(&mut world, &hand), ["signal m2", "signal m3"]);
}

#[test]
fn putting_back_evicts_the_oldest_also_one_just_put_back() {
    let mut world = World::with([quiet("b").queue_max_count(4).submit_max_count(4)]);
    let hand = world.native(0, "a");
    let mut tokens = world.signals(0, "a", 1..=4);
    world.run();
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    tokens.extend(world.signals(0, "a", 5..=8));
    world.run();
    tokens.extend(world.signals(0, "a", 9..=10));
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 2);
    hand.hang_up(&mut world);
    world.run();
    let mut expected = vec!["evicted"; 6];
    expected.extend(["pending"; 4]);
    assert_eq!(world.outcomes(0, &tokens), expected);
    assert_eq!(
        return_of(&mut world, &hand),
        ["signal m7", "signal m8", "signal m9", "signal m10"]
    );
}

#[test]
fn putting_back_evicts_notifies_before_others() {
    let mut world = World::with([quiet("b").queue_max_count(2).submit_max_count(4)]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "a");
    world.run();
    hand.ack_all(&mut world, false);
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens: Vec<_> = ["s1", "n1", "s2"]
        .into_iter()
        .map(|label| send(&mut world, "a", label))
        .collect();
    world.run();
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["pending", "evicted", "pending"]
    );
    assert_eq!(
        world.reported(0, MessageReport::BacklogWarning),
        [(0, "notify-evicted")]
    );
}

#[test]
fn putting_back_looks_at_the_whole_table_and_its_head_is_the_oldest() {
    let mut world = World::with([quiet("b").queue_max_count(4)]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    c.hang_up(&mut world);
    world.run();
    let queued = world.signals(0, "c", 1..=3);
    let sent = world.signals(0, "a", 4..=6);
    world.run();
    a.hang_up(&mut world);
    world.run();
    // m4, m5 and m6 went to the head; the two nearest to it go.
    assert_eq!(world.outcomes(0, &sent), ["evicted", "evicted", "pending"]);
    assert_eq!(world.outcomes(0, &queued), ["pending"; 3]);
    assert_eq!(return_of(&mut world, &a), ["signal m6"]);
}

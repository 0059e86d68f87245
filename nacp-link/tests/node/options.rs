//! The options that restore the lifecycle document's letter, each by itself.

use nacp_link::MessageReport;

use crate::support::{ACCEPTOR, Hand, Intake, World, quiet, secs};

/// A node with `dead` offline and its backlog full, and `healthy` online with a subscription.
fn one_dead(count_pass_through: bool) -> (World, Hand, nacp_link::Token) {
    let config = quiet("b")
        .queue_max_count(1)
        .count_pass_through(count_pass_through);
    let mut world = World::with([config]);
    let dead = world.native(0, "dead");
    let healthy = world.native(0, "healthy");
    healthy.ack_all(&mut world, true);
    healthy.subscribe(&mut world, "x");
    world.run();
    dead.hang_up(&mut world);
    world.run();
    let waiting = world.signal(0, "dead", "m1");
    world.run();
    (world, healthy, waiting)
}

#[test]
fn count_pass_through_counts_every_message_in_the_backlog_first_and_refuses_there() {
    let (mut world, _, waiting) = one_dead(true);
    let notify = world.emit(0, "x", "n1")[0];
    world.run();
    assert_eq!(world.outcome(0, notify), "refused");
    assert_eq!(world.outcome(0, waiting), "pending");
    assert_eq!(
        world.reported(0, MessageReport::BacklogWarning),
        [(0, "notify-dropped")]
    );
    let signal = world.signal(0, "healthy", "m2");
    world.run();
    assert_eq!(
        world.outcomes(0, &[waiting, signal]),
        ["evicted", "delivered"]
    );
}

#[test]
fn without_count_pass_through_one_dead_app_harms_no_healthy_one() {
    let (mut world, _, waiting) = one_dead(false);
    let notify = world.emit(0, "x", "n1")[0];
    world.run();
    let signal = world.signal(0, "healthy", "m2");
    world.run();
    assert_eq!(
        world.outcomes(0, &[waiting, notify, signal]),
        ["pending", "delivered", "delivered"]
    );
}

#[test]
fn evict_online_evicts_from_a_full_backlog_instead_of_waiting() {
    let config = quiet("b")
        .queue_max_count(2)
        .submit_max_count(1)
        .evict_online(true);
    let mut world = World::with([config]);
    let hand = world.native(0, "a");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let tokens = world.signals(0, "a", 1..=5);
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["pending", "evicted", "evicted", "pending", "pending"]
    );
    assert_eq!(world.node(0).snapshot().blocked, 0);
    assert_eq!(
        world.reported(0, MessageReport::BacklogWarning),
        [(0, "fifo-evicted"); 2]
    );
}

#[test]
fn defer_limits_off_judges_a_beat_whatever_comes_in() {
    for (defer, expected) in [(false, 2), (true, 1)] {
        let config = nacp_link::Config::new(crate::support::app("b"))
            .heartbeat_interval(Some(secs(60)))
            .defer_limits(defer);
        let mut world = World::with([config]);
        let hand = world.native(0, "a");
        hand.ack_all(&mut world, true);
        let peer = world.wires[hand.wire].peer(ACCEPTOR);
        for second in 31..=90 {
            world.advance_to(secs(second));
            let now = world.now();
            world.node(0).handle_progress(now, peer, 1 << 20);
            world.run();
        }
        assert_eq!(
            world.changes(0, "a").len(),
            expected,
            "defer_limits {defer}"
        );
    }
}

#[test]
fn the_five_departures_have_an_option_each_and_are_on_by_default() {
    // Default: everything that the other tests of this module switch off.
    let (mut world, _, _) = one_dead(false);
    let notify = world.emit(0, "x", "n1")[0];
    world.run();
    assert_eq!(world.outcome(0, notify), "delivered");
    let letter = quiet("b")
        .count_pass_through(true)
        .evict_online(true)
        .defer_limits(false)
        .resume_any_instance(true)
        .poison_limit(0);
    let mut world = World::with([letter.clone(), letter]);
    // Two nodes of the same name never register; two of the letter do with others.
    let hand = world.native(0, "a");
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
}

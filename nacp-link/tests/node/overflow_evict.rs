//! Full tables under the policy `Evict` (specification, section 6).

use nacp_link::{Config, Interest, MessageReport, Token};

use crate::support::{ACCEPTOR, Hand, Intake, World, ms, quiet, secs};

/// A node with these apps offline, each with a subscription for its own name.
fn offline(config: Config, names: &[&str]) -> (World, Vec<Hand>) {
    let mut world = World::with([config]);
    let hands: Vec<_> = names
        .iter()
        .map(|name| {
            let hand = world.native(0, name);
            hand.ack_all(&mut world, true);
            hand.subscribe(&mut world, name);
            world.run();
            hand
        })
        .collect();
    for hand in &hands {
        hand.hang_up(&mut world);
    }
    world.run();
    (world, hands)
}

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

fn backlog(world: &mut World) -> (usize, u64) {
    let table = world.node(0).snapshot().backlog;
    (table.count, table.bytes)
}

#[test]
fn t10_a_cap_of_one_record() {
    let (mut world, hands) = offline(quiet("b").queue_max_count(1), &["a"]);
    world.advance_to(secs(1));
    let tokens: Vec<_> = ["n1", "n2", "s1", "r1", "n3", "s2"]
        .into_iter()
        .map(|label| {
            let token = send(&mut world, "a", label);
            assert!(backlog(&mut world).0 <= 1);
            token
        })
        .collect();
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        [
            "evicted", "refused", "evicted", "evicted", "refused", "pending"
        ]
    );
    for token in &tokens[..5] {
        assert_eq!(world.settled_at(0, *token), Some(secs(1)));
    }
    assert_eq!(return_of(&mut world, &hands[0]), ["signal s2"]);
}

#[test]
fn t10_a_cap_of_three_records_warns_in_order() {
    let (mut world, hands) = offline(quiet("b").queue_max_count(3), &["a"]);
    for label in ["n1", "s1", "n2", "s2", "s3", "s4", "n3"] {
        send(&mut world, "a", label);
        world.run();
        assert!(backlog(&mut world).0 <= 3);
    }
    let warnings: Vec<_> = world
        .reported(0, MessageReport::BacklogWarning)
        .into_iter()
        .map(|(_, reason)| reason)
        .collect();
    assert_eq!(
        warnings,
        [
            "notify-evicted",
            "notify-evicted",
            "fifo-evicted",
            "notify-dropped"
        ]
    );
    assert_eq!(
        return_of(&mut world, &hands[0]),
        ["signal s2", "signal s3", "signal s4"]
    );
}

/// Labels that make a notify and a signal of exactly these encoded bytes.
fn sized(config: &Config, sizes: &[(char, usize)]) -> Vec<String> {
    let (mut world, _) = offline(config.clone(), &["a"]);
    let mut overhead = |kind: char| {
        let before = backlog(&mut world).1;
        send(&mut world, "a", &format!("{kind}{}", "x".repeat(299)));
        usize::try_from(backlog(&mut world).1 - before).unwrap() - 300
    };
    let overheads = [('n', overhead('n')), ('s', overhead('s'))];
    sizes
        .iter()
        .enumerate()
        .map(|(at, (kind, size))| {
            let (_, overhead) = overheads.iter().find(|(known, _)| known == kind).unwrap();
            let text = format!("{kind}{at}");
            format!("{text}{}", "x".repeat(size - overhead - text.len()))
        })
        .collect()
}

#[test]
fn t10_a_cap_of_ten_thousand_bytes() {
    let config = quiet("b").queue_max_bytes(10_000);
    let sizes = [
        ('n', 1000),
        ('n', 1000),
        ('n', 1000),
        ('n', 1000),
        ('s', 5000),
        ('s', 3000),
    ];
    let labels = sized(&config, &sizes);
    let (mut world, _) = offline(config, &["a"]);
    let mut tokens: Vec<_> = labels[..5]
        .iter()
        .map(|label| send(&mut world, "a", label))
        .collect();
    assert_eq!(backlog(&mut world), (5, 9000));
    tokens.push(send(&mut world, "a", &labels[5]));
    world.run();
    assert_eq!(backlog(&mut world), (4, 10_000));
    assert_eq!(
        world.outcomes(0, &tokens),
        [
            "evicted", "evicted", "pending", "pending", "pending", "pending"
        ]
    );
}

#[test]
fn t10_the_caps_are_the_nodes_over_all_apps() {
    let (mut world, hands) = offline(quiet("b").queue_max_count(3), &["a", "c"]);
    let tokens: Vec<_> = [
        ("a", "s1"),
        ("c", "n1"),
        ("c", "s2"),
        ("a", "s3"),
        ("c", "s4"),
    ]
    .into_iter()
    .map(|(to, label)| send(&mut world, to, label))
    .collect();
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["evicted", "evicted", "pending", "pending", "pending"]
    );
    assert_eq!(return_of(&mut world, &hands[0]), ["signal s3"]);
    assert_eq!(return_of(&mut world, &hands[1]), ["signal s2", "signal s4"]);
}

#[test]
fn t10_a_cap_per_link_comes_on_top_and_evicts_only_that_links_records() {
    let config = quiet("b").queue_max_count(10).link_queue_max_count(2);
    let (mut world, hands) = offline(config, &["a", "c"]);
    let tokens: Vec<_> = [
        ("c", "s1"),
        ("a", "s2"),
        ("a", "s3"),
        ("a", "s4"),
        ("c", "s5"),
    ]
    .into_iter()
    .map(|(to, label)| send(&mut world, to, label))
    .collect();
    world.run();
    assert_eq!(
        world.outcomes(0, &tokens),
        ["pending", "evicted", "pending", "pending", "pending"]
    );
    assert_eq!(return_of(&mut world, &hands[0]), ["signal s3", "signal s4"]);
    assert_eq!(return_of(&mut world, &hands[1]), ["signal s1", "signal s5"]);
}

#[test]
fn a_notify_that_would_break_a_links_cap_is_refused() {
    let config = quiet("b").link_queue_max_count(1);
    let (mut world, _) = offline(config, &["a", "c"]);
    send(&mut world, "a", "s1");
    let tokens = [send(&mut world, "a", "n1"), send(&mut world, "c", "n2")];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["refused", "pending"]);
}

#[test]
fn t10_a_flood_leaves_the_newest_in_order_and_settles_all_others() {
    let (mut world, hands) = offline(quiet("b"), &["a"]);
    world.node(0).set_interest(Interest::NONE);
    let count = 1_000_000;
    let tokens = world.signals(0, "a", 1..=count);
    world.run();
    let evicted = tokens
        .iter()
        .filter(|token| world.outcome(0, **token) == "evicted")
        .count();
    assert_eq!(evicted, 998_976);
    assert_eq!(backlog(&mut world).0, 1024);
    let expected: Vec<_> = (count - 1023..=count)
        .map(|number| format!("signal m{number}"))
        .collect();
    assert_eq!(return_of(&mut world, &hands[0]), expected);
}

#[test]
fn t10_a_full_backlog_is_nothing_to_an_app_that_is_online() {
    let (mut world, _) = offline(quiet("b").queue_max_count(3), &["a"]);
    let healthy = world.native(0, "d");
    healthy.ack_all(&mut world, true);
    healthy.subscribe(&mut world, "d");
    world.run();
    let queued: Vec<_> = ["s1", "s2", "s3"]
        .into_iter()
        .map(|label| send(&mut world, "a", label))
        .collect();
    let tokens = [send(&mut world, "d", "n1"), send(&mut world, "d", "s4")];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered", "delivered"]);
    assert_eq!(world.outcomes(0, &queued), ["pending"; 3]);
    assert_eq!(world.reported(0, MessageReport::BacklogWarning), []);
}

#[test]
fn an_evicted_request_settles_its_response_waiter_too() {
    let (mut world, _) = offline(quiet("b").queue_max_count(1), &["a"]);
    let request = send(&mut world, "a", "r1");
    send(&mut world, "a", "s1");
    world.run();
    assert_eq!(world.outcome(0, request), "evicted");
    assert_eq!(world.node(0).snapshot().calls, 0);
}

#[test]
fn a_single_record_larger_than_the_cap_is_kept_when_it_is_alone() {
    let (mut world, hands) = offline(quiet("b").queue_max_bytes(1000), &["a"]);
    let small = send(&mut world, "a", "s1");
    let large = format!("s2{}", "x".repeat(5000));
    let token = send(&mut world, "a", &large);
    world.run();
    assert_eq!(world.outcomes(0, &[small, token]), ["evicted", "pending"]);
    assert_eq!(backlog(&mut world).0, 1);
    let next = send(&mut world, "a", "s3");
    world.run();
    assert_eq!(world.outcomes(0, &[token, next]), ["evicted", "pending"]);
    assert_eq!(return_of(&mut world, &hands[0]), ["signal s3"]);
}

#[test]
fn a_notify_larger_than_the_cap_is_refused_unless_it_passes_through() {
    let (mut world, _) = offline(quiet("b").queue_max_bytes(1000), &["a"]);
    let online = world.native(0, "d");
    online.ack_all(&mut world, true);
    online.subscribe(&mut world, "d");
    world.run();
    let large = format!("n{}", "x".repeat(5000));
    let tokens = [send(&mut world, "a", &large), send(&mut world, "d", &large)];
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["refused", "delivered"]);
}

#[test]
fn t08_the_books_are_at_zero_after_every_cycle() {
    let config = quiet("b")
        .queue_max_count(10)
        .queue_max_bytes(10 * 1024)
        .submit_max_count(4);
    let overhead = {
        let (mut world, _) = offline(config.clone(), &["a"]);
        send(&mut world, "a", &"x".repeat(300));
        usize::try_from(backlog(&mut world).1).unwrap() - 300
    };
    let label = "x".repeat(1024 - overhead);
    let mut world = World::with([config]);
    world.node(0).set_interest(Interest::NONE);
    let mut hand = world.native(0, "a");
    for cycle in 0..1000 {
        hand.ack_all(&mut world, false);
        world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
        let tokens: Vec<_> = (0..5).map(|_| world.signal(0, "a", &label)).collect();
        world.run();
        // Some are accepted, some submitted, one waits.
        world.accept(hand.wire, ACCEPTOR, cycle % 5);
        world.run();
        let node = world.node(0).snapshot();
        let link = world.sites[0].node.links().next().unwrap();
        assert_eq!(
            (link.backlog, link.submitted, link.ack_pending),
            (node.backlog, node.submitted, node.ack_pending)
        );
        hand.hang_up(&mut world);
        world.run();
        assert_eq!(backlog(&mut world), (5, 5 * 1024));
        let mut back = world.hand(0, "a");
        back.holds = vec![hand.session(&world)];
        back.ack_all(&mut world, true);
        back.register(&mut world);
        world.advance(ms(1));
        assert_eq!(
            world.outcomes(0, &tokens),
            ["delivered"; 5],
            "cycle {cycle}"
        );
        world.assert_at_rest(0);
        hand = back;
        world.sites[0].settled.clear();
    }
    hand.hang_up(&mut world);
    world.run();
    let tokens: Vec<_> = (0..11).map(|_| world.signal(0, "a", &label)).collect();
    world.run();
    assert_eq!(backlog(&mut world), (10, 10_240));
    let mut expected = vec!["pending"; 11];
    expected[0] = "evicted";
    assert_eq!(world.outcomes(0, &tokens), expected);
}

#[test]
fn the_two_tables_are_capped_separately() {
    let (mut world, _) = offline(quiet("b").queue_max_count(3), &["a"]);
    world.native(0, "d");
    let queued: Vec<_> = ["s1", "s2", "s3"]
        .into_iter()
        .map(|label| send(&mut world, "a", label))
        .collect();
    let pending = world.signals(0, "d", 1..=3);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.backlog.count, snapshot.ack_pending.count), (3, 3));
    assert_eq!(world.outcomes(0, &queued), ["pending"; 3]);
    assert_eq!(world.outcomes(0, &pending), ["pending"; 3]);
}

#[test]
fn the_default_caps_are_1024_records_in_each_table() {
    let (mut world, _) = offline(quiet("b"), &["a"]);
    world.native(0, "d");
    let queued = world.signals(0, "a", 1..=1025);
    let pending = world.signals(0, "d", 1..=1025);
    world.run();
    let snapshot = world.node(0).snapshot();
    assert_eq!(
        (snapshot.backlog.count, snapshot.ack_pending.count),
        (1024, 1024)
    );
    for tokens in [queued, pending] {
        assert_eq!(world.outcomes(0, &tokens[..2]), ["evicted", "pending"]);
    }
}

#[test]
fn both_warnings_can_be_observed() {
    let (mut world, _) = offline(quiet("b").queue_max_count(1), &["a"]);
    world.native(0, "d");
    send(&mut world, "a", "s1");
    send(&mut world, "a", "s2");
    world.signals(0, "d", 1..=2);
    world.run();
    assert_eq!(
        MessageReport::BacklogWarning.as_str(),
        "nacp:internal:backlog:warning"
    );
    assert_eq!(
        MessageReport::AckWarning.as_str(),
        "nacp:internal:ack:warning"
    );
    assert_eq!(
        world.reported_of(0, MessageReport::BacklogWarning),
        ["fifo-evicted signal"]
    );
    assert_eq!(
        world.reported_of(0, MessageReport::AckWarning),
        ["pending-overflow m1"]
    );
}

#[test]
fn a_good_bye_that_is_cut_short_evicts_nothing_of_another_app() {
    for ends_itself in [false, true] {
        let config = quiet("b").queue_max_count(4).submit_max_count(4);
        let (mut world, _) = offline(config, &["c"]);
        let kept: Vec<_> = ["n1", "n2", "s3", "s4"]
            .into_iter()
            .map(|label| send(&mut world, "c", label))
            .collect();
        let hand = world.native(0, "a");
        let mut going = world.signals(0, "a", 1..=4);
        world.run();
        world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
        going.extend(world.signals(0, "a", 5..=12));
        world.run();
        assert_eq!(world.node(0).snapshot().blocked, 4);
        if ends_itself {
            hand.say(&mut world, nacp_proto::Body::Unregister);
        } else {
            world.disconnect(0, "a");
        }
        world.run();
        hand.hang_up(&mut world);
        world.run();
        assert_eq!(
            world.outcomes(0, &going),
            ["peer-gone"; 12],
            "{ends_itself}"
        );
        assert_eq!(world.outcomes(0, &kept), ["pending"; 4], "{ends_itself}");
    }
}

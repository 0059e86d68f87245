//! Zero, one, the largest number, and never (specification, section 4.6).

use std::time::Duration;

use nacp_link::{Config, ConfigError, Node};

use crate::support::{World, app, quiet, secs};

#[test]
fn duration_max_is_never() {
    let config = quiet("b")
        .ack_timeout(Duration::MAX)
        .reconnect_grace(Duration::MAX)
        .heartbeat_interval(Some(Duration::MAX))
        .response_timeout(Duration::MAX)
        .handshake_timeout(Duration::MAX)
        .takeover_probe(Duration::MAX)
        .terminate_timeout(Duration::MAX);
    let mut world = World::with([config]);
    world.hand(0, "stranger");
    let hand = world.native(0, "a");
    let tokens = [world.signal(0, "a", "m1"), world.subscribe(0, "a", "x").0];
    world.run();
    world.hand(0, "a").register(&mut world);
    world.advance_to(secs(10_000_000));
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 2]);
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    hand.hang_up(&mut world);
    world.run();
    let (_, dial) = world.dialled_by(0, "z");
    world.advance_to(secs(20_000_000));
    assert_eq!(world.outcome(0, dial), "pending");
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn t09_a_zero_that_makes_no_sense_is_refused_by_name() {
    type Edit = fn(Config) -> Config;
    let zeros: [(&str, Edit); 17] = [
        ("ack_timeout", |config| config.ack_timeout(Duration::ZERO)),
        ("reconnect_grace", |config| {
            config.reconnect_grace(Duration::ZERO)
        }),
        ("heartbeat_interval", |config| {
            config.heartbeat_interval(Some(Duration::ZERO))
        }),
        ("response_timeout", |config| {
            config.response_timeout(Duration::ZERO)
        }),
        ("handshake_timeout", |config| {
            config.handshake_timeout(Duration::ZERO)
        }),
        ("queue_max_count", |config| config.queue_max_count(0)),
        ("queue_max_bytes", |config| config.queue_max_bytes(0)),
        ("link_queue_max_count", |config| {
            config.link_queue_max_count(0)
        }),
        ("link_queue_max_bytes", |config| {
            config.link_queue_max_bytes(0)
        }),
        ("submit_max_count", |config| config.submit_max_count(0)),
        ("submit_max_bytes", |config| config.submit_max_bytes(0)),
        ("dedup_window", |config| config.dedup_window(0)),
        ("max_message_bytes", |config| config.max_message_bytes(0)),
        ("max_peers", |config| config.max_peers(0)),
        ("max_unregistered_peers", |config| {
            config.max_unregistered_peers(0)
        }),
        ("max_links", |config| config.max_links(0)),
        ("max_running", |config| config.max_running(0)),
    ];
    for (option, edit) in zeros {
        let world = World::new();
        let built = Node::new(edit(quiet("b")), world.now(), 0.0, [0; 32]);
        assert_eq!(built.err(), Some(ConfigError::Zero { option }));
    }
}

#[test]
fn t09_caps_of_one_work() {
    let one = |name| {
        quiet(name)
            .queue_max_count(1)
            .submit_max_count(1)
            .dedup_window(1)
            .max_peers(1)
            .max_unregistered_peers(1)
            .max_links(1)
            .max_running(1)
            .max_subscriptions(1)
    };
    let mut world = World::with([one("a"), one("b")]);
    world.link(0, 1);
    for number in 0..10 {
        let token = world.request(0, "b", &format!("r{number}"));
        world.run();
        world.answer(1, &format!("r{number}"));
        world.run();
        assert_eq!(world.outcome(0, token), format!("ok r{number}"));
    }
    world.assert_at_rest(0);
    world.assert_at_rest(1);
}

#[test]
fn t09_the_largest_numbers_are_no_limit() {
    let vast = |name| {
        Config::new(app(name))
            .queue_max_count(usize::MAX)
            .queue_max_bytes(u64::MAX)
            .submit_max_count(usize::MAX)
            .submit_max_bytes(u64::MAX)
            .dedup_window(usize::MAX)
            .max_message_bytes(u64::MAX)
            .max_peers(usize::MAX)
            .max_unregistered_peers(usize::MAX)
            .max_links(usize::MAX)
            .max_running(usize::MAX)
            .max_subscriptions(usize::MAX)
            .max_pattern_bytes(usize::MAX)
            .max_decl_bytes(usize::MAX)
            .poison_limit(u32::MAX)
    };
    let mut world = World::with([vast("a"), vast("b")]);
    let wire = world.link(0, 1);
    world.cut(wire);
    world.run();
    let tokens = world.signals(0, "b", 1..=3000);
    world.link(0, 1);
    assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; 3000]);
}

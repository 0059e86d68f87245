//! Repeats (specification, sections 6 and 8).

use nacp_link::{ConfigError, Node};
use nacp_proto::{Body, Signal};

use crate::support::{ACCEPTOR, Hand, World, app, id, payload, quiet};

fn say(world: &mut World, hand: &Hand, from: &str, message: &str, label: &str) {
    let signal = Signal::Normal(payload(label));
    let parent_id = id("run");
    let node = hand.node.clone();
    hand.say_as(
        world,
        id(message),
        &app(from),
        &node,
        Body::Signal { parent_id, signal },
    );
    world.run();
}

fn gateway(world: &mut World) -> Hand {
    let mut hand = world.hand(0, "g");
    hand.is_gateway = true;
    hand.register(world);
    world.run();
    hand.ack_last_response(world);
    world.run();
    hand
}

#[test]
fn t12_a_repeat_is_acked_again_and_not_handled_again() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let mark = world.mark();
    for _ in 0..1000 {
        say(&mut world, &hand, "a", "one", "m1");
    }
    assert_eq!(hand.heard_since(&world, mark), vec!["ack m1"; 1000]);
    assert_eq!(world.handled(0), ["m1"]);
}

#[test]
fn t17_known_ids_survive_the_connection() {
    let mut world = World::with([quiet("a").poison_limit(0), quiet("b")]);
    let mut wire = world.link(0, 1);
    world.hold(wire, ACCEPTOR);
    let mut tokens = world.signals(0, "b", 1..=512);
    let requests: Vec<_> = (1..=512)
        .map(|number| world.request(0, "b", &format!("r{number}")))
        .collect();
    world.run();
    assert_eq!(world.handled(1).len(), 1024);
    for _ in 0..5 {
        world.cut(wire);
        world.run();
        wire = world.dial(0, 1).0;
        world.hold(wire, ACCEPTOR);
        world.run();
        world.release_some(wire, ACCEPTOR, 2);
        world.run();
        let acks = world.said(wire, ACCEPTOR);
        assert_eq!(
            acks.iter().filter(|line| line.starts_with("ack m")).count(),
            512
        );
        assert_eq!(
            acks.iter().filter(|line| line.starts_with("ack r")).count(),
            513
        );
    }
    world.release(wire, ACCEPTOR);
    world.run();
    assert_eq!(world.handled(1).len(), 1024);
    for number in 1..=512 {
        world.answer(1, &format!("r{number}"));
    }
    world.run();
    assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; 512]);
    for (number, token) in (1..).zip(&requests) {
        assert_eq!(world.outcome(0, *token), format!("ok r{number}"));
    }
    tokens.clear();
    world.assert_at_rest(0);
    world.assert_at_rest(1);
}

#[test]
fn t17_new_messages_between_two_replays_do_not_push_the_repeatable_ones_out() {
    let mut world = World::with([quiet("b")]);
    let first = world.native(0, "a");
    for number in 0..1024 {
        say(&mut world, &first, "a", &format!("old-{number}"), "old");
    }
    first.hang_up(&mut world);
    world.run();
    let mut second = world.hand(0, "a");
    second.holds = vec![first.session(&world)];
    second.register(&mut world);
    world.run();
    for number in 0..500 {
        say(&mut world, &second, "a", &format!("new-{number}"), "new");
    }
    for number in 0..1024 {
        say(&mut world, &second, "a", &format!("old-{number}"), "old");
    }
    assert_eq!(world.handled(0).len(), 1524);
}

#[test]
fn t17_a_window_smaller_than_what_a_peer_can_replay_is_refused_when_built() {
    let world = World::new();
    let config = quiet("b").dedup_window(10).queue_max_count(1000);
    let built = Node::new(config, world.now(), 0.0, [0; 32]);
    assert_eq!(
        built.err(),
        Some(ConfigError::DedupWindow {
            window: 10,
            queue_max_count: 1000
        })
    );
}

#[test]
fn the_window_holds_its_last_ids_and_forgets_older_ones() {
    let mut world = World::with([quiet("b").queue_max_count(2).dedup_window(3)]);
    let hand = world.native(0, "a");
    for message in ["1", "2", "3", "1", "4", "2", "1"] {
        say(&mut world, &hand, "a", message, message);
    }
    // After 1 2 3 4 the window is 2 3 4: 2 is a repeat, 1 is forgotten.
    assert_eq!(world.handled(0), ["1", "2", "3", "4", "1"]);
}

#[test]
fn the_default_window_is_four_times_the_count_of_a_queue() {
    let mut world = World::with([quiet("b").queue_max_count(5)]);
    let hand = world.native(0, "a");
    for number in 1..=20 {
        say(&mut world, &hand, "a", &number.to_string(), "m");
    }
    say(&mut world, &hand, "a", "1", "m");
    assert_eq!(world.handled(0).len(), 20);
    say(&mut world, &hand, "a", "21", "m");
    say(&mut world, &hand, "a", "1", "m");
    assert_eq!(world.handled(0).len(), 22);
}

#[test]
fn t17_two_apps_may_use_one_id() {
    let mut world = World::with([quiet("b")]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    say(&mut world, &a, "a", "1", "of a");
    say(&mut world, &c, "c", "1", "of c");
    assert_eq!(world.handled(0), ["of a", "of c"]);
}

#[test]
fn t17_two_apps_behind_one_gateway_may_use_one_id() {
    let mut world = World::with([quiet("b")]);
    let hand = gateway(&mut world);
    say(&mut world, &hand, "a", "1", "of a");
    say(&mut world, &hand, "c", "1", "of c");
    say(&mut world, &hand, "a", "1", "of a");
    assert_eq!(world.handled(0), ["of a", "of c"]);
}

#[test]
fn t17_windows_of_sources_behind_gateways_are_1024_and_the_least_recently_heard_goes() {
    let mut world = World::with([quiet("b")]);
    let hand = gateway(&mut world);
    for source in 0..1024 {
        say(&mut world, &hand, &format!("s{source}"), "1", "m");
    }
    // s0 is heard again and so outlives s1.
    say(&mut world, &hand, "s0", "1", "m");
    say(&mut world, &hand, "s1024", "1", "m");
    assert_eq!(world.handled(0).len(), 1025);
    say(&mut world, &hand, "s0", "1", "m");
    assert_eq!(world.handled(0).len(), 1025);
    say(&mut world, &hand, "s1", "1", "m");
    assert_eq!(world.handled(0).len(), 1026);
}

#[test]
fn notifies_are_not_deduplicated() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    world.subscribe(0, "a", "x");
    world.run();
    hand.respond(&mut world, "subscribe x", "fine");
    let parent_id = hand.last_id(&world, "subscribe x");
    for _ in 0..3 {
        hand.say_with(
            &mut world,
            id("same"),
            Body::Notify {
                parent_id: parent_id.clone(),
                target_sub_name: "x".into(),
                hit_sub_name: "x".into(),
                payload: payload("n"),
                seq: None,
            },
        );
    }
    world.run();
    assert_eq!(world.sites[0].hits.len(), 3);
}

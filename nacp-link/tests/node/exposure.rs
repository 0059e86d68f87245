//! What a remote app may listen to (specification, sections 8 and 10).

use nacp_link::MessageReport;

use crate::support::{Hand, World, quiet};

fn start(exposed: bool) -> (World, Hand) {
    let mut world = World::with([quiet("b").expose_internal_events(exposed)]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    (world, hand)
}

/// The answer to a subscribe for this pattern.
fn subscribe(exposed: bool, pattern: &str) -> String {
    let (mut world, hand) = start(exposed);
    hand.subscribe(&mut world, pattern);
    world.run();
    let line = hand.heard(&world).last().copied().unwrap_or_default();
    let prefix = format!("answer subscribe {pattern}");
    let rest = line.strip_prefix(&prefix);
    rest.unwrap_or_else(|| panic!("no answer: {line}"))
        .to_owned()
}

/// Whether an event of this name goes out to a subscriber of this pattern.
fn forwarded(exposed: bool, pattern: &str, name: &str) -> bool {
    let (mut world, hand) = start(exposed);
    hand.subscribe(&mut world, pattern);
    world.run();
    let (subscription, _) = world.sites[0].listeners[0].clone();
    world.notify(0, subscription, name, "n1");
    world.run();
    hand.heard(&world).contains(&"notify n1")
}

const SELF_EXCITING: [&str; 2] = ["nacp:inbound:notify", "nacp:outbound:notify"];

const HIDDEN: [&str; 8] = [
    "nacp:inbound:request",
    "nacp:outbound:ack",
    "nacp:internal:napp:success",
    "nacp:internal:*:error",
    "nacp:inbound:*",
    "nact:peer:connect",
    "nact:*:*",
    "napp:internal:notify:warning",
];

#[test]
fn t29_a_pattern_that_is_the_nodes_own_notifies_is_self_exciting() {
    for exposed in [false, true] {
        for pattern in SELF_EXCITING {
            assert_eq!(subscribe(exposed, pattern), ": self-exciting");
        }
    }
}

#[test]
fn a_self_exciting_subscribe_is_reported() {
    let (mut world, hand) = start(false);
    hand.subscribe(&mut world, "nacp:outbound:notify");
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::SubscribeError),
        [(0, "self-exciting")]
    );
    assert_eq!(world.node(0).snapshot().subscriptions, 0);
}

#[test]
fn a_pattern_that_can_match_only_hidden_events_is_not_exposed() {
    for pattern in HIDDEN {
        assert_eq!(subscribe(false, pattern), ": not-exposed", "{pattern}");
    }
}

#[test]
fn a_subscribe_that_is_not_exposed_is_reported() {
    let (mut world, hand) = start(false);
    hand.subscribe(&mut world, "nact:peer:connect");
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::SubscribeError),
        [(0, "not-exposed")]
    );
}

#[test]
fn with_expose_internal_events_hidden_events_may_be_listened_to() {
    for pattern in HIDDEN {
        assert_eq!(subscribe(true, pattern), "", "{pattern}");
    }
    assert!(forwarded(
        true,
        "nacp:inbound:request",
        "nacp:inbound:request"
    ));
    assert!(forwarded(true, "nact:*:*", "nact:peer:connect"));
}

#[test]
fn t29_wildcards_that_reach_hidden_names_are_accepted_and_those_events_are_not_forwarded() {
    for (pattern, hidden, open) in [
        ("nacp:*:notify", "nacp:outbound:notify", "nacp:x:notify"),
        ("nacp:*:notify", "nacp:inbound:notify", "nacp:x:notify"),
        ("*:outbound:*", "nacp:outbound:ack", "x:outbound:y"),
        ("*:*:*", "nacp:inbound:request", "x:y:z"),
        ("*:*:*", "nact:peer:connect", "x:y:z"),
        (
            "*:internal:*:*",
            "nacp:internal:napp:success",
            "x:internal:y:z",
        ),
        (
            "*:internal:*:*",
            "napp:internal:notify:warning",
            "x:internal:y:z",
        ),
    ] {
        assert_eq!(subscribe(false, pattern), "", "{pattern}");
        assert!(!forwarded(false, pattern, hidden), "{pattern} {hidden}");
        assert!(forwarded(false, pattern, open), "{pattern} {open}");
    }
}

#[test]
fn t29_a_notify_about_a_notify_is_never_forwarded() {
    for pattern in ["nacp:*:notify", "*:*:*", "*:outbound:*", "*:inbound:*"] {
        for name in SELF_EXCITING {
            assert!(!forwarded(true, pattern, name), "{pattern} {name}");
        }
    }
}

#[test]
fn events_and_abilities_are_forwarded_only_to_a_pattern_that_spells_out_the_id() {
    for name in [
        "nacp:event:q1:process",
        "nacp:event:q1:response",
        "nacp:ability:q1:response",
    ] {
        assert_eq!(subscribe(false, name), "", "{name}");
        assert!(forwarded(false, name, name));
    }
    assert!(forwarded(false, "nacp:event:q1:*", "nacp:event:q1:signal"));
    for pattern in [
        "nacp:event:*:process",
        "nacp:ability:*:response",
        "nacp:event:*:*",
    ] {
        assert_eq!(subscribe(false, pattern), ": not-exposed", "{pattern}");
    }
    for pattern in ["nacp:*:*:process", "*:*:*:*", "*:event:*:process"] {
        assert_eq!(subscribe(false, pattern), "", "{pattern}");
        assert!(
            !forwarded(false, pattern, "nacp:event:q1:process"),
            "{pattern}"
        );
    }
}

#[test]
fn t29_two_nodes_that_listen_to_each_others_traffic_fall_silent() {
    let mut world = World::with([
        quiet("a").expose_internal_events(true),
        quiet("b").expose_internal_events(true),
    ]);
    world.link(0, 1);
    for pattern in ["nacp:inbound:*", "nacp:*:notify", "*:*:*"] {
        world.subscribe(0, "b", pattern);
        world.subscribe(1, "a", pattern);
    }
    world.run();
    // The bus of each node reports its notifies to whoever listens, as a driver does.
    let mut sent = 0;
    for _ in 0..20 {
        for site in [0, 1] {
            for name in ["nacp:inbound:notify", "nacp:outbound:notify"] {
                world.emit(site, name, "about a notify");
            }
        }
        world.run();
        let now = world
            .log
            .iter()
            .filter(|crossing| crossing.line.starts_with("notify"))
            .count();
        assert_eq!(now, sent);
        sent = now;
    }
}

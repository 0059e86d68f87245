//! Subscriptions in both directions (specification, section 8).

use nacp_link::{Event, MessageReport};
use nacp_proto::{Body, MessageId};
use serde_json::json;

use crate::support::{ACCEPTOR, DIALLER, Hand, World, app, id, payload, quiet};

fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    (world, hand)
}

fn hits(world: &World, site: usize) -> Vec<&str> {
    world.sites[site]
        .hits
        .iter()
        .map(|(_, label)| label.as_str())
        .collect()
}

fn unsubscribe(world: &mut World, hand: &Hand, of: &MessageId) {
    hand.say(
        world,
        Body::Unsubscribe {
            target_sub_id: of.clone(),
        },
    );
    world.run();
}

#[test]
fn a_subscribe_is_answered_with_its_own_id() {
    let (mut world, hand) = start();
    let subscription = hand.subscribe(&mut world, "x:*");
    world.run();
    let Body::Response(response) = &hand.last(&world, "answer subscribe x:*").body else {
        panic!("not a response");
    };
    let answered: serde_json::Value = response.payload.decode().unwrap();
    assert_eq!(answered, json!({"targetSubId": subscription.to_string()}));
    assert_eq!(response.kind, None);
    let told: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Subscribed { app, pattern, .. } => Some((app.clone(), pattern.to_string())),
            _ => None,
        })
        .collect();
    assert_eq!(told, [(app("a"), "x:*".to_owned())]);
}

#[test]
fn a_hit_is_a_notify_with_subscription_pattern_name_and_seq() {
    let (mut world, hand) = start();
    let subscription = hand.subscribe(&mut world, "x:*");
    world.run();
    for (name, label) in [("x:1", "n1"), ("x:2", "n2")] {
        world.emit(0, name, label);
    }
    world.run();
    for (line, name, seq) in [("notify n1", "x:1", 0), ("notify n2", "x:2", 1)] {
        assert_eq!(
            hand.last(&world, line).body,
            Body::Notify {
                parent_id: subscription.clone(),
                target_sub_name: "x:*".into(),
                hit_sub_name: name.into(),
                payload: payload(&line[7..]),
                seq: Some(seq),
            }
        );
    }
}

#[test]
fn t20_two_subscriptions_for_one_name_are_two() {
    let mut world = World::with([quiet("a"), quiet("b"), quiet("c")]);
    world.link(0, 1);
    world.link(2, 1);
    let streams: Vec<_> = ["x:*", "x:*", "x:y"]
        .into_iter()
        .map(|pattern| world.subscribe(0, "b", pattern).1.unwrap())
        .collect();
    world.subscribe(2, "b", "x:*");
    world.run();
    world.emit(1, "x:y", "1");
    world.run();
    assert_eq!(hits(&world, 0), ["1", "1", "1"]);
    assert_eq!(hits(&world, 2), ["1"]);
    world.unsubscribe(0, streams[0]);
    world.run();
    world.emit(1, "x:y", "2");
    world.run();
    let second: Vec<_> = world.sites[0].hits[3..].to_vec();
    assert_eq!(
        second,
        [(streams[1], "2".to_owned()), (streams[2], "2".to_owned())]
    );
    assert_eq!(hits(&world, 2), ["1", "2"]);
    world.unsubscribe(0, streams[1]);
    world.unsubscribe(0, streams[2]);
    world.emit(1, "x:y", "under way");
    world.run();
    assert_eq!(hits(&world, 0).len(), 5);
    assert_eq!(
        world
            .reported(0, MessageReport::NotifyError)
            .iter()
            .map(|(_, reason)| *reason)
            .collect::<Vec<_>>(),
        ["has-no-consumer", "has-no-consumer"]
    );
    let (_, again) = world.subscribe(0, "b", "x:*");
    world.run();
    world.emit(1, "x:y", "3");
    world.run();
    assert_eq!(
        world.sites[0].hits.last(),
        Some(&(again.unwrap(), "3".to_owned()))
    );
    assert_eq!(hits(&world, 0).len(), 6);
}

#[test]
fn t20_an_unsubscribe_of_an_unknown_or_another_apps_id_is_unknown_subscription() {
    let mut world = World::with([quiet("b")]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    for hand in [&a, &c] {
        hand.ack_all(&mut world, true);
    }
    let subscription = a.subscribe(&mut world, "x");
    world.run();
    unsubscribe(&mut world, &c, &subscription);
    unsubscribe(&mut world, &a, &id("never"));
    assert_eq!(
        c.heard(&world).last(),
        Some(&"answer unsubscribe x: unknown-subscription")
    );
    assert_eq!(
        a.heard(&world).last(),
        Some(&"answer un?never: unknown-subscription")
    );
    assert_eq!(
        world.reported(0, MessageReport::SubscribeError),
        [(0, "unknown-subscription"); 2]
    );
    assert_eq!(world.node(0).snapshot().subscriptions, 1);
    unsubscribe(&mut world, &a, &subscription);
    assert_eq!(a.heard(&world).last(), Some(&"answer unsubscribe x"));
    unsubscribe(&mut world, &a, &subscription);
    assert_eq!(
        a.heard(&world).last(),
        Some(&"answer unsubscribe x: unknown-subscription")
    );
    assert_eq!(world.node(0).snapshot().subscriptions, 0);
}

#[test]
fn t05_a_subscription_whose_id_is_a_star_is_one_subscription() {
    let (mut world, hand) = start();
    let other = hand.subscribe(&mut world, "y");
    hand.say_with(
        &mut world,
        id("*"),
        Body::Subscribe {
            target_sub_name: "x".into(),
        },
    );
    world.run();
    unsubscribe(&mut world, &hand, &id("*"));
    assert_eq!(world.node(0).snapshot().subscriptions, 1);
    world.emit(0, "y", "n1");
    world.run();
    let Body::Notify { parent_id, .. } = &hand.last(&world, "notify n1").body else {
        panic!("not a notify");
    };
    assert_eq!(*parent_id, other);
}

#[test]
fn a_subscribe_without_a_usable_name_is_bad_target_sub_name() {
    for payload in [
        json!({}),
        json!({"targetSubName": ""}),
        json!({"targetSubName": 7}),
        json!(null),
    ] {
        let (mut world, hand) = start();
        let mark = world.mark();
        hand.say_json(
            &mut world,
            json!({"type": "subscribe", "payload": payload, "meta": {}}),
        );
        world.run();
        assert_eq!(
            hand.heard_since(&world, mark),
            ["ack subscribe", "answer subscribe: bad-target-sub-name"],
            "{payload}"
        );
        assert!(hand.is_open(&world));
    }
}

#[test]
fn a_subscribe_over_the_limit_of_its_link_is_limit_reached() {
    let mut world = World::with([quiet("b").max_subscriptions(2)]);
    let (a, c) = (world.native(0, "a"), world.native(0, "c"));
    for hand in [&a, &c] {
        hand.ack_all(&mut world, true);
    }
    let first = a.subscribe(&mut world, "x1");
    a.subscribe(&mut world, "x2");
    a.subscribe(&mut world, "x3");
    c.subscribe(&mut world, "x1");
    world.run();
    assert_eq!(
        a.heard(&world).last(),
        Some(&"answer subscribe x3: limit-reached")
    );
    assert_eq!(c.heard(&world).last(), Some(&"answer subscribe x1"));
    unsubscribe(&mut world, &a, &first);
    a.subscribe(&mut world, "x4");
    world.run();
    assert!(a.heard(&world).contains(&"answer subscribe x4"));
}

#[test]
fn a_pattern_over_its_limit_is_limit_reached() {
    let (mut world, hand) = start();
    let (fits, does_not) = ("x".repeat(1024), "y".repeat(1025));
    hand.subscribe(&mut world, &fits);
    hand.subscribe(&mut world, &does_not);
    world.run();
    assert!(
        hand.heard(&world)
            .contains(&format!("answer subscribe {fits}").as_str())
    );
    assert!(
        hand.heard(&world)
            .contains(&format!("answer subscribe {does_not}: limit-reached").as_str())
    );
}

#[test]
fn an_ended_subscription_gets_no_notify() {
    let (mut world, hand) = start();
    hand.subscribe(&mut world, "x");
    world.run();
    let (subscription, _) = world.sites[0].listeners[0].clone();
    let target = match &hand.last(&world, "answer subscribe x").body {
        Body::Response(response) => response.parent_id.clone(),
        other => panic!("not a response: {other:?}"),
    };
    unsubscribe(&mut world, &hand, &target);
    let mark = world.mark();
    world.notify(0, subscription, "x", "late");
    world.run();
    assert_eq!(hand.heard_since(&world, mark), Vec::<&str>::new());
}

#[test]
fn notifies_are_given_by_id_and_never_by_name() {
    let (mut world, hand) = start();
    let (_, stream) = world.subscribe(0, "a", "x");
    world.run();
    hand.respond(&mut world, "subscribe x", "fine");
    let subscription = hand.last_id(&world, "subscribe x");
    for (parent_id, target, label) in [
        (subscription, "quite another", "by id"),
        (id("unknown"), "x", "by name"),
    ] {
        hand.say(
            &mut world,
            Body::Notify {
                parent_id,
                target_sub_name: target.into(),
                hit_sub_name: target.into(),
                payload: payload(label),
                seq: None,
            },
        );
    }
    world.run();
    assert_eq!(world.sites[0].hits, [(stream.unwrap(), "by id".to_owned())]);
    assert_eq!(
        world.reported_of(0, MessageReport::NotifyError),
        ["has-no-consumer by name"]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn a_stream_reader_is_told_how_many_hits_it_missed() {
    let mut world = World::with([quiet("a"), quiet("b").queue_max_count(2)]);
    let wire = world.link(0, 1);
    world.subscribe(0, "b", "x");
    world.run();
    world.emit(1, "x", "n0");
    world.run();
    world.cut(wire);
    world.run();
    // Two fit, three are refused.
    for number in 1..=5 {
        world.emit(1, "x", &format!("n{number}"));
    }
    world.link(0, 1);
    world.emit(1, "x", "n6");
    world.run();
    let missed: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Notified {
                payload, missed, ..
            } => Some((crate::support::text_of(payload), *missed)),
            _ => None,
        })
        .collect();
    let expected = [("n0", 0), ("n1", 0), ("n2", 0), ("n6", 3)]
        .map(|(label, missed)| (label.to_owned(), Some(missed)));
    assert_eq!(missed, expected);
}

#[test]
fn an_unsubscribe_of_ours_ends_the_hits_at_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let (_, stream) = world.subscribe(0, "b", "x");
    world.run();
    world.hold(wire, ACCEPTOR);
    world.emit(1, "x", "n1");
    world.run();
    let token = world.unsubscribe(0, stream.unwrap());
    world.release(wire, ACCEPTOR);
    world.run();
    assert_eq!(hits(&world, 0), Vec::<&str>::new());
    assert!(world.outcome(0, token).starts_with("ok"));
    assert_eq!(world.node(1).snapshot().subscriptions, 0);
    assert_eq!(world.node(0).snapshot().streams, 0);
    assert_eq!(
        world.said(wire, DIALLER).last(),
        Some(&"ack answer unsubscribe x")
    );
}

#[test]
fn a_refused_subscribe_leaves_no_stream() {
    let mut world = World::with([quiet("a"), quiet("b").max_subscriptions(1)]);
    world.link(0, 1);
    let tokens = [
        world.subscribe(0, "b", "x").0,
        world.subscribe(0, "b", "y").0,
    ];
    world.run();
    assert!(world.outcome(0, tokens[0]).starts_with("ok"));
    assert_eq!(world.outcome(0, tokens[1]), "not ok: limit-reached");
    assert_eq!(world.node(0).snapshot().streams, 1);
}

#[test]
fn unsubscribing_what_is_no_more_is_delivered_and_sends_nothing() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    let (_, stream) = world.subscribe(0, "b", "x");
    world.run();
    world.unsubscribe(0, stream.unwrap());
    world.run();
    let mark = world.mark();
    let token = world.unsubscribe(0, stream.unwrap());
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.said_since(mark, wire, DIALLER), Vec::<&str>::new());
}

//! Towards a peer of the reference implementation (specification, section 11).

use nacp_link::{Event, LinkState, MessageReport};
use nacp_proto::{Body, MessageId, Response};

use crate::support::{Hand, World, app, payload, quiet, secs};

/// The pattern of the last sentinel that the node has subscribed.
fn sentinel(world: &World, hand: &Hand) -> Option<(String, MessageId)> {
    world
        .crossings_since(0, hand.wire, 1 - hand.end)
        .filter_map(|crossing| match &crossing.message().body {
            Body::Subscribe { target_sub_name } => {
                Some((target_sub_name.to_string(), crossing.message().id.clone()))
            }
            _ => None,
        })
        .last()
}

fn answer(world: &mut World, hand: &Hand, parent_id: MessageId, why: Option<&str>) {
    let response = match why {
        None => Response::ok(parent_id, payload("fine")),
        Some(why) => Response::not_ok(parent_id, why),
    };
    hand.say(world, Body::Response(response));
    world.run();
}

/// A foreign `a` whose sentinel stands.
fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    let hand = Hand {
        instance: None,
        max_message_bytes: None,
        ..hand
    };
    hand.ack_all(&mut world, true);
    hand.register(&mut world);
    world.run();
    let (_, id) = sentinel(&world, &hand).expect("a sentinel is subscribed");
    answer(&mut world, &hand, id, None);
    (world, hand)
}

fn back(world: &mut World) -> Hand {
    let hand = world.hand(0, "a");
    let hand = Hand {
        instance: None,
        max_message_bytes: None,
        ..hand
    };
    hand.ack_all(world, true);
    hand.register(world);
    world.run();
    hand
}

#[test]
fn a_foreign_peer_registers_in_the_same_three_messages() {
    let mut world = World::with([quiet("b")]);
    let hand = world.foreign(0, "a");
    assert_eq!(hand.heard(&world)[..2], ["ack register", "answer register"]);
    assert!(!world.sites[0].node.link(&app("a")).unwrap().is_native);
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn a_sentinel_is_one_subscription_for_a_name_that_nobody_emits() {
    let (world, hand) = start();
    let subscribes = hand
        .heard(&world)
        .iter()
        .filter(|line| line.starts_with("subscribe"))
        .count();
    assert_eq!(subscribes, 1);
    assert_eq!(world.sites[0].node.snapshot().streams, 0);
}

#[test]
fn a_native_peer_gets_no_sentinel() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_foreign_peer_is_resumed_as_in_the_reference() {
    let (mut world, hand) = start();
    hand.ack_all(&mut world, false);
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let hand = back(&mut world);
    assert!(hand.heard(&world).contains(&"signal m1"));
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(
        world.app_reports(0, "a").last(),
        Some(&(0, "bound", Some(true)))
    );
}

#[test]
fn after_a_return_the_sentinel_is_unsubscribed_ahead_of_the_backlog() {
    let (mut world, hand) = start();
    hand.hang_up(&mut world);
    world.run();
    world.signals(0, "a", 1..=2);
    let hand = back(&mut world);
    let heard = hand.heard(&world);
    let place = |start: &str| {
        let found = heard.iter().position(|line| line.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start} in {heard:?}"))
    };
    assert!(place("unsubscribe") < place("signal m1"));
    assert!(place("signal m1") < place("signal m2"));
}

#[test]
fn a_sentinel_that_is_still_known_shows_that_nothing_was_lost() {
    let (mut world, hand) = start();
    let token = world.request(0, "a", "r1");
    world.subscribe(0, "a", "x");
    world.run();
    let parent_id = hand.last_id(&world, "subscribe x");
    answer(&mut world, &hand, parent_id, None);
    hand.hang_up(&mut world);
    world.run();
    let hand = back(&mut world);
    let unsubscribe = unsubscribe_of(&world, &hand);
    answer(&mut world, &hand, unsubscribe, None);
    assert_eq!(world.outcome(0, token), "pending");
    assert!(!hand.heard(&world).contains(&"subscribe x"));
    let (name, _) = sentinel(&world, &hand).expect("a new sentinel is subscribed");
    assert_ne!(name, "x");
}

#[test]
fn a_sentinel_that_is_unknown_shows_a_restart() {
    let (mut world, hand) = start();
    let acked = world.request(0, "a", "acked");
    world.subscribe(0, "a", "x");
    world.run();
    let parent_id = hand.last_id(&world, "subscribe x");
    answer(&mut world, &hand, parent_id, None);
    hand.ack_all(&mut world, false);
    let unacked = world.request(0, "a", "unacked");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let hand = back(&mut world);
    let unsubscribe = unsubscribe_of(&world, &hand);
    answer(&mut world, &hand, unsubscribe, Some("unknown-subscription"));
    assert_eq!(
        world.outcomes(0, &[acked, unacked]),
        ["session-lost", "pending"]
    );
    assert!(hand.heard(&world).contains(&"subscribe x"));
    let subscribes: Vec<_> = hand
        .heard(&world)
        .into_iter()
        .filter(|line| line.starts_with("subscribe"))
        .collect();
    assert_eq!(
        subscribes.len(),
        2,
        "the stream and a new sentinel: {subscribes:?}"
    );
}

#[test]
fn sentinels_do_not_show_in_counts_of_the_user() {
    let (mut world, hand) = start();
    for _ in 0..5 {
        hand.hang_up(&mut world);
        world.run();
        back(&mut world);
    }
    let snapshot = world.node(0).snapshot();
    assert_eq!(snapshot.streams, 0);
    assert!(
        !world.sites[0]
            .events
            .iter()
            .any(|(_, event)| matches!(event, Event::StreamEnded { .. } | Event::Notified { .. }))
    );
}

#[test]
fn no_register_of_ours_asks_a_foreign_peer_for_anything_that_it_lacks() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    let hand = Hand {
        instance: None,
        max_message_bytes: None,
        ..hand
    };
    world.run();
    hand.admit(&mut world, None, None);
    world.run();
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(hand.heard(&world)[..2], ["register", "ack answer register"]);
    assert_eq!(world.app_reports(0, "b"), [(0, "bound", Some(false))]);
    hand.hang_up(&mut world);
    world.run();
    let (again, _) = world.dialled_by(0, "b");
    world.run();
    let Body::Register(register) = &again.last(&world, "register").body else {
        panic!("not a register");
    };
    assert_eq!(register.holds, []);
}

#[test]
fn relayed_records_follow_a_foreign_peers_ack_of_the_response() {
    let mut world = World::with([quiet("g").is_gateway(true)]);
    let sender = world.native(0, "s");
    let foreign = world.foreign(0, "a");
    foreign.ack_all(&mut world, true);
    foreign.hang_up(&mut world);
    world.run();
    let parent_id = crate::support::id("run");
    let signal = nacp_proto::Signal::Normal(payload("relayed"));
    let body = Body::Signal { parent_id, signal };
    sender.say_as(
        &mut world,
        crate::support::id("one"),
        &app("s"),
        &app("a"),
        body,
    );
    world.run();
    let hand = world.hand(0, "a");
    let hand = Hand {
        instance: None,
        max_message_bytes: None,
        ..hand
    };
    hand.register(&mut world);
    world.run();
    assert!(!hand.heard(&world).contains(&"signal relayed"));
    hand.ack_last_response(&mut world);
    world.run();
    assert!(hand.heard(&world).contains(&"signal relayed"));
}

#[test]
fn a_foreign_peer_may_be_sent_messages_of_any_size() {
    let (mut world, hand) = start();
    let token = world.signal(0, "a", &"x".repeat(1 << 20));
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert!(hand.is_open(&world));
}

#[test]
fn a_foreign_peer_that_does_not_answer_the_sentinel_stays_online() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    let hand = Hand {
        instance: None,
        max_message_bytes: None,
        ..hand
    };
    hand.ack_all(&mut world, true);
    hand.register(&mut world);
    world.advance_to(secs(300));
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    assert_eq!(world.reported(0, MessageReport::AckWarning), []);
}

fn unsubscribe_of(world: &World, hand: &Hand) -> MessageId {
    let unsubscribe = world
        .crossings_since(0, hand.wire, 1 - hand.end)
        .find(|crossing| matches!(crossing.message().body, Body::Unsubscribe { .. }));
    unsubscribe
        .expect("the sentinel is unsubscribed")
        .message()
        .id
        .clone()
}

#[test]
fn a_link_kept_as_foreign_is_kept_when_its_app_returns_as_native() {
    let (mut world, hand) = start();
    hand.ack_all(&mut world, false);
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let native = world.hand(0, "a");
    native.ack_all(&mut world, true);
    native.register(&mut world);
    world.run();
    assert_eq!(
        world.outcome(0, token),
        "delivered",
        "{:?}",
        native.registered(&world)
    );
    assert!(world.sites[0].node.link(&app("a")).unwrap().is_native);
}

#[test]
fn the_poison_rule_counts_no_ack_of_a_sentinel() {
    let (mut world, mut hand) = start();
    let token = world.signal(0, "a", "m1");
    hand.ack_all(&mut world, false);
    world.run();
    let mut turns = 0;
    while world.outcome(0, token) == "pending" {
        turns += 1;
        assert!(turns < 20, "{:?}", hand.heard(&world));
        hand.hang_up(&mut world);
        world.run();
        hand = world.foreign(0, "a");
        let unsubscribe = unsubscribe_of(&world, &hand);
        hand.ack(&mut world, &unsubscribe);
        answer(&mut world, &hand, unsubscribe, None);
        let (_, id) = sentinel(&world, &hand).expect("a new sentinel is subscribed");
        hand.ack(&mut world, &id);
        answer(&mut world, &hand, id, None);
    }
    assert_eq!((world.outcome(0, token).as_str(), turns), ("poisoned", 5));
}

#[test]
fn a_question_for_the_sentinel_that_a_connection_took_along_is_asked_again() {
    let (mut world, hand) = start();
    let token = world.request(0, "a", "r1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let second = world.foreign(0, "a");
    let asked = unsubscribe_of(&world, &second);
    // It has restarted, and goes again before it answers.
    second.hang_up(&mut world);
    world.run();
    let third = back(&mut world);
    assert_eq!(unsubscribe_of(&world, &third), asked);
    let later = world.request(0, "a", "r2");
    world.run();
    answer(&mut world, &third, asked, Some("unknown-subscription"));
    assert_eq!(
        world.outcomes(0, &[token, later]),
        ["session-lost", "pending"]
    );
}

#[test]
fn a_question_for_the_sentinel_that_was_acked_and_not_answered_is_asked_again_ahead_of_all() {
    let (mut world, hand) = start();
    let token = world.request(0, "a", "r1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    world.subscribe(0, "a", "x");
    let second = world.foreign(0, "a");
    let asked = unsubscribe_of(&world, &second);
    second.ack(&mut world, &asked);
    world.run();
    second.hang_up(&mut world);
    world.run();
    let third = back(&mut world);
    assert_eq!(unsubscribe_of(&world, &third), asked);
    let heard = third.heard(&world);
    let place = |start: &str| heard.iter().position(|line| line.starts_with(start));
    assert!(place("unsubscribe") < place("subscribe x"), "{heard:?}");
    answer(&mut world, &third, asked, Some("unknown-subscription"));
    assert_eq!(world.outcome(0, token), "session-lost");
    let (name, _) = sentinel(&world, &third).expect("a new sentinel is subscribed");
    assert_ne!(name, "x");
}

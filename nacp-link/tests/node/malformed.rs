//! Bad messages and wrong sources (specification, sections 3 and 8).

use nacp_link::{LinkState, MessageReport};
use nacp_proto::{Body, Signal};
use serde_json::{Value, json};

use crate::support::{ACCEPTOR, Hand, World, app, id, ms, payload, quiet, secs};

fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    (world, hand)
}

fn answer_to(message: &Value) -> Vec<String> {
    let (mut world, hand) = start();
    let mark = world.mark();
    hand.say_json(&mut world, message.clone());
    world.run();
    assert!(hand.is_open(&world), "{message}");
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    assert_eq!(
        world.reported(0, MessageReport::MessageError),
        [(0, "malformed")],
        "{message}"
    );
    hand.heard_since(&world, mark)
        .into_iter()
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_malformed_request_or_unsubscribe_is_acked_and_answered_malformed() {
    for message in [
        json!({"type": "request", "payload": 1, "meta": {"kind": "unheard of"}}),
        json!({"type": "request", "payload": 1, "meta": {}}),
        json!({"type": "request", "payload": 1, "meta": {"kind": "ability", "target": 5}}),
        json!({"type": "unsubscribe", "payload": {}, "meta": {}}),
        json!({"type": "unsubscribe", "meta": {}}),
    ] {
        let kind = message["type"].as_str().unwrap().to_owned();
        assert_eq!(
            answer_to(&message),
            [format!("ack {kind}"), format!("answer {kind}: malformed")],
            "{message}"
        );
    }
}

#[test]
fn a_malformed_response_or_signal_is_acked_only() {
    for message in [
        json!({"type": "response", "payload": {}, "meta": {}}),
        json!({"type": "response", "payload": {}, "meta": {"parentId": "x"}}),
        json!({"type": "signal", "meta": {"parentId": "x"}}),
        json!({"type": "signal", "meta": {"parentId": "x", "kind": "unheard of"}}),
    ] {
        let kind = message["type"].as_str().unwrap().to_owned();
        assert_eq!(answer_to(&message), [format!("ack {kind}")], "{message}");
    }
}

#[test]
fn a_malformed_notify_or_ack_is_reported_only() {
    for message in [
        json!({"type": "notify", "payload": 1, "meta": {}}),
        json!({"type": "ack", "meta": {}}),
        json!({"type": "ack"}),
    ] {
        assert_eq!(answer_to(&message), Vec::<String>::new(), "{message}");
    }
}

#[test]
fn what_is_no_message_ends_its_peer_with_decode_failed() {
    for bytes in [&b"\xff"[..], b"\x01", b"\x83\x01", b"\xa0", b""] {
        let (mut world, hand) = start();
        hand.say_bytes(&mut world, bytes.to_vec().into());
        world.run();
        assert!(!hand.is_open(&world));
        assert_eq!(world.peer_errors(0), [(0, "decode-failed")]);
        assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
    }
}

#[test]
fn whole_messages_in_front_of_bytes_that_cannot_be_read_are_handled_first() {
    let (mut world, hand) = start();
    hand.signal(&mut world, "m1");
    hand.say_bytes(&mut world, b"\xff".to_vec().into());
    world.run();
    assert_eq!(world.handled(0), ["m1"]);
}

fn stray(world: &mut World, hand: &Hand, from: &str) {
    let parent_id = id("run");
    let signal = Signal::Normal(payload("stray"));
    let (fresh, node) = (world.fresh_id(), hand.node.clone());
    hand.say_as(
        world,
        fresh,
        &app(from),
        &node,
        Body::Signal { parent_id, signal },
    );
    world.run();
}

#[test]
fn t15_an_unregistered_peer_is_heard_only_with_a_register_and_is_closed_at_the_16th_fault() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    for number in 1..=15 {
        stray(&mut world, &hand, "a");
        assert_eq!(world.reported(0, MessageReport::InboundError).len(), number);
        assert!(hand.is_open(&world));
    }
    stray(&mut world, &hand, "a");
    assert!(!hand.is_open(&world));
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "not-registered"); 16]
    );
    assert_eq!(world.peer_errors(0), [(0, "source-faults")]);
    assert_eq!(hand.heard(&world), Vec::<&str>::new());
    assert_eq!(world.handled(0), Vec::<&str>::new());
}

#[test]
fn t15_faults_of_a_peer_change_nothing_of_the_innocent_apps_link() {
    let mut world = World::with([quiet("b")]);
    world.native(0, "innocent");
    let hand = world.native(0, "a");
    for _ in 0..16 {
        stray(&mut world, &hand, "innocent");
    }
    assert!(!hand.is_open(&world));
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "source-mismatch"); 16]
    );
    assert_eq!(world.changes(0, "innocent"), [(0, "online")]);
    let token = world.signal(0, "innocent", "m1");
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn faults_are_counted_over_sixty_seconds() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    for turn in 0..4 {
        world.advance_to(secs(61 * turn));
        for _ in 0..15 {
            stray(&mut world, &hand, "z");
        }
    }
    assert!(hand.is_open(&world));
    world.advance(ms(1));
    stray(&mut world, &hand, "z");
    assert!(!hand.is_open(&world));
}

#[test]
fn a_source_must_be_bound_to_the_peer_it_comes_on() {
    let (mut world, hand) = start();
    let mark = world.mark();
    for from in ["b", "z"] {
        stray(&mut world, &hand, from);
    }
    assert_eq!(hand.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "source-mismatch"); 2]
    );
}

#[test]
fn t05_nobody_can_unregister_unsubscribe_or_answer_for_another_app() {
    let mut world = World::with([quiet("b")]);
    let victim = world.native(0, "a");
    victim.ack_all(&mut world, true);
    let subscription = victim.subscribe(&mut world, "x");
    let token = world.request(0, "a", "r1");
    world.run();
    let request = victim.last_id(&world, "request r1");
    let attacker = world.native(0, "evil");
    for body in [
        Body::Unregister,
        Body::Unsubscribe {
            target_sub_id: subscription,
        },
        Body::Response(nacp_proto::Response::ok(request, payload("forged"))),
    ] {
        let fresh = world.fresh_id();
        attacker.say_as(&mut world, fresh, &app("a"), &app("b"), body);
        world.run();
    }
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    assert_eq!(world.node(0).snapshot().subscriptions, 1);
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn a_message_for_somebody_else_is_dropped_by_a_node_that_is_no_gateway() {
    let (mut world, hand) = start();
    world.native(0, "c");
    let mark = world.mark();
    let parent_id = id("run");
    let signal = Signal::Pause;
    let fresh = world.fresh_id();
    hand.say_as(
        &mut world,
        fresh,
        &app("a"),
        &app("c"),
        Body::Signal { parent_id, signal },
    );
    world.run();
    assert_eq!(world.mark(), mark + 1);
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn messages_of_a_peer_that_is_gone_are_ignored() {
    let (mut world, hand) = start();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    hand.hang_up(&mut world);
    world.run();
    let message = nacp_proto::Message::new(id("x"), app("a"), app("b"), Body::Unregister);
    let bytes = message.encode().to_bytes();
    let decoded = nacp_proto::Message::decode(&bytes).unwrap();
    let now = world.now();
    world
        .node(0)
        .handle_message(now, peer, nacp_link::Inbound { bytes, decoded });
    world.run();
    assert_eq!(world.state(0, "a"), Some(LinkState::Offline));
}

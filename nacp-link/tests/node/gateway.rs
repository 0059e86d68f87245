//! A node that forwards (specification, section 9).

use nacp_link::{Lane, LinkState, MessageReport};
use nacp_proto::{AppId, Body, Message, RequestKind, Signal};
use serde_json::json;

use crate::support::{ACCEPTOR, Hand, Intake, World, app, id, payload, quiet, secs};

/// A gateway `g` with `a` and `c` online.
fn start() -> (World, Hand, Hand) {
    let mut world = World::with([quiet("g").is_gateway(true)]);
    let a = world.native(0, "a");
    let c = world.native(0, "c");
    (world, a, c)
}

fn to(world: &mut World, hand: &Hand, destination: &str, message: &str, body: Body) {
    hand.say_as(world, id(message), &hand.app, &app(destination), body);
}

fn signal(label: &str) -> Body {
    Body::Signal {
        parent_id: id("run"),
        signal: Signal::Normal(payload(label)),
    }
}

fn request(label: &str) -> Body {
    Body::Request {
        kind: RequestKind::Ability,
        target: Some("work".into()),
        payload: payload(label),
    }
}

#[test]
fn a_message_for_a_link_is_forwarded_byte_for_byte_without_ack_dedup_or_dispatch() {
    let (mut world, a, c) = start();
    let marks = world.mark();
    // Odd but legal bytes: extra keys, another order, indefinite lengths.
    let odd = json!({"zz": [1, 2], "type": "request", "to": "c", "meta": {"kind": "ability", "extra": 1}, "payload": {"k": null}, "t": 5});
    a.say_json(&mut world, odd);
    to(&mut world, &a, "c", "one", signal("m1"));
    to(&mut world, &a, "c", "one", signal("m1"));
    world.run();
    let sent: Vec<_> = world
        .crossings_since(marks, a.wire, a.end)
        .map(|crossing| crossing.bytes.clone())
        .collect();
    let got: Vec<_> = world
        .crossings_since(marks, c.wire, ACCEPTOR)
        .map(|crossing| crossing.bytes.clone())
        .collect();
    assert_eq!(sent.len(), 3);
    assert_eq!(got, sent);
    assert_eq!(a.heard_since(&world, marks), Vec::<&str>::new());
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewaySuccess),
        [(0, "forwarded"); 3]
    );
}

#[test]
fn a_message_for_the_gateway_itself_is_handled_like_any_other() {
    let (mut world, a, _) = start();
    a.signal(&mut world, "m1");
    world.run();
    assert_eq!(world.handled(0), ["m1"]);
    assert_eq!(a.heard(&world).last(), Some(&"ack m1"));
}

#[test]
fn a_message_for_nobody_is_dropped_with_a_gateway_error() {
    let (mut world, a, _) = start();
    let mark = world.mark();
    to(&mut world, &a, "z", "one", signal("m1"));
    world.run();
    assert_eq!(a.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
    assert!(a.is_open(&world));
}

#[test]
fn t30_a_message_is_never_forwarded_back_to_the_peer_that_it_came_from() {
    let (mut world, a, _) = start();
    let mark = world.mark();
    to(&mut world, &a, "a", "one", signal("m1"));
    world.run();
    assert_eq!(a.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
}

#[test]
fn a_register_is_never_forwarded() {
    let (mut world, a, c) = start();
    let stranger = world.hand(0, "s");
    let marks = world.mark();
    for hand in [&a, &stranger] {
        let (fresh, body) = (world.fresh_id(), hand.register_body());
        hand.say_as(&mut world, fresh, &hand.app, &app("c"), body);
    }
    world.run();
    assert_eq!(c.heard_since(&world, marks), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped"); 2]
    );
}

#[test]
fn acks_run_end_to_end_and_use_the_control_lane() {
    let (mut world, a, c) = start();
    to(&mut world, &a, "c", "one", request("r1"));
    world.run();
    let body = Body::Ack {
        parent_id: id("one"),
    };
    to(&mut world, &c, "a", "the-ack", body);
    to(&mut world, &c, "a", "two", signal("x1"));
    world.run();
    let lanes: Vec<_> = world
        .crossings_since(0, a.wire, ACCEPTOR)
        .filter(|crossing| crossing.message().from == app("c"))
        .map(|crossing| (crossing.line.as_str(), crossing.lane))
        .collect();
    assert_eq!(
        lanes,
        [("ack r1", Lane::Control), ("signal x1", Lane::Bulk)]
    );
}

#[test]
fn a_source_that_is_not_bound_to_the_peer_is_not_forwarded() {
    let (mut world, a, c) = start();
    let mark = world.mark();
    let fresh = world.fresh_id();
    a.say_as(&mut world, fresh, &app("z"), &app("c"), signal("m1"));
    world.run();
    assert_eq!(c.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "source-mismatch")]
    );
}

#[test]
fn t30_messages_for_an_app_that_is_offline_wait_in_order_and_end_at_their_acceptance() {
    let (mut world, a, c) = start();
    world.set_intake(c.wire, ACCEPTOR, Intake::Stalled);
    for number in 1..=6 {
        to(
            &mut world,
            &a,
            "c",
            &format!("id{number}"),
            signal(&format!("m{number}")),
        );
    }
    world.run();
    world.accept(c.wire, ACCEPTOR, 2);
    world.run();
    c.hang_up(&mut world);
    world.run();
    for number in 7..=8 {
        to(
            &mut world,
            &a,
            "c",
            &format!("id{number}"),
            signal(&format!("m{number}")),
        );
    }
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 6);
    let mut back = world.hand(0, "c");
    back.holds = vec![c.session(&world)];
    back.register(&mut world);
    world.run();
    // m1 and m2 were accepted: the sender repeats them if it must.
    assert_eq!(
        back.heard(&world)[2..],
        [
            "signal m3",
            "signal m4",
            "signal m5",
            "signal m6",
            "signal m7",
            "signal m8"
        ]
    );
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.backlog.count, snapshot.ack_pending.count), (0, 0));
    // No ACK is waited for.
    world.advance_to(secs(60));
    assert_eq!(world.state(0, "c"), Some(LinkState::Online));
}

#[test]
fn a_copy_that_is_already_queued_is_dropped() {
    let (mut world, a, c) = start();
    c.hang_up(&mut world);
    world.run();
    for _ in 0..5 {
        to(&mut world, &a, "c", "one", signal("m1"));
    }
    let other = world.native(0, "d");
    to(&mut world, &other, "c", "one", signal("of d"));
    world.run();
    assert_eq!(world.node(0).snapshot().backlog.count, 2);
}

#[test]
fn t30_a_flood_for_one_app_stays_within_the_caps_and_harms_no_other() {
    let mut world = World::with([quiet("g").is_gateway(true).queue_max_count(8)]);
    let hands: Vec<_> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| world.native(0, name))
        .collect();
    hands[1].hang_up(&mut world);
    world.run();
    for number in 0..500 {
        to(
            &mut world,
            &hands[0],
            "b",
            &format!("id{number}"),
            signal("flood"),
        );
        world.run();
        assert!(world.node(0).snapshot().backlog.count <= 8);
    }
    let mark = world.mark();
    to(&mut world, &hands[2], "d", "one", request("r1"));
    world.run();
    assert_eq!(hands[3].heard_since(&world, mark), ["request r1"]);
}

#[test]
fn relayed_records_settle_nobody_and_end_with_their_link() {
    let (mut world, a, c) = start();
    c.hang_up(&mut world);
    world.run();
    to(&mut world, &a, "c", "one", signal("m1"));
    world.advance_to(secs(120));
    assert_eq!(world.state(0, "c"), None);
    world.assert_at_rest(0);
}

#[test]
fn two_gateways_behind_each_other_do_not_register() {
    let mut world = World::with([quiet("g").is_gateway(true), quiet("h").is_gateway(true)]);
    let (_, token) = world.dial(0, 1);
    world.run();
    assert_eq!(world.outcome(0, token), "dual-gateway");
}

#[test]
fn the_totals_count_what_was_relayed() {
    let (mut world, a, _) = start();
    for number in 0..5 {
        to(&mut world, &a, "c", &format!("id{number}"), signal("m"));
    }
    world.run();
    assert_eq!(world.node(0).totals().sent_of(None), 5);
}

#[test]
fn a_malformed_message_for_a_link_is_relayed_as_it_is() {
    let (mut world, a, c) = start();
    let mark = world.mark();
    a.say_json(&mut world, json!({"type": "signal", "to": "c"}));
    a.say_json(&mut world, json!({"type": "novelty", "to": "c"}));
    world.run();
    assert_eq!(
        c.heard_since(&world, mark),
        ["malformed signal", "unknown novelty"]
    );
    assert_eq!(world.reported(0, MessageReport::MessageError), []);
}

/// `a` and `b` at the gateway `g`, all real: the wires of `a` and `b`.
fn three() -> (World, usize, usize) {
    let mut world = World::with([quiet("a"), quiet("b"), quiet("g").is_gateway(true)]);
    let first = world.link(0, 2);
    let second = world.link(1, 2);
    (world, first, second)
}

#[test]
fn requests_events_signals_and_subscriptions_work_through_a_gateway() {
    let (mut world, _, _) = three();
    let request = world.request(0, "b", "r1");
    let (run, _) = world.start(0, "b", "e1");
    let signal = world.signal(0, "b", "m1");
    let (subscribe, stream) = world.subscribe(0, "b", "x:*");
    world.run();
    world.answer(1, "r1");
    world.process(1, "e1", "i1");
    world.answer(1, "e1");
    world.emit(1, "x:1", "n1");
    world.run();
    assert_eq!(
        world.outcomes(0, &[request, run, signal]),
        ["ok r1", "ok e1", "delivered"]
    );
    assert!(world.outcome(0, subscribe).starts_with("ok"));
    assert_eq!(world.sites[0].hits, [(stream.unwrap(), "n1".to_owned())]);
    assert_eq!(world.handled(0), ["i1"]);
    assert_eq!(world.handled(2), Vec::<&str>::new());
    for site in 0..3 {
        world.assert_at_rest(site);
    }
}

#[test]
fn t30_a_cut_behind_the_gateway_loses_nothing_and_does_not_touch_the_link_to_it() {
    let (mut world, _, second) = three();
    world.set_intake(second, ACCEPTOR, Intake::Stalled);
    let tokens = world.signals(0, "b", 1..=10);
    world.run();
    // G had four of them accepted; two arrived.
    world.hold(second, ACCEPTOR);
    world.accept(second, ACCEPTOR, 6);
    world.release_some(second, ACCEPTOR, 2);
    world.run();
    world.cut(second);
    world.advance_to(secs(4));
    world.link(1, 2);
    world.advance_to(secs(40));
    let mut handled = world.handled(1);
    handled.sort_unstable();
    handled.dedup();
    assert_eq!(handled.len(), 10);
    assert_eq!(world.handled(1).len(), 10);
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 10]);
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
    world.assert_at_rest(0);
    world.assert_at_rest(2);
}

#[test]
fn the_wildcard_is_no_destination_of_anything_but_a_register() {
    let (mut world, a, _) = start();
    let mark = world.mark();
    let message = Message::new(id("one"), app("a"), AppId::any(), signal("m1"));
    a.say_bytes(&mut world, message.encode().to_bytes());
    world.run();
    assert_eq!(world.mark(), mark + 1);
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
}

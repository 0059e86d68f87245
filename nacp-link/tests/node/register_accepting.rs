//! Registering, the accepting side (specification, sections 4.2, 4.6 and 10).

use nacp_link::{Admittance, Close, LinkState, MessageReport, Report, Verdict};
use nacp_proto::{AppId, Body, Decl, Entry, Outcome, Payload, Register, Version};
use serde_json::json;

use crate::support::{ACCEPTOR, DIALLER, Hand, World, app, ms, quiet, secs};

fn say_register(world: &mut World, hand: &Hand, edit: impl FnOnce(&mut Register)) {
    let Body::Register(mut register) = hand.register_body() else {
        unreachable!("a register body is a register");
    };
    edit(&mut register);
    hand.say(world, Body::Register(register));
}

/// What the node answered to the hand's only register, and how it closed the wire.
fn refusal<'a>(world: &'a World, hand: &Hand) -> (Vec<&'a str>, Vec<(u128, Close)>) {
    (hand.heard(world), world.closed(0, hand.wire))
}

fn refused(why: &str) -> [String; 2] {
    ["ack register".to_owned(), format!("answer register: {why}")]
}

#[test]
fn two_nodes_register_with_ack_response_and_ack_of_the_response() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    assert_eq!(
        world.said(wire, DIALLER),
        ["register", "ack answer register"]
    );
    assert_eq!(
        world.said(wire, ACCEPTOR),
        ["ack register", "answer register"]
    );
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    assert_eq!(world.state(1, "a"), Some(LinkState::Online));
}

#[test]
fn the_acceptor_binds_and_reports_bound_then_sends_ack_response_and_backlog() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.run();
    world.signals(0, "a", [1, 2]);
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(
        back.heard(&world),
        ["ack register", "answer register", "signal m1", "signal m2"]
    );
    assert_eq!(
        world.app_reports(0, "a"),
        [
            (0, "bound", Some(false)),
            (0, "offline", None),
            (0, "bound", Some(true))
        ]
    );
}

#[test]
fn a_register_error_names_the_peer_and_the_app() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.version = Version { major: 1, minor: 0 };
    });
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    let found = world.sites[0].reports.iter().find_map(|(_, report)| {
        if let Report::RegisterError { peer, from, .. } = report {
            Some((*peer, from.clone()))
        } else {
            None
        }
    });
    assert_eq!(found, Some((Some(peer), Some(app("a")))));
}

#[test]
fn any_minor_version_is_fine() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.version = Version {
            major: 2,
            minor: 99,
        };
    });
    world.run();
    assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_register_from_the_wildcard_is_malformed() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    let (fresh, body) = (world.fresh_id(), hand.register_body());
    hand.say_as(&mut world, fresh, &AppId::any(), &app("b"), body);
    world.run();
    let (heard, closed) = refusal(&world, &hand);
    assert_eq!(heard, refused("malformed"));
    assert_eq!(closed, [(0, Close::Refuse)]);
}

#[test]
fn a_register_without_a_version_or_without_is_gateway_is_malformed() {
    for register in [
        json!({"type": "register", "payload": {"isGateway": false, "decl": {"events": [], "abilities": []}}, "meta": {}}),
        json!({"type": "register", "v": {"major": 2, "minor": 1}, "payload": {"decl": {"events": [], "abilities": []}}, "meta": {}}),
        json!({"type": "register", "v": {"major": 2, "minor": 1}, "meta": {}}),
    ] {
        let mut world = World::with([quiet("b")]);
        let hand = world.hand(0, "a");
        hand.say_json(&mut world, register.clone());
        world.run();
        let heard = hand.heard(&world);
        assert_eq!(heard, refused("malformed"), "{register}");
        assert_eq!(world.state(0, "a"), None);
    }
}

#[test]
fn two_gateways_do_not_register() {
    let mut world = World::with([quiet("b").is_gateway(true)]);
    let mut hand = world.hand(0, "a");
    hand.is_gateway = true;
    hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), refused("dual-gateway"));
}

#[test]
fn a_register_under_the_own_app_id_is_app_id_in_use() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "b");
    hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), refused("appId-in-use"));
}

#[test]
fn a_register_over_the_limit_of_links_is_limit_reached() {
    let mut world = World::with([quiet("b").max_links(1)]);
    world.native(0, "a");
    let hand = world.hand(0, "c");
    hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), refused("limit-reached"));
}

#[test]
fn the_limit_of_links_counts_offline_ones_and_lets_a_known_app_return() {
    let mut world = World::with([quiet("b").max_links(1)]);
    let first = world.native(0, "a");
    first.hang_up(&mut world);
    world.run();
    let other = world.hand(0, "c");
    other.register(&mut world);
    world.run();
    assert_eq!(other.heard(&world), refused("limit-reached"));
    let mut back = world.hand(0, "a");
    back.holds = vec![first.session(&world)];
    back.register(&mut world);
    world.run();
    assert_eq!(back.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_second_gateway_is_refused_multi_gateway_without_downgrade() {
    let mut world = World::with([quiet("b")]);
    for (name, expected) in [("g1", None), ("g2", Some("multi-gateway"))] {
        let mut hand = world.hand(0, name);
        hand.is_gateway = true;
        hand.register(&mut world);
        world.run();
        let answer = expected.map_or_else(
            || "answer register".to_owned(),
            |why| format!("answer register: {why}"),
        );
        assert_eq!(hand.heard(&world), ["ack register", answer.as_str()]);
    }
}

#[test]
fn a_second_gateway_is_a_plain_link_with_downgrade() {
    let mut world = World::with([quiet("b").multi_gateway_downgrade(true)]);
    for name in ["g1", "g2"] {
        let mut hand = world.hand(0, name);
        hand.is_gateway = true;
        hand.register(&mut world);
        world.run();
        assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
    }
    assert_eq!(
        world.reported(0, MessageReport::GatewayWarning),
        [(0, "multi-gateway-downgraded")]
    );
}

#[test]
fn the_reasons_of_a_refusal_are_looked_at_in_the_order_of_the_specification() {
    // Each line breaks its own rule and all later ones that can be broken with it.
    let gateway = |gateway: bool| {
        quiet("b")
            .is_gateway(gateway)
            .max_links(1)
            .admittance(Admittance::Ask)
            .takeover_probe(ms(0))
    };
    let lines: [(&str, bool, u64, &str); 5] = [
        ("dual-gateway", true, 9, "b"),
        ("version-mismatch", false, 9, "b"),
        ("limit-reached", false, 2, "b"),
        ("unauthorized", false, 2, "known"),
        ("appId-in-use", false, 2, "known"),
    ];
    for (expected, both_gateways, major, name) in lines {
        let mut world = World::with([gateway(both_gateways)]);
        world.sites[0].verdict = Some(Verdict::Admit);
        world.native(0, "known");
        world.sites[0].verdict = Some(match expected {
            "unauthorized" => Verdict::Refuse,
            _ => Verdict::Admit,
        });
        let mut hand = world.hand(0, name);
        hand.is_gateway = both_gateways;
        say_register(&mut world, &hand, |register| {
            register.version = Version { major, minor: 1 };
        });
        world.run();
        assert_eq!(hand.heard(&world), refused(expected));
    }
}

#[test]
fn a_second_register_on_a_bound_peer_is_answered_well_and_refreshes_the_declarations_only() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.signal(0, "a", "m1");
    world.run();
    let mark = world.mark();
    let first = world.app_reports(0, "a");
    say_register(&mut world, &hand, |register| {
        register.info.decl = Decl {
            events: Vec::new(),
            abilities: vec![Entry {
                name: "add".into(),
                description: "adds".into(),
            }],
        };
    });
    world.run();
    assert_eq!(
        hand.heard_since(&world, mark),
        ["ack register", "answer register"]
    );
    assert_eq!(world.app_reports(0, "a"), first);
    let link = world.sites[0].node.link(&app("a")).unwrap();
    assert_eq!(link.decl.abilities[0].name, "add");
    assert_eq!(link.state, LinkState::Online);
}

#[test]
fn a_register_is_never_deduplicated() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    for _ in 0..3 {
        let body = hand.register_body();
        hand.say_with(&mut world, crate::support::id("same"), body);
        world.run();
    }
    assert_eq!(
        hand.heard(&world),
        ["ack register", "answer register"].repeat(3)
    );
}

#[test]
fn a_register_with_the_id_of_one_answered_on_an_older_connection_is_answered_again() {
    let mut world = World::with([quiet("b")]);
    for _ in 0..2 {
        let hand = world.hand(0, "a");
        let body = hand.register_body();
        hand.say_with(&mut world, crate::support::id("same"), body);
        world.run();
        assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
        hand.hang_up(&mut world);
        world.run();
    }
}

#[test]
fn a_register_for_somebody_else_is_dropped_with_a_gateway_error() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    let (fresh, body) = (world.fresh_id(), hand.register_body());
    hand.say_as(&mut world, fresh, &app("a"), &app("other"), body);
    world.run();
    assert_eq!(hand.heard(&world), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::GatewayError),
        [(0, "dropped")]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn a_register_to_the_wildcard_is_answered_under_the_own_app_id() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    let (fresh, body) = (world.fresh_id(), hand.register_body());
    hand.say_as(&mut world, fresh, &app("a"), &AppId::any(), body);
    world.run();
    assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
    assert_eq!(hand.last(&world, "answer register").from, app("b"));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn an_accepted_connection_without_a_register_is_closed_at_the_handshake_timeout() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    world.advance_to(ms(9_999));
    assert!(hand.is_open(&world));
    assert_eq!(world.peer_errors(0), []);
    world.advance_to(secs(10));
    assert!(!hand.is_open(&world));
    assert_eq!(world.peer_errors(0), [(10_000, "handshake-timeout")]);
    assert_eq!(world.node(0).snapshot().peers, 0);
}

#[test]
fn other_messages_do_not_put_the_handshake_timeout_off() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    for second in 1..10 {
        world.advance_to(secs(second));
        hand.signal(&mut world, "m");
    }
    world.advance_to(secs(10));
    assert_eq!(world.peer_errors(0), [(10_000, "handshake-timeout")]);
}

#[test]
fn a_register_of_another_app_on_a_bound_peer_is_a_source_mismatch() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let mark = world.mark();
    let (fresh, body) = (world.fresh_id(), hand.register_body());
    hand.say_as(&mut world, fresh, &app("c"), &app("b"), body);
    world.run();
    assert_eq!(hand.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "source-mismatch")]
    );
    assert_eq!(world.state(0, "c"), None);
}

#[test]
fn app_ids_are_compared_byte_by_byte() {
    let mut world = World::with([quiet("b")]);
    let names = ["A", "a", "caf\u{e9}", "cafe\u{301}", "x\0", " x", "x"];
    for name in names {
        world.native(0, name);
    }
    for name in names {
        assert_eq!(world.state(0, name), Some(LinkState::Online), "{name:?}");
    }
    assert_eq!(world.node(0).snapshot().links, names.len());
}

#[test]
fn the_answer_of_a_native_acceptor_tells_instance_size_session_and_resumed() {
    let mut world = World::with([quiet("b").max_message_bytes(1 << 20)]);
    let hand = world.native(0, "a");
    let registered = hand.registered(&world).unwrap();
    assert_eq!(registered.info.instance, Some(world.node(0).instance()));
    assert_eq!(registered.info.max_message_bytes, Some(1 << 20));
    assert!(registered.session.is_some());
    assert_eq!(registered.resumed, Some(false));
    assert!(!registered.info.is_gateway);
}

#[test]
fn the_driver_is_told_whether_a_registered_peer_is_native() {
    let mut world = World::with([quiet("b")]);
    let native = world.native(0, "a");
    let foreign = world.foreign(0, "f");
    let told: Vec<_> = world.sites[0]
        .registered
        .iter()
        .map(|(_, peer, native)| (*peer, *native))
        .collect();
    assert_eq!(
        told,
        [
            (world.wires[native.wire].peer(ACCEPTOR), true),
            (world.wires[foreign.wire].peer(ACCEPTOR), false)
        ]
    );
}

#[test]
fn unregistered_peers_over_their_limit_are_closed_and_the_others_served() {
    let mut world = World::with([quiet("b").max_unregistered_peers(2)]);
    let hands = [world.hand(0, "a"), world.hand(0, "c"), world.hand(0, "d")];
    world.run();
    assert_eq!(world.peer_errors(0), [(0, "limit-reached")]);
    assert!(!hands[2].is_open(&world));
    for hand in &hands[..2] {
        hand.register(&mut world);
        world.run();
        assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
    }
    world.native(0, "d");
}

#[test]
fn peers_over_their_limit_are_closed() {
    let mut world = World::with([quiet("b").max_peers(1)]);
    world.native(0, "a");
    let second = world.hand(0, "c");
    world.run();
    assert!(!second.is_open(&world));
    assert_eq!(world.peer_errors(0), [(0, "limit-reached")]);
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn declarations_over_their_limit_are_refused_limit_reached() {
    let mut world = World::with([quiet("b").max_decl_bytes(100)]);
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.info.decl.events = vec![Entry {
            name: "x".repeat(101).into(),
            description: "".into(),
        }];
    });
    world.run();
    assert_eq!(hand.heard(&world), refused("limit-reached"));
}

#[test]
fn the_answer_to_a_refused_register_says_not_ok_and_why() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "b");
    let register = hand.register(&mut world);
    world.run();
    let answer = hand.last(&world, "answer register: appId-in-use");
    let Body::Response(response) = &answer.body else {
        panic!("not a response: {answer:?}");
    };
    assert_eq!(response.parent_id, register);
    assert_eq!(
        response.outcome,
        Outcome::NotOk {
            why: Some("appId-in-use".into())
        }
    );
    assert_eq!(response.kind, None);
    assert_eq!(response.payload, Payload::empty());
}

#[test]
fn the_ack_of_a_refusal_is_ignored() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "b");
    hand.register(&mut world);
    world.run();
    hand.ack_line(&mut world, "answer register: appId-in-use");
    world.run();
    assert_eq!(world.reported(0, MessageReport::AckError), []);
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn a_second_register_with_declarations_over_their_limit_is_refused_and_changes_nothing() {
    let mut world = World::with([quiet("b").max_decl_bytes(100)]);
    let hand = world.native(0, "a");
    say_register(&mut world, &hand, |register| {
        register.info.decl.events = vec![Entry {
            name: "e".repeat(200).into(),
            ..Entry::default()
        }];
    });
    world.run();
    assert_eq!(
        hand.heard(&world)[2..],
        ["ack register", "answer register: limit-reached"]
    );
    hand.ack_line(&mut world, "answer register: limit-reached");
    world.run();
    let link = world.sites[0].node.link(&app("a")).unwrap();
    assert_eq!((link.state, link.decl.events.len()), (LinkState::Online, 0));
    assert_eq!(world.reported(0, MessageReport::AckError), []);
}

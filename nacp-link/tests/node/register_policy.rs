//! A register that waits for the policy (specification, sections 4.2 and 10).

use nacp_link::{Admittance, Close, Event, MessageReport, Report, Trust, Verdict};
use nacp_proto::{Body, Register, Version};

use crate::support::{ACCEPTOR, Hand, World, app, ms, payload, quiet, secs};

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

fn asking(name: &str) -> nacp_link::Config {
    quiet(name).admittance(Admittance::Ask)
}

fn authorize(world: &mut World, hand: &Hand, verdict: Verdict) {
    let (now, peer) = (world.now(), world.wires[hand.wire].peer(ACCEPTOR));
    world.node(0).handle_authorized(now, peer, verdict);
    world.run();
}

#[test]
fn a_refusal_is_an_ack_and_a_response_and_a_close_that_waits_for_the_other_side() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.version = Version { major: 3, minor: 0 };
    });
    world.run();
    let (heard, closed) = refusal(&world, &hand);
    assert_eq!(heard, refused("version-mismatch"));
    assert_eq!(closed, [(0, Close::Refuse)]);
    assert_eq!(world.state(0, "a"), None);
    assert_eq!(
        world.register_errors(0),
        [(0, "version-mismatch".to_owned())]
    );
}

#[test]
fn a_registered_connection_and_one_that_waits_for_the_policy_outlive_the_handshake_timeout() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.advance_to(secs(30));
    assert!(hand.is_open(&world));
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    let now = world.now();
    world.node(0).handle_authorized(now, peer, Verdict::Admit);
    world.advance_to(secs(60));
    assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn the_policy_sees_app_declarations_credential_and_trust() {
    let mut world = World::with([asking("b")]);
    world.trust = Trust::Proven;
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.auth = Some(payload("secret"))
    });
    world.run();
    let asked = world.sites[0].events.iter().find_map(|(_, event)| {
        if let Event::Authorize(asked) = event {
            Some(asked.clone())
        } else {
            None
        }
    });
    let asked = asked.unwrap();
    assert_eq!(asked.app, app("a"));
    assert_eq!(asked.info, hand.info());
    assert_eq!(asked.auth, Some(payload("secret")));
    assert_eq!(asked.trust, Trust::Proven);
    assert_eq!(asked.peer, world.wires[hand.wire].peer(ACCEPTOR));
}

#[test]
fn the_credential_is_cut_out_of_every_report() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    say_register(&mut world, &hand, |register| {
        register.auth = Some(payload("secret"))
    });
    world.run();
    let mut registers = 0;
    for (_, report) in &world.sites[0].reports {
        if let Report::Inbound { subject, .. } = report
            && let Some(Body::Register(register)) = &subject.body
        {
            registers += 1;
            assert_eq!(register.auth, None);
        }
    }
    assert_eq!(registers, 1);
}

#[test]
fn a_register_that_waits_for_the_policy_is_acked_at_once_and_not_again() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), ["ack register"]);
    assert_eq!(world.state(0, "a"), None);
    world.advance_to(ms(500));
    authorize(&mut world, &hand, Verdict::Admit);
    assert_eq!(hand.heard(&world), ["ack register", "answer register"]);
    assert_eq!(world.app_reports(0, "a"), [(500, "bound", Some(false))]);
}

#[test]
fn a_register_that_the_policy_refuses_is_unauthorized() {
    let mut world = World::with([asking("b")]);
    world.sites[0].verdict = Some(Verdict::Refuse);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), refused("unauthorized"));
    assert_eq!(world.closed(0, hand.wire), [(0, Close::Refuse)]);
}

#[test]
fn messages_beside_a_register_that_waits_are_kept_in_order_and_handled_behind_the_answer() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    for label in ["m1", "m2", "m3"] {
        hand.signal(&mut world, label);
    }
    world.run();
    assert_eq!(world.handled(0), Vec::<&str>::new());
    authorize(&mut world, &hand, Verdict::Admit);
    assert_eq!(world.handled(0), ["m1", "m2", "m3"]);
    assert_eq!(
        hand.heard(&world),
        [
            "ack register",
            "answer register",
            "ack m1",
            "ack m2",
            "ack m3"
        ]
    );
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn messages_beside_a_register_that_is_refused_are_discarded_and_no_faults() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    for _ in 0..20 {
        hand.signal(&mut world, "m");
    }
    world.run();
    authorize(&mut world, &hand, Verdict::Refuse);
    assert_eq!(hand.heard(&world), refused("unauthorized"));
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn above_a_mebibyte_beside_a_register_that_waits_the_node_stops_reading_until_the_answer() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    let large = "x".repeat(400 * 1024);
    for _ in 0..4 {
        hand.signal(&mut world, &large);
    }
    world.run();
    assert!(world.wires[hand.wire].paused[ACCEPTOR]);
    authorize(&mut world, &hand, Verdict::Admit);
    assert!(!world.wires[hand.wire].paused[ACCEPTOR]);
    assert_eq!(world.handled(0).len(), 4);
}

#[test]
fn a_second_register_on_the_peer_that_waits_is_acked_and_answered_with_the_first() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    let first = hand.register(&mut world);
    let second = hand.register(&mut world);
    world.run();
    assert_eq!(hand.heard(&world), ["ack register", "ack register"]);
    authorize(&mut world, &hand, Verdict::Admit);
    assert_eq!(
        hand.heard(&world)[2..],
        ["answer register", "answer register"]
    );
    let answered: Vec<_> = world
        .crossings_since(0, hand.wire, ACCEPTOR)
        .filter_map(|crossing| match &crossing.message().body {
            Body::Response(response) => Some(response.parent_id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(answered, [first, second]);
    assert_eq!(world.app_reports(0, "a").len(), 1);
}

#[test]
fn a_register_of_the_same_app_on_another_peer_is_refused_while_the_first_waits() {
    // The policy is asked before `appId-in-use` is looked at, so it answers for the second first.
    let mut world = World::with([asking("b")]);
    let first = world.hand(0, "a");
    first.register(&mut world);
    world.run();
    world.sites[0].verdict = Some(Verdict::Admit);
    let second = world.hand(0, "a");
    second.register(&mut world);
    world.run();
    assert_eq!(second.heard(&world), refused("appId-in-use"));
    assert_eq!(first.heard(&world), ["ack register"]);
    authorize(&mut world, &first, Verdict::Admit);
    assert_eq!(first.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_peer_that_closes_while_its_register_waits_is_never_bound() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.run();
    let peer = world.wires[hand.wire].peer(ACCEPTOR);
    hand.hang_up(&mut world);
    world.run();
    let now = world.now();
    world.node(0).handle_authorized(now, peer, Verdict::Admit);
    world.run();
    assert_eq!(world.app_reports(0, "a"), []);
    assert_eq!(world.state(0, "a"), None);
    // Its place is free for another.
    let next = world.hand(0, "a");
    next.register(&mut world);
    world.run();
    assert_eq!(next.heard(&world), ["ack register"]);
}

#[test]
fn a_node_that_ends_while_a_register_waits_closes_its_peer_at_once() {
    let mut world = World::with([asking("b")]);
    let hand = world.hand(0, "a");
    hand.register(&mut world);
    world.run();
    let now = world.now();
    world.node(0).terminate_now(now);
    world.run();
    assert!(!hand.is_open(&world));
    assert_eq!(world.app_reports(0, "a"), []);
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn state_is_read_again_when_the_policy_answers() {
    // Two apps wait for the last place: only the first that the policy admits gets it.
    let mut world = World::with([asking("b").max_links(1)]);
    let hands = [world.hand(0, "a"), world.hand(0, "c")];
    for hand in &hands {
        hand.register(&mut world);
    }
    world.run();
    for hand in [&hands[1], &hands[0]] {
        authorize(&mut world, hand, Verdict::Admit);
    }
    assert_eq!(hands[1].heard(&world), ["ack register", "answer register"]);
    assert_eq!(hands[0].heard(&world), refused("limit-reached"));
}

#[test]
fn a_register_that_was_admitted_and_is_held_owes_nothing_to_one_that_asks_later() {
    let mut world = World::with([asking("b")]);
    world.sites[0].verdict = Some(Verdict::Admit);
    world.native(0, "a");
    let held = world.hand(0, "a");
    held.register(&mut world);
    world.run();
    assert_eq!(held.heard(&world), ["ack register"]);
    world.sites[0].verdict = None;
    let asks = world.hand(0, "a");
    asks.register(&mut world);
    world.advance_to(secs(2));
    assert_eq!(held.heard(&world), ["ack register", "answer register"]);
    authorize(&mut world, &asks, Verdict::Refuse);
    assert_eq!(asks.heard(&world), refused("unauthorized"));
}

#[test]
fn of_registers_that_wait_for_the_policy_the_next_is_first_when_the_first_has_gone() {
    let mut world = World::with([asking("b")]);
    let ask = |world: &mut World| {
        let hand = world.hand(0, "a");
        hand.register(world);
        world.run();
        hand
    };
    let (first, second) = (ask(&mut world), ask(&mut world));
    first.hang_up(&mut world);
    world.run();
    let third = ask(&mut world);
    authorize(&mut world, &second, Verdict::Admit);
    assert_eq!(second.heard(&world), ["ack register", "answer register"]);
    assert_eq!(third.heard(&world), ["ack register"]);
}

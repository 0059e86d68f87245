//! Registering, the dialling side (specification, section 4.1).

use nacp_link::{Close, Connect, DialError, LinkState, MessageReport, Trust};
use nacp_proto::{AppId, Body, Registered, Response, Session};

use crate::support::{ACCEPTOR, DIALLER, Hand, World, app, ms, payload, quiet, secs};

const SESSION: Session = Session([7; 16]);

fn register_of(world: &World, hand: &Hand) -> nacp_proto::Register {
    match &hand.last(world, "register").body {
        Body::Register(register) => (**register).clone(),
        other => panic!("not a register: {other:?}"),
    }
}

#[test]
fn a_link_is_bound_by_the_good_response_and_not_before() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.run();
    assert_eq!(hand.heard(&world), ["register"]);
    assert_eq!(world.state(0, "b"), None);
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(9));
    hand.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(hand.heard(&world), ["register", "ack answer register"]);
    assert_eq!(world.app_reports(0, "b"), [(9_000, "bound", Some(false))]);
}

#[test]
fn the_response_binds_also_when_it_comes_before_the_ack() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.run();
    let register = hand.last_id(&world, "register");
    let registered = Registered {
        info: hand.info(),
        session: Some(SESSION),
        resumed: Some(false),
    };
    let response = Response::ok(register.clone(), registered.to_payload());
    hand.say(&mut world, Body::Response(response));
    hand.ack(&mut world, &register);
    world.run();
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
    assert!(hand.is_open(&world));
}

#[test]
fn an_unanswered_register_fails_response_timeout_after_ten_seconds_and_closes_the_peer() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.advance_to(ms(9_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "response-timeout");
    assert_eq!(world.settled_at(0, token), Some(secs(10)));
    assert!(!hand.is_open(&world));
    assert_eq!(
        world.register_errors(0),
        [(10_000, "response-timeout".to_owned())]
    );
    assert_eq!(world.state(0, "b"), None);
    assert_eq!(world.node(0).snapshot().peers, 0);
    assert_eq!(world.node(0).poll_timeout(), None);
}

#[test]
fn an_ack_alone_does_not_put_the_response_limit_off() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.advance_to(secs(9));
    hand.ack_line(&mut world, "register");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "response-timeout");
}

#[test]
fn an_answer_of_another_app_fails_expect_mismatch() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.run();
    let mut other = hand.clone();
    other.app = app("c");
    other.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    assert_eq!(world.outcome(0, token), "expect-mismatch");
    assert_eq!(world.state(0, "b"), None);
    assert_eq!(world.state(0, "c"), None);
    assert!(!hand.is_open(&world));
    assert_eq!(
        world.register_errors(0),
        [(0, "expect-mismatch".to_owned())]
    );
    let (_, settlement) = &world.sites[0].settled[&token];
    assert_eq!(
        *settlement,
        nacp_link::Settlement::DialFailed(DialError::ExpectMismatch { found: app("c") })
    );
}

#[test]
fn a_peer_that_ends_before_its_answer_fails_transport_closed() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_by(0, "b");
    world.advance_to(secs(1));
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(world.outcome(0, token), "transport-closed");
    assert_eq!(
        world.register_errors(0),
        [(1_000, "transport-closed".to_owned())]
    );
}

#[test]
fn a_connection_that_cannot_be_made_fails_transport_closed() {
    let mut world = World::with([quiet("a")]);
    let token = world.token();
    let Connect::Dial(dial) = world.node(0).connect(Some(app("b")), None, Some(token)) else {
        panic!("expected a dial");
    };
    let now = world.now();
    world.node(0).handle_dial_failed(now, dial);
    world.run();
    assert_eq!(world.outcome(0, token), "transport-closed");
}

#[test]
fn a_refusal_fails_with_the_other_sides_reason() {
    for why in ["appId-in-use", "unauthorized", "because"] {
        let mut world = World::with([quiet("a")]);
        let (hand, token) = world.dialled_by(0, "b");
        world.run();
        hand.refuse(&mut world, why);
        world.run();
        assert_eq!(world.outcome(0, token), why);
        assert_eq!(world.register_errors(0), [(0, why.to_owned())]);
        assert!(!hand.is_open(&world));
        assert_eq!(world.state(0, "b"), None);
    }
}

#[test]
fn a_second_gateway_that_was_dialled_fails_multi_gateway() {
    let mut world = World::with([quiet("a")]);
    for (name, expected) in [("g1", "connected g1"), ("g2", "multi-gateway")] {
        let (mut hand, token) = world.dialled_by(0, name);
        hand.is_gateway = true;
        world.run();
        hand.admit(&mut world, Some(SESSION), Some(false));
        world.run();
        assert_eq!(world.outcome(0, token), expected);
    }
    assert_eq!(world.state(0, "g2"), None);
    assert_eq!(world.register_errors(0), [(0, "multi-gateway".to_owned())]);
}

#[test]
fn a_second_gateway_that_was_dialled_is_a_plain_link_with_downgrade() {
    let mut world = World::with([quiet("a").multi_gateway_downgrade(true)]);
    for name in ["g1", "g2"] {
        let (mut hand, token) = world.dialled_by(0, name);
        hand.is_gateway = true;
        world.run();
        hand.admit(&mut world, Some(SESSION), Some(false));
        world.run();
        assert_eq!(world.outcome(0, token), format!("connected {name}"));
    }
    assert_eq!(
        world.reported(0, MessageReport::GatewayWarning),
        [(0, "multi-gateway-downgraded")]
    );
}

#[test]
fn a_gateway_comes_back_to_its_own_slot() {
    let mut world = World::with([quiet("a")]);
    for resumed in [false, true] {
        let (mut hand, token) = world.dialled_by(0, "g");
        hand.is_gateway = true;
        world.run();
        hand.admit(&mut world, Some(SESSION), Some(resumed));
        world.run();
        assert_eq!(world.outcome(0, token), "connected g");
        hand.hang_up(&mut world);
        world.run();
    }
}

#[test]
fn a_failed_register_leaves_an_offline_link_as_it_was() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let token = world.signal(0, "b", "m1");
    // Four attempts end in four ways; none touches the link or its grace.
    for (second, end) in [
        (1, "timeout"),
        (20, "refusal"),
        (21, "close"),
        (22, "mismatch"),
    ] {
        world.advance_to(secs(second));
        let (hand, dial) = world.dialled_by(0, "b");
        world.run();
        match end {
            "timeout" => world.advance(secs(10)),
            "refusal" => hand.refuse(&mut world, "appId-in-use"),
            "close" => hand.hang_up(&mut world),
            _ => {
                let mut other = hand.clone();
                other.app = app("c");
                other.admit(&mut world, None, None);
            }
        }
        world.run();
        assert!(world.outcome(0, dial) != "pending", "{end}");
        assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
        assert_eq!(world.node(0).snapshot().backlog.count, 1);
    }
    assert_eq!(world.changes(0, "b"), [(0, "online"), (0, "offline")]);
    world.advance_to(ms(119_999));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(120));
    assert_eq!(world.outcome(0, token), "peer-gone");
    assert_eq!(world.changes(0, "b")[2], (120_000, "dropped"));
}

#[test]
fn connecting_to_an_app_that_is_online_settles_at_once() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    let token = world.token();
    let connect = world.node(0).connect(Some(app("b")), None, Some(token));
    world.run();
    assert_eq!(connect, Connect::Settled);
    assert_eq!(world.outcome(0, token), "connected b");
}

#[test]
fn there_is_one_attempt_per_app_at_a_time_and_all_callers_share_its_end() {
    let mut world = World::with([quiet("a")]);
    let (hand, first) = world.dialled_by(0, "b");
    world.run();
    let second = world.token();
    let connect = world.node(0).connect(Some(app("b")), None, Some(second));
    assert_eq!(connect, Connect::Joined);
    hand.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    assert_eq!(
        world.outcomes(0, &[first, second]),
        ["connected b", "connected b"]
    );
}

#[test]
fn attempts_to_an_app_that_comes_online_by_another_way_end_in_success() {
    let mut world = World::with([quiet("a")]);
    let (dialled, token) = world.dialled_by(0, "b");
    world.run();
    world.advance_to(secs(3));
    world.foreign(0, "b");
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(world.settled_at(0, token), Some(secs(3)));
    assert!(!dialled.is_open(&world));
    assert_eq!(world.changes(0, "b"), [(3_000, "online")]);
}

#[test]
fn attempts_that_have_no_connection_yet_end_in_success_too() {
    let mut world = World::with([quiet("a")]);
    let token = world.token();
    let Connect::Dial(dial) = world.node(0).connect(Some(app("b")), None, Some(token)) else {
        panic!("expected a dial");
    };
    world.native(0, "b");
    assert_eq!(world.outcome(0, token), "connected b");
    // The connection comes late: nobody needs it.
    let hand = world.dialled_for(0, dial, "b");
    world.run();
    assert_eq!(hand.heard(&world), Vec::<&str>::new());
    assert!(!hand.is_open(&world));
}

#[test]
fn a_register_to_the_wildcard_takes_the_app_from_the_response() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let token = world.token();
    let Connect::Dial(dial) = world.node(0).connect(None, None, Some(token)) else {
        panic!("expected a dial");
    };
    let wire = world.lay(0, dial, 1);
    world.run();
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(world.state(0, "b"), Some(LinkState::Online));
    let register = world.crossings_since(0, wire, DIALLER).next().unwrap();
    assert_eq!(register.message().to, AppId::any());
}

#[test]
fn a_register_to_the_wildcard_never_carries_the_credential() {
    let mut world = World::with([quiet("a")]);
    let auth = Some(payload("secret"));
    let Connect::Dial(dial) = world.node(0).connect(None, auth.clone(), None) else {
        panic!("expected a dial");
    };
    let unnamed = world.dialled_for(0, dial, "b");
    world.run();
    assert_eq!(register_of(&world, &unnamed).auth, None);
    let Connect::Dial(dial) = world.node(0).connect(Some(app("c")), auth.clone(), None) else {
        panic!("expected a dial");
    };
    let named = world.dialled_for(0, dial, "c");
    world.run();
    assert_eq!(register_of(&world, &named).auth, auth);
}

#[test]
fn a_register_to_the_wildcard_that_nobody_answers_times_out() {
    let mut world = World::with([quiet("a")]);
    let (_, token) = world.dialled_unnamed(0, "b");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "response-timeout");
}

/// `a` has asked whoever answers, and `b` came to it meanwhile: by name the attempt would have ended
/// there. The answer that comes late is of a bind that `b` has left.
#[test]
fn an_answer_to_the_wildcard_from_an_app_that_has_come_online_since_changes_nothing() {
    for is_gone in [false, true] {
        let mut world = World::with([quiet("a")]);
        let (slow, token) = world.dialled_unnamed(0, "b");
        world.run();
        let living = world.native(0, "b");
        assert_eq!(world.outcome(0, token), "pending");
        if is_gone {
            living.hang_up(&mut world);
            world.run();
        }
        let changes = world.changes(0, "b");
        slow.admit(&mut world, Some(SESSION), Some(false));
        slow.signal(&mut world, "old");
        world.run();
        let expected = if is_gone {
            "transport-closed"
        } else {
            "connected b"
        };
        assert_eq!(world.outcome(0, token), expected);
        assert_eq!(world.changes(0, "b"), changes);
        assert_eq!(world.handled(0), Vec::<&str>::new());
        assert!(!slow.is_open(&world));
        assert_eq!(living.is_open(&world), !is_gone);
    }
}

/// Here the answer is the news: `b` was asked after its last bind, and has given that one up.
#[test]
fn an_answer_to_the_wildcard_from_an_app_that_was_online_before_takes_over() {
    let mut world = World::with([quiet("a")]);
    let old = world.native(0, "b");
    let (new, token) = world.dialled_unnamed(0, "b");
    world.run();
    new.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    assert_eq!(world.outcome(0, token), "connected b");
    assert_eq!(
        world.changes(0, "b"),
        [(0, "online"), (0, "offline"), (0, "online")]
    );
    assert!(!old.is_open(&world));
    assert!(new.is_open(&world));
}

#[test]
fn the_register_tells_gateway_declarations_instance_and_size() {
    let mut world = World::with([quiet("a").is_gateway(true).max_message_bytes(5000)]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    let register = register_of(&world, &hand);
    assert_eq!(register.version, nacp_proto::Version::CURRENT);
    assert!(register.info.is_gateway);
    assert_eq!(register.info.instance, Some(world.node(0).instance()));
    assert_eq!(register.info.max_message_bytes, Some(5000));
    assert_eq!(register.holds, []);
    assert_eq!(register.auth, None);
}

#[test]
fn messages_close_behind_the_answer_are_handled_in_order_and_are_no_faults() {
    for response_first in [false, true] {
        let mut world = World::with([quiet("a")]);
        let (hand, _) = world.dialled_by(0, "b");
        world.run();
        if response_first {
            let register = hand.last_id(&world, "register");
            let registered = Registered {
                info: hand.info(),
                session: Some(SESSION),
                resumed: Some(false),
            };
            let response = Response::ok(register.clone(), registered.to_payload());
            hand.say(&mut world, Body::Response(response));
            hand.ack(&mut world, &register);
        } else {
            hand.admit(&mut world, Some(SESSION), Some(false));
        }
        for number in 0..100 {
            hand.signal(&mut world, &format!("m{number}"));
        }
        world.run();
        let expected: Vec<_> = (0..100).map(|number| format!("m{number}")).collect();
        assert_eq!(world.handled(0), expected);
        assert_eq!(world.reported(0, MessageReport::InboundError), []);
    }
}

#[test]
fn messages_before_the_answer_are_kept_and_handled_right_behind_it() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    for label in ["m1", "m2"] {
        hand.signal(&mut world, label);
    }
    world.run();
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(hand.heard(&world), ["register"]);
    hand.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    assert_eq!(world.handled(0), ["m1", "m2"]);
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn messages_before_a_refusal_are_discarded_and_are_no_faults() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    for _ in 0..20 {
        hand.signal(&mut world, "m");
    }
    world.run();
    hand.refuse(&mut world, "unauthorized");
    world.run();
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn the_dialler_closes_a_refused_peer_at_once() {
    let mut world = World::with([quiet("b"), quiet("b")]);
    // Both are `b`: the second refuses the first as its own AppId.
    let token = world.token();
    let Connect::Dial(dial) = world.node(0).connect(None, None, Some(token)) else {
        panic!("expected a dial");
    };
    let wire = world.lay(0, dial, 1);
    world.run();
    assert_eq!(world.outcome(0, token), "appId-in-use");
    assert_eq!(world.closed(1, wire), [(0, Close::Refuse)]);
    assert_eq!(world.closed(0, wire).len(), 1);
    assert_eq!(world.node(0).snapshot().peers, 0);
    assert_eq!(world.node(1).snapshot().peers, 0);
}

#[test]
fn an_offline_link_is_dialled_with_the_sessions_that_it_answers_to() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(SESSION), Some(false));
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let (again, _) = world.dialled_by(0, "b");
    world.run();
    assert_eq!(register_of(&world, &again).holds, [SESSION]);
}

#[test]
fn the_bind_of_a_proven_connection_is_the_same_as_of_another() {
    for trust in [Trust::Proven, Trust::Unproven] {
        let mut world = World::with([quiet("a"), quiet("b")]);
        world.trust = trust;
        let wire = world.link(0, 1);
        assert_eq!(
            world.said(wire, ACCEPTOR),
            ["ack register", "answer register"]
        );
    }
}

#[test]
fn an_answer_of_nobody_is_malformed_and_binds_nothing() {
    let mut world = World::with([quiet("a")]);
    let (hand, token) = world.dialled_unnamed(0, "b");
    world.run();
    let registered = Registered {
        info: hand.info(),
        session: Some(Session([1; 16])),
        resumed: Some(false),
    };
    let parent_id = hand.last_id(&world, "register");
    let body = Body::Response(Response::ok(parent_id, registered.to_payload()));
    let fresh = world.fresh_id();
    hand.say_as(&mut world, fresh, &AppId::any(), &hand.node, body);
    world.run();
    assert_eq!(world.outcome(0, token), "malformed");
    assert_eq!(world.node(0).snapshot().links, 0);
}

#[test]
fn a_register_for_whoever_answers_never_carries_a_credential() {
    for target in [None, Some(AppId::any())] {
        let mut world = World::with([quiet("a")]);
        let Connect::Dial(dial) = world.node(0).connect(target, Some(payload("secret")), None)
        else {
            panic!("no dial");
        };
        let hand = world.dialled_for(0, dial, "b");
        world.run();
        let Body::Register(register) = &hand.last(&world, "register").body else {
            panic!("not a register");
        };
        assert_eq!(register.auth, None);
    }
}

//! A node behind a gateway (specification, sections 5, 9 and 11).

use nacp_link::{Config, Event, LinkState, MessageReport, OverflowPolicy, StreamId};
use nacp_proto::{Body, Instance, MessageId, RequestKind, Response, Signal};

use crate::support::{ACCEPTOR, Hand, Intake, Mode, World, app, id, ms, payload, quiet, secs};

/// A leaf with a gateway `g` under control of the test.
fn with_gateway(config: Config) -> (World, Hand) {
    let mut world = World::with([config]);
    let gateway = gateway(&mut world, "g");
    (world, gateway)
}

fn gateway(world: &mut World, name: &str) -> Hand {
    let mut hand = world.hand(0, name);
    hand.is_gateway = true;
    hand.register(world);
    world.run();
    hand.ack_last_response(world);
    world.run();
    hand
}

/// A message of an app behind the gateway.
fn from(world: &mut World, gateway: &Hand, source: &str, body: Body) {
    let (fresh, node) = (world.fresh_id(), gateway.node.clone());
    gateway.say_as(world, fresh, &app(source), &node, body);
}

fn ack_as(world: &mut World, gateway: &Hand, source: &str, line: &str) {
    let parent_id = gateway.last_id(world, line);
    from(world, gateway, source, Body::Ack { parent_id });
}

fn hit(subscription: &MessageId) -> Body {
    Body::Notify {
        parent_id: subscription.clone(),
        target_sub_name: "x".into(),
        hit_sub_name: "x".into(),
        payload: payload("n1"),
        seq: None,
    }
}

/// A subscription at `z`, behind the gateway, that was answered; and its id there.
fn live_stream(world: &mut World, gateway: &Hand) -> (StreamId, MessageId) {
    let (_, stream) = world.subscribe(0, "z", "x");
    world.run();
    ack_as(world, gateway, "z", "subscribe x");
    let parent_id = gateway.last_id(world, "subscribe x");
    let answer = Response::ok(parent_id.clone(), payload("fine"));
    from(world, gateway, "z", Body::Response(answer));
    world.run();
    (stream.unwrap(), parent_id)
}

fn times(world: &World, gateway: &Hand, line: &str) -> Vec<u128> {
    world
        .timed(gateway.wire, ACCEPTOR)
        .into_iter()
        .filter(|(_, said)| *said == line)
        .map(|(at, _)| at)
        .collect()
}

#[test]
fn what_has_no_link_leaves_by_the_adopted_gateway() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let token = world.signal(0, "z", "m1");
    world.run();
    assert_eq!(gateway.last(&world, "signal m1").to, app("z"));
    ack_as(&mut world, &gateway, "z", "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
}

#[test]
fn an_own_link_goes_before_the_gateway_also_while_it_is_offline() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let direct = world.native(0, "z");
    direct.hang_up(&mut world);
    world.run();
    let mark = world.mark();
    let token = world.signal(0, "z", "m1");
    world.run();
    assert_eq!(gateway.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn messages_of_apps_behind_the_gateway_are_acked_by_the_peer_that_brought_them() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let mark = world.mark();
    let parent_id = id("run");
    let signal = Signal::Normal(payload("m1"));
    from(
        &mut world,
        &gateway,
        "z",
        Body::Signal { parent_id, signal },
    );
    world.run();
    assert_eq!(gateway.heard_since(&world, mark), ["ack m1"]);
    assert_eq!(gateway.last(&world, "ack m1").to, app("z"));
    assert_eq!(world.handled(0), ["m1"]);
}

#[test]
fn a_gateway_may_speak_for_anyone_but_us_and_apps_bound_elsewhere_and_that_costs_it_no_faults() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    world.native(0, "direct");
    for source in ["a", "direct"].repeat(20) {
        let parent_id = id("run");
        let signal = Signal::Pause;
        from(
            &mut world,
            &gateway,
            source,
            Body::Signal { parent_id, signal },
        );
    }
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::InboundError),
        [(0, "source-mismatch"); 40]
    );
    assert_eq!(world.handled(0), Vec::<&str>::new());
    assert!(gateway.is_open(&world));
    assert_eq!(world.peer_errors(0), []);
}

#[test]
fn t30_without_an_ack_a_message_goes_out_three_times_and_settles_unroutable_relay() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    world.advance_to(secs(1));
    let request = world.request(0, "z", "r1");
    let signal = world.signal(0, "z", "m1");
    world.advance_to(ms(30_999));
    assert_eq!(world.outcomes(0, &[request, signal]), ["pending"; 2]);
    world.advance_to(secs(31));
    assert_eq!(
        world.outcomes(0, &[request, signal]),
        ["unroutable-relay"; 2]
    );
    for line in ["request r1", "signal m1"] {
        assert_eq!(times(&world, &gateway, line), [1_000, 11_000, 21_000]);
    }
    let copies: Vec<_> = world
        .log
        .iter()
        .filter(|crossing| crossing.line == "request r1")
        .map(|crossing| crossing.bytes.clone())
        .collect();
    assert_eq!(copies[0], copies[1]);
    assert_eq!(copies[1], copies[2]);
    assert_eq!(
        world.reported_of(0, MessageReport::AckWarning),
        [
            "relay-retry r1",
            "relay-retry m1",
            "relay-retry r1",
            "relay-retry m1",
            "unroutable-relay r1",
            "unroutable-relay m1"
        ]
    );
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
    world.assert_at_rest(0);
    // A late answer harms nothing.
    let parent_id = gateway.last_id(&world, "request r1");
    from(
        &mut world,
        &gateway,
        "z",
        Body::Response(Response::ok(parent_id, payload("late"))),
    );
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(31_000, "has-no-consumer")]
    );
}

#[test]
fn t30_an_ack_of_any_try_settles() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let token = world.signal(0, "z", "m1");
    world.advance_to(secs(25));
    ack_as(&mut world, &gateway, "z", "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    world.advance_to(secs(100));
    assert_eq!(times(&world, &gateway, "signal m1").len(), 3);
}

#[test]
fn the_gateways_own_messages_still_condemn_it() {
    let (mut world, _gateway) = with_gateway(quiet("a"));
    world.signal(0, "g", "m1");
    world.advance_to(secs(10));
    assert_eq!(world.changes(0, "g"), [(0, "online"), (10_000, "offline")]);
}

#[test]
fn the_clock_of_a_relayed_message_stands_while_the_gateway_is_offline_and_a_replay_is_no_try() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let token = world.signal(0, "z", "m1");
    world.advance_to(secs(5));
    gateway.hang_up(&mut world);
    world.advance_to(secs(100));
    assert_eq!(world.outcome(0, token), "pending");
    let mut back = world.hand(0, "g");
    back.is_gateway = true;
    back.holds = vec![gateway.session(&world)];
    back.register(&mut world);
    world.run();
    back.ack_last_response(&mut world);
    world.run();
    assert_eq!(times(&world, &back, "signal m1"), [100_000]);
    world.advance_to(secs(129));
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(
        times(&world, &back, "signal m1"),
        [100_000, 110_000, 120_000]
    );
    world.advance_to(secs(130));
    assert_eq!(world.outcome(0, token), "unroutable-relay");
}

#[test]
fn what_waits_for_apps_behind_a_gateway_shares_the_fate_of_its_link() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let tokens = [world.signal(0, "z", "m1"), world.request(0, "z", "r1")];
    world.run();
    gateway.hang_up(&mut world);
    world.advance_to(secs(120));
    assert_eq!(world.outcomes(0, &tokens), ["peer-gone"; 2]);
    let late = world.signal(0, "z", "m2");
    world.run();
    assert_eq!(world.outcome(0, late), "no-route");
}

#[test]
fn an_app_that_binds_directly_takes_its_records_with_it_in_order() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let tokens = world.signals(0, "z", 1..=3);
    world.run();
    world.signal(0, "y", "other");
    world.run();
    ack_as(&mut world, &gateway, "z", "signal m1");
    world.run();
    let direct = world.native(0, "z");
    assert_eq!(direct.heard(&world)[2..], ["signal m2", "signal m3"]);
    direct.ack_line(&mut world, "signal m2");
    direct.ack_line(&mut world, "signal m3");
    world.run();
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 3]);
    world.advance_to(secs(9));
    assert_eq!(world.node(0).snapshot().ack_pending.count, 1);
}

#[test]
fn waiters_and_streams_of_an_app_that_binds_directly_move_to_its_own_link() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let request = world.request(0, "z", "r1");
    let (subscribe, _) = world.subscribe(0, "z", "x");
    world.run();
    for line in ["request r1", "subscribe x"] {
        ack_as(&mut world, &gateway, "z", line);
    }
    let parent_id = gateway.last_id(&world, "subscribe x");
    from(
        &mut world,
        &gateway,
        "z",
        Body::Response(Response::ok(parent_id, payload("fine"))),
    );
    world.run();
    assert_eq!(world.outcome(0, subscribe), "ok fine");
    let direct = world.native(0, "z");
    direct.hang_up(&mut world);
    world.advance_to(secs(120));
    assert_eq!(world.outcome(0, request), "peer-gone");
    assert_eq!(world.state(0, "g"), Some(LinkState::Online));
    assert_eq!(world.node(0).snapshot().streams, 0);
}

/// `z`, known through the gateway, registers twice: the first time our answer is lost, or not.
/// What each side had at the other, how our request to it ended, and what `z` is told at the second.
fn returns_after(answer_is_lost: bool) -> (usize, usize, Vec<String>, String, Vec<String>) {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let (_, stream) = world.subscribe(0, "z", "x");
    let request = world.request(0, "z", "r1");
    world.run();
    for line in ["subscribe x", "request r1"] {
        ack_as(&mut world, &gateway, "z", line);
    }
    let parent_id = gateway.last_id(&world, "subscribe x");
    let answer = Body::Response(Response::ok(parent_id, payload("fine")));
    from(&mut world, &gateway, "z", answer);
    let theirs = [
        Body::Subscribe {
            target_sub_name: "y".into(),
        },
        Body::Request {
            kind: RequestKind::Ability,
            target: Some("work".into()),
            payload: payload("theirs"),
        },
    ];
    for body in theirs {
        from(&mut world, &gateway, "z", body);
    }
    let signal = Body::Signal {
        parent_id: id("run"),
        signal: Signal::Normal(payload("once")),
    };
    gateway.say_as(&mut world, id("one"), &app("z"), &app("a"), signal.clone());
    world.run();
    assert!(stream.is_some());
    let first = world.hand(0, "z");
    first.register(&mut world);
    world.run();
    if !answer_is_lost {
        first.ack_last_response(&mut world);
        world.run();
    }
    first.hang_up(&mut world);
    world.run();
    let back = world.hand(0, "z");
    back.register(&mut world);
    world.run();
    back.say_with(&mut world, id("one"), signal);
    world.run();
    let snapshot = world.node(0).snapshot();
    (
        snapshot.subscriptions,
        snapshot.running,
        world.handled(0).iter().map(|&line| line.into()).collect(),
        world.outcome(0, request),
        back.heard(&world)[2..]
            .iter()
            .map(|&line| line.into())
            .collect(),
    )
}

/// It kept no link because it never had one: what it has here by the gateway's goes on, nothing is
/// handled twice, and no subscription of ours is doubled there.
#[test]
fn an_app_that_never_got_the_answer_to_its_first_register_loses_nothing_here() {
    let (subscriptions, running, handled, request, heard) = returns_after(true);
    assert_eq!((subscriptions, running), (1, 1));
    assert_eq!(handled, ["theirs", "once"]);
    assert_eq!(request, "session-lost");
    assert_eq!(heard, ["unsubscribe x", "subscribe x", "ack once"]);
}

#[test]
fn an_app_that_got_the_answer_and_kept_no_link_has_dropped_it_with_all_that_came_from_the_gateway()
{
    let (subscriptions, running, handled, request, heard) = returns_after(false);
    assert_eq!((subscriptions, running), (0, 0));
    assert_eq!(handled, ["theirs", "once", "once"]);
    assert_eq!(request, "session-lost");
    assert_eq!(heard, ["subscribe x", "ack once"]);
}

/// What `z`, bound directly, says at last of the subscription that was ended while it was away, and
/// what it hears then.
fn hit_after_return(world: &mut World, back: &Hand, ended: &MessageId) -> Vec<String> {
    let mark = world.mark();
    back.notify(world, ended, "x", "n1");
    world.run();
    let heard = back.heard_since(world, mark);
    heard.iter().map(|&line| line.into()).collect()
}

#[test]
fn t27_a_subscription_ended_offline_is_ended_at_an_app_that_never_got_our_answer_to_its_register() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let (stream, ended) = live_stream(&mut world, &gateway);
    let first = world.hand(0, "z");
    first.register(&mut world);
    world.run();
    first.hang_up(&mut world);
    world.run();
    let token = world.unsubscribe(0, stream);
    let back = world.hand(0, "z");
    back.register(&mut world);
    world.run();
    assert_eq!(world.outcome(0, token), "session-lost");
    let heard = hit_after_return(&mut world, &back, &ended);
    assert_eq!(heard, ["unsubscribe x"]);
}

#[test]
fn t27_a_lost_session_of_the_gateway_forgets_no_subscription_given_up_behind_it() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let (token, _) = world.subscribe(0, "z", "x");
    world.run();
    ack_as(&mut world, &gateway, "z", "subscribe x");
    let given_up = gateway.last_id(&world, "subscribe x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    gateway.hang_up(&mut world);
    world.run();
    let mut back = world.hand(0, "g");
    back.is_gateway = true;
    back.instance = Some(Instance([8; 16]));
    back.register(&mut world);
    world.run();
    from(&mut world, &back, "z", hit(&given_up));
    world.run();
    assert_eq!(back.heard(&world).last(), Some(&"unsubscribe x"));
}

#[test]
fn t27_a_subscription_given_up_behind_a_gateway_is_ended_at_the_app_bound_directly() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let (token, _) = world.subscribe(0, "z", "x");
    world.run();
    ack_as(&mut world, &gateway, "z", "subscribe x");
    let given_up = gateway.last_id(&world, "subscribe x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    let direct = world.native(0, "z");
    let heard = hit_after_return(&mut world, &direct, &given_up);
    assert_eq!(heard, ["unsubscribe x"]);
}

#[test]
fn t27_a_subscription_ended_behind_a_gateway_is_ended_at_the_app_bound_directly() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let (stream, ended) = live_stream(&mut world, &gateway);
    let token = world.unsubscribe(0, stream);
    world.run();
    ack_as(&mut world, &gateway, "z", "unsubscribe x");
    world.advance_to(secs(10));
    assert_eq!(world.outcome(0, token), "timeout");
    let direct = world.native(0, "z");
    let heard = hit_after_return(&mut world, &direct, &ended);
    assert_eq!(heard, ["unsubscribe x"]);
}

#[test]
fn t27_a_withdrawn_call_is_not_put_back_when_its_app_binds_directly() {
    let (mut world, _gateway) = with_gateway(quiet("a"));
    let (token, request) = world.ask(0, "z", "r1", RequestKind::Ability, Some(secs(5)));
    world.signal(0, "z", "m1");
    world.advance_to(secs(5));
    assert_eq!(world.outcome(0, token), "timeout");
    let direct = world.native(0, "z");
    assert_eq!(direct.heard(&world)[2..], ["signal m1"]);
    direct.ack_line(&mut world, "signal m1");
    world.run();
    world.assert_at_rest(0);
    let request = format!("{:?}", request.unwrap());
    assert!(!format!("{:?}", world.node(0)).contains(&request));
}

#[test]
fn blocked_sends_of_an_app_that_binds_directly_move_behind_its_other_records() {
    for overflow in [OverflowPolicy::Evict, OverflowPolicy::Wait] {
        let config = quiet("a").submit_max_count(1).queue_max_count(2);
        let (mut world, gateway) = with_gateway(config.overflow(overflow));
        world.set_intake(gateway.wire, ACCEPTOR, Intake::Stalled);
        let tokens = world.signals(0, "z", 1..=6);
        let other = world.signal(0, "y", "other");
        let (withdrawn, _) = world.ask(0, "z", "r1", RequestKind::Ability, Some(secs(5)));
        world.advance_to(secs(5));
        assert_eq!(world.outcome(0, withdrawn), "timeout");
        let direct = world.hand(0, "z");
        direct.ack_all(&mut world, true);
        direct.register(&mut world);
        world.run();
        // What was submitted is put back into a full backlog, and evicts its head.
        let evicted = usize::from(overflow == OverflowPolicy::Evict);
        let mut ends = ["evicted"; 6];
        ends[evicted..].fill("delivered");
        assert_eq!(world.outcomes(0, &tokens), ends, "{overflow:?}");
        let signals = [
            "signal m1",
            "signal m2",
            "signal m3",
            "signal m4",
            "signal m5",
            "signal m6",
        ];
        assert_eq!(direct.heard(&world)[2..], signals[evicted..]);
        // What waited for another app stays where it was.
        assert_eq!(world.outcome(0, other), "pending");
        world.set_intake(gateway.wire, ACCEPTOR, Intake::Open);
        world.run();
        ack_as(&mut world, &gateway, "y", "signal other");
        world.run();
        assert_eq!(world.outcome(0, other), "delivered");
        world.assert_at_rest(0);
    }
}

#[test]
fn after_the_gateway_is_dropped_the_one_linked_longest_is_adopted() {
    let config = quiet("a").multi_gateway_downgrade(true);
    let (mut world, first) = with_gateway(config);
    let second = gateway(&mut world, "h");
    gateway(&mut world, "i");
    first.hang_up(&mut world);
    world.run();
    // Offline it keeps its place.
    let waiting = world.signal(0, "z", "m1");
    world.advance_to(secs(120));
    assert_eq!(world.outcome(0, waiting), "peer-gone");
    world.signal(0, "z", "m2");
    world.run();
    assert_eq!(second.heard(&world).last(), Some(&"signal m2"));
}

#[test]
fn a_lost_session_of_the_gateway_ends_only_what_is_addressed_to_it() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    let own = world.signal(0, "g", "m1");
    let behind = world.signal(0, "z", "m2");
    world.run();
    gateway.hang_up(&mut world);
    world.run();
    let mut back = world.hand(0, "g");
    back.is_gateway = true;
    back.instance = Some(Instance([8; 16]));
    back.register(&mut world);
    world.run();
    assert_eq!(
        world.outcomes(0, &[own, behind]),
        ["session-lost", "pending"]
    );
    assert_eq!(back.heard(&world)[2..], ["signal m2"]);
}

#[test]
fn t30_a_request_to_an_app_that_nobody_knows_is_rejected_after_thirty_seconds() {
    let mut world = World::with([quiet("a"), quiet("g").is_gateway(true)]);
    world.link(0, 1);
    let token = world.request(0, "nobody", "r1");
    world.advance_to(secs(29));
    assert_eq!(world.outcome(0, token), "pending");
    world.advance_to(secs(30));
    assert_eq!(world.outcome(0, token), "unroutable-relay");
    assert_eq!(
        world.reported(1, MessageReport::GatewayError),
        [(0, "dropped"), (10_000, "dropped"), (20_000, "dropped")]
    );
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
}

#[test]
fn t30_copies_that_wait_at_the_gateway_are_handled_once() {
    let mut world = World::with([quiet("a"), quiet("g").is_gateway(true), quiet("b")]);
    world.link(0, 1);
    let wire = world.link(2, 1);
    world.cut(wire);
    world.advance_to(secs(1));
    let token = world.request(0, "b", "r1");
    world.advance_to(secs(25));
    assert_eq!(world.node(1).snapshot().backlog.count, 1);
    world.link(2, 1);
    assert_eq!(world.handled(2), ["r1"]);
    world.answer(2, "r1");
    world.run();
    assert_eq!(world.outcome(0, token), "ok r1");
    world.assert_at_rest(0);
}

#[test]
fn t30_a_request_that_was_given_up_may_still_be_handled() {
    let mut world = World::with([quiet("a"), quiet("g").is_gateway(true), quiet("b")]);
    world.link(0, 1);
    let wire = world.link(2, 1);
    world.cut(wire);
    world.advance_to(secs(1));
    let token = world.request(0, "b", "r1");
    world.advance_to(secs(31));
    assert_eq!(world.outcome(0, token), "unroutable-relay");
    world.advance_to(secs(40));
    world.link(2, 1);
    assert_eq!(world.handled(2), ["r1"]);
    world.answer(2, "r1");
    world.run();
    assert_eq!(
        world.reported(0, MessageReport::ResponseError),
        [(40_000, "has-no-consumer")]
    );
}

#[test]
fn t30_a_cut_to_the_gateway_replays_what_waited_in_order() {
    let mut world = World::with([quiet("a"), quiet("g").is_gateway(true), quiet("b")]);
    let wire = world.link(0, 1);
    world.link(2, 1);
    world.hold(wire, ACCEPTOR);
    let mut tokens = world.signals(0, "b", 1..=5);
    world.run();
    world.cut(wire);
    world.run();
    tokens.extend(world.signals(0, "b", 6..=8));
    world.advance_to(secs(3));
    world.link(0, 1);
    assert_eq!(
        world.handled(2),
        (1..=8)
            .map(|number| format!("m{number}"))
            .collect::<Vec<_>>()
    );
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 8]);
}

#[test]
fn streams_behind_a_gateway_end_when_its_link_does() {
    let (mut world, gateway) = with_gateway(quiet("a"));
    world.subscribe(0, "z", "x");
    world.run();
    ack_as(&mut world, &gateway, "z", "subscribe x");
    let parent_id = gateway.last_id(&world, "subscribe x");
    from(
        &mut world,
        &gateway,
        "z",
        Body::Response(Response::ok(parent_id, payload("fine"))),
    );
    world.run();
    gateway.say(&mut world, Body::Unregister);
    world.run();
    assert!(
        world.sites[0]
            .events
            .iter()
            .any(|(_, event)| matches!(event, Event::StreamEnded { .. }))
    );
    assert_eq!(world.node(0).snapshot().streams, 0);
}

#[test]
fn t30_a_gateway_that_restarts_loses_nothing_that_waited_for_apps_behind_it() {
    let gateway = || quiet("g").is_gateway(true);
    let mut world = World::with([quiet("a"), gateway(), quiet("b")]);
    world.link(0, 1);
    let behind = world.link(2, 1);
    world.hold(behind, ACCEPTOR);
    let mut tokens = world.signals(0, "b", 1..=3);
    let own = world.signal(0, "g", "own");
    world.run();
    assert_eq!(world.outcome(0, own), "delivered");
    world.set_mode(behind, ACCEPTOR, Mode::Deliver);
    world.restart(1, gateway(), [9; 32]);
    world.run();
    tokens.extend(world.signals(0, "b", 4..=5));
    world.advance_to(secs(2));
    world.link(2, 1);
    world.link(0, 1);
    world.advance_to(secs(60));
    assert_eq!(world.outcomes(0, &tokens), ["delivered"; 5]);
    assert_eq!(world.handled(2), ["m1", "m2", "m3", "m4", "m5"]);
    world.assert_at_rest(0);
}

#[test]
fn t30_what_a_full_gateway_dropped_is_told_to_its_sender() {
    let gateway = quiet("g").is_gateway(true).queue_max_count(4);
    let mut world = World::with([quiet("a"), gateway, quiet("b"), quiet("c"), quiet("d")]);
    for site in [0, 2, 3, 4] {
        let wire = world.link(site, 1);
        if site == 2 {
            world.cut(wire);
        }
    }
    world.run();
    let tokens = world.signals(0, "b", 1..=100);
    let healthy = world.request(3, "d", "r1");
    world.run();
    world.answer(4, "r1");
    world.run();
    assert_eq!(world.outcome(3, healthy), "ok r1");
    assert!(world.node(1).snapshot().backlog.count <= 4);
    world.advance_to(secs(31));
    assert_eq!(world.outcomes(0, &tokens), vec!["unroutable-relay"; 100]);
    assert_eq!(world.changes(0, "g"), [(0, "online")]);
    world.assert_at_rest(0);
}

#[test]
fn a_cautious_replay_at_a_gateway_goes_on_when_what_it_waits_for_moves_away() {
    let (mut world, mut gateway) = with_gateway(quiet("a"));
    world.signal(0, "z", "m1");
    world.signal(0, "g", "m2");
    world.run();
    for _ in 0..2 {
        gateway.hang_up(&mut world);
        world.run();
        let session = gateway.session(&world);
        gateway = world.hand(0, "g");
        gateway.is_gateway = true;
        gateway.holds = vec![session];
        gateway.register(&mut world);
        world.run();
        gateway.ack_last_response(&mut world);
        world.run();
    }
    assert_eq!(gateway.heard(&world)[2..], ["signal m1"]);
    let direct = world.native(0, "z");
    assert_eq!(direct.heard(&world)[2..], ["signal m1"]);
    assert_eq!(gateway.heard(&world)[2..], ["signal m1", "signal m2"]);
}

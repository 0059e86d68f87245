//! What is reported, and the snapshot (specification, section 13).

use nacp_link::{Interest, MessageReport, Reason, Report};
use nacp_proto::MessageType;

use crate::support::{ACCEPTOR, Hand, World, app, id, quiet, secs};

fn traffic(world: &World, site: usize) -> Vec<String> {
    world.sites[site]
        .reports
        .iter()
        .filter_map(|(_, report)| match report {
            Report::Inbound { subject, .. } => Some(format!("in {}", subject.type_name)),
            Report::Outbound { subject, peer } => {
                let how = if peer.is_some() { "out" } else { "nowhere" };
                Some(format!("{how} {}", subject.type_name))
            }
            Report::PeerConnect { .. } => Some("connect".to_owned()),
            Report::PeerDisconnect { .. } => Some("disconnect".to_owned()),
            Report::App { reason, .. } => Some(reason.to_string()),
            _ => None,
        })
        .collect()
}

fn start() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    world.sites[0].reports.clear();
    (world, hand)
}

#[test]
fn a_register_is_reported_in_the_order_in_which_it_happens() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.hang_up(&mut world);
    world.run();
    assert_eq!(
        traffic(&world, 0),
        [
            "connect",
            "in register",
            "bound",
            "out ack",
            "out response",
            "in ack",
            "disconnect",
            "offline"
        ]
    );
}

#[test]
fn inbound_is_reported_before_any_check() {
    let mut world = World::with([quiet("b")]);
    let hand = world.hand(0, "a");
    hand.signal(&mut world, "m1");
    hand.say_json(&mut world, serde_json::json!({"type": "novelty"}));
    world.run();
    let of: Vec<_> = traffic(&world, 0);
    assert_eq!(of, ["connect", "in signal", "in novelty"]);
    assert_eq!(world.reported(0, MessageReport::InboundError).len(), 2);
}

#[test]
fn outbound_is_reported_at_each_attempt_to_submit_and_not_when_queued_offline() {
    let (mut world, hand) = start();
    world.signal(0, "a", "m1");
    world.run();
    assert_eq!(traffic(&world, 0), ["out signal"]);
    hand.hang_up(&mut world);
    world.run();
    world.sites[0].reports.clear();
    world.signal(0, "a", "m2");
    world.run();
    assert_eq!(traffic(&world, 0), Vec::<String>::new());
    let mut back = world.hand(0, "a");
    back.holds = vec![hand.session(&world)];
    back.register(&mut world);
    world.run();
    let signals = traffic(&world, 0);
    assert_eq!(
        signals.iter().filter(|line| *line == "out signal").count(),
        2
    );
}

#[test]
fn outbound_is_reported_before_a_route_error_without_a_peer() {
    let (mut world, _hand) = start();
    world.signal(0, "z", "m1");
    world.run();
    let kinds: Vec<_> = world.sites[0]
        .reports
        .iter()
        .map(|(_, report)| match report {
            Report::Outbound {
                peer: None,
                subject,
            } => format!("nowhere {}", subject.type_name),
            Report::Message { kind, reason, .. } => format!("{} {reason}", kind.as_str()),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(
        kinds,
        ["nowhere signal", "nacp:internal:route:error no-route"]
    );
}

#[test]
fn every_report_has_the_specifications_name() {
    let names = [
        (MessageReport::RouteError, "nacp:internal:route:error"),
        (MessageReport::AckWarning, "nacp:internal:ack:warning"),
        (MessageReport::AckError, "nacp:internal:ack:error"),
        (MessageReport::ResponseError, "nacp:internal:response:error"),
        (MessageReport::NotifyError, "nacp:internal:notify:error"),
        (
            MessageReport::BacklogWarning,
            "nacp:internal:backlog:warning",
        ),
        (MessageReport::RequestError, "nacp:internal:request:error"),
        (MessageReport::SignalError, "nacp:internal:signal:error"),
        (
            MessageReport::SubscribeError,
            "nacp:internal:subscribe:error",
        ),
        (MessageReport::MessageError, "nacp:internal:message:error"),
        (MessageReport::InboundError, "nacp:internal:inbound:error"),
        (
            MessageReport::GatewaySuccess,
            "nacp:internal:gateway:success",
        ),
        (MessageReport::GatewayError, "nacp:internal:gateway:error"),
        (
            MessageReport::GatewayWarning,
            "nacp:internal:gateway:warning",
        ),
    ];
    for (kind, name) in names {
        assert_eq!(kind.as_str(), name);
    }
}

#[test]
fn what_nobody_asks_for_is_not_built() {
    let mut world = World::with([quiet("b")]);
    world.node(0).set_interest(Interest::NONE);
    let hand = world.native(0, "a");
    hand.signal(&mut world, "m1");
    world.signal(0, "z", "m1");
    world.run();
    assert_eq!(world.sites[0].reports, []);
    world
        .node(0)
        .set_interest(Interest::inbound(Some(MessageType::Signal)));
    hand.signal(&mut world, "m2");
    hand.subscribe(&mut world, "x");
    world.run();
    assert_eq!(traffic(&world, 0), ["in signal"]);
}

#[test]
fn interests_are_sets() {
    let signal = Interest::inbound(Some(MessageType::Signal));
    let both = signal.union(Interest::outbound(MessageType::Signal));
    assert!(both.contains(signal));
    assert!(!signal.contains(both));
    assert!(Interest::ALL.contains(both));
    assert!(both.contains(Interest::NONE));
    assert!(!both.contains(Interest::inbound(None)));
    assert!(!Interest::PEERS.contains(Interest::APPS));
    assert!(
        !Interest::message(MessageReport::AckError)
            .contains(Interest::message(MessageReport::AckWarning))
    );
}

#[test]
fn bound_reports_tell_gateway_and_resumed() {
    let mut world = World::with([quiet("b")]);
    let mut hand = world.hand(0, "g");
    hand.is_gateway = true;
    hand.register(&mut world);
    world.run();
    let found = world.sites[0]
        .reports
        .iter()
        .find_map(|(_, report)| match report {
            Report::App {
                app,
                reason,
                is_gateway,
                resumed,
            } => Some((app.clone(), *reason, *is_gateway, *resumed)),
            _ => None,
        });
    assert_eq!(
        found,
        Some((app("g"), Reason::Bound, Some(true), Some(false)))
    );
}

#[test]
fn a_fault_of_the_transport_is_reported_once_with_its_reason() {
    let (mut world, hand) = start();
    world.notice(hand.wire, ACCEPTOR, Some("overlapping-frame"));
    world.run();
    assert_eq!(world.peer_errors(0), [(0, "overlapping-frame")]);
    assert_eq!(traffic(&world, 0), ["disconnect", "offline"]);
}

#[test]
fn the_totals_count_by_type_and_by_reason() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    world.signals(0, "b", 1..=3);
    world.signal(0, "z", "m");
    world.request(0, "b", "r1");
    world.run();
    let totals = world.sites[1].node.totals();
    assert_eq!(totals.received_of(Some(MessageType::Register)), 1);
    assert_eq!(totals.received_of(Some(MessageType::Signal)), 3);
    assert_eq!(totals.received_of(Some(MessageType::Request)), 1);
    assert_eq!(totals.received_of(None), 0);
    assert_eq!(totals.sent_of(Some(MessageType::Ack)), 5);
    assert_eq!(totals.count_of(Reason::NoEventProcessor), 3);
    let totals = world.sites[0].node.totals();
    assert_eq!(totals.sent_of(Some(MessageType::Signal)), 3);
    assert_eq!(totals.count_of(Reason::NoRoute), 1);
    let reasons: Vec<_> = totals.reasons().collect();
    assert!(reasons.contains(&(Reason::NoRoute, 1)));
}

#[test]
fn the_snapshot_tells_what_a_node_and_its_links_hold() {
    let (mut world, hand) = start();
    world.hand(0, "stranger");
    world.native(0, "c");
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    world.subscribe(0, "a", "y");
    world.run();
    hand.respond(&mut world, "subscribe y", "fine");
    hand.say_with(
        &mut world,
        id("q1"),
        nacp_proto::Body::Request {
            kind: nacp_proto::RequestKind::Ability,
            target: None,
            payload: crate::support::payload("r1"),
        },
    );
    world.run();
    hand.ack_all(&mut world, false);
    world.request(0, "a", "r2");
    world.run();
    let node = world.node(0).snapshot();
    assert_eq!((node.peers, node.unregistered_peers, node.links), (3, 1, 2));
    assert_eq!(
        (node.running, node.subscriptions, node.streams, node.calls),
        (1, 1, 1, 1)
    );
    assert_eq!(
        (
            node.backlog.count,
            node.submitted.count,
            node.ack_pending.count
        ),
        (0, 0, 1)
    );
    let size = world
        .crossings_since(0, hand.wire, ACCEPTOR)
        .last()
        .unwrap()
        .bytes
        .len() as u64;
    assert_eq!(node.ack_pending.bytes, size);
    let link = world.sites[0].node.link(&app("a")).unwrap();
    assert_eq!((link.running, link.subscriptions, link.streams), (1, 1, 1));
    assert_eq!(link.ack_pending, node.ack_pending);
    assert_eq!(world.sites[0].node.links().count(), 2);
    assert!(world.sites[0].node.link(&app("nobody")).is_none());
}

#[test]
fn messages_are_counted_per_link() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.link(0, 1);
    world.signals(0, "b", 1..=3);
    world.run();
    let link = world.sites[1].node.link(&app("a")).unwrap();
    let before = link.messages_in;
    assert!(before >= 3);
    let link = world.sites[0].node.link(&app("b")).unwrap();
    assert_eq!(link.messages_out, 3);
}

#[test]
fn deadlines_are_counted_and_go_with_their_cause() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.advance_to(secs(20));
    let idle = world.node(0).snapshot().timers;
    world.hold(wire, ACCEPTOR);
    world.signal(0, "b", "m1");
    world.run();
    assert_eq!(world.node(0).snapshot().timers, idle + 1);
    world.release(wire, ACCEPTOR);
    world.advance_to(secs(60));
    assert_eq!(world.node(0).snapshot().timers, idle);
}

#[test]
fn nothing_of_a_session_shows_in_debug_output() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    let session = hand.session(&world).0;
    let hex: String = session.iter().map(|byte| format!("{byte:02x}")).collect();
    let list = format!("{session:?}");
    let debug = format!("{:?} {:?}", world.sites[0].node, world.sites[0].reports);
    assert!(!debug.contains(&hex));
    assert!(!debug.contains(list.trim_matches(['[', ']'])));
}

//! Process streams of events (specification, sections 8 and 11).

use nacp_link::{Event, MessageReport, Settlement};
use nacp_proto::{Body, MessageId, RequestKind, Response};

use crate::support::{ACCEPTOR, DIALLER, Hand, Intake, World, id, payload, quiet, secs};

fn pair() -> (World, usize) {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    (world, wire)
}

/// Items that the requester was given: label and how many it missed before each.
fn items(world: &World) -> Vec<(String, Option<u64>)> {
    world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Process {
                payload, missed, ..
            } => Some((crate::support::text_of(payload), *missed)),
            _ => None,
        })
        .collect()
}

fn labels(world: &World) -> Vec<String> {
    items(world).into_iter().map(|(label, _)| label).collect()
}

fn numbered(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers
        .into_iter()
        .map(|number| format!("i{number}"))
        .collect()
}

#[test]
fn t28_all_items_sent_before_the_answer_come_before_it_and_in_order() {
    let (mut world, wire) = pair();
    let (token, request) = world.start(0, "b", "e1");
    world.run();
    for number in 1..=100 {
        world.process(1, "e1", &format!("i{number}"));
    }
    world.answer(1, "e1");
    world.run();
    assert_eq!(labels(&world), numbered(1..=100));
    assert_eq!(world.outcome(0, token), "ok e1");
    let said = world.said(wire, ACCEPTOR);
    assert_eq!(said.last(), Some(&"answer e1"));
    assert!(
        !world
            .said(wire, DIALLER)
            .iter()
            .any(|line| line.starts_with("subscribe"))
    );
    let notify = world
        .crossings_since(0, wire, ACCEPTOR)
        .find(|crossing| crossing.line == "notify i1")
        .unwrap();
    let Body::Notify {
        parent_id,
        target_sub_name,
        hit_sub_name,
        seq,
        ..
    } = &notify.message().body
    else {
        panic!("not a notify");
    };
    let name = format!("nacp:event:{request}:process");
    assert_eq!(*parent_id, request);
    assert_eq!(target_sub_name.as_str(), name);
    assert_eq!(hit_sub_name.as_str(), name);
    assert_eq!(*seq, Some(0));
}

#[test]
fn the_final_response_carries_how_many_items_there_were() {
    let (mut world, wire) = pair();
    let (token, _) = world.start(0, "b", "e1");
    world.run();
    for number in 1..=5 {
        world.process(1, "e1", &format!("i{number}"));
    }
    world.answer(1, "e1");
    world.run();
    let answer = world.crossings_since(0, wire, ACCEPTOR).last().unwrap();
    let Body::Response(response) = &answer.message().body else {
        panic!("not a response");
    };
    assert_eq!(response.seq, Some(5));
    let (_, Settlement::Answered(answered)) = &world.sites[0].settled[&token] else {
        panic!("not answered");
    };
    assert_eq!(answered.missed, Some(0));
}

#[test]
fn an_ability_has_no_stream() {
    let (mut world, wire) = pair();
    world.request(0, "b", "r1");
    world.run();
    let token = world.process(1, "r1", "i1");
    world.answer(1, "r1");
    world.run();
    assert!(world.outcome(1, token) != "pending");
    assert_eq!(labels(&world), Vec::<String>::new());
    assert!(!world.said(wire, ACCEPTOR).contains(&"notify i1"));
}

#[test]
fn a_process_item_settles_at_its_acceptance() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    ask(&mut world, &hand, "q1");
    world.set_intake(hand.wire, ACCEPTOR, Intake::Stalled);
    let token = world.process(0, "q1", "i1");
    world.run();
    assert_eq!(world.outcome(0, token), "pending");
    world.accept(hand.wire, ACCEPTOR, 1);
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
}

#[test]
fn t28_an_item_after_the_answer_or_for_an_unknown_request_has_no_consumer() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    let (token, request) = world.start(0, "a", "e1");
    world.run();
    item(&mut world, &hand, &request, "i1", Some(0));
    hand.respond(&mut world, "request e1", "done");
    item(&mut world, &hand, &request, "i2", Some(1));
    item(&mut world, &hand, &id("unknown"), "i3", None);
    world.run();
    assert_eq!(labels(&world), ["i1"]);
    assert_eq!(world.outcome(0, token), "ok done");
    assert_eq!(
        world.reported_of(0, MessageReport::NotifyError),
        ["has-no-consumer i2", "has-no-consumer i3"]
    );
    assert!(hand.is_open(&world));
}

#[test]
fn an_item_after_the_answer_of_our_own_handler_is_not_sent() {
    let (mut world, wire) = pair();
    world.start(0, "b", "e1");
    world.run();
    world.answer(1, "e1");
    world.run();
    let mark = world.mark();
    world.process(1, "e1", "late");
    world.run();
    assert_eq!(world.said_since(mark, wire, ACCEPTOR), Vec::<&str>::new());
}

#[test]
fn a_reader_is_told_how_many_items_it_missed() {
    let mut world = World::with([quiet("b")]);
    let hand = world.native(0, "a");
    hand.ack_all(&mut world, true);
    let (token, request) = world.start(0, "a", "e1");
    world.run();
    for (label, seq) in [("i0", 0), ("i3", 3), ("i4", 4)] {
        item(&mut world, &hand, &request, label, Some(seq));
    }
    let parent_id = hand.last_id(&world, "request e1");
    let response = Response {
        seq: Some(7),
        kind: Some(RequestKind::Event),
        ..Response::ok(parent_id, payload("done"))
    };
    hand.say(&mut world, Body::Response(response));
    world.run();
    let expected =
        [("i0", 0), ("i3", 2), ("i4", 0)].map(|(label, missed)| (label.to_owned(), Some(missed)));
    assert_eq!(items(&world), expected);
    let (_, Settlement::Answered(answered)) = &world.sites[0].settled[&token] else {
        panic!("not answered");
    };
    assert_eq!(answered.missed, Some(4));
}

#[test]
fn a_stream_from_a_foreign_peer_says_that_it_cannot_know() {
    let mut world = World::with([quiet("b")]);
    let hand = world.foreign(0, "a");
    hand.ack_all(&mut world, true);
    let (token, request) = world.start(0, "a", "e1");
    world.run();
    item(&mut world, &hand, &request, "i1", None);
    hand.respond(&mut world, "request e1", "done");
    world.run();
    assert_eq!(items(&world), [("i1".to_owned(), None)]);
    let (_, Settlement::Answered(answered)) = &world.sites[0].settled[&token] else {
        panic!("not answered");
    };
    assert_eq!(answered.missed, None);
}

#[test]
fn t28_items_of_an_offline_time_wait_in_the_backlog_and_come_in_order() {
    let (mut world, wire) = pair();
    let (token, _) = world.start(0, "b", "e1");
    world.run();
    for number in 1..=100 {
        if number == 50 {
            world.cut(wire);
            world.run();
        }
        if number == 60 {
            world.link(0, 1);
        }
        world.process(1, "e1", &format!("i{number}"));
        world.run();
    }
    world.answer(1, "e1");
    world.run();
    assert_eq!(labels(&world), numbered(1..=100));
    assert_eq!(world.outcome(0, token), "ok e1");
}

#[test]
fn t28_items_that_a_full_backlog_refuses_are_missing_and_counted_and_the_answer_comes_last() {
    let mut world = World::with([quiet("a"), quiet("b").queue_max_count(4)]);
    let wire = world.link(0, 1);
    let (token, _) = world.start(0, "b", "e1");
    world.run();
    world.cut(wire);
    world.run();
    let tokens: Vec<_> = (1..=6)
        .map(|number| world.process(1, "e1", &format!("i{number}")))
        .collect();
    world.run();
    assert_eq!(
        world.outcomes(1, &tokens),
        [
            "pending", "pending", "pending", "pending", "refused", "refused"
        ]
    );
    world.answer(1, "e1");
    world.run();
    // The answer makes room by evicting the oldest item.
    assert_eq!(world.outcome(1, tokens[0]), "evicted");
    world.link(0, 1);
    let expected =
        [("i2", Some(1)), ("i3", Some(0)), ("i4", Some(0))].map(|(l, m)| (l.to_owned(), m));
    assert_eq!(items(&world), expected);
    let (_, Settlement::Answered(answered)) = &world.sites[0].settled[&token] else {
        panic!("not answered");
    };
    assert_eq!(answered.missed, Some(3));
}

#[test]
fn t28_a_link_that_is_dropped_in_the_middle_rejects_the_run_once() {
    let (mut world, wire) = pair();
    let (token, _) = world.start(0, "b", "e1");
    world.run();
    world.process(1, "e1", "i1");
    world.run();
    world.cut(wire);
    world.advance_to(secs(120));
    assert_eq!(world.outcome(0, token), "peer-gone");
    world.assert_at_rest(0);
    world.assert_at_rest(1);
    // The handler goes on and learns that nobody listens.
    let item = world.process(1, "e1", "i2");
    let answer = world.answer(1, "e1");
    world.run();
    assert_eq!(world.outcome(1, item), "peer-gone");
    assert_eq!(world.outcome(1, answer), "peer-gone");
}

#[test]
fn t28_a_run_that_is_abandoned_discards_items_and_sends_nothing_for_it() {
    let (mut world, wire) = pair();
    let (token, request) = world.start(0, "b", "e1");
    world.run();
    let mark = world.mark();
    world.node(0).abandon(&request);
    world.process(1, "e1", "i1");
    world.answer(1, "e1");
    world.run();
    assert_eq!(labels(&world), Vec::<String>::new());
    assert_eq!(world.outcome(0, token), "pending");
    assert_eq!(world.said_since(mark, wire, DIALLER), ["ack answer e1"]);
    world.assert_at_rest(0);
}

#[test]
fn an_item_of_another_app_does_not_reach_a_stream() {
    let mut world = World::with([quiet("b")]);
    let (_, other) = (world.native(0, "a"), world.native(0, "c"));
    let (_, request) = world.start(0, "a", "e1");
    world.run();
    item(&mut world, &other, &request, "forged", Some(0));
    world.run();
    assert_eq!(labels(&world), Vec::<String>::new());
    assert_eq!(
        world.reported_of(0, MessageReport::NotifyError),
        ["has-no-consumer forged"]
    );
}

fn ask(world: &mut World, hand: &Hand, label: &str) {
    hand.say_with(
        world,
        id(label),
        Body::Request {
            kind: RequestKind::Event,
            target: Some("work".into()),
            payload: payload(label),
        },
    );
    world.run();
}

fn item(world: &mut World, hand: &Hand, request: &MessageId, label: &str, seq: Option<u64>) {
    let name = format!("nacp:event:{request}:process");
    hand.say(
        world,
        Body::Notify {
            parent_id: request.clone(),
            target_sub_name: name.as_str().into(),
            hit_sub_name: name.as_str().into(),
            payload: payload(label),
            seq,
        },
    );
}

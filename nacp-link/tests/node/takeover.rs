//! A register for an app that is online through another peer (specification, section 4.2).

use nacp_link::{Close, LinkState, MessageReport};

use crate::support::{ACCEPTOR, DIALLER, Hand, World, ms, quiet, secs};

/// `b` with `a` online on a native hand that stays silent from now on.
fn with_silent_peer() -> (World, Hand) {
    let mut world = World::with([quiet("b")]);
    let old = world.native(0, "a");
    (world, old)
}

/// A hand that registers as `a` and is held.
fn challenger(world: &mut World) -> Hand {
    let hand = world.hand(0, "a");
    hand.register(world);
    world.run();
    hand
}

#[test]
fn a_challenger_is_acked_at_once_and_the_old_peer_is_sent_a_beat_at_once() {
    let (mut world, old) = with_silent_peer();
    world.advance_to(secs(1));
    let mark = world.mark();
    let new = challenger(&mut world);
    assert_eq!(new.heard(&world), ["ack register"]);
    assert_eq!(old.heard_since(&world, mark), ["beat"]);
    assert_eq!(world.register_warnings(0), [(1_000, "takeover-probe")]);
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn a_silent_old_peer_is_taken_over_after_the_probe_and_reset() {
    let (mut world, old) = with_silent_peer();
    world.advance_to(secs(1));
    let new = challenger(&mut world);
    world.advance_to(ms(2_999));
    assert_eq!(new.heard(&world), ["ack register"]);
    world.advance_to(secs(3));
    assert_eq!(new.heard(&world), ["ack register", "answer register"]);
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (3_000, "offline"), (3_000, "online")]
    );
    assert_eq!(world.closed(0, old.wire), [(3_000, Close::Abort)]);
}

#[test]
fn any_message_of_the_old_peer_refuses_the_challenger() {
    for life in ["signal", "ack", "answer", "notify of nothing", "malformed"] {
        let (mut world, old) = with_silent_peer();
        world.advance_to(secs(1));
        let new = challenger(&mut world);
        world.advance_to(ms(2_500));
        match life {
            "signal" => {
                old.signal(&mut world, "m1");
            }
            "ack" => old.ack_line(&mut world, "beat"),
            "answer" => old.answer_beat(&mut world),
            "malformed" => old.say_json(&mut world, serde_json::json!({"type": "signal"})),
            _ => old.ack(&mut world, &crate::support::id("never-sent")),
        }
        world.run();
        assert_eq!(
            new.heard(&world),
            ["ack register", "answer register: appId-in-use"],
            "{life}"
        );
        assert_eq!(world.closed(0, new.wire), [(2_500, Close::Refuse)]);
        world.advance_to(secs(9));
        assert_eq!(world.changes(0, "a"), [(0, "online")], "{life}");
        assert!(old.is_open(&world));
    }
}

#[test]
fn a_register_that_holds_the_session_takes_over_at_once() {
    let (mut world, old) = with_silent_peer();
    world.signal(0, "a", "m1");
    world.advance_to(secs(1));
    let mark = world.mark();
    let mut new = world.hand(0, "a");
    new.holds = vec![old.session(&world)];
    new.register(&mut world);
    world.run();
    assert_eq!(
        new.heard(&world),
        ["ack register", "answer register", "signal m1"]
    );
    assert_eq!(new.registered(&world).unwrap().resumed, Some(true));
    assert_eq!(old.heard_since(&world, mark), Vec::<&str>::new());
    assert_eq!(world.closed(0, old.wire), [(1_000, Close::Abort)]);
    assert_eq!(world.register_warnings(0), []);
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (1_000, "offline"), (1_000, "online")]
    );
}

#[test]
fn a_register_that_holds_another_session_is_probed_like_any_other() {
    let (mut world, _old) = with_silent_peer();
    let mut new = world.hand(0, "a");
    new.holds = vec![nacp_proto::Session([9; 16])];
    new.register(&mut world);
    world.run();
    assert_eq!(new.heard(&world), ["ack register"]);
}

#[test]
fn a_probe_of_zero_refuses_at_once() {
    let mut world = World::with([quiet("b").takeover_probe(ms(0))]);
    let old = world.native(0, "a");
    let mark = world.mark();
    let new = challenger(&mut world);
    assert_eq!(
        new.heard(&world),
        ["ack register", "answer register: appId-in-use"]
    );
    assert_eq!(old.heard_since(&world, mark), Vec::<&str>::new());
}

#[test]
fn the_end_of_the_old_peer_lets_the_challenger_in_as_a_re_register() {
    let (mut world, old) = with_silent_peer();
    world.advance_to(secs(1));
    let new = challenger(&mut world);
    world.advance_to(ms(1_200));
    old.hang_up(&mut world);
    world.run();
    assert_eq!(new.heard(&world), ["ack register", "answer register"]);
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (1_200, "offline"), (1_200, "online")]
    );
    world.advance_to(secs(10));
    assert_eq!(new.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_challenger_that_closes_while_it_is_held_is_forgotten() {
    let (mut world, old) = with_silent_peer();
    world.advance_to(secs(1));
    let new = challenger(&mut world);
    world.advance_to(secs(2));
    new.hang_up(&mut world);
    world.advance_to(ms(3_500));
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    assert!(old.is_open(&world));
    // c1's own limits decide about c1: the probing beat is not ACKed within 10 s.
    world.advance_to(ms(10_999));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    world.advance_to(secs(11));
    assert_eq!(world.changes(0, "a"), [(0, "online"), (11_000, "offline")]);
}

#[test]
fn a_third_register_is_refused_while_the_second_is_held() {
    let (mut world, _old) = with_silent_peer();
    world.advance_to(secs(1));
    let second = challenger(&mut world);
    world.advance_to(ms(1_500));
    let third = challenger(&mut world);
    assert_eq!(
        third.heard(&world),
        ["ack register", "answer register: appId-in-use"]
    );
    world.advance_to(secs(3));
    assert_eq!(second.heard(&world), ["ack register", "answer register"]);
}

#[test]
fn a_second_register_of_the_challenger_is_acked_and_answered_with_the_first() {
    let (mut world, _old) = with_silent_peer();
    let new = challenger(&mut world);
    world.advance_to(secs(1));
    new.register(&mut world);
    world.run();
    assert_eq!(new.heard(&world), ["ack register"; 2]);
    world.advance_to(secs(2));
    assert_eq!(
        new.heard(&world)[2..],
        ["answer register", "answer register"]
    );
    assert_eq!(world.changes(0, "a").len(), 3);
}

#[test]
fn messages_of_a_held_challenger_are_handled_right_behind_its_answer() {
    let (mut world, _old) = with_silent_peer();
    let new = challenger(&mut world);
    new.signal(&mut world, "m1");
    new.signal(&mut world, "m2");
    world.advance_to(ms(1_999));
    assert_eq!(world.handled(0), Vec::<&str>::new());
    world.advance_to(secs(2));
    assert_eq!(world.handled(0), ["m1", "m2"]);
    assert_eq!(
        new.heard(&world),
        ["ack register", "answer register", "ack m1", "ack m2"]
    );
    assert_eq!(world.reported(0, MessageReport::InboundError), []);
}

#[test]
fn the_probing_beat_is_sent_also_while_one_is_outstanding() {
    let mut world = World::with([quiet("b").heartbeat_interval(Some(secs(60)))]);
    let old = world.native(0, "a");
    world.advance_to(secs(30));
    assert_eq!(old.heard(&world).last(), Some(&"beat"));
    let mark = world.mark();
    let new = challenger(&mut world);
    assert_eq!(old.heard_since(&world, mark), ["beat"]);
    old.answer_beat(&mut world);
    world.run();
    assert_eq!(
        new.heard(&world),
        ["ack register", "answer register: appId-in-use"]
    );
}

#[test]
fn a_live_peer_withstands_a_hundred_impostors() {
    let (mut world, old) = with_silent_peer();
    for second in 1..=100 {
        world.advance_to(secs(second));
        let impostor = challenger(&mut world);
        old.answer_beat(&mut world);
        old.ack_line(&mut world, "beat");
        world.run();
        assert_eq!(
            impostor.heard(&world),
            ["ack register", "answer register: appId-in-use"]
        );
        impostor.hang_up(&mut world);
    }
    let token = world.signal(0, "a", "m1");
    world.run();
    old.ack_line(&mut world, "signal m1");
    world.run();
    assert_eq!(world.outcome(0, token), "delivered");
    assert_eq!(world.changes(0, "a"), [(0, "online")]);
    world.advance_to(secs(120));
    assert_eq!(world.node(0).snapshot().peers, 1);
}

#[test]
fn t14_the_end_of_the_old_connection_changes_nothing_for_the_new_one() {
    // A foreign peer resumes whatever it is: x1 must come out on c2.
    let mut world = World::with([quiet("b")]);
    let c1 = world.foreign(0, "a");
    world.set_mode(c1.wire, DIALLER, crate::support::Mode::Swallow);
    world.advance_to(secs(1));
    let mut c2 = world.hand(0, "a");
    c2.instance = None;
    c2.ack_all(&mut world, true);
    c2.register(&mut world);
    world.advance_to(secs(2));
    let x1 = world.signal(0, "a", "x1");
    world.advance_to(secs(3));
    assert_eq!(world.outcome(0, x1), "delivered");
    assert_eq!(world.settled_at(0, x1), Some(secs(3)));
    let copies = |world: &World| {
        let heard = c2.heard(world);
        heard.iter().filter(|line| **line == "signal x1").count()
    };
    assert_eq!(copies(&world), 1);
    // c1's funeral comes at 30 s.
    world.advance_to(secs(30));
    world.notice(c1.wire, ACCEPTOR, None);
    world.run();
    assert_eq!(
        world.changes(0, "a"),
        [(0, "online"), (3_000, "offline"), (3_000, "online")]
    );
    let tokens = world.signals(0, "a", 1..=100);
    world.run();
    assert_eq!(world.outcomes(0, &tokens), vec!["delivered"; 100]);
    assert_eq!(copies(&world), 1);
    world.advance_to(secs(200));
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
}

#[test]
fn t14_what_waits_for_a_new_instance_that_takes_over_is_session_lost() {
    let (mut world, _old) = with_silent_peer();
    world.advance_to(secs(1));
    let mut new = world.hand(0, "a");
    new.instance = Some(nacp_proto::Instance([9; 16]));
    new.register(&mut world);
    world.advance_to(secs(2));
    let x1 = world.signal(0, "a", "x1");
    world.advance_to(secs(3));
    assert_eq!(world.outcome(0, x1), "session-lost");
    assert_eq!(new.heard(&world), ["ack register", "answer register"]);
    assert_eq!(new.registered(&world).unwrap().resumed, Some(false));
}

#[test]
fn the_same_process_takes_over_between_two_nodes_and_loses_nothing() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let first = world.link(0, 1);
    world.swallow(first);
    world.advance_to(secs(1));
    let m1 = world.signal(0, "b", "m1");
    let x1 = world.signal(1, "a", "x1");
    // Only `a` notices.
    world.advance_to(secs(2));
    world.notice(first, DIALLER, None);
    world.link(0, 1);
    assert_eq!(world.outcome(0, m1), "delivered");
    assert_eq!(world.outcome(1, x1), "delivered");
    assert_eq!(world.handled(0), ["x1"]);
    assert_eq!(world.handled(1), ["m1"]);
    assert_eq!(
        world.changes(1, "a"),
        [(0, "online"), (2_000, "offline"), (2_000, "online")]
    );
    assert_eq!(world.register_warnings(1), []);
}

#[test]
fn an_answer_to_a_register_for_whoever_answers_refuses_who_waits_to_take_over() {
    let (mut world, old) = with_silent_peer();
    let now = world.now();
    let (answering, _) = world.dialled_unnamed(0, "a");
    world.run();
    let waiting = challenger(&mut world);
    assert_eq!(waiting.heard(&world), ["ack register"]);
    answering.admit(&mut world, Some(nacp_proto::Session([7; 16])), Some(false));
    world.run();
    assert_eq!(world.now(), now);
    assert_eq!(
        waiting.heard(&world),
        ["ack register", "answer register: appId-in-use"]
    );
    assert!(!old.is_open(&world));
    waiting.hang_up(&mut world);
    world.run();
    let mark = world.mark();
    world.signal(0, "a", "m1");
    world.run();
    assert_eq!(world.state(0, "a"), Some(LinkState::Online));
    assert_eq!(answering.heard_since(&world, mark), ["signal m1"]);
}

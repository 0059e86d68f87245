//! Who a register brings back (specification, section 11).

use nacp_link::{Config, Event, LinkState, Trust, Undelivered};
use nacp_proto::{Body, Instance, Session};

use crate::support::{ACCEPTOR, DIALLER, Hand, World, ms, payload, quiet, secs};

const OTHER: Instance = Instance([0xEE; 16]);

fn holds_of(world: &World, hand: &Hand) -> Vec<Session> {
    match &hand.last(world, "register").body {
        Body::Register(register) => register.holds.clone(),
        other => panic!("not a register: {other:?}"),
    }
}

/// A native `a` at `b`, with trust as given; all that is said to it is ACKed.
fn start(trust: Trust, config: Config) -> (World, Hand) {
    let mut world = World::with([config]);
    world.trust = trust;
    let hand = world.native(0, "a");
    (world, hand)
}

fn return_as(world: &mut World, holds: Vec<Session>, instance: Option<Instance>) -> Hand {
    let mut back = world.hand(0, "a");
    if instance.is_some() {
        back.instance = instance;
    }
    back.holds = holds;
    back.register(world);
    world.run();
    back
}

#[test]
fn a_register_that_holds_the_session_is_resumed() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b"));
    let token = world.signal(0, "a", "m1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let holds = vec![hand.session(&world)];
    let back = return_as(&mut world, holds, None);
    assert_eq!(back.registered(&world).unwrap().resumed, Some(true));
    assert_eq!(back.heard(&world)[2..], ["signal m1"]);
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn every_bind_has_a_session_of_its_own() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b"));
    let mut sessions = vec![hand.session(&world)];
    let mut hand = hand;
    for _ in 0..5 {
        hand.hang_up(&mut world);
        world.run();
        let holds = vec![hand.session(&world)];
        hand = return_as(&mut world, holds, None);
        hand.ack_last_response(&mut world);
        world.run();
        let session = hand.session(&world);
        assert!(!sessions.contains(&session));
        sessions.push(session);
    }
}

#[test]
fn a_register_without_or_with_a_wrong_session_is_not_resumed() {
    for holds in [vec![], vec![Session([9; 16])]] {
        let (mut world, hand) = start(Trust::Unproven, quiet("b"));
        let token = world.signal(0, "a", "m1");
        world.run();
        hand.hang_up(&mut world);
        world.run();
        let back = return_as(&mut world, holds, None);
        assert_eq!(back.registered(&world).unwrap().resumed, Some(false));
        assert_eq!(back.heard(&world), ["ack register", "answer register"]);
        assert_eq!(world.outcome(0, token), "session-lost");
        assert_eq!(
            world.register_warnings(0).last(),
            Some(&(0, "session-lost"))
        );
    }
}

#[test]
fn any_one_of_several_held_sessions_resumes() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b"));
    hand.hang_up(&mut world);
    world.run();
    let holds = vec![Session([9; 16]), hand.session(&world)];
    let back = return_as(&mut world, holds, None);
    assert_eq!(back.registered(&world).unwrap().resumed, Some(true));
}

#[test]
fn the_acceptor_answers_to_the_resumed_session_until_its_response_is_acked() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b"));
    let first = hand.session(&world);
    hand.hang_up(&mut world);
    world.run();
    let second = return_as(&mut world, vec![first], None);
    // The answer was lost: the dialler still holds only the first session.
    second.hang_up(&mut world);
    world.run();
    let third = return_as(&mut world, vec![first], None);
    assert_eq!(third.registered(&world).unwrap().resumed, Some(true));
    third.ack_last_response(&mut world);
    world.run();
    third.hang_up(&mut world);
    world.run();
    // Once the answer was ACKed the first session is over.
    let fourth = return_as(&mut world, vec![first], None);
    assert_eq!(fourth.registered(&world).unwrap().resumed, Some(false));
}

#[test]
fn a_register_from_before_its_app_named_a_later_session_is_refused_and_loses_nothing() {
    for is_acked in [false, true] {
        let (mut world, hand) = start(Trust::Unproven, quiet("b"));
        let first = hand.session(&world);
        let token = world.signal(0, "a", "m1");
        hand.hang_up(&mut world);
        world.run();
        let second = return_as(&mut world, vec![first], None);
        if is_acked {
            second.ack_last_response(&mut world);
        }
        second.hang_up(&mut world);
        world.run();
        let held = second.session(&world);
        let third = return_as(&mut world, vec![held], None);
        third.hang_up(&mut world);
        world.run();
        // Read late, over a connection that its dialler left before it made the second.
        let late = return_as(&mut world, vec![first], None);
        assert_eq!(
            late.heard(&world),
            ["ack register", "answer register: appId-in-use"]
        );
        assert_eq!(world.outcome(0, token), "pending");
        let held = third.session(&world);
        let fourth = return_as(&mut world, vec![held], None);
        assert_eq!(fourth.registered(&world).unwrap().resumed, Some(true));
    }
}

#[test]
fn a_register_read_late_does_not_hide_a_session_that_its_app_may_have() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b"));
    let first = hand.session(&world);
    hand.hang_up(&mut world);
    world.run();
    let second = return_as(&mut world, vec![first], None);
    second.hang_up(&mut world);
    world.run();
    let late = return_as(&mut world, vec![first], None);
    late.hang_up(&mut world);
    world.run();
    let held = second.session(&world);
    let third = return_as(&mut world, vec![held], None);
    assert_eq!(third.registered(&world).unwrap().resumed, Some(true));
}

#[test]
fn of_the_sessions_whose_answers_were_lost_a_link_remembers_the_last_seven() {
    for (at, resumed) in [(0, false), (3, false), (4, true), (11, true)] {
        let (mut world, mut hand) = start(Trust::Unproven, quiet("b").poison_limit(0));
        let first = hand.session(&world);
        let mut made = Vec::new();
        for _ in 0..12 {
            hand.hang_up(&mut world);
            world.run();
            hand = return_as(&mut world, vec![first], None);
            made.push(hand.session(&world));
        }
        hand.hang_up(&mut world);
        world.run();
        let back = return_as(&mut world, vec![made[at]], None);
        let answer = back.registered(&world).unwrap();
        assert_eq!(answer.resumed, Some(resumed), "session {at}");
    }
}

#[test]
fn answers_lost_twice_in_a_row_lose_no_session() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b").poison_limit(0));
    let first = hand.session(&world);
    let token = world.signal(0, "a", "m1");
    world.run();
    let mut hand = hand;
    for turn in 0..5 {
        hand.hang_up(&mut world);
        world.run();
        hand = return_as(&mut world, vec![first], None);
        let resumed = hand.registered(&world).unwrap().resumed;
        assert_eq!(resumed, Some(true), "turn {turn}");
    }
    assert_eq!(world.outcome(0, token), "pending");
}

#[test]
fn a_dialler_that_kept_nothing_holds_nothing_and_reads_resumed_as_false() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    assert_eq!(holds_of(&world, &hand), []);
    hand.admit(&mut world, Some(Session([1; 16])), Some(true));
    world.run();
    assert_eq!(world.app_reports(0, "b"), [(0, "bound", Some(false))]);
}

#[test]
fn a_dialler_that_finds_another_instance_reads_resumed_as_false() {
    let mut world = World::with([quiet("a")]);
    let (hand, _) = world.dialled_by(0, "b");
    world.run();
    hand.admit(&mut world, Some(Session([1; 16])), Some(false));
    world.run();
    let token = world.signal(0, "b", "m1");
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let (mut again, _) = world.dialled_by(0, "b");
    again.instance = Some(OTHER);
    world.run();
    again.admit(&mut world, Some(Session([2; 16])), Some(true));
    world.run();
    assert_eq!(world.outcome(0, token), "session-lost");
    assert_eq!(
        world.app_reports(0, "b").last(),
        Some(&(0, "bound", Some(false)))
    );
}

/// Everything that can wait for `a`, un-ACKed, when it comes back as `instance`:
/// how it ended, and what the new one was sent.
fn session_lost(
    trust: Trust,
    instance: Option<Instance>,
    accepted: bool,
) -> (Vec<(&'static str, String)>, Vec<String>) {
    let (mut world, hand) = start(trust, quiet("b"));
    hand.ack_all(&mut world, true);
    hand.subscribe(&mut world, "x");
    ask(&mut world, &hand, "theirs");
    let (_, stream) = world.subscribe(0, "a", "old");
    world.run();
    hand.respond(&mut world, "subscribe old", "fine");
    world.run();
    let acked = world.request(0, "a", "acked");
    world.run();
    hand.ack_all(&mut world, false);
    if !accepted {
        hand.hang_up(&mut world);
        world.run();
    }
    let answer = world.answer(0, "theirs");
    let tokens = [
        ("signal", world.signal(0, "a", "s1")),
        ("request", world.request(0, "a", "r1")),
        ("subscribe", world.subscribe(0, "a", "new").0),
        ("unsubscribe", world.unsubscribe(0, stream.unwrap())),
        ("acked request", acked),
        ("answer", answer),
    ];
    let notify = (!accepted).then(|| ("notify", world.emit(0, "x", "n1")[0]));
    world.run();
    if accepted {
        hand.hang_up(&mut world);
        world.run();
    }
    let back = return_as(&mut world, Vec::new(), instance);
    let ends = tokens
        .into_iter()
        .chain(notify)
        .map(|(name, token)| (name, world.outcome(0, token)))
        .collect();
    let heard = back.heard(&world)[2..]
        .iter()
        .map(|line| (*line).to_owned())
        .collect();
    (ends, heard)
}

fn ends(ends: &[(&'static str, String)], kept: &[&str]) {
    for (name, end) in ends {
        let expected = if kept.contains(name) {
            "pending"
        } else {
            "session-lost"
        };
        assert_eq!(end, expected, "{name}");
    }
}

#[test]
fn a_new_proven_instance_gets_the_requests_and_subscribes_never_acked() {
    for accepted in [false, true] {
        let (outcomes, heard) = session_lost(Trust::Proven, Some(OTHER), accepted);
        ends(&outcomes, &["request", "subscribe"]);
        assert_eq!(heard, ["request r1", "subscribe new"]);
    }
}

#[test]
fn a_new_unproven_instance_gets_nothing() {
    for accepted in [false, true] {
        let (outcomes, heard) = session_lost(Trust::Unproven, Some(OTHER), accepted);
        ends(&outcomes, &[]);
        assert_eq!(heard, Vec::<String>::new());
    }
}

#[test]
fn an_unchanged_instance_gets_the_requests_and_subscribes_never_accepted_by_a_provider() {
    for trust in [Trust::Proven, Trust::Unproven] {
        let (outcomes, heard) = session_lost(trust, None, false);
        ends(&outcomes, &["request", "subscribe"]);
        assert_eq!(heard, ["request r1", "subscribe new"]);
        let (outcomes, heard) = session_lost(trust, None, true);
        ends(&outcomes, &[]);
        assert_eq!(heard, Vec::<String>::new());
    }
}

/// Two processes of one app take turns. What one was given and did not ACK goes to the other, and
/// never back: it may have been handled.
#[test]
fn an_instance_that_returns_is_not_new_and_gets_nothing_that_it_was_given_before() {
    for trust in [Trust::Proven, Trust::Unproven] {
        let (mut world, hand) = start(trust, quiet("b"));
        let given = world.request(0, "a", "given");
        world.run();
        hand.hang_up(&mut world);
        world.run();
        let other = return_as(&mut world, Vec::new(), Some(OTHER));
        let expected: &[_] = match trust {
            Trust::Proven => &["request given"],
            Trust::Unproven => &[],
        };
        assert_eq!(other.heard(&world)[2..], *expected);
        other.hang_up(&mut world);
        world.run();
        let kept = world.request(0, "a", "kept");
        let holds = vec![hand.session(&world)];
        let back = return_as(&mut world, holds, None);
        assert_eq!(back.registered(&world).unwrap().resumed, Some(false));
        let (heard, ends): (&[_], _) = match trust {
            Trust::Proven => (&["request kept"], ["session-lost", "pending"]),
            Trust::Unproven => (&[], ["session-lost", "session-lost"]),
        };
        assert_eq!(back.heard(&world)[2..], *heard);
        assert_eq!(world.outcomes(0, &[given, kept]), ends);
    }
}

fn ask(world: &mut World, hand: &Hand, label: &str) {
    hand.say(
        world,
        Body::Request {
            kind: nacp_proto::RequestKind::Event,
            target: Some("work".into()),
            payload: payload(label),
        },
    );
}

#[test]
fn a_lost_session_takes_the_other_sides_subscriptions_handlers_and_dedup_window() {
    let (mut world, hand) = start(Trust::Proven, quiet("b"));
    hand.subscribe(&mut world, "x");
    ask(&mut world, &hand, "r1");
    let signal = nacp_proto::Signal::Pause;
    let parent_id = crate::support::id("run");
    let body = Body::Signal { parent_id, signal };
    hand.say_with(&mut world, crate::support::id("one"), body.clone());
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let back = return_as(&mut world, Vec::new(), Some(OTHER));
    assert_eq!(world.node(0).snapshot().subscriptions, 0);
    assert_eq!(world.node(0).snapshot().running, 0);
    let cancelled: Vec<_> = world.sites[0]
        .events
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Cancelled { reason, .. } => Some(*reason),
            _ => None,
        })
        .collect();
    assert_eq!(cancelled, [Undelivered::SessionLost]);
    let answer = world.answer(0, "r1");
    world.run();
    assert_eq!(world.outcome(0, answer), "session-lost");
    back.say_with(&mut world, crate::support::id("one"), body);
    world.run();
    assert_eq!(world.handled(0), ["r1", "pause", "pause"]);
}

#[test]
fn a_restart_of_the_other_side_resubscribes_and_answers_what_was_not_acked() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Proven;
    let wire = world.link(0, 1);
    world.subscribe(0, "b", "x");
    let acked = world.request(0, "b", "acked");
    world.run();
    world.swallow(wire);
    let waiting = world.request(0, "b", "waiting");
    world.advance(ms(10));
    world.set_mode(wire, ACCEPTOR, crate::support::Mode::Deliver);
    world.restart(1, quiet("b"), [9; 32]);
    world.run();
    assert_eq!(world.state(0, "b"), Some(LinkState::Offline));
    world.advance_to(secs(1));
    world.link(0, 1);
    assert_eq!(world.outcome(0, acked), "session-lost");
    assert_eq!(world.node(1).snapshot().subscriptions, 1);
    world.answer(1, "waiting");
    world.run();
    assert_eq!(world.outcome(0, waiting), "ok waiting");
}

#[test]
fn a_link_kept_as_foreign_is_resumed_unless_the_policy_says_otherwise() {
    let config = quiet("b").admittance(nacp_link::Admittance::Ask);
    for (verdict, expected, replayed) in [
        (nacp_link::Verdict::Admit, "pending", true),
        (nacp_link::Verdict::AdmitAnew, "session-lost", false),
    ] {
        let mut world = World::with([config.clone()]);
        world.sites[0].verdict = Some(nacp_link::Verdict::Admit);
        let hand = world.foreign(0, "a");
        let token = world.signal(0, "a", "m1");
        world.run();
        hand.hang_up(&mut world);
        world.run();
        world.sites[0].verdict = Some(verdict);
        let mut back = world.hand(0, "a");
        back.instance = None;
        back.register(&mut world);
        world.run();
        back.ack_last_response(&mut world);
        world.run();
        assert_eq!(world.outcome(0, token), expected, "{verdict:?}");
        assert_eq!(back.heard(&world).contains(&"signal m1"), replayed);
    }
}

#[test]
fn an_app_that_the_policy_calls_proven_gets_what_waited_for_it() {
    let config = quiet("b").admittance(nacp_link::Admittance::Ask);
    for (verdict, expected) in [
        (nacp_link::Verdict::AdmitProven, "pending"),
        (nacp_link::Verdict::Admit, "session-lost"),
    ] {
        let mut world = World::with([config.clone()]);
        world.trust = Trust::Unproven;
        world.sites[0].verdict = Some(nacp_link::Verdict::Admit);
        let hand = world.native(0, "a");
        let token = world.request(0, "a", "r1");
        world.run();
        hand.hang_up(&mut world);
        world.run();
        world.sites[0].verdict = Some(verdict);
        return_as(&mut world, Vec::new(), Some(OTHER));
        assert_eq!(world.outcome(0, token), expected);
    }
}

#[test]
fn with_resume_any_instance_whoever_returns_gets_everything() {
    let (mut world, hand) = start(Trust::Unproven, quiet("b").resume_any_instance(true));
    let tokens = [world.signal(0, "a", "m1"), world.request(0, "a", "r1")];
    world.run();
    hand.hang_up(&mut world);
    world.run();
    let back = return_as(&mut world, Vec::new(), Some(OTHER));
    assert_eq!(back.heard(&world)[2..], ["signal m1", "request r1"]);
    assert_eq!(world.outcomes(0, &tokens), ["pending"; 2]);
}

/// `b` noticed the loss 60 s before `a` did and has dropped `a`; what waits at `a`, and how it ends
/// when `a` returns to the unchanged instance.
#[test]
fn at_the_dialler_too_an_unchanged_instance_gets_only_what_was_never_accepted() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    let wire = world.link(0, 1);
    world.subscribe(1, "a", "theirs");
    world.request(1, "a", "theirs");
    world.run();
    world.notice(wire, ACCEPTOR, None);
    world.advance_to(secs(115));
    world.swallow(wire);
    let accepted = [
        world.request(0, "b", "accepted"),
        world.signal(0, "b", "accepted"),
    ];
    world.run();
    world.notice(wire, DIALLER, None);
    let queued = [
        world.request(0, "b", "queued"),
        world.signal(0, "b", "queued"),
    ];
    world.advance_to(secs(121));
    assert_eq!(world.state(1, "a"), None);
    let again = world.link(0, 1);
    assert_eq!(world.outcomes(0, &accepted), ["session-lost"; 2]);
    assert_eq!(world.outcomes(0, &queued), ["pending", "session-lost"]);
    assert_eq!(world.said(again, DIALLER)[2..], ["request queued"]);
    // What `b` had at `a` is over on this side as well.
    let snapshot = world.node(0).snapshot();
    assert_eq!((snapshot.subscriptions, snapshot.running), (0, 0));
    assert_eq!(world.register_warnings(0), [(121_000, "session-lost")]);
}

#[test]
fn a_dialler_sends_nothing_of_before_to_a_new_instance_that_is_not_proven() {
    for (trust, expected) in [
        (Trust::Proven, "pending"),
        (Trust::Unproven, "session-lost"),
    ] {
        let mut world = World::with([quiet("a"), quiet("b")]);
        world.trust = trust;
        world.link(0, 1);
        world.restart(1, quiet("b"), [9; 32]);
        world.run();
        let token = world.request(0, "b", "r1");
        world.advance_to(secs(1));
        let wire = world.link(0, 1);
        assert_eq!(world.outcome(0, token), expected);
        let sent = world.said(wire, DIALLER).contains(&"request r1");
        assert_eq!(sent, trust == Trust::Proven);
    }
}

#[test]
fn a_restart_of_our_own_is_a_new_instance_to_the_other_side() {
    let mut world = World::with([quiet("a"), quiet("b")]);
    world.trust = Trust::Unproven;
    world.link(0, 1);
    let before = world.node(0).instance();
    world.subscribe(1, "a", "x");
    let waiting = world.signal(1, "a", "m1");
    world.run();
    assert_eq!(world.outcome(1, waiting), "delivered");
    world.restart(0, quiet("a"), [9; 32]);
    world.run();
    let lost = world.signal(1, "a", "m2");
    assert_ne!(world.node(0).instance(), before);
    world.link(0, 1);
    assert_eq!(world.outcome(1, lost), "session-lost");
    // `b` listens again, to the new process.
    assert_eq!(world.node(0).snapshot().subscriptions, 1);
    world.emit(0, "x", "n1");
    world.run();
    assert_eq!(world.sites[1].hits.len(), 1);
}

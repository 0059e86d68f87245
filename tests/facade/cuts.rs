//! Networks that die unnoticed, and timers of connections that are gone, to the millisecond (T-11,
//! T-13).

use nacp::link::Cause;
use nacp::proto::{Body, MessageType};
use nacp::{Builder, HandlerError, LinkChange, LinkState, LinkWatch, NApp, Reconnect};

use crate::faults::Flow;
use crate::hand::ack_of;
use crate::support::{
    Clock, Heard, Line, Net, Outcome, app, hearing, reason_of, seeded, send_number, start_hearing,
};
use crate::wire::Wire;

/// Neither beats nor dials by itself.
fn quiet(builder: Builder) -> Builder {
    builder.heartbeat_interval(None).reconnect(Reconnect::off())
}

/// What a watch has seen until now.
fn seen(watch: &mut LinkWatch) -> Vec<(LinkState, Cause)> {
    let mut seen = Vec::new();
    while let Some(Some(change)) = futures_util::FutureExt::now_or_never(watch.next()) {
        let LinkChange { state, cause, .. } = change;
        seen.push((state, cause));
    }
    seen
}

/// Two nodes that neither beat nor dial by themselves, `a` online with `b` over a line that breaks.
async fn quiet_pair(heard: &Heard) -> Result<(NApp, NApp, Line), Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let b = quiet(hearing(net.server("b"), heard)).start().await?;
    let line = net.line_to(&b).await;
    let a = quiet(net.node("a")).start().await?;
    a.connect(line.target()).await?;
    Ok((a, b, line))
}

#[tokio::test(start_paused = true)]
async fn the_first_limit_that_passes_takes_a_dead_link_offline_once_and_all_comes_in_order()
-> Outcome {
    // T-11, 1 and 2.
    let heard = Heard::default();
    let (a, b, line) = quiet_pair(&heard).await?;
    let job = start_hearing(&a, "b").await;
    let (mut watch, mut events) = (a.watch_links(), a.events());
    let clock = Clock::start();
    line.kill();
    let mut sent = Vec::new();
    for (at, n) in [(1.0, 1), (4.0, 2), (9.0, 3)] {
        clock.reach(at).await;
        sent.push(send_number(&a, "b", &job, n));
    }
    let lost = watch.next().await.unwrap();
    assert_eq!(
        (lost.state, lost.cause),
        (LinkState::Offline, Cause::AckTimeout)
    );
    assert_eq!(clock.ms(), 11_000, "at the first message's own limit");
    assert_eq!(a.snapshot().peers, 0, "its peer is closed");
    clock.reach(12.0).await;
    sent.push(send_number(&a, "b", &job, 4));
    tokio::task::yield_now().await;
    assert_eq!(a.link(&app("b")).unwrap().backlog.count, 4);
    clock.reach(20.0).await;
    assert_eq!(seen(&mut watch), [], "the limits at 14 and 19 s do nothing");
    a.connect(line.target()).await?;
    for sent in sent {
        sent.await??;
    }
    assert_eq!(heard.all(), [1, 2, 3, 4]);
    assert_eq!(seen(&mut watch), [(LinkState::Online, Cause::Registered)]);
    let mut offline = 0;
    while let Some(Some(event)) = futures_util::FutureExt::now_or_never(events.next()) {
        offline += usize::from(reason_of(&event).as_deref() == Some("offline"));
    }
    assert_eq!(offline, 1);
    drop(b);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_grace_runs_from_the_moment_of_going_offline() -> Outcome {
    // T-11, its last line.
    let (a, _b, line) = quiet_pair(&Heard::default()).await?;
    let job = start_hearing(&a, "b").await;
    let mut watch = a.watch_links();
    let clock = Clock::start();
    line.kill();
    clock.reach(1.0).await;
    let sent = send_number(&a, "b", &job, 1);
    assert_eq!(watch.next().await.unwrap().state, LinkState::Offline);
    let dropped = watch.next().await.unwrap();
    assert_eq!(
        (dropped.state, dropped.cause),
        (LinkState::Dropped, Cause::GraceEnded)
    );
    assert_eq!(clock.ms(), 131_000);
    let undelivered = nacp::SendError::Undelivered(nacp::Undelivered::PeerGone);
    assert_eq!(sent.await?, Err(undelivered));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_ack_limit_of_the_old_connection_does_nothing_on_the_new_one() -> Outcome {
    // T-13, 1 and 2.
    let heard = Heard::default();
    let (a, _b, line) = quiet_pair(&heard).await?;
    let job = start_hearing(&a, "b").await;
    let clock = Clock::start();
    line.down(Flow::Hold);
    let m1 = send_number(&a, "b", &job, 1);
    clock.reach(2.0).await;
    line.cut();
    line.down(Flow::Pass);
    clock.reach(3.0).await;
    let mut watch = a.watch_links();
    a.connect(line.target()).await?;
    m1.await??;
    assert!(clock.is_at(3.0), "{clock:?}");
    clock.reach(9.5).await;
    line.down(Flow::Hold);
    let m2 = send_number(&a, "b", &job, 2);
    // 10 and 13 s pass: the two limits of m1.
    clock.reach(15.0).await;
    assert!(!m2.is_finished());
    line.down(Flow::Pass);
    m2.await??;
    clock.reach(30.0).await;
    assert_eq!(seen(&mut watch), [(LinkState::Online, Cause::Registered)]);
    assert_eq!(heard.all(), [1, 2]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_ack_limit_runs_from_its_own_acceptance() -> Outcome {
    // T-13, 2: were its ACK not to come, m2's limit would be 19.5 s.
    let (a, _b, line) = quiet_pair(&Heard::default()).await?;
    let job = start_hearing(&a, "b").await;
    let mut watch = a.watch_links();
    let clock = Clock::start();
    clock.reach(9.5).await;
    line.down(Flow::Hold);
    let m2 = send_number(&a, "b", &job, 2);
    assert_eq!(watch.next().await.unwrap().cause, Cause::AckTimeout);
    assert_eq!(clock.ms(), 19_500);
    m2.abort();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_beat_of_the_old_connection_is_not_judged_on_the_new_one() -> Outcome {
    // T-13, 3: the other side acknowledges beats and answers none.
    let net = Net::Wire(Wire::default());
    let mut hands = net.hands("b").await;
    let a = net.node("a").reconnect(Reconnect::off()).start().await?;
    let clock = Clock::start();
    let is_beat = |message: &nacp::proto::Message| {
        let beats = message.message_type() == MessageType::Request;
        beats.then(|| message.id.clone())
    };
    let mut binds = Vec::new();
    for at in [3.0, 55.0] {
        clock.reach(at).await;
        let to = hands.target();
        let connecting = tokio::spawn(a.connect(to).into_future());
        let mut hand = hands.accept().await;
        hand.admit(at > 3.0, 1).await;
        connecting.await??;
        let beat = hand.hear_that(is_beat).await;
        assert!(clock.is_at(at), "it beats at once when bound: {clock:?}");
        hand.ack(beat);
        if at < 50.0 {
            clock.reach(50.0).await;
            hand.cut();
            tokio::task::yield_now().await;
        } else {
            binds.push(hand);
        }
    }
    let mut watch = a.watch_links();
    let lost = watch.next().await.unwrap();
    assert_eq!(
        (lost.state, lost.cause),
        (LinkState::Offline, Cause::BeatTimeout)
    );
    assert!(clock.is_at(115.0), "not at 63 s: {clock:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_grace_of_the_old_cut_never_ends_the_new_link() -> Outcome {
    // T-13, 4.
    let (a, b, line) = quiet_pair(&Heard::default()).await?;
    let mut watches = [a.watch_links(), b.watch_links()];
    let clock = Clock::start();
    clock.reach(200.0).await;
    line.cut();
    clock.reach(319.999).await;
    a.connect(line.target()).await?;
    clock.reach(325.0).await;
    line.cut();
    for watch in &mut watches {
        let mut states = Vec::new();
        for _ in 0..4 {
            states.push(watch.next().await.unwrap().state);
        }
        use LinkState::{Dropped, Offline, Online};
        assert_eq!(states, [Offline, Online, Offline, Dropped]);
    }
    assert_eq!(clock.ms(), 445_000, "not at 320 s");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_cuts_leave_no_timer_behind() -> Outcome {
    // T-13, its last line: messages, beats, graces and a limit that never passes.
    let (seed, mut random) = seeded();
    let net = Net::Wire(Wire::default());
    let b = net
        .server("b")
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let line = net.line_to(&b).await;
    let a = net.node("a").reconnect(Reconnect::off()).start().await?;
    let mut after_one = None;
    for round in 0..10_000u32 {
        a.connect(line.target()).await?;
        let asked = a.request::<u32>("b", "echo", &round).await;
        assert_eq!(asked?, round, "seed {seed}");
        // Whatever is under way, also nothing.
        for _ in 0..random(8) {
            tokio::task::yield_now().await;
        }
        line.cut();
        let mut watch = a.watch_links();
        while a.links()[0].state == LinkState::Online {
            watch.next().await;
        }
        while b.links()[0].state == LinkState::Online {
            tokio::task::yield_now().await;
        }
        let timers = (a.snapshot().timers, b.snapshot().timers);
        let expected = *after_one.get_or_insert(timers);
        assert_eq!(timers, expected, "round {round}, seed {seed}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_replayed_message_has_a_limit_of_its_own_from_its_replay() -> Outcome {
    // T-13, 1: the ACK comes 9.9 s after the replay, long after the first limit.
    let net = Net::Wire(Wire::default());
    let mut hands = net.hands("b").await;
    let a = quiet(net.node("a")).start().await?;
    let to = hands.target();
    let connecting = tokio::spawn(a.connect(to.as_str()).into_future());
    let mut hand = hands.accept().await;
    hand.admit(false, 1).await;
    connecting.await??;
    let mut watch = a.watch_links();
    let clock = Clock::start();
    let napp = a.to_unowned();
    let sending = tokio::spawn(async move {
        napp.signal("b", crate::hand::id("event"), nacp::Signal::Pause)
            .await
    });
    let is_signal = |message: &nacp::proto::Message| {
        matches!(message.body, Body::Signal { .. }).then(|| message.id.clone())
    };
    let m1 = hand.hear_that(is_signal).await;
    clock.reach(2.0).await;
    hand.cut();
    clock.reach(3.0).await;
    let connecting = tokio::spawn(a.connect(to).into_future());
    let mut hand = hands.accept().await;
    hand.admit(true, 2).await;
    connecting.await??;
    assert_eq!(hand.hear_that(is_signal).await, m1, "the same id");
    clock.reach(12.9).await;
    assert!(!sending.is_finished());
    hand.say([hand.message(crate::hand::fresh_id(), ack_of(&m1))]);
    sending.await??;
    clock.reach(60.0).await;
    use LinkState::{Offline, Online};
    let states: Vec<_> = seen(&mut watch)
        .into_iter()
        .map(|(state, _)| state)
        .collect();
    assert_eq!(states, [Offline, Online]);
    Ok(())
}

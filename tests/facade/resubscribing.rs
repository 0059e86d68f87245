//! Subscriptions over reconnects, and those whose call has failed (T-20, T-21, T-27).

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::FutureExt;
use nacp::link::Reason;
use nacp::proto::{Body, Decoded, Message, MessageId, MessageType, Outcome as Answer};
use nacp::{
    Builder, LinkState, NApp, Reconnect, StreamEnd, SubscribeError, Subscription, Undelivered,
};

use crate::faults::Way;
use crate::hand::Hand;
use crate::support::{Clock, Line, Net, Outcome, app, sees, target, until, within};
use crate::wire::Wire;

/// What the node notifies up to the answer of a beat: the parent of each.
async fn notified(hand: &mut Hand, emit: impl FnOnce()) -> Vec<MessageId> {
    emit();
    let beat = crate::hand::request(
        nacp::RequestKind::Ability,
        "NApp.heartbeat",
        nacp::Payload::empty(),
    );
    let beat = hand.tell(beat);
    let mut parents = Vec::new();
    loop {
        let Message { id, body, .. } = hand.hear().await;
        if let Body::Notify { parent_id, .. } = body {
            parents.push(parent_id);
        } else if let Body::Response(response) = body
            && response.parent_id == beat
        {
            hand.ack(id);
            return parents;
        }
    }
}

fn unsubscribe(id: &MessageId) -> Body {
    Body::Unsubscribe {
        target_sub_id: id.clone(),
    }
}

over_lines! {
    async fn subscriptions_are_known_by_app_and_id_and_never_by_name(net: Net) -> Outcome {
        // T-20, 1, 2, 3 and 5, as the wire has them.
        let b = net.server("b").heartbeat_interval(None).start().await?;
        let (mut a, mut c) = (net.hand("a", &b).await, net.hand("c", &b).await);
        a.register(&[]).await?;
        c.register(&[]).await?;
        let mut subscribed = Vec::new();
        for pattern in ["x:*", "x:*", "x:y"] {
            let id = a.tell(Body::Subscribe { target_sub_name: pattern.into() });
            assert!(a.answer_to(&id).await.outcome.is_ok());
            subscribed.push(id);
        }
        let of_c = c.tell(Body::Subscribe { target_sub_name: "x:*".into() });
        c.answer_to(&of_c).await;
        let emit = || drop(b.emit("x:y", &1));
        assert_eq!(notified(&mut a, emit).await, subscribed);
        assert_eq!(notified(&mut c, || ()).await, std::slice::from_ref(&of_c));

        let first = a.tell(unsubscribe(&subscribed[0]));
        assert!(a.answer_to(&first).await.outcome.is_ok());
        assert_eq!(notified(&mut a, emit).await, subscribed[1..]);
        assert_eq!(notified(&mut c, || ()).await, std::slice::from_ref(&of_c));

        let unknown = Answer::NotOk { why: Some("unknown-subscription".into()) };
        let again = a.tell(unsubscribe(&subscribed[0]));
        assert_eq!(a.answer_to(&again).await.outcome, unknown);
        let anothers = c.tell(unsubscribe(&subscribed[1]));
        assert_eq!(c.answer_to(&anothers).await.outcome, unknown);
        assert_eq!(notified(&mut a, emit).await, subscribed[1..]);
        assert_eq!(notified(&mut c, || ()).await, std::slice::from_ref(&of_c));

        for id in &subscribed[1..] {
            let ended = a.tell(unsubscribe(id));
            assert!(a.answer_to(&ended).await.outcome.is_ok());
        }
        assert_eq!(b.link(&app("a")).unwrap().subscriptions, 0);
        let new = a.tell(Body::Subscribe { target_sub_name: "x:*".into() });
        a.answer_to(&new).await;
        assert_eq!(notified(&mut a, emit).await, [new]);
        Ok(())
    }

    async fn what_is_under_way_to_an_ended_subscription_is_reported_and_no_more(net: Net) -> Outcome {
        // T-20, 4: two streams are dropped in the moment of ten events.
        let b = net.server("b").heartbeat_interval(None).start().await?;
        let a = net.node("a").heartbeat_interval(None).start().await?;
        a.connect(target(&b)).await?;
        let s2 = a.subscribe("b", "x:*").await?;
        let s3 = a.subscribe("b", "x:y").await?;
        for _ in 0..10 {
            assert_eq!(b.emit("x:y", &1)?, 2);
        }
        drop((s2, s3));
        until("the table of b", || b.link(&app("a")).unwrap().subscriptions == 0).await;
        let mut new = a.subscribe("b", "x:*").await?;
        assert_eq!(b.emit("x:y", &2)?, 1);
        assert_eq!(within("an event", new.next()).await.unwrap().decode::<u32>()?, 2);
        let reasons: Vec<_> = a.totals().reasons().map(|(reason, _)| reason).collect();
        assert!(
            reasons.iter().all(|reason| *reason == Reason::HasNoConsumer),
            "{reasons:?}"
        );
        assert_eq!(a.links()[0].state, LinkState::Online);
        Ok(())
    }

    async fn a_stream_that_is_refused_when_it_is_made_again_ends_with_the_reason(net: Net) -> Outcome {
        // T-21, 4: the next instance of b takes two of three.
        let b = net.server("b").start().await?;
        let a = net.node("a").reconnect(Reconnect::off()).start().await?;
        a.connect(target(&b)).await?;
        let mut streams = three(&a).await?;
        b.terminate_now();
        sees(&a, "b", LinkState::Offline).await;
        let b = net.server("b").config(|config| config.max_subscriptions(2)).start().await?;
        a.connect(target(&b)).await?;
        let refused = async {
            loop {
                if let Some(at) = streams.iter().position(|stream| stream.ended().is_some()) {
                    return streams.remove(at);
                }
                tokio::task::yield_now().await;
            }
        };
        let mut refused = within("the refusal", refused).await;
        assert_eq!(refused.next().await, None);
        let why = Some("limit-reached".into());
        assert_eq!(refused.ended(), Some(StreamEnd::Refused { why }));
        until("the others", || b.snapshot().subscriptions == 2).await;
        assert_eq!(b.emit("e:1", &1)?, 2);
        for stream in &mut streams {
            assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 1);
            assert_eq!(stream.ended(), None);
        }
        Ok(())
    }
}

async fn three(a: &NApp) -> Result<Vec<Subscription>, SubscribeError> {
    let mut streams = Vec::new();
    for pattern in ["e:*", "e:*", "*:1"] {
        streams.push(a.subscribe("b", pattern).await?);
    }
    Ok(streams)
}

/// Each stream gets exactly these, in order.
async fn each_gets(streams: &mut [Subscription], expected: &[u32]) -> Outcome {
    for stream in streams {
        for n in expected {
            assert_eq!(stream.next().await.unwrap().decode::<u32>()?, *n);
        }
        assert_eq!(stream.next().now_or_never(), None, "once each");
    }
    Ok(())
}

fn subscribes(a: &NApp) -> u64 {
    a.totals().sent_of(Some(MessageType::Subscribe))
}

fn quiet(builder: Builder) -> Builder {
    builder.heartbeat_interval(None).reconnect(Reconnect::off())
}

/// `b` forgets `a` after 30 s; `a` remembers `b` for 120 s.
async fn forgetful() -> Result<(NApp, NApp, Line), Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let b = quiet(net.server("b"))
        .reconnect_grace(Duration::from_secs(30))
        .start()
        .await?;
    let line = net.line_to(&b).await;
    let a = quiet(net.node("a")).start().await?;
    Ok((a, b, line))
}

/// Cuts the line and brings it back after some seconds.
async fn cut_for(seconds: u64, (a, b, line): (&NApp, &NApp, &Line)) -> Outcome {
    line.cut();
    sees(a, "b", LinkState::Offline).await;
    sees(b, "a", LinkState::Offline).await;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let mut watch = a.watch_links();
    a.connect(line.target()).await?;
    let back = watch.next().await.unwrap();
    assert_eq!(back.resumed, Some(seconds < 30));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn streams_are_kept_by_a_resumed_link_and_made_again_once_by_a_forgotten_one() -> Outcome {
    // T-21, 1, 2 and 5: in turn, ten times; then the grace of `a` ends.
    let (a, b, line) = forgetful().await?;
    a.connect(line.target()).await?;
    let mut streams = three(&a).await?;
    for round in 0..10u32 {
        // 1: three dials fail, the fourth registers; e1 was emitted meanwhile.
        let before = subscribes(&a);
        line.cut();
        sees(&a, "b", LinkState::Offline).await;
        sees(&b, "a", LinkState::Offline).await;
        assert_eq!(b.emit("e:1", &(round * 3 + 1))?, 3);
        line.refuse(true);
        for _ in 0..3 {
            assert!(a.connect(line.target()).await.is_err());
        }
        line.refuse(false);
        a.connect(line.target()).await?;
        b.emit("e:1", &(round * 3 + 2))?;
        each_gets(&mut streams, &[round * 3 + 1, round * 3 + 2]).await?;
        assert_eq!(subscribes(&a), before, "nothing is subscribed again");
        // 2: b has dropped a, a has not dropped b.
        cut_for(60, (&a, &b, &line)).await?;
        until("the streams", || b.snapshot().subscriptions == 3).await;
        a.heartbeat("b").await?;
        assert_eq!(subscribes(&a), before + 3);
        assert_eq!(b.emit("e:1", &(round * 3 + 3))?, 3);
        each_gets(&mut streams, &[round * 3 + 3]).await?;
    }
    assert_eq!((b.snapshot().subscriptions, a.snapshot().streams), (3, 3));
    line.cut();
    for stream in &mut streams {
        assert_eq!(stream.next().await, None);
        let gone = StreamEnd::Undelivered(Undelivered::PeerGone);
        assert_eq!(stream.ended(), Some(gone));
    }
    a.connect(line.target()).await?;
    a.heartbeat("b").await?;
    assert_eq!(b.emit("e:1", &0)?, 0, "no later register revives them");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_cut_amid_subscribing_again_leaves_none_out_and_none_twice() -> Outcome {
    // T-21, 3: two of the three new subscribes pass, then the connection is cut.
    let (a, b, line) = forgetful().await?;
    let passed = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&passed);
    line.sift(move |_, decoded| {
        decoded.message_type() != Some(MessageType::Subscribe)
            || counter.fetch_add(1, Ordering::SeqCst) != 5
    });
    a.connect(line.target()).await?;
    let mut streams = three(&a).await?;
    cut_for(60, (&a, &b, &line)).await?;
    until("the third", || passed.load(Ordering::SeqCst) == 6).await;
    until("the other two", || b.snapshot().subscriptions == 2).await;
    cut_for(1, (&a, &b, &line)).await?;
    until("the third again", || b.snapshot().subscriptions == 3).await;
    a.heartbeat("b").await?;
    assert_eq!(b.snapshot().subscriptions, 3);
    b.emit("e:1", &1)?;
    each_gets(&mut streams, &[1]).await
}

/// Passes everything but the answers to what is not a register, while it is told so.
fn deaf_to_answers(line: &Line) -> Arc<AtomicUsize> {
    let deaf = Arc::new(AtomicUsize::new(0));
    let is_deaf = Arc::clone(&deaf);
    line.sift(move |way, decoded: &Decoded| {
        way == Way::Up
            || is_deaf.load(Ordering::SeqCst) == 0
            || decoded.message_type() != Some(MessageType::Response)
    });
    deaf
}

#[tokio::test(start_paused = true)]
async fn a_subscribe_that_was_written_and_timed_out_is_taken_back() -> Outcome {
    // T-27, 2: its answer was lost with the connection, and comes again when the link is back.
    let net = Net::Wire(Wire::default());
    let b = quiet(net.server("b")).start().await?;
    let line = net.line_to(&b).await;
    let a = quiet(net.node("a")).start().await?;
    let deaf = deaf_to_answers(&line);
    a.connect(line.target()).await?;
    let clock = Clock::start();
    deaf.store(1, Ordering::SeqCst);
    let subscribing = a.to_unowned();
    let subscribing =
        tokio::spawn(async move { subscribing.subscribe("b", "x:*").await.map(drop) });
    clock.reach(2.0).await;
    assert_eq!(b.snapshot().subscriptions, 1);
    line.cut();
    let refused = subscribing.await?.unwrap_err();
    assert_eq!(refused, SubscribeError::Undelivered(Undelivered::Timeout));
    assert_eq!(clock.ms(), 10_000);
    deaf.store(0, Ordering::SeqCst);
    clock.reach(30.0).await;
    a.connect(line.target()).await?;
    until("the unsubscribe", || b.snapshot().subscriptions == 0).await;
    b.emit("x:1", &1)?;
    a.heartbeat("b").await?;
    assert_eq!(
        b.totals().sent_of(Some(MessageType::Notify)),
        0,
        "no notify to nobody"
    );
    assert_eq!((a.snapshot().streams, a.snapshot().calls), (0, 0));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn an_unsubscribe_that_was_written_and_timed_out_is_done() -> Outcome {
    // T-27, 2, for unsubscribe.
    let net = Net::Wire(Wire::default());
    let b = quiet(net.server("b")).start().await?;
    let line = net.line_to(&b).await;
    let a = quiet(net.node("a")).start().await?;
    let deaf = deaf_to_answers(&line);
    a.connect(line.target()).await?;
    let stream = a.subscribe("b", "x:*").await?;
    let clock = Clock::start();
    deaf.store(1, Ordering::SeqCst);
    let ending = tokio::spawn(stream.unsubscribe());
    clock.reach(2.0).await;
    assert_eq!(b.snapshot().subscriptions, 0);
    line.cut();
    let late = ending.await?;
    assert_eq!(late, Err(SubscribeError::Undelivered(Undelivered::Timeout)));
    assert_eq!(clock.ms(), 10_000);
    deaf.store(0, Ordering::SeqCst);
    clock.reach(30.0).await;
    a.connect(line.target()).await?;
    a.heartbeat("b").await?;
    assert_eq!((b.emit("x:1", &1)?, a.snapshot().streams), (0, 0));
    Ok(())
}

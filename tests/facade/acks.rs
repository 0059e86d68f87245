//! ACKs that fit nothing, come twice, too early or instead of something else (T-12). `a` is a node,
//! `b` is made by hand.

use nacp::link::{Cause, Reason};
use nacp::proto::{Body, Message, MessageId, Response, Session, Signal};
use nacp::{
    EventContext, HandlerError, LinkState, NApp, Payload, RequestKind, SendError, Undelivered,
};
use tokio::task::JoinHandle;

use crate::hand::{Hand, ack_of, fresh_id, id, request, signal_to};
use crate::support::{Clock, Heard, Net, Outcome, app, hearing, reported, sees, until, within};
use crate::wire::Wire;

async fn online(
    net: &Net,
    build: impl FnOnce(nacp::Builder) -> nacp::Builder,
) -> Result<(NApp, Hand, Session), Box<dyn std::error::Error>> {
    let a = build(net.server("a").heartbeat_interval(None))
        .start()
        .await?;
    let mut b = net.hand("b", &a).await;
    let session = b.register(&[]).await?.session.unwrap();
    Ok((a, b, session))
}

fn send(a: &NApp, n: u32) -> JoinHandle<Result<(), SendError>> {
    let a = a.to_unowned();
    let signal = Signal::Normal(Payload::new(&n).unwrap());
    tokio::spawn(async move { a.signal("b", id("event"), signal).await })
}

fn is_signal(message: &Message) -> Option<MessageId> {
    matches!(message.body, Body::Signal { .. }).then(|| message.id.clone())
}

fn unknown_acks(a: &NApp) -> u64 {
    a.totals().count_of(Reason::HasNoConsumer)
}

/// The link is as good as ever, and nothing is left in the books.
async fn is_unharmed(a: &NApp, b: &mut Hand) {
    assert!(b.is_answered().await);
    until("the books", || {
        let link = a.link(&app("b")).unwrap();
        link.state == LinkState::Online
            && link.backlog.count + link.submitted.count + link.ack_pending.count == 0
            && link.backlog.bytes + link.submitted.bytes + link.ack_pending.bytes == 0
    })
    .await;
    assert_eq!(a.snapshot().calls, 0);
}

over_lines! {
    async fn an_ack_for_nothing_or_for_the_third_time_is_reported_and_harms_nothing(net: Net) -> Outcome {
        // T-12, 1.
        let (a, mut b, _) = online(&net, |a| a).await?;
        let mut events = a.events();
        let sent = send(&a, 1);
        let m1 = b.hear_that(is_signal).await;
        b.ack(id("never-used"));
        for _ in 0..3 {
            b.ack(m1.clone());
        }
        within("the acknowledgement", sent).await??;
        for _ in 0..3 {
            reported(&mut events, "nacp:internal:ack:error", "has-no-consumer").await;
        }
        is_unharmed(&a, &mut b).await;
        assert_eq!(unknown_acks(&a), 3, "once each");
        Ok(())
    }

    async fn an_ack_that_comes_on_the_next_connection_settles_what_waits_for_replay(net: Net) -> Outcome {
        // T-12, 2.
        let (a, mut b, session) = online(&net, |a| a).await?;
        let sent = send(&a, 1);
        let m1 = b.hear_that(is_signal).await;
        b.cut();
        sees(&a, "b", LinkState::Offline).await;
        assert_eq!(a.link(&app("b")).unwrap().backlog.count, 1);
        let mut b = net.hand("b", &a).await;
        let register = fresh_id();
        b.say([
            b.register_message(register.clone(), &[session]),
            b.message(fresh_id(), ack_of(&m1)),
        ]);
        b.registered(&register).await?;
        within("the acknowledgement", sent).await??;
        is_unharmed(&a, &mut b).await;
        a.terminate_now();
        let copies = b.rest().await.iter().filter_map(is_signal).count();
        assert!(copies <= 1, "{copies} copies");
        assert_eq!(unknown_acks(&a), 0);
        Ok(())
    }

    async fn an_ack_for_what_was_evicted_changes_no_outcome(net: Net) -> Outcome {
        // T-12, 3: an evicted record, a notify, an id of the other side itself.
        let (a, mut b, _) = online(&net, |a| a.queue_max_count(2)).await?;
        let mut events = a.events();
        let mut sends = Vec::new();
        let mut ids = Vec::new();
        for n in 0..3 {
            sends.push(send(&a, n));
            ids.push(b.hear_that(is_signal).await);
        }
        let evicted = within("the eviction", sends.remove(0)).await?;
        assert_eq!(evicted, Err(SendError::Undelivered(Undelivered::Evicted)));
        b.ack(ids.remove(0));
        reported(&mut events, "nacp:internal:ack:error", "has-no-consumer").await;

        for (sent, id) in sends.into_iter().zip(ids) {
            b.ack(id);
            within("the acknowledgement", sent).await??;
        }
        let subscribe = b.tell(Body::Subscribe { target_sub_name: "x".into() });
        b.answer_to(&subscribe).await;
        assert_eq!(a.emit("x", &1)?, 1);
        let notify = b.hear_that(|message| {
            matches!(message.body, Body::Notify { .. }).then(|| message.id.clone())
        }).await;
        b.ack(notify);
        reported(&mut events, "nacp:internal:ack:error", "has-no-consumer").await;
        b.ack(subscribe);
        reported(&mut events, "nacp:internal:ack:error", "has-no-consumer").await;

        is_unharmed(&a, &mut b).await;
        assert_eq!(unknown_acks(&a), 3);
        Ok(())
    }

    async fn an_ack_of_an_app_that_was_dropped_is_a_strangers(net: Net) -> Outcome {
        // T-12, 3, its last part.
        let (a, mut b, _) = online(&net, |a| a).await?;
        let mut events = a.events();
        let sent = send(&a, 1);
        let m1 = b.hear_that(is_signal).await;
        b.tell(Body::Unregister);
        let gone = within("the drop", sent).await?;
        assert_eq!(gone, Err(SendError::Undelivered(Undelivered::PeerGone)));
        b.rest().await;
        let b = net.hand("b", &a).await;
        b.ack(m1);
        reported(&mut events, "nacp:internal:inbound:error", "not-registered").await;
        assert_eq!(a.links(), []);
        Ok(())
    }

    async fn an_ack_or_answer_that_precedes_the_acceptance_settles_all_the_same(net: Net) -> Outcome {
        // T-12, 4: 16 MiB that the other side does not read yet.
        let (a, mut b, _) = online(&net, |a| a).await?;
        let large = Payload::byte_string(vec![7; 16 << 20]);
        let mut job = a.run_raw("b", "x", large.clone()).await?;
        let mut other = a.run_raw("b", "x", large).await?;
        let submitted = || a.link(&app("b")).unwrap().submitted.count;
        assert_eq!(submitted(), 1, "the second waits for its turn");
        let request = job.id().unwrap().clone();
        // The hand reads nothing before it says this.
        let answer = Response {
            kind: Some(RequestKind::Event),
            ..Response::ok(request.clone(), Payload::new(&1)?)
        };
        b.answer(&request, answer);
        assert_eq!(within("the answer", job.response::<u32>()).await?, 1);
        let next = other.id().unwrap().clone();
        let mut answered = 0;
        while answered < 2 {
            let message = b.hear().await;
            answered += usize::from(message.id == request || message.id == next);
        }
        b.answer(&next, Response {
            kind: Some(RequestKind::Event),
            ..Response::ok(next.clone(), Payload::null())
        });
        within("the answer", other.response_raw()).await?;
        is_unharmed(&a, &mut b).await;
        assert_eq!(unknown_acks(&a), 0);
        Ok(())
    }

    async fn a_message_that_is_repeated_a_thousand_times_is_acknowledged_each_time_and_handled_once(net: Net) -> Outcome {
        // T-12, 5.
        let heard = Heard::default();
        let (a, mut b, _) = online(&net, |a| hearing(a, &heard)).await?;
        let event = b.tell(request(RequestKind::Event, "hear", Payload::null()));
        let again = b.message(id("again"), signal_to(&event, 1));
        b.say(std::iter::repeat_n(again.clone(), 1000));
        let mut acks = 0;
        while acks < 1000 {
            acks += usize::from(b.hear().await.body == ack_of(&again.id));
        }
        b.tell(signal_to(&event, 2));
        until("the last signal", || heard.len() == 2).await;
        assert_eq!(heard.all(), [1, 2]);
        drop(a);
        Ok(())
    }

    async fn an_ack_is_never_kept_for_an_app_that_is_offline(net: Net) -> Outcome {
        // T-12, its last line: the first words on the new connection are the answer to its register.
        let runs = Heard::default();
        let counted = runs.clone();
        let (a, mut b, session) = online(&net, |a| {
            a.event("count", move |ctx: EventContext, n: u32| {
                counted.push(n);
                async move { Err::<(), HandlerError>(ctx.interrupted().await.into()) }
            })
        })
        .await?;
        assert!(b.is_answered().await);
        let once = b.message(id("once"), request(RequestKind::Event, "count", Payload::new(&1)?));
        b.say([once.clone()]);
        until("the handler", || runs.len() == 1).await;
        b.cut();
        sees(&a, "b", LinkState::Offline).await;
        let mut b = net.hand("b", &a).await;
        let register = fresh_id();
        b.say([b.register_message(register.clone(), &[session])]);
        assert_eq!(b.hear().await.body, ack_of(&register));
        let answer = b.hear().await;
        let Body::Response(response) = &answer.body else { panic!("{answer:?}") };
        assert_eq!(response.parent_id, register);
        b.ack(answer.id);
        b.say([once]);
        assert_eq!(b.hear().await.body, ack_of(&id("once")), "a repeat is acknowledged again");
        assert!(b.is_answered().await);
        assert_eq!(runs.all(), [1]);
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn a_response_without_an_ack_settles_the_request_and_its_record_follows_the_usual_rule()
-> Outcome {
    // T-12, 4: the record goes with its ACK, or takes the link offline at its limit.
    for is_acknowledged in [true, false] {
        let net = Net::Wire(Wire::default());
        let (a, mut b, _) = online(&net, |a| a).await?;
        let mut watch = a.watch_links();
        let clock = Clock::start();
        let mut job = a.run("b", "x", &()).await?;
        let request = job.id().unwrap().clone();
        b.hear_that(|message| (message.id == request).then_some(()))
            .await;
        let answer = Response {
            kind: Some(RequestKind::Event),
            ..Response::ok(request.clone(), Payload::new(&1)?)
        };
        b.tell(Body::Response(answer));
        assert_eq!(job.response::<u32>().await?, 1);
        assert_eq!(a.link(&app("b")).unwrap().ack_pending.count, 1);
        if is_acknowledged {
            b.ack(request);
            is_unharmed(&a, &mut b).await;
            assert_eq!(futures_util::FutureExt::now_or_never(watch.next()), None);
        } else {
            let lost = watch.next().await.unwrap();
            assert_eq!(
                (lost.state, lost.cause),
                (LinkState::Offline, Cause::AckTimeout)
            );
            assert!(clock.is_at(10.0), "{clock:?}");
        }
    }
    Ok(())
}

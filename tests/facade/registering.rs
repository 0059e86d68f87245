//! What comes close beside a register, its answer and its policy (T-15).

use std::time::Duration;

use async_trait::async_trait;
use nacp::link::Reason;
use nacp::proto::{MessageType, Outcome as Answer};
use nacp::{
    Applicant, Decision, EventContext, HandlerError, LinkState, NApp, Payload, Reconnect,
    RegisterPolicy, RequestKind,
};

use crate::hand::{ack_of, fresh_id, request, response_to, signal_to};
use crate::support::{Clock, Heard, Net, Outcome, app, reported, target, until, within};
use crate::wire::Wire;

const SIGNALS: u32 = 100;

/// An event that hears a hundred numbers and then says so.
fn hundred(builder: nacp::Builder, heard: &Heard) -> nacp::Builder {
    let heard = heard.clone();
    builder.event("hundred", move |ctx: EventContext, (): ()| {
        let heard = heard.clone();
        async move {
            for _ in 0..SIGNALS {
                let Some(nacp::Signal::Normal(payload)) = ctx.next_signal().await else {
                    break;
                };
                heard.push(payload.decode::<u32>()?);
            }
            Ok::<_, HandlerError>(())
        }
    })
}

/// Whether the ACK or the response is the first word to a register.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Ack,
    Response,
}

/// Lets `a` register again and again; each answer comes in one write with a hundred signals.
async fn all_in_one_write(net: &Net, rounds: u32) -> Outcome {
    let heard = Heard::default();
    let mut hands = net.hands("b").await;
    let a = hundred(net.node("a"), &heard)
        .heartbeat_interval(None)
        .reconnect(Reconnect::off())
        .start()
        .await?;
    for round in 0..rounds {
        let first = if round % 2 == 0 {
            First::Ack
        } else {
            First::Response
        };
        let to = hands.target();
        let connecting = tokio::spawn(a.connect(to).into_future());
        let mut b = hands.accept().await;
        let (register, _) = b.asked().await;
        let ack = b.message(fresh_id(), ack_of(&register));
        let answer = b.admission(&register, round > 0, 1);
        let event = fresh_id();
        let mut words = match first {
            First::Ack => vec![ack, answer],
            First::Response => vec![answer, ack],
        };
        let run = request(RequestKind::Event, "hundred", Payload::null());
        words.push(b.message(event.clone(), run));
        for n in 0..SIGNALS {
            words.push(b.message(fresh_id(), signal_to(&event, round * SIGNALS + n)));
        }
        b.say(words);
        within("the register", connecting).await??;
        // The event has heard them all when it answers.
        b.answer_to(&event).await;
        until("the acknowledgement", || {
            a.link(&app("b")).unwrap().ack_pending.count == 0
        })
        .await;
        let mut watch = a.watch_links();
        b.cut();
        assert_eq!(
            within("the loss", watch.next()).await.unwrap().state,
            LinkState::Offline
        );
    }
    until("all signals", || heard.len() >= (rounds * SIGNALS) as usize).await;
    assert_eq!(heard.all(), (0..rounds * SIGNALS).collect::<Vec<_>>());
    let totals = a.totals();
    for reason in [Reason::NotRegistered, Reason::SourceMismatch] {
        assert_eq!(totals.count_of(reason), 0, "{reason}");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_comes_in_one_write_with_the_register_answer_is_handled_in_order() -> Outcome {
    // T-15, 1 and 2: in turn with the ACK first and with the response first.
    all_in_one_write(&Net::Wire(Wire::default()), 1000).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_in_one_read_with_the_register_answer_is_handled_in_order() -> Outcome {
    // T-15, 1 and 2: tasks in whatever order two threads take them.
    all_in_one_write(&Net::Tcp, 1000).await
}

/// Takes half a second to admit.
struct Slow;

#[async_trait]
impl RegisterPolicy for Slow {
    async fn decide(&self, _: &Applicant) -> Decision {
        tokio::time::sleep(Duration::from_millis(500)).await;
        Decision::AdmitProven
    }
}

async fn guarded(net: &Net) -> Result<NApp, Box<dyn std::error::Error>> {
    let b = net.server("b").heartbeat_interval(None).policy(Slow);
    Ok(b.start().await?)
}

#[tokio::test(start_paused = true)]
async fn a_second_register_during_the_policy_is_answered_with_the_first() -> Outcome {
    // T-15, 3.
    let net = Net::Wire(Wire::default());
    let b = guarded(&net).await?;
    let mut watch = b.watch_links();
    let clock = Clock::start();
    let mut a = net.hand("a", &b).await;
    let registers = [fresh_id(), fresh_id()];
    a.say([a.register_message(registers[0].clone(), &[])]);
    clock.reach(0.3).await;
    a.say([a.register_message(registers[1].clone(), &[])]);
    assert_eq!(watch.next().await.unwrap().state, LinkState::Online);
    assert!(clock.is_at(0.5), "{clock:?}");
    clock.reach(30.0).await;
    assert_eq!(
        futures_util::FutureExt::now_or_never(watch.next()),
        None,
        "bound once"
    );
    b.terminate_now();
    let heard = a.rest().await;
    for register in registers {
        let answers: Vec<_> = heard
            .iter()
            .filter_map(|message| response_to(message, &register))
            .map(|response| response.outcome.clone())
            .collect();
        assert_eq!(answers, [Answer::Ok], "one answer");
        let acks = heard
            .iter()
            .filter(|message| message.body == ack_of(&register));
        assert_eq!(acks.count(), 1, "one ACK");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_ends_during_the_policy_is_never_bound() -> Outcome {
    // T-15, 3.
    let net = Net::Wire(Wire::default());
    let b = guarded(&net).await?;
    let mut watch = b.watch_links();
    let a = net.hand("a", &b).await;
    a.say([a.register_message(fresh_id(), &[])]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(b.snapshot().peers, 1);
    a.cut();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(futures_util::FutureExt::now_or_never(watch.next()), None);
    assert_eq!((b.links(), b.snapshot().peers), (Vec::new(), 0));
    Ok(())
}

/// Never decides.
struct Endless;

#[async_trait]
impl RegisterPolicy for Endless {
    async fn decide(&self, _: &Applicant) -> Decision {
        std::future::pending().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_does_not_decide_in_ten_seconds_refuses() -> Outcome {
    let net = Net::Wire(Wire::default());
    let b = net.server("b").heartbeat_interval(None).policy(Endless);
    let b = b.start().await?;
    let mut a = net.hand("a", &b).await;
    let clock = Clock::start();
    let register = fresh_id();
    a.say([a.register_message(register.clone(), &[])]);
    let answers = a.rest().await;
    assert!(clock.is_at(10.0), "{clock:?}");
    let outcomes: Vec<_> = answers
        .iter()
        .filter_map(|message| response_to(message, &register))
        .map(|response| response.outcome.clone())
        .collect();
    let why = Some("unauthorized".into());
    assert_eq!(outcomes, [Answer::NotOk { why }]);
    assert_eq!(b.snapshot().peers, 0, "its place is free again");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_node_that_ends_during_the_policy_settles_at_once() -> Outcome {
    // T-15, 3.
    let net = Net::Wire(Wire::default());
    let b = guarded(&net).await?;
    let mut a = net.hand("a", &b).await;
    a.say([a.register_message(fresh_id(), &[])]);
    tokio::time::sleep(Duration::from_millis(100)).await;
    let clock = Clock::start();
    let answers = async {
        let answers = a.rest().await;
        drop(a);
        answers
    };
    let ((), answers) = tokio::join!(b.terminate(), answers);
    assert_eq!(clock.ms(), 0);
    assert!(
        answers
            .iter()
            .all(|message| message.message_type() != MessageType::Response),
        "{answers:?}"
    );
    Ok(())
}

over_lines! {
    async fn sixteen_messages_of_another_app_close_a_stranger_and_harm_that_app_not(net: Net) -> Outcome {
        // T-15, 4: 15, 16 and 17 messages whose `from` is not bound to their connection.
        let b = net
            .server("b")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .heartbeat_interval(None)
            .start()
            .await?;
        let innocent = net.node("innocent").start().await?;
        innocent.connect(target(&b)).await?;
        let mut events = b.events();
        for count in [15, 16, 17] {
            let mut stranger = net.hand(&format!("stranger-{count}"), &b).await;
            stranger.register(&[]).await?;
            let before = b.totals().count_of(Reason::SourceMismatch);
            stranger.say((0..count).map(|n| {
                let mut forged = stranger.message(fresh_id(), signal_to(&fresh_id(), n));
                forged.from = app("innocent");
                forged
            }));
            for _ in 0..count.min(15) {
                reported(&mut events, "nacp:internal:inbound:error", "source-mismatch").await;
            }
            if count < 16 {
                assert!(stranger.is_answered().await, "it stays");
            } else {
                reported(&mut events, "nact:peer:error", "source-faults").await;
                stranger.rest().await;
            }
            let reports = b.totals().count_of(Reason::SourceMismatch) - before;
            assert_eq!(reports, u64::from(count.min(16)));
            assert_eq!(innocent.request::<u32>("b", "echo", &count).await?, count);
            let link = b.link(&app("innocent")).unwrap();
            assert_eq!((link.state, link.replayed), (LinkState::Online, 0));
        }
        Ok(())
    }
}

//! Messages that come again after a reconnect are known (T-17).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nacp::proto::{Body, Decoded, Message, MessageType};
use nacp::{Builder, HandlerError, LinkState, NApp, Payload, Reconnect, RequestKind, StartError};

use crate::faults::Way;
use crate::hand::{Hand, ack_of, fresh_id, id, request, signal_to};
use crate::support::{
    Heard, Net, Outcome, app, hearing, sees, start_hearing, target, until, within,
};

fn counting(builder: Builder, runs: &Heard) -> Builder {
    let runs = runs.clone();
    builder.ability("count", move |n: u32| {
        runs.push(n);
        async move { Ok::<_, HandlerError>(n) }
    })
}

fn is_ack(decoded: &Decoded) -> bool {
    decoded.message_type() == Some(MessageType::Ack)
}

over_lines! {
    async fn five_replays_of_a_full_table_are_handled_once_and_acknowledged_each_time(net: Net) -> Outcome {
        // T-17, 1: half signals, half requests, and no ACK comes back until the end.
        const EACH: u32 = 512;
        let (runs, heard) = (Heard::default(), Heard::default());
        let deaf = Arc::new(AtomicBool::new(false));
        let b = hearing(counting(net.server("b"), &runs), &heard)
            .heartbeat_interval(None)
            .start()
            .await?;
        let line = net.line_to(&b).await;
        let is_deaf = Arc::clone(&deaf);
        line.sift(move |way, decoded| {
            way == Way::Up || !is_ack(decoded) || !is_deaf.load(Ordering::SeqCst)
        });
        let a = net
            .node("a")
            .config(|config| config.poison_limit(0))
            .heartbeat_interval(None)
            .reconnect(Reconnect::off())
            .start()
            .await?;
        a.connect(line.target()).await?;
        let job = start_hearing(&a, "b").await;
        until("the acknowledgement of the event", || a.snapshot().ack_pending.count == 0).await;
        deaf.store(true, Ordering::SeqCst);
        let mut signals = Vec::new();
        let mut requests = Vec::new();
        for n in 0..EACH {
            signals.push(crate::support::send_number(&a, "b", &job, n));
            requests.push(crate::support::under_way(a.request::<u32>("b", "count", &n)));
        }
        for (n, request) in requests.into_iter().enumerate() {
            assert_eq!(within("an answer", request).await??, n as u32, "answered once");
        }
        until("the signals", || heard.len() == EACH as usize).await;
        assert_eq!(a.snapshot().ack_pending.count, 1024);
        let acks = || b.totals().sent_of(Some(MessageType::Ack));
        for replay in 1..=5 {
            let before = acks();
            line.cut();
            sees(&a, "b", LinkState::Offline).await;
            sees(&b, "a", LinkState::Offline).await;
            assert_eq!(a.snapshot().backlog.count, 1024);
            deaf.store(replay < 5, Ordering::SeqCst);
            a.connect(line.target()).await?;
            until("the replay", || {
                a.link(&app("b")).unwrap().replayed == 1024 * replay && acks() == before + 1025
            })
            .await;
        }
        for signal in signals {
            within("an acknowledgement", signal).await??;
        }
        until("the books", || a.snapshot().ack_pending.count == 0).await;
        assert_eq!(heard.all(), (0..EACH).collect::<Vec<_>>());
        let mut ran = runs.all();
        ran.sort_unstable();
        assert_eq!(ran, (0..EACH).collect::<Vec<_>>());
        Ok(())
    }

    async fn new_messages_between_replays_never_push_the_repeatable_ones_out(net: Net) -> Outcome {
        // T-17, 2: by hand, which acknowledges nothing and sends everything again.
        let heard = Heard::default();
        let b = hearing(net.server("b"), &heard).heartbeat_interval(None).start().await?;
        let mut a = net.hand("a", &b).await;
        let mut session = a.register(&[]).await?.session.unwrap();
        let event = a.tell(request(RequestKind::Event, "hear", Payload::null()));
        let repeatable: Vec<_> = (0..1024)
            .map(|n| a.message(fresh_id(), signal_to(&event, n)))
            .collect();
        a.say(repeatable.iter().cloned());
        acknowledged(&mut a, &repeatable).await;
        for replay in 0..5 {
            if replay == 2 {
                let new: Vec<_> = (1024..1524)
                    .map(|n| a.message(fresh_id(), signal_to(&event, n)))
                    .collect();
                a.say(new.iter().cloned());
                acknowledged(&mut a, &new).await;
            }
            a.cut();
            sees(&b, "a", LinkState::Offline).await;
            a = net.hand("a", &b).await;
            let registered = a.register(&[session]).await?;
            assert_eq!(registered.resumed, Some(true));
            session = registered.session.unwrap();
            a.say(repeatable.iter().cloned());
            acknowledged(&mut a, &repeatable).await;
        }
        a.tell(signal_to(&event, 1524));
        until("the last signal", || heard.len() >= 1525).await;
        assert_eq!(heard.all(), (0..1525).collect::<Vec<_>>());
        Ok(())
    }

    async fn ids_are_known_by_their_source_also_behind_a_gateway(net: Net) -> Outcome {
        // T-17, 4: message id `1` of two apps.
        let heard = Heard::default();
        let b = hearing(net.server("b"), &heard).heartbeat_interval(None).start().await?;
        let gateway = net.server("gateway").gateway().heartbeat_interval(None).start().await?;
        gateway.connect(target(&b)).await?;
        for (to, names) in [(&b, ["a", "c"]), (&gateway, ["a2", "c2"])] {
            let before = heard.len();
            let mut hands = Vec::new();
            for name in names {
                let mut hand = net.hand(name, to).await;
                hand.register(&[]).await?;
                hand.node = app("b");
                let event = hand.tell(request(RequestKind::Event, "hear", Payload::null()));
                hand.hear_that(|message| {
                    matches!(message.body, Body::Notify { .. }).then_some(())
                })
                .await;
                let same = hand.message(id("1"), signal_to(&event, before as u32));
                // A gateway drops a copy of what it still holds itself.
                for _ in 0..2 {
                    hand.say([same.clone()]);
                    hand.hear_that(|message| (message.body == ack_of(&same.id)).then_some(())).await;
                }
                hands.push(hand);
            }
            until("both", || heard.len() == before + 2).await;
        }
        assert_eq!(heard.len(), 4, "each once");
        Ok(())
    }
}

/// Waits until each of these is acknowledged.
async fn acknowledged(hand: &mut Hand, messages: &[Message]) {
    for message in messages {
        let ack = ack_of(&message.id);
        hand.hear_that(|heard| (heard.body == ack).then_some(()))
            .await;
    }
}

#[tokio::test]
async fn a_window_that_is_smaller_than_what_can_come_again_is_refused() {
    // T-17, 3.
    let refused = NApp::builder("a")
        .queue_max_count(1000)
        .config(|config| config.dedup_window(10))
        .start()
        .await;
    let Err(StartError::Config(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(
        matches!(error, nacp::ConfigError::DedupWindow { window: 10, .. }),
        "{error:?}"
    );
}

#[tokio::test]
async fn windows_of_apps_behind_a_gateway_take_bounded_memory() -> Outcome {
    // T-17, 5.
    const NAMES: u32 = 1_000_000;
    const KEPT: u32 = 1024;
    let net = Net::Wire(crate::wire::Wire::default());
    let heard = Heard::default();
    let b = hearing(net.server("b"), &heard)
        .heartbeat_interval(None)
        .start()
        .await?;
    let mut direct = net.hand("direct", &b).await;
    direct.register(&[]).await?;
    let event = direct.tell(request(RequestKind::Event, "hear", Payload::null()));
    let own = direct.message(id("own"), signal_to(&event, 1));
    direct.say([own.clone()]);
    until("the signal", || heard.len() == 1).await;

    let mut gateway = net.hand("gateway", &b).await.gateway();
    gateway.register(&[]).await?;
    let event = |n: u32| id(&format!("event-{n}"));
    let relayed = |gateway: &Hand, n: u32| {
        let mut message = gateway.message(id("1"), signal_to(&event(n), n));
        message.from = app(&format!("name-{n}"));
        message
    };
    let signals = || b.totals().count_of(nacp::link::Reason::NoEventProcessor);
    let mut resident = Vec::new();
    for start in (0..NAMES).step_by(1000) {
        gateway.say((start..start + 1000).map(|n| relayed(&gateway, n)));
        // As many ACKs as signals keep the lane short.
        let mut acks = 0;
        while acks < 1000 {
            let heard = gateway.hear().await;
            acks += usize::from(heard.message_type() == MessageType::Ack);
        }
        resident.push(resident_bytes());
    }
    assert_eq!(signals(), u64::from(NAMES), "each is handled once");
    let (early, late) = (resident[10], *resident.last().unwrap());
    assert!(late < early + (16 << 20), "{early} bytes, later {late}");

    // The last sources are known, the first are not any more, and an app of its own is none of them.
    gateway.say([relayed(&gateway, NAMES - KEPT), relayed(&gateway, 0)]);
    direct.say([own.clone(), own]);
    until("the forgotten one", || signals() == u64::from(NAMES) + 1).await;
    for _ in 0..3 {
        direct
            .hear_that(|message| (message.body == ack_of(&id("own"))).then_some(()))
            .await;
    }
    assert_eq!(heard.all(), [1]);
    Ok(())
}

/// What this process holds in memory.
pub(crate) fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages: usize = statm
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse().ok())
        .unwrap_or(0);
    pages * 4096
}

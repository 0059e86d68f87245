//! Nodes that listen to traffic which their listening causes (T-29).

use std::time::Duration;

use futures_util::FutureExt;
use nacp::link::Reason;
use nacp::proto::{Body, MessageType};
use nacp::{Builder, LinkState, NApp, SubscribeError, Subscription};

use crate::support::{Net, Outcome, sees, target, until, within};
use crate::wire::Wire;

fn quiet(builder: Builder) -> Builder {
    builder.heartbeat_interval(None)
}

fn exposing(builder: Builder) -> Builder {
    quiet(builder).expose_internal_events()
}

fn sent(node: &NApp, message_type: MessageType) -> u64 {
    node.totals().sent_of(Some(message_type))
}

/// What a stream has got until now.
fn names(stream: &mut Subscription) -> Vec<String> {
    let mut names = Vec::new();
    while let Some(Some(item)) = stream.next().now_or_never() {
        names.push(item.name.to_string());
    }
    names
}

/// Waits until no message is under way any more, and checks that none follows.
async fn come_to_rest(nodes: &[&NApp]) {
    let totals = || nodes.iter().map(|node| node.totals()).collect::<Vec<_>>();
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = totals();
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(totals(), before, "the count of messages grows by itself");
}

over_both! {
    async fn patterns_that_cover_internal_traffic_get_the_users_own_events_alone(net: Net) -> Outcome {
        // T-29, 1.
        let b = quiet(net.server("b")).start().await?;
        let a = quiet(net.node("a")).start().await?;
        a.connect(target(&b)).await?;
        let refused = a.subscribe("b", "nacp:outbound:notify").await.unwrap_err();
        assert_eq!(refused, SubscribeError::Rejected { why: Some("self-exciting".into()) });
        let mut streams = Vec::new();
        for pattern in ["nacp:*:notify", "*:outbound:*", "*:*:*"] {
            streams.push(a.subscribe("b", pattern).await?);
        }
        for name in ["nacp:x:notify", "x:outbound:y", "x:y:z"] {
            b.emit(name, &())?;
        }
        // Traffic of every kind that the patterns would cover, and the last word of all.
        a.heartbeat("b").await?;
        b.emit("a:outbound:notify", &())?;
        a.heartbeat("b").await?;
        let got: Vec<_> = streams.iter_mut().map(names).collect();
        assert_eq!(got[0], ["nacp:x:notify"]);
        assert_eq!(got[1], ["x:outbound:y", "a:outbound:notify"]);
        assert_eq!(got[2], ["nacp:x:notify", "x:outbound:y", "x:y:z", "a:outbound:notify"]);
        Ok(())
    }

    async fn exposed_traffic_is_told_once_for_each_message(net: Net) -> Outcome {
        // T-29, 4: as many notifies as ACKs and subscribes.
        let b = exposing(net.server("b")).start().await?;
        let a = quiet(net.node("a")).start().await?;
        a.connect(target(&b)).await?;
        until("quiet", || b.snapshot().ack_pending.count == 0).await;
        let mut acks = a.subscribe("b", "nacp:outbound:ack").await?;
        let mut subscribes = a.subscribe("b", "nacp:inbound:subscribe").await?;
        for n in 0..10 {
            let stream = a.subscribe("b", &format!("x:{n}")).await?;
            std::mem::forget(stream);
        }
        // Behind what the last subscribe caused.
        a.heartbeat("b").await?;
        assert_eq!(names(&mut subscribes), ["nacp:inbound:subscribe"; 10]);
        // The second subscribe, ten more, and the beat.
        until("the notifies", || sent(&b, MessageType::Notify) == 22).await;
        a.heartbeat("b").await?;
        assert_eq!(names(&mut acks)[..12], ["nacp:outbound:ack"; 12]);
        Ok(())
    }

    async fn a_loop_of_the_users_own_keeps_links_alive_and_ends_with_the_node(net: Net) -> Outcome {
        // T-29, 5: each `x:1` makes the next.
        let a = net.server("a").start().await?;
        let b = net.node("b").start().await?;
        b.connect(target(&a)).await?;
        let mut stream = b.subscribe("a", "x:1").await?;
        let napp = a.to_unowned();
        a.listen("x:1", move |_| {
            let napp = napp.clone();
            tokio::spawn(async move { napp.emit("x:1", &()) });
        })?;
        a.emit("x:1", &())?;
        for _ in 0..100 {
            within("an event", stream.next()).await.unwrap();
        }
        within("a beat", b.heartbeat("a")).await?;
        within("a beat", a.heartbeat("b")).await?;
        assert_eq!(b.links()[0].state, LinkState::Online);
        within("the end", a.terminate()).await;
        within("the end of the stream", async { while stream.next().await.is_some() {} }).await;
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn exposed_traffic_of_two_that_listen_to_each_other_comes_to_rest() -> Outcome {
    // T-29, 1 and 2: whatever the patterns, also with exposed events.
    for pattern in ["nacp:*:notify", "*:inbound:*", "*:*:*", "nacp:inbound:*"] {
        let net = Net::Wire(Wire::default());
        let b = exposing(net.server("b")).start().await?;
        let a = exposing(net.node("a")).start().await?;
        a.connect(target(&b)).await?;
        sees(&b, "a", LinkState::Online).await;
        for (from, to) in [(&a, "b"), (&b, "a")] {
            let refused = from.subscribe(to, "nacp:inbound:notify").await;
            assert!(refused.is_err(), "{refused:?}");
        }
        let mut of_b = a.subscribe("b", pattern).await?;
        let _of_a = b.subscribe("a", pattern).await?;
        let _plain = a.subscribe("b", "x").await?;
        b.emit("x", &1)?;
        come_to_rest(&[&a, &b]).await;
        let heard = names(&mut of_b);
        assert!(
            heard.iter().all(|name| !name.ends_with(":notify")),
            "{pattern}: {heard:?}"
        );
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn exposed_traffic_of_a_ring_of_three_comes_to_rest() -> Outcome {
    // T-29, 3: `nacp:inbound:*` covers the ACKs and subscribes that the set-up causes.
    for pattern in ["nacp:*:notify", "nacp:inbound:*"] {
        let net = Net::Wire(Wire::default());
        let mut nodes = Vec::new();
        for name in ["a", "b", "c"] {
            nodes.push(exposing(net.server(name)).start().await?);
        }
        for (from, to) in [(0, 1), (1, 2), (2, 0)] {
            nodes[from].connect(target(&nodes[to])).await?;
        }
        let mut streams = Vec::new();
        for (from, to) in [(0, "b"), (1, "c"), (2, "a")] {
            streams.push(nodes[from].subscribe(to, pattern).await?);
            streams.push(nodes[from].subscribe(to, "x").await?);
        }
        nodes[0].emit("x", &1)?;
        come_to_rest(&nodes.iter().collect::<Vec<_>>()).await;
        let notifies: u64 = nodes
            .iter()
            .map(|node| sent(node, MessageType::Notify))
            .sum();
        assert!(notifies < 100, "{notifies} notifies");
    }
    Ok(())
}

over_lines! {
    async fn a_report_of_a_notify_that_found_no_way_is_told_at_home_alone(net: Net) -> Outcome {
        let b = exposing(net.server("b")).start().await?;
        let mut hand = net.hand("a", &b).await;
        // Nothing but what the control lane carries is small enough for it.
        hand.info.max_message_bytes = Some(1);
        hand.register(&[]).await?;
        for pattern in ["nacp:internal:route:error", "x"] {
            hand.tell(Body::Subscribe { target_sub_name: pattern.into() });
            assert!(hand.is_answered().await);
        }
        // Both answers, and the notify that tells of the second.
        until("the reports", || b.totals().count_of(Reason::TooLarge) >= 3).await;
        for _ in 0..3 {
            assert!(hand.is_answered().await);
        }
        assert_eq!(b.totals().count_of(Reason::TooLarge), 3);
        Ok(())
    }
}

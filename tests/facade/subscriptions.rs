//! Events of another app's bus: subscribe, emit, notify (T-20, T-29).

use nacp::{LinkState, NotifyError, StreamEnd, SubscribeError, Undelivered};

use crate::support::{Net, Outcome, sees, target, within};

over_both! {
    async fn a_subscription_hears_what_its_pattern_matches(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut stream = client.subscribe("server", "x:*").await?;
        assert_eq!(server.emit("x:1", &1)?, 1);
        assert_eq!(server.emit("y:1", &2)?, 0);
        assert_eq!(server.emit("x:1:2", &3)?, 0);
        assert_eq!(server.emit("x:2", &4)?, 1);
        for (name, value) in [("x:1", 1), ("x:2", 4)] {
            let item = within("an event", stream.next()).await.unwrap();
            assert_eq!((item.from.as_str(), &*item.name, item.missed), ("server", name, Some(0)));
            assert_eq!(item.decode::<u32>()?, value);
        }
        within("the answer", stream.unsubscribe()).await?;
        assert_eq!(server.emit("x:1", &5)?, 0);
        assert_eq!(client.snapshot().streams, 0);
        Ok(())
    }

    async fn two_subscriptions_for_one_name_are_two(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let a = net.node("a").start().await?;
        let c = net.node("c").start().await?;
        a.connect(target(&server)).await?;
        c.connect(target(&server)).await?;
        let mut s1 = a.subscribe("server", "x:*").await?;
        let mut s2 = a.subscribe("server", "x:*").await?;
        let mut s3 = a.subscribe("server", "x:y").await?;
        let mut of_c = c.subscribe("server", "x:*").await?;

        assert_eq!(server.emit("x:y", &1)?, 4);
        for stream in [&mut s1, &mut s2, &mut s3, &mut of_c] {
            assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 1);
        }
        within("the answer", s1.unsubscribe()).await?;
        assert_eq!(server.emit("x:y", &2)?, 3);
        for stream in [&mut s2, &mut s3, &mut of_c] {
            assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 2);
        }
        drop(s2);
        within("the answer", s3.unsubscribe()).await?;
        assert_eq!(server.emit("x:y", &3)?, 1, "what was dropped has unsubscribed before");
        let mut again = a.subscribe("server", "x:*").await?;
        assert_eq!(server.emit("x:y", &4)?, 2);
        assert_eq!(within("an event", again.next()).await.unwrap().decode::<u32>()?, 4);
        Ok(())
    }

    async fn a_notify_goes_to_one_app_alone(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let a = net.node("a").start().await?;
        let b = net.node("b").start().await?;
        a.connect(target(&server)).await?;
        b.connect(target(&server)).await?;
        let mut of_a = a.subscribe("server", "x").await?;
        let mut of_b = b.subscribe("server", "x").await?;
        assert_eq!(within("the acceptance", server.notify("a", "x", "for a")).await?, 1);
        assert_eq!(server.notify("b", "y", "z").await, Err(NotifyError::NotSubscribed));
        assert_eq!(server.emit("x", "for all")?, 2);
        let text = async |stream: &mut nacp::Subscription| {
            within("an event", stream.next()).await.unwrap().decode::<String>()
        };
        assert_eq!(text(&mut of_a).await?, "for a");
        assert_eq!(text(&mut of_a).await?, "for all");
        assert_eq!(text(&mut of_b).await?, "for all");
        Ok(())
    }

    async fn a_subscription_that_cannot_be_is_refused_with_its_reason(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        for (pattern, reason) in [
            ("nacp:outbound:notify", "self-exciting"),
            ("nacp:inbound:*", "not-exposed"),
            ("nacp:event:*:process", "not-exposed"),
            ("", "bad-target-sub-name"),
        ] {
            let refused = client.subscribe("server", pattern).await.unwrap_err();
            assert_eq!(refused, SubscribeError::Rejected { why: Some(reason.into()) });
        }
        let long = "x".repeat(1025);
        let refused = client.subscribe("server", &long).await.unwrap_err();
        assert_eq!(refused, SubscribeError::Rejected { why: Some("limit-reached".into()) });
        let refused = client.subscribe("nobody", "x").await.unwrap_err();
        assert_eq!(refused, SubscribeError::Undelivered(Undelivered::NoRoute));
        assert_eq!((client.snapshot().streams, client.snapshot().calls), (0, 0));
        Ok(())
    }

    async fn internal_events_are_heard_where_the_node_exposes_them_but_no_notify_about_a_notify(net: Net) -> Outcome {
        let server = net.server("server").expose_internal_events().heartbeat_interval(None).start().await?;
        let client = net.node("client").heartbeat_interval(None).start().await?;
        client.connect(target(&server)).await?;
        let mut all = client.subscribe("server", "nacp:*:*").await?;
        let mut subscribes = client.subscribe("server", "nacp:inbound:subscribe").await?;
        let _third = client.subscribe("server", "a:b").await?;
        let heard = within("an event", subscribes.next()).await.unwrap();
        assert_eq!(heard.name, "nacp:inbound:subscribe");
        server.emit("a:b", &1)?;
        client.heartbeat("server").await?;
        // Everything up to the beat is told; of all the notifies that this took, none.
        loop {
            let heard = within("an event", all.next()).await.unwrap();
            assert!(!heard.name.ends_with(":notify"), "{}", heard.name);
            if heard.name == "nacp:inbound:request" {
                break;
            }
        }
        Ok(())
    }

    async fn two_nodes_that_listen_to_each_others_traffic_come_to_rest(net: Net) -> Outcome {
        let one = net.server("one").expose_internal_events().heartbeat_interval(None).start().await?;
        let two = net.node("two").expose_internal_events().heartbeat_interval(None).start().await?;
        two.connect(target(&one)).await?;
        sees(&one, "two", LinkState::Online).await;
        assert!(two.subscribe("one", "nacp:inbound:notify").await.is_err());
        assert!(one.subscribe("two", "nacp:inbound:notify").await.is_err());
        let _of_one = two.subscribe("one", "nacp:*:notify").await?;
        let _of_two = one.subscribe("two", "nacp:*:notify").await?;
        let mut stream = two.subscribe("one", "x").await?;
        one.emit("x", &1)?;
        within("the event", stream.next()).await.unwrap();
        let notifies = |node: &nacp::NApp| {
            node.totals().sent_of(Some(nacp::proto::MessageType::Notify))
        };
        assert_eq!((notifies(&one), notifies(&two)), (1, 0));
        Ok(())
    }

    async fn a_stream_ends_with_its_link_and_says_why(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut stream = client.subscribe("server", "x").await?;
        assert_eq!(stream.ended(), None);
        server.emit("x", &1)?;
        within("an event", stream.next()).await.unwrap();
        client.disconnect("server").await?;
        assert_eq!(within("the end", stream.next()).await, None);
        assert_eq!(stream.ended(), Some(StreamEnd::Undelivered(Undelivered::PeerGone)));
        Ok(())
    }

    async fn a_dropped_subscribe_leaves_nothing_behind(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        {
            let mut subscribing = Box::pin(client.subscribe("server", "x"));
            // Polled once, so the subscribe is on its way.
            drop(futures_util::poll!(&mut subscribing));
        }
        // Behind the unsubscribe on the same way, so it is done by now.
        let _other = client.subscribe("server", "y").await?;
        assert_eq!(server.emit("x", &1)?, 0);
        assert_eq!(client.snapshot().streams, 1);
        Ok(())
    }
}

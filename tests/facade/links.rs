//! Links that live: reconnecting, backoff, takeover, what a cut means for calls and streams.

use std::time::Duration;

use nacp::{
    ConnectError, DialError, EventContext, HandlerError, LinkState, NApp, Reconnect, StreamEnd,
    Undelivered,
};

use crate::faults::Flow;
use crate::proxy::Proxy;
use crate::support::{Net, Outcome, app, quick, reported, sees, target, until, within};

async fn count(ctx: EventContext, up_to: u64) -> Result<u64, HandlerError> {
    for n in 1..=up_to {
        ctx.process(&n).await?;
    }
    Ok(up_to)
}

/// A node that listens, behind a proxy.
async fn behind_proxy(builder: nacp::Builder) -> Result<(NApp, Proxy), Box<dyn std::error::Error>> {
    let server = builder.start().await?;
    let proxy = Proxy::to(server.listen_addrs()[0]).await;
    Ok((server, proxy))
}

over_both! {
    async fn an_app_that_is_online_is_connected_at_once(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        let mut watch = client.watch_links();
        client.connect(target(&server)).await?;
        client.connect(target(&server)).await?;
        let change = watch.next().await.unwrap();
        assert_eq!((change.app.as_str(), change.state), ("server", LinkState::Online));
        client.wait_online(&app("server")).await?;
        client.terminate().await;
        assert_eq!(within("the drop", watch.next()).await.unwrap().state, LinkState::Dropped);
        assert_eq!(watch.next().await, None);
        Ok(())
    }

    async fn many_wishes_for_one_app_make_one_attempt(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        let to = target(&server);
        let wishes = (0..20).map(|_| client.connect(to.as_str()).into_future());
        for app in futures_util::future::join_all(wishes).await {
            assert_eq!(app?.as_str(), "server");
        }
        assert_eq!(server.snapshot().peers, 1);
        Ok(())
    }

    async fn two_nodes_that_dial_each_other_end_with_one_link(net: Net) -> Outcome {
        for _ in 0..20 {
            let a = net.server("a").start().await?;
            let b = net.server("b").start().await?;
            let (to_a, to_b) = (target(&a), target(&b));
            let (one, two) = within("both", async {
                tokio::join!(a.connect(to_b).into_future(), b.connect(to_a).into_future())
            })
            .await;
            assert_eq!((one?.as_str(), two?.as_str()), ("b", "a"));
            sees(&a, "b", LinkState::Online).await;
            sees(&b, "a", LinkState::Online).await;
            assert_eq!((a.links().len(), b.links().len()), (1, 1));
            within("the ends", async { tokio::join!(a.terminate(), b.terminate()) }).await;
        }
        Ok(())
    }

    async fn a_good_bye_of_the_other_side_is_followed_by_a_first_registration(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").reconnect(quick()).start().await?;
        client.connect(target(&server)).await?;
        sees(&server, "client", LinkState::Online).await;
        let mut watch = client.watch_links();
        within("the good-bye", server.disconnect("client")).await?;
        assert_eq!(within("the drop", watch.next()).await.unwrap().state, LinkState::Dropped);
        let back = within("the return", watch.next()).await.unwrap();
        assert_eq!((back.state, back.resumed), (LinkState::Online, Some(false)));
        Ok(())
    }

    async fn nobody_dials_again_after_a_good_bye_of_ours(net: Net) -> Outcome {
        let server = net.server("server").start().await?;
        let client = net.node("client").reconnect(quick()).start().await?;
        client.connect(target(&server)).await?;
        client.disconnect("server").await?;
        sees(&server, "client", LinkState::Dropped).await;
        let mut watch = server.watch_links();
        // Far longer than the longest wait.
        let again = tokio::time::timeout(Duration::from_millis(200), watch.next()).await;
        assert!(again.is_err(), "{again:?}");
        Ok(())
    }
}

#[tokio::test]
async fn a_cut_link_is_made_again_and_loses_nothing() -> Outcome {
    let (server, proxy) = behind_proxy(Net::Tcp.server("server").event("count", count)).await?;
    let client = NApp::builder("client")
        .reconnect(quick())
        .queue_max_count(20_000)
        .start()
        .await?;
    client.connect(proxy.addr()).await?;
    let mut job = client.run("server", "count", &20_000).await?;
    let mut items = Vec::new();
    for round in 1..=5u64 {
        while items.len() < round as usize * 300 {
            let item = within("an item", job.next()).await.unwrap();
            items.push(item.decode::<u64>()?);
        }
        let mut watch = client.watch_links();
        if round % 2 == 0 {
            proxy.reset()
        } else {
            proxy.cut()
        }
        assert_eq!(
            within("the loss", watch.next()).await.unwrap().state,
            LinkState::Offline
        );
        let back = within("the return", watch.next()).await.unwrap();
        assert_eq!((back.state, back.resumed), (LinkState::Online, Some(true)));
    }
    while let Some(item) = within("an item", job.next()).await {
        items.push(item.decode::<u64>()?);
    }
    assert!(items.is_sorted(), "in order");
    // A notify that was accepted by a connection that broke is not sent again, but counted.
    assert_eq!(within("the answer", job.response::<u64>()).await?, 20_000);
    assert_eq!(items.len() as u64 + job.missed().unwrap(), 20_000);
    drop(server);
    Ok(())
}

#[tokio::test]
async fn requests_and_signals_of_a_cut_link_are_each_handled_once_and_in_order() -> Outcome {
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hearing = std::sync::Arc::clone(&heard);
    let builder = Net::Tcp
        .server("server")
        .event("hear", move |ctx: EventContext, (): ()| {
            let hearing = std::sync::Arc::clone(&hearing);
            async move {
                ctx.process("ready").await?;
                while let Some(nacp::Signal::Normal(payload)) = ctx.next_signal().await {
                    hearing.lock().unwrap().push(payload.decode::<u64>()?);
                }
                Ok::<_, HandlerError>(())
            }
        });
    let (server, proxy) = behind_proxy(builder).await?;
    let client = NApp::builder("client").reconnect(quick()).start().await?;
    client.connect(proxy.addr()).await?;
    let mut job = client.run("server", "hear", &()).await?;
    job.next().await.unwrap();
    for round in 0..10u64 {
        proxy.down(Flow::Hold);
        let signals: Vec<_> = (0..20)
            .map(|n| job_signal(&client, &job, round * 20 + n))
            .collect();
        let mut sending = Box::pin(futures_util::future::join_all(signals));
        // All are on their way, and no acknowledgement comes back.
        assert!(futures_util::poll!(&mut sending).is_pending());
        proxy.cut();
        proxy.down(Flow::Pass);
        for sent in within("the acknowledgements", sending).await {
            sent?;
        }
    }
    job.pause().await?;
    within("the end", job.response::<()>()).await?;
    assert_eq!(*heard.lock().unwrap(), (0..200).collect::<Vec<_>>());
    drop(server);
    Ok(())
}

async fn job_signal(client: &NApp, job: &nacp::Job, n: u64) -> Result<(), nacp::SendError> {
    let id = job.id().unwrap().clone();
    let payload = nacp::Payload::new(&n).unwrap();
    client
        .signal("server", id, nacp::Signal::Normal(payload))
        .await
}

#[tokio::test]
async fn a_subscription_survives_a_cut_and_a_restart() -> Outcome {
    let (server, proxy) = behind_proxy(Net::Tcp.server("server")).await?;
    let client = NApp::builder("client").reconnect(quick()).start().await?;
    client.connect(proxy.addr()).await?;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(client.subscribe("server", "e:*").await?);
    }
    // T-21, 1: what is emitted meanwhile comes behind the reconnect, and nothing is subscribed again.
    let subscribes = || {
        client
            .totals()
            .sent_of(Some(nacp::proto::MessageType::Subscribe))
    };
    proxy.refuse(true);
    proxy.cut();
    sees(&server, "client", LinkState::Offline).await;
    server.emit("e:1", &1)?;
    proxy.refuse(false);
    sees(&client, "server", LinkState::Online).await;
    server.emit("e:2", &2)?;
    for stream in &mut streams {
        for n in [1, 2] {
            assert_eq!(
                within("an event", stream.next())
                    .await
                    .unwrap()
                    .decode::<u32>()?,
                n
            );
        }
    }
    assert_eq!(subscribes(), 3);
    Ok(())
}

#[tokio::test]
async fn a_new_instance_of_the_server_gets_every_subscription_again() -> Outcome {
    let server = Net::Tcp.server("server").start().await?;
    let addr = server.listen_addrs()[0];
    let client = NApp::builder("client").reconnect(quick()).start().await?;
    client.connect(addr).await?;
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(client.subscribe("server", "e:*").await?);
    }
    server.terminate_now();
    sees(&client, "server", LinkState::Offline).await;
    drop(server);
    let server = within("the port", async {
        loop {
            match NApp::builder("server").listen(addr).start().await {
                Ok(server) => return server,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    sees(&client, "server", LinkState::Online).await;
    until("the subscriptions", || server.snapshot().subscriptions == 3).await;
    assert_eq!(server.emit("e:3", &3)?, 3);
    for stream in &mut streams {
        assert_eq!(
            within("an event", stream.next())
                .await
                .unwrap()
                .decode::<u32>()?,
            3
        );
    }
    Ok(())
}

#[tokio::test]
async fn streams_and_jobs_end_with_the_grace_and_no_return_revives_them() -> Outcome {
    let (server, proxy) = behind_proxy(
        Net::Tcp
            .server("server")
            .event("count", count)
            .reconnect_grace(Duration::from_millis(50)),
    )
    .await?;
    let client = NApp::builder("client")
        .reconnect(quick())
        .reconnect_grace(Duration::from_millis(50))
        .start()
        .await?;
    client.connect(proxy.addr()).await?;
    let mut stream = client.subscribe("server", "e").await?;
    proxy.refuse(true);
    proxy.cut();
    assert_eq!(within("the end", stream.next()).await, None);
    assert_eq!(
        stream.ended(),
        Some(StreamEnd::Undelivered(Undelivered::PeerGone))
    );
    sees(&server, "client", LinkState::Dropped).await;
    proxy.refuse(false);
    sees(&client, "server", LinkState::Online).await;
    assert_eq!(server.emit("e", &1)?, 0);
    let mut job = client.run("server", "count", &3).await?;
    assert_eq!(within("the answer", job.response::<u64>()).await?, 3);
    Ok(())
}

#[tokio::test]
async fn a_link_with_a_dead_connection_goes_offline_by_its_acks_and_comes_back_whole() -> Outcome {
    let (server, proxy) = behind_proxy(
        Net::Tcp
            .server("server")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .takeover_probe(Duration::from_millis(200)),
    )
    .await?;
    let client = NApp::builder("client")
        .reconnect(quick())
        .ack_timeout(Duration::from_millis(200))
        .heartbeat_interval(None)
        .start()
        .await?;
    let mut events = client.events();
    client.connect(proxy.addr()).await?;
    proxy.both(Flow::Swallow);
    let requests: Vec<_> = (0..3)
        .map(|n| client.request::<u32>("server", "echo", &n))
        .collect();
    let answers = tokio::spawn(futures_util::future::join_all(requests));
    // T-11: the first limit, one report, and nothing of the others.
    let timeout = reported(&mut events, "nacp:internal:ack:warning", "timeout").await;
    assert!(timeout.value.report().is_some());
    reported(&mut events, "nacp:internal:napp:success", "offline").await;
    proxy.cut();
    proxy.both(Flow::Pass);
    let answers = within("the answers", answers).await?;
    for (n, answer) in answers.into_iter().enumerate() {
        assert_eq!(answer?, n as u32);
    }
    drop(server);
    Ok(())
}

#[tokio::test]
async fn a_peer_that_does_not_answer_a_beat_goes_offline() -> Outcome {
    let (server, proxy) = behind_proxy(Net::Tcp.server("server")).await?;
    let client = NApp::builder("client")
        .heartbeat_interval(Some(Duration::from_millis(50)))
        .reconnect(Reconnect::off())
        .start()
        .await?;
    client.connect(proxy.addr()).await?;
    let mut watch = client.watch_links();
    proxy.both(Flow::Swallow);
    let change = within("the silence", watch.next()).await.unwrap();
    assert_eq!(
        (change.state, change.cause),
        (LinkState::Offline, nacp::link::Cause::BeatTimeout)
    );
    drop(server);
    Ok(())
}

#[tokio::test]
async fn an_app_that_moves_to_another_connection_takes_its_link_along() -> Outcome {
    // T-14, 1: the old connection is dead and the server has not noticed.
    let (server, proxy) = behind_proxy(
        Net::Tcp
            .server("server")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n)),
    )
    .await?;
    let client = NApp::builder("client")
        .heartbeat_interval(Some(Duration::from_millis(50)))
        .reconnect(quick())
        .start()
        .await?;
    client.connect(proxy.addr()).await?;
    sees(&server, "client", LinkState::Online).await;
    let mut watch = server.watch_links();
    let mut ours = client.watch_links();
    proxy.down(Flow::Swallow);
    assert_eq!(
        within("the silence", ours.next()).await.unwrap().state,
        LinkState::Offline
    );
    proxy.down(Flow::Pass);
    assert_eq!(
        within("the return", ours.next()).await.unwrap().state,
        LinkState::Online
    );
    let states = [
        within("a change", watch.next()).await,
        within("a change", watch.next()).await,
    ];
    let states = states.map(|change| change.unwrap().state);
    assert_eq!(states, [LinkState::Offline, LinkState::Online]);
    for n in 0..100 {
        assert_eq!(client.request::<u32>("server", "echo", &n).await?, n);
    }
    Ok(())
}

#[tokio::test]
async fn a_second_node_of_one_name_is_refused_while_the_first_lives() -> Outcome {
    let server = Net::Tcp.server("server").start().await?;
    let first = NApp::builder("twin").start().await?;
    first.connect(target(&server)).await?;
    sees(&server, "twin", LinkState::Online).await;
    let mut watch = first.watch_links();
    for _ in 0..10 {
        let second = NApp::builder("twin")
            .reconnect(Reconnect::off())
            .start()
            .await?;
        let refused = within("the refusal", second.connect(target(&server)).into_future()).await;
        let Err(ConnectError::Handshake(DialError::Refused { why })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(why, "appId-in-use");
    }
    first.heartbeat("server").await?;
    assert!(
        futures_util::poll!(Box::pin(watch.next())).is_pending(),
        "it saw nothing of it"
    );
    Ok(())
}

#[tokio::test]
async fn dialling_a_node_that_refuses_for_good_ends_the_attempts() -> Outcome {
    let secret = nacp::SharedSecret::new("right");
    let server = Net::Tcp.server("server").policy(secret).start().await?;
    let client = NApp::builder("client")
        .reconnect(quick())
        .auth("right")
        .start()
        .await?;
    client.connect(target(&server)).await?;
    let addr = server.listen_addrs()[0];
    server.terminate_now();
    sees(&client, "server", LinkState::Offline).await;
    drop(server);
    let server = within("the port", async {
        loop {
            let policy = nacp::SharedSecret::new("another");
            match NApp::builder("server")
                .listen(addr)
                .policy(policy)
                .start()
                .await
            {
                Ok(server) => return server,
                Err(_) => tokio::task::yield_now().await,
            }
        }
    })
    .await;
    let mut events = server.events();
    reported(&mut events, "nacp:internal:register:error", "unauthorized").await;
    let again = tokio::time::timeout(Duration::from_millis(200), async {
        reported(&mut events, "nacp:internal:register:error", "unauthorized").await
    });
    assert!(again.await.is_err());
    Ok(())
}

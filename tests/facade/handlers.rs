//! Handlers that panic, are dropped, block, and call back with every table full (T-22, T-25).

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nacp::proto::Body;
use nacp::{
    AbilityContext, EventContext, HandlerError, LinkState, NApp, OverflowPolicy, Report,
    RequestError, SendError, Signal, Undelivered,
};

use crate::support::{Net, Outcome, app, sees, target, until, within};

#[expect(clippy::panic, reason = "what the test is about")]
fn burst() -> Result<(), HandlerError> {
    panic!("burst")
}

over_both! {
    async fn a_panic_is_answered_and_harms_nobody(net: Net) -> Outcome {
        // T-22, 2.
        let server = net
            .server("server")
            .ability("panic", async |(): ()| burst())
            .event("panic", async |ctx: EventContext, (): ()| {
                ctx.process(&1).await?;
                ctx.process(&2).await?;
                burst()
            })
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        for n in 0..100 {
            let error = within("the answer", client.request::<()>("server", "panic", &()))
                .await
                .unwrap_err();
            assert_eq!(error.why(), Some("processor-failed"));
            assert_eq!(error.remote_error().as_deref(), Some("the handler panicked: burst"));
            let mut job = client.run("server", "panic", &()).await?;
            let error = within("the answer", job.response::<()>()).await.unwrap_err();
            assert_eq!(error.why(), Some("processor-failed"));
            assert_eq!(job.next().await.unwrap().decode::<u32>()?, 1);
            assert_eq!(job.next().await.unwrap().decode::<u32>()?, 2);
            assert_eq!(job.next().await, None);
            assert_eq!(client.request::<u32>("server", "echo", &n).await?, n);
        }
        assert_eq!(client.totals().replayed(), 0);
        assert_eq!(server.snapshot().running, 0);
        Ok(())
    }

    async fn listeners_that_panic_do_not_stop_the_others_or_the_node(net: Net) -> Outcome {
        // T-22, 1 and 3; a policy that panics is among the gateways' tests.
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        let heard: [Arc<AtomicUsize>; 2] = Default::default();
        for pattern in ["nacp:internal:napp:success", "nacp:inbound:request"] {
            server.listen(pattern, |_| drop(burst()))?;
        }
        let count = |index: usize| {
            let heard = Arc::clone(&heard[index]);
            move |_: &nacp::bus::Event<'_, nacp::Value>| {
                heard.fetch_add(1, Ordering::SeqCst);
            }
        };
        server.listen("x", count(0))?;
        server.listen("x", |_| drop(burst()))?;
        server.listen("x", count(1))?;
        client.connect(target(&server)).await?;
        for _ in 0..100 {
            assert_eq!(server.emit("x", &1)?, 3);
        }
        client.heartbeat("server").await?;
        assert_eq!(heard.map(|heard| heard.load(Ordering::SeqCst)), [100, 100]);
        sees(&server, "client", LinkState::Online).await;
        Ok(())
    }

    async fn handlers_send_a_hundred_signals_back_with_tables_of_four(net: Net) -> Outcome {
        for policy in [OverflowPolicy::Wait, OverflowPolicy::Evict] {
            within(&format!("all answers with {policy:?}"), hundred_signals(&net, policy)).await?;
        }
        Ok(())
    }

    async fn handlers_call_each_other_eight_deep_with_tables_of_four(net: Net) -> Outcome {
        for policy in [OverflowPolicy::Wait, OverflowPolicy::Evict] {
            within(&format!("all answers with {policy:?}"), eight_deep(&net, policy)).await?;
        }
        Ok(())
    }

    async fn a_listener_uses_the_node_as_it_likes(net: Net) -> Outcome {
        // T-25, 3.
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let napp = client.to_unowned();
        client.listen_once("x", move |_| {
            let other = napp.listen("x", |_| {}).unwrap();
            let _ = sender.send(napp.emit("x", &2).unwrap());
            assert!(napp.off(other));
            let inner = napp.clone();
            tokio::spawn(async move {
                let subscribed = inner.subscribe("server", "y").await.map(drop);
                inner.terminate().await;
                let _ = sender.send(usize::from(subscribed.is_ok()));
            });
        })?;
        assert_eq!(client.emit("x", &1)?, 1);
        assert_eq!(receiver.recv().await, Some(1), "the inner emit met the inner listener");
        assert_eq!(within("the end", receiver.recv()).await, Some(1));
        Ok(())
    }

    async fn a_listener_that_makes_reports_without_end_holds_up_nobody(net: Net) -> Outcome {
        let server = net
            .server("server")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let napp = server.to_unowned();
        server.listen("nacp:outbound:*", move |_| {
            // It fails at once and is reported all the same, and so on.
            drop(futures_util::FutureExt::now_or_never(napp.request::<()>("nobody", "x", &())));
        })?;
        for n in 0..20 {
            assert_eq!(within("an answer", client.request::<u32>("server", "echo", &n)).await?, n);
        }
        Ok(())
    }

    async fn a_link_callback_sends_connects_and_disconnects(net: Net) -> Outcome {
        // T-25, 4.
        let server = net.server("server").start().await?;
        let client = net.node("client").start().await?;
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let napp = client.to_unowned();
        let to = target(&server);
        client.listen("nacp:internal:napp:success", move |event| {
            let change: BTreeMap<String, nacp::proto::ciborium::Value> =
                event.payload().decode().unwrap();
            let reason = change["reason"].as_text().unwrap().to_owned();
            if reason == "dropped" {
                let (napp, to) = (napp.clone(), to.clone());
                tokio::spawn(async move {
                    let sent = napp.request::<()>("server", "x", &()).await;
                    let connected = napp.connect(to).await.is_ok();
                    let gone = napp.disconnect("nobody").await.is_ok();
                    (sent.is_err(), connected, gone)
                });
            }
            let _ = sender.send(reason);
        })?;
        client.connect(target(&server)).await?;
        client.disconnect("server").await?;
        for expected in ["bound", "dropped", "bound"] {
            assert_eq!(within("a change", receiver.recv()).await.as_deref(), Some(expected));
        }
        Ok(())
    }
}

/// T-25, 1.
async fn hundred_signals(net: &Net, policy: OverflowPolicy) -> Outcome {
    const CALLS: usize = 50;
    const SIGNALS: u32 = 100;
    let small = |builder: nacp::Builder| {
        builder
            .queue_max_count(4)
            .overflow(policy)
            .config(|config| config.submit_max_count(4))
    };
    let server = small(net.server("server"))
        .ability("back", async |ctx: AbilityContext, id: String| {
            let id = nacp::MessageId::new(&id)?;
            let mut evicted = 0;
            for n in 0..SIGNALS {
                let signal = Signal::Normal(nacp::Payload::new(&n)?);
                match ctx.napp().signal(ctx.caller(), id.clone(), signal).await {
                    Ok(()) => {}
                    Err(SendError::Undelivered(Undelivered::Evicted)) => evicted += 1,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok::<_, HandlerError>(evicted)
        })
        .start()
        .await?;
    let client = small(net.node("client")).start().await?;
    let arrived: Arc<Mutex<BTreeMap<String, Vec<u32>>>> = Arc::default();
    let arriving = Arc::clone(&arrived);
    client.listen("nacp:inbound:signal", move |event| {
        let Some(Report::Inbound { subject, .. }) = event.payload().report() else {
            return;
        };
        if let Some(Body::Signal {
            parent_id,
            signal: Signal::Normal(payload),
        }) = &subject.body
        {
            let mut arriving = arriving.lock().unwrap();
            let of_handler = arriving.entry(parent_id.to_smol_str().into()).or_default();
            of_handler.push(payload.decode().unwrap());
        }
    })?;
    client.connect(target(&server)).await?;
    let calls = (0..CALLS).map(|n| client.request::<u32>("server", "back", &format!("event-{n}")));
    let calls = calls.map(IntoFuture::into_future);
    let mut evicted = 0;
    for answer in futures_util::future::join_all(calls).await {
        match answer {
            Ok(count) => evicted += count,
            // The request itself, or its answer, made room; whoever lost it is told so.
            Err(error) => assert_eq!(error, RequestError::Undelivered(Undelivered::Evicted)),
        }
    }
    let arrived = arrived.lock().unwrap().clone();
    for (handler, numbers) in &arrived {
        assert!(numbers.is_sorted(), "in order: {handler} {numbers:?}");
    }
    if policy == OverflowPolicy::Wait {
        assert_eq!((evicted, arrived.len()), (0, CALLS));
        assert!(
            arrived
                .values()
                .all(|numbers| *numbers == (0..SIGNALS).collect::<Vec<_>>())
        );
    }
    client.terminate().await;
    server.terminate().await;
    Ok(())
}

/// T-25, 2.
async fn eight_deep(net: &Net, policy: OverflowPolicy) -> Outcome {
    async fn deeper(ctx: AbilityContext, depth: u32) -> Result<u32, HandlerError> {
        if depth == 0 {
            return Ok(0);
        }
        let below: u32 = ctx
            .napp()
            .request(ctx.caller(), "deeper", &(depth - 1))
            .await?;
        Ok(below + 1)
    }
    let small = |builder: nacp::Builder| {
        builder
            .queue_max_count(4)
            .overflow(policy)
            .config(|config| config.submit_max_count(4))
            .ability("deeper", deeper)
    };
    let server = small(net.server("server")).start().await?;
    let client = small(net.node("client")).start().await?;
    client.connect(target(&server)).await?;
    sees(&server, "client", LinkState::Online).await;
    let calls = (0..50).map(|_| client.request::<u32>("server", "deeper", &8));
    let answers = futures_util::future::join_all(calls).await;
    if policy == OverflowPolicy::Wait {
        for answer in answers {
            assert_eq!(answer?, 8);
        }
    }
    client.terminate().await;
    server.terminate().await;
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_that_blocks_its_thread_holds_up_nobody_else() -> Outcome {
    // T-25, 5.
    let (release, held) = std::sync::mpsc::channel::<()>();
    let held = Arc::new(Mutex::new(held));
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .ability("block", move |(): ()| {
            let held = Arc::clone(&held);
            async move {
                // As a badly written handler does; the test ends it.
                let _ = held.lock().unwrap().recv_timeout(Duration::from_secs(10));
                Ok::<_, HandlerError>(())
            }
        })
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let clients = tokio::task::spawn_blocking(|| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    })
    .await??;
    let addr = server.listen_addrs()[0];
    // On a runtime of its own: the blocked thread is none of its.
    let outcome = std::thread::spawn(move || {
        clients.block_on(async move {
            let client = NApp::builder("client").start().await?;
            let other = NApp::builder("other").start().await?;
            client.connect(addr).await?;
            other.connect(addr).await?;
            let blocked = client.request::<()>("server", "block", &());
            let mut blocked = Box::pin(blocked);
            assert!(futures_util::poll!(&mut blocked).is_pending());
            let start = tokio::time::Instant::now();
            // Its request is acknowledged, its beats are answered, and others are served.
            until("the acknowledgement", || {
                client.link(&app("server")).unwrap().ack_pending.count == 0
            })
            .await;
            client.heartbeat("server").await?;
            assert_eq!(other.request::<u32>("server", "echo", &7).await?, 7);
            assert_eq!(client.request::<u32>("server", "echo", &8).await?, 8);
            assert!(start.elapsed() < Duration::from_secs(5));
            drop(release);
            blocked.await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
        })
    });
    tokio::task::spawn_blocking(move || outcome.join())
        .await?
        .unwrap()
        .unwrap();
    Ok(())
}

#[test]
fn a_handler_whose_runtime_drops_it_is_answered_for() {
    // T-22, 4.
    let far = tokio::runtime::Runtime::new().unwrap();
    let near = tokio::runtime::Runtime::new().unwrap();
    let hosted = tokio::runtime::Runtime::new().unwrap();
    let handle = hosted.handle().clone();
    let server = far
        .block_on(
            NApp::builder("server")
                .listen("127.0.0.1:0")
                .ability("hosted", move |(): ()| {
                    // A handler that lives on another runtime, which goes away.
                    let task = handle.spawn(std::future::pending::<()>());
                    async move { Ok::<_, HandlerError>(task.await?) }
                })
                .start(),
        )
        .unwrap();
    let client = near.block_on(async {
        let client = NApp::builder("client").start().await.unwrap();
        client.connect(server.listen_addrs()[0]).await.unwrap();
        client
    });
    let request = client.request::<()>("server", "hosted", &());
    let waiting = near.spawn(request);
    near.block_on(within("the start", async {
        while server.snapshot().running == 0 {
            tokio::task::yield_now().await;
        }
    }));
    hosted.shutdown_background();
    let error = near
        .block_on(within("the answer", waiting))
        .unwrap()
        .unwrap_err();
    assert_eq!(error.why(), Some("processor-failed"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_handler_that_sends_without_end_gives_way_to_others() -> Outcome {
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .event("flood", async |ctx: EventContext, (): ()| {
            while ctx.check().is_ok() {
                ctx.process(&0).await?;
            }
            Ok::<_, HandlerError>(())
        })
        .start()
        .await?;
    let client = NApp::builder("client").start().await?;
    client.connect(target(&server)).await?;
    let mut job = client.run("server", "flood", &()).await?;
    within("an item", job.next()).await.unwrap();
    let other = NApp::builder("other").start().await?;
    within("the register", other.connect(target(&server)).into_future()).await?;
    within("the beat", other.heartbeat("server")).await?;
    within("the abort", job.abort()).await?;
    within("the answer", job.response::<()>()).await?;
    Ok(())
}

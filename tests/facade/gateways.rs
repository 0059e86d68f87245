//! Apps that meet at a gateway (T-30), and who may come in.

use std::time::Duration;

use async_trait::async_trait;
use nacp::{
    Allowlist, Applicant, ConnectError, Decision, DialError, EventContext, HandlerError, LinkState,
    NApp, Reconnect, RegisterPolicy, RequestError, SharedSecret, Undelivered,
};

use crate::proxy::Proxy;
use crate::support::{Net, Outcome, app, reported, sees, target, within};
use crate::wire::Wire;

async fn count(ctx: EventContext, up_to: u64) -> Result<u64, HandlerError> {
    for n in 1..=up_to {
        ctx.process(&n).await?;
    }
    Ok(up_to)
}

fn refusal(result: Result<nacp::AppId, ConnectError>) -> String {
    match result {
        Err(ConnectError::Handshake(DialError::Refused { why })) => why.into(),
        other => format!("{other:?}"),
    }
}

over_both! {
    async fn apps_call_each_other_through_a_gateway(net: Net) -> Outcome {
        let gateway = net.server("gateway").gateway().start().await?;
        let b = net
            .node("b")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .event("count", count)
            .start()
            .await?;
        let a = net.node("a").start().await?;
        a.connect(target(&gateway)).await?;
        b.connect(target(&gateway)).await?;
        assert_eq!(within("the answer", a.request::<u32>("b", "echo", &7)).await?, 7);
        let mut job = a.run("b", "count", &50).await?;
        for n in 1..=50 {
            assert_eq!(within("an item", job.next()).await.unwrap().decode::<u64>()?, n);
        }
        assert_eq!(job.response::<u64>().await?, 50);
        let mut stream = within("the subscription", a.subscribe("b", "x")).await?;
        b.emit("x", &1)?;
        assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 1);
        assert_eq!(a.links().len(), 1, "b is no link of its own");
        Ok(())
    }

    async fn a_second_gateway_is_refused_or_a_plain_link(net: Net) -> Outcome {
        let one = net.server("one").gateway().start().await?;
        let two = net.server("two").gateway().start().await?;
        let a = net.node("a").start().await?;
        a.connect(target(&one)).await?;
        let refused = a.connect(target(&two)).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Handshake(DialError::MultiGateway)), "{refused}");
        let b = net.node("b").config(|config| config.multi_gateway_downgrade(true)).start().await?;
        let mut events = b.events();
        b.connect(target(&one)).await?;
        b.connect(target(&two)).await?;
        let warned = "nacp:internal:gateway:warning";
        reported(&mut events, warned, "multi-gateway-downgraded").await;
        assert_eq!(refusal(one.connect(target(&two)).await), "dual-gateway");
        Ok(())
    }

    async fn a_policy_says_who_may_come_in(net: Net) -> Outcome {
        let guarded = net.server("guarded").policy(Allowlist::new([app("friend")])).start().await?;
        let friend = net.node("friend").start().await?;
        friend.connect(target(&guarded)).await?;
        let foe = net.node("foe").start().await?;
        assert_eq!(refusal(foe.connect(target(&guarded)).await), "unauthorized");
        assert_eq!(guarded.links().len(), 1);

        let secret = net.server("secret").policy(SharedSecret::new("sesame")).start().await?;
        let knows = net.node("knows").auth("sesame").start().await?;
        knows.connect(target(&secret)).await?;
        let guesses = net.node("guesses").auth("semolina").start().await?;
        assert_eq!(refusal(guesses.connect(target(&secret)).await), "unauthorized");
        let learned = guesses.connect(target(&secret)).auth(nacp::Payload::new("sesame")?).await;
        assert_eq!(learned?.as_str(), "secret");
        Ok(())
    }

    async fn a_credential_never_goes_to_whoever_answers(net: Net) -> Outcome {
        let secret = net.server("secret").policy(SharedSecret::new("sesame")).start().await?;
        let knows = net.node("knows").auth("sesame").start().await?;
        let unnamed = secret.listen_addresses()[0].clone();
        assert_eq!(refusal(knows.connect(unnamed).await), "unauthorized");
        Ok(())
    }

    async fn a_policy_that_panics_refuses(net: Net) -> Outcome {
        // T-22, 3.
        let server = net.server("server").policy(Panics).start().await?;
        let client = net.node("client").start().await?;
        let refused = within("the refusal", client.connect(target(&server)).into_future()).await;
        assert_eq!(refusal(refused), "unauthorized");
        assert_eq!(server.links().len(), 0);
        Ok(())
    }

    async fn what_is_sent_beside_an_undecided_register_is_handled_behind_it(net: Net) -> Outcome {
        let (decide, decided) = tokio::sync::watch::channel(false);
        let server = net
            .server("server")
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .policy(Waits(decided))
            .start()
            .await?;
        let client = net.node("client").start().await?;
        let connecting = tokio::spawn(client.connect(target(&server)).into_future());
        crate::support::until("the register", || server.snapshot().peers == 1).await;
        assert!(!connecting.is_finished());
        decide.send(true)?;
        within("the register", connecting).await??;
        assert_eq!(client.request::<u32>("server", "echo", &1).await?, 1);
        Ok(())
    }

    async fn a_node_that_ends_during_a_policy_ends_at_once(net: Net) -> Outcome {
        let (_decide, decided) = tokio::sync::watch::channel(false);
        let server = net.server("server").policy(Waits(decided)).start().await?;
        let client = net.node("client").reconnect(Reconnect::off()).start().await?;
        let connecting = tokio::spawn(client.connect(target(&server)).into_future());
        crate::support::until("the register", || server.snapshot().peers == 1).await;
        within("the end", server.terminate()).await;
        assert!(within("the failure", connecting).await?.is_err());
        Ok(())
    }
}

struct Panics;

#[async_trait]
impl RegisterPolicy for Panics {
    #[expect(clippy::panic, reason = "what the test is about")]
    async fn decide(&self, _: &Applicant) -> Decision {
        panic!("undecided")
    }
}

struct Waits(tokio::sync::watch::Receiver<bool>);

#[async_trait]
impl RegisterPolicy for Waits {
    async fn decide(&self, _: &Applicant) -> Decision {
        match self.0.clone().wait_for(|decided| *decided).await {
            Ok(_) => Decision::AdmitProven,
            Err(_) => Decision::Refuse,
        }
    }
}

#[tokio::test]
async fn what_goes_through_a_gateway_survives_the_cut_behind_it() -> Outcome {
    // T-30, 1: ten signals, and the connection between the gateway and b breaks meanwhile.
    let gateway = NApp::builder("gateway")
        .gateway()
        .listen("127.0.0.1:0")
        .start()
        .await?;
    let proxy = Proxy::to(gateway.listen_addrs()[0]).await;
    let quick = Reconnect::default().shortest(Duration::from_millis(1));
    let heard = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let hearing = std::sync::Arc::clone(&heard);
    let b = NApp::builder("b")
        .reconnect(quick)
        .event("hear", move |ctx: EventContext, (): ()| {
            let hearing = std::sync::Arc::clone(&hearing);
            async move {
                ctx.process("ready").await?;
                while let Some(nacp::Signal::Normal(payload)) = ctx.next_signal().await {
                    hearing.lock().unwrap().push(payload.decode::<u32>()?);
                }
                Ok::<_, HandlerError>(())
            }
        })
        .start()
        .await?;
    let a = NApp::builder("a").start().await?;
    a.connect(target(&gateway)).await?;
    b.connect(proxy.addr()).await?;
    sees(&gateway, "b", LinkState::Online).await;
    let mut job = a.run("b", "hear", &()).await?;
    within("the start", job.next()).await.unwrap();
    let mut watch = a.watch_links();
    for n in 0..10 {
        if n == 4 {
            proxy.cut();
            sees(&gateway, "b", LinkState::Offline).await;
        }
        within("an acknowledgement", job.signal(&n)).await?;
    }
    assert_eq!(*heard.lock().unwrap(), (0..10).collect::<Vec<_>>());
    assert!(
        futures_util::poll!(Box::pin(watch.next())).is_pending(),
        "the gateway stayed online"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_request_to_nobody_behind_a_gateway_ends_after_three_tries() -> Outcome {
    // T-30, 4.
    let net = Net::Memory(nacp::MemoryTransport::new());
    let gateway = net.server("gateway").gateway().start().await?;
    let mut events = gateway.events();
    let a = net.node("a").start().await?;
    a.connect(target(&gateway)).await?;
    let start = tokio::time::Instant::now();
    let error = a.request::<()>("nobody", "x", &()).await.unwrap_err();
    assert_eq!(
        error,
        RequestError::Undelivered(Undelivered::UnroutableRelay)
    );
    assert_eq!(start.elapsed().as_secs(), 30);
    for _ in 0..3 {
        reported(&mut events, "nacp:internal:gateway:error", "dropped").await;
    }
    Ok(())
}

#[tokio::test]
async fn subscriptions_through_a_gateway_survive_its_loss_and_return() -> Outcome {
    let gateway = NApp::builder("gateway")
        .gateway()
        .listen("127.0.0.1:0")
        .start()
        .await?;
    let proxy = Proxy::to(gateway.listen_addrs()[0]).await;
    let quick = || Reconnect::default().shortest(Duration::from_millis(1));
    let a = NApp::builder("a").reconnect(quick()).start().await?;
    let b = NApp::builder("b")
        .reconnect(quick())
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    a.connect(proxy.addr()).await?;
    b.connect(target(&gateway)).await?;
    let mut stream = a.subscribe("b", "x").await?;
    for round in 0..5 {
        proxy.cut();
        let mut watch = a.watch_links();
        while a.links()[0].state != LinkState::Online {
            within("the return", watch.next()).await;
        }
        assert_eq!(
            within("the answer", a.request::<u32>("b", "echo", &round)).await?,
            round
        );
        b.emit("x", &round)?;
        assert_eq!(
            within("an event", stream.next())
                .await
                .unwrap()
                .decode::<u32>()?,
            round
        );
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_credential_does_not_follow_whoever_answered_when_the_link_is_made_again() -> Outcome {
    let net = Net::Wire(Wire::default());
    let secret = nacp::Payload::new("sesame")?;
    for (named, carried) in [(false, None), (true, Some(secret))] {
        let mut hands = net.hands("b").await;
        let a = net.node("a").auth("sesame").start().await?;
        let to = hands.target();
        let address = to.trim_start_matches("b@");
        let connecting = a.connect(if named { &to } else { address }).into_future();
        let connecting = tokio::spawn(connecting);
        let mut first = hands.accept().await;
        assert_eq!(first.admit(false, 1).await.auth, carried, "named: {named}");
        connecting.await??;
        first.cut();
        let mut again = hands.accept().await;
        assert_eq!(again.asked().await.1.auth, carried, "named: {named}");
    }
    Ok(())
}

//! Large messages, slow lines, and futures dropped half-way (T-16, T-23).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nacp::{EventContext, HandlerError, LinkState, NApp, Payload, Reconnect, Signal};

use crate::proxy::Proxy;
use crate::support::{Outcome, app, sees, target, within};

/// The length of a byte string, and whether its bytes are those of [`patterned`].
fn examine(payload: &Payload) -> Result<(usize, bool), HandlerError> {
    let bytes = payload
        .as_byte_string()
        .ok_or_else(|| HandlerError::failed("no bytes"))?;
    let is_whole = bytes
        .iter()
        .enumerate()
        .all(|(at, byte)| *byte == (at % 251) as u8);
    Ok((bytes.len(), is_whole))
}

fn patterned(len: usize) -> Payload {
    Payload::byte_string((0..len).map(|at| (at % 251) as u8).collect::<Vec<_>>())
}

fn examiner(name: &str) -> nacp::Builder {
    NApp::builder(name)
        .listen("127.0.0.1:0")
        .ability_raw("examine", async |_, payload: Payload| {
            let (len, is_whole) = examine(&payload)?;
            Ok(Payload::new(&(len, is_whole))?)
        })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_message_on_a_slow_line_starves_nobody() -> Outcome {
    // T-16 in small: 3 MiB at 1 MiB a second each way, beats twice a second, limits of two seconds.
    const LEN: usize = 3 << 20;
    let tight = |builder: nacp::Builder| {
        builder
            .ack_timeout(Duration::from_secs(2))
            .heartbeat_interval(Some(Duration::from_millis(500)))
            .tcp(|options| {
                options
                    .unsent_bytes(Some(16 << 10))
                    .send_buffer(Some(64 << 10))
            })
    };
    let b = tight(examiner("b"))
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let c = examiner("c")
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let a = tight(examiner("a"))
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .reconnect(Reconnect::off())
        .start()
        .await?;
    let proxy = Proxy::to(b.listen_addrs()[0]).await;
    proxy.slow(1 << 20);
    a.connect(proxy.addr()).await?;
    a.connect(target(&c)).await?;
    sees(&b, "a", LinkState::Online).await;
    let (mut ours, mut theirs) = (a.watch_links(), b.watch_links());
    let up = tokio::spawn(send(&a, "b", LEN));
    let down = tokio::spawn(send(&b, "a", LEN));
    crate::support::until("the transfer", || proxy.passed() > 256 << 10).await;
    let beat = within("a beat between the frames", a.heartbeat("c")).await?;
    assert!(beat < Duration::from_secs(1), "{beat:?}");
    assert_eq!(
        within("another app", a.request::<u32>("c", "echo", &7)).await?,
        7
    );
    // Behind the large ones, and in their turn.
    assert_eq!(
        within("the small one", a.request::<u32>("b", "echo", &8)).await?,
        8
    );
    assert_eq!(within("the large one", up).await??, (LEN, true));
    assert_eq!(within("the other large one", down).await??, (LEN, true));
    for watch in [&mut ours, &mut theirs] {
        assert!(
            futures_util::poll!(Box::pin(watch.next())).is_pending(),
            "no link went offline"
        );
    }
    Ok(())
}

/// Lets another app examine a large payload.
fn send(
    from: &NApp,
    to: &str,
    len: usize,
) -> impl Future<Output = Result<(usize, bool), nacp::RequestError>> + Send + 'static {
    let request = from.request_raw(to, "examine", patterned(len));
    async move { Ok(request.await?.decode()?) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_tear_no_frame_and_leave_no_waiter() -> Outcome {
    // T-23: large requests given up after a random time, small signals between them that are kept.
    let (seed, mut random) = seeded();
    let whole = Arc::new(AtomicUsize::new(0));
    let torn = Arc::new(AtomicUsize::new(0));
    let (counted, broken) = (Arc::clone(&whole), Arc::clone(&torn));
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let hearing = Arc::clone(&heard);
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .ability_raw("examine", move |_, payload: Payload| {
            let counter = match examine(&payload) {
                Ok((_, true)) => Arc::clone(&counted),
                _ => Arc::clone(&broken),
            };
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(Payload::null()) }
        })
        .event("hear", move |ctx: EventContext, (): ()| {
            let hearing = Arc::clone(&hearing);
            async move {
                ctx.process("ready").await?;
                while let Some(Signal::Normal(payload)) = ctx.next_signal().await {
                    hearing.lock().unwrap().push(payload.decode::<u32>()?);
                }
                Ok::<_, HandlerError>(())
            }
        })
        .start()
        .await?;
    let client = NApp::builder("client").start().await?;
    let mut events = server.events();
    client.connect(target(&server)).await?;
    let mut job = client.run("server", "hear", &()).await?;
    within("the start", job.next()).await.unwrap();
    let payloads: Vec<_> = (1..=4).map(|n| patterned(n << 20)).collect();
    let mut sent = 0;
    let mut signals = Vec::new();
    for round in 0..60u32 {
        let payload = payloads[random(payloads.len() as u64) as usize].clone();
        let request = client.request_raw("server", "examine", payload);
        let limit = Duration::from_micros(random(5000));
        // Polled at least once, so it is on its way.
        sent += 1;
        let _ = tokio::time::timeout(limit, request).await;
        let id = job.id().unwrap().clone();
        let client = client.clone();
        signals.push(async move {
            let payload = Payload::new(&round).unwrap();
            client.signal("server", id, Signal::Normal(payload)).await
        });
        if random(3) == 0 {
            for signal in signals.drain(..) {
                within("a signal", signal).await?;
            }
        }
    }
    for signal in signals {
        within("a signal", signal).await?;
    }
    let last = client.request_raw("server", "examine", payloads[0].clone());
    within("the last", last).await?;
    // Handlers run side by side: the last to come need not be the last to end.
    let what = format!("all {sent} requests, seed {seed}");
    crate::support::until(&what, || whole.load(Ordering::SeqCst) == sent + 1).await;
    assert_eq!(torn.load(Ordering::SeqCst), 0, "seed {seed}");
    job.pause().await?;
    within("the end", job.response::<()>()).await?;
    assert_eq!(
        *heard.lock().unwrap(),
        (0..60).collect::<Vec<_>>(),
        "seed {seed}"
    );
    crate::support::until("the books", || {
        let link = client.link(&app("server")).unwrap();
        client.snapshot().calls == 0 && link.ack_pending.count + link.submitted.count == 0
    })
    .await;
    while let Ok(Some(event)) = tokio::time::timeout(Duration::ZERO, events.next()).await {
        assert_ne!(&*event.name, "nact:peer:error", "seed {seed}");
    }
    Ok(())
}

/// Numbers below a bound, from a seed that `NACP_SEED` sets.
fn seeded() -> (u64, impl FnMut(u64) -> u64) {
    let from_env = std::env::var("NACP_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = from_env.unwrap_or_else(|| getrandom::u64().unwrap());
    let mut state = seed;
    (seed, move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    })
}

#[tokio::test]
async fn a_request_that_is_never_polled_is_never_sent() -> Outcome {
    let server = examiner("server").start().await?;
    let client = NApp::builder("client").start().await?;
    client.connect(target(&server)).await?;
    drop(client.request::<()>("server", "examine", &()));
    drop(client.run("server", "x", &()));
    client.heartbeat("server").await?;
    let requests = client
        .totals()
        .sent_of(Some(nacp::proto::MessageType::Request));
    assert!(requests <= 2, "the beats alone: {requests}");
    assert_eq!(server.totals().count_of(nacp::link::Reason::NoProcessor), 0);
    Ok(())
}

//! Large messages, slow lines, and futures dropped half-way (T-16, T-23).

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nacp::{HandlerError, LinkState, NApp, Payload, Reconnect};

use nacp::link::Cause;
use nacp::proto::{Body, ChunkSize, Response};
use nacp::{LinkWatch, Report, RequestKind};

use crate::hand::request;
use crate::proxy::Proxy;
use crate::support::{
    Clock, Heard, Net, Outcome, app, hearing, quick, sees, send_number, start_hearing, target,
    under_way, within,
};
use crate::wire::Wire;

/// The length of a byte string, and whether its bytes are those of [`patterned`].
fn examine(payload: &Payload) -> Result<(usize, bool), HandlerError> {
    let bytes = payload
        .as_byte_string()
        .ok_or_else(|| HandlerError::failed("no bytes"))?;
    let is_whole = bytes
        .chunks(PATTERN.len())
        .all(|chunk| chunk == &PATTERN[..chunk.len()]);
    Ok((bytes.len(), is_whole))
}

/// Repeated, so long and so odd that no missing or doubled piece of a frame leaves it as it is.
static PATTERN: [u8; 65_521] = {
    let mut pattern = [0; 65_521];
    let mut at = 0;
    while at < pattern.len() {
        pattern[at] = (at % 251) as u8 ^ (at / 251) as u8;
        at += 1;
    }
    pattern
};

fn patterned(len: usize) -> Payload {
    let repeated = PATTERN.iter().copied().cycle().take(len);
    Payload::byte_string(repeated.collect::<Vec<_>>())
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
    // T-16 in small, with the buffers of real sockets: 3 MiB at 1 MiB a second each way, beats twice
    // a second, limits of two seconds. The full size takes more than a minute and is done in virtual
    // time below.
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

const LARGE: usize = 64 << 20;

/// Beats every 5 s; has the abilities that the large transfers call.
fn beating(builder: nacp::Builder, heard: &Heard) -> nacp::Builder {
    let large = heard.clone();
    hearing(builder, heard)
        .heartbeat_interval(Some(Duration::from_secs(5)))
        .reconnect(Reconnect::off())
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .ability_raw("examine", move |_, payload: Payload| {
            large.push(LARGE as u32);
            async move { Ok(Payload::new(&examine(&payload)?)?) }
        })
}

/// Tells what changed until now.
fn changes(watch: &mut LinkWatch) -> Vec<Cause> {
    let mut causes = Vec::new();
    while let Some(Some(change)) = futures_util::FutureExt::now_or_never(watch.next()) {
        causes.push(change.cause);
    }
    causes
}

#[tokio::test(start_paused = true)]
async fn sixty_four_mebibytes_each_way_on_a_slow_line_starve_neither_beats_nor_acks_nor_others()
-> Outcome {
    // T-16, 1 and 2, in full: 1 MiB a second each way.
    let net = Net::Wire(Wire::default());
    let (at_a, at_b) = (Heard::default(), Heard::default());
    let b = beating(net.server("b"), &at_b).start().await?;
    let c = beating(net.server("c"), &Heard::default()).start().await?;
    let a = beating(net.node("a"), &at_a).start().await?;
    let line = net.line_to(&b).await;
    line.slow(1 << 20);
    a.connect(line.target()).await?;
    a.connect(target(&c)).await?;
    sees(&b, "a", LinkState::Online).await;
    let to_b = start_hearing(&a, "b").await;
    let to_a = start_hearing(&b, "a").await;
    let mut watches = [a.watch_links(), b.watch_links(), c.watch_links()];
    let arrived = Heard::default();
    let arriving = arrived.clone();
    b.listen("nacp:inbound:*", move |event| {
        let Some(Report::Inbound { subject, .. }) = event.payload().report() else {
            return;
        };
        match &subject.body {
            Some(Body::Request { target, .. }) if target.as_deref() == Some("examine") => {
                arriving.push(LARGE as u32);
            }
            Some(Body::Signal { .. }) => arriving.push(1),
            _ => {}
        }
    })?;

    let clock = Clock::start();
    let up = under_way(send(&a, "b", LARGE));
    clock.reach(1.0).await;
    let s1 = send_number(&a, "b", &to_b, 1);
    clock.reach(2.0).await;
    let s2 = send_number(&b, "a", &to_a, 2);
    let q = under_way(b.request::<u32>("a", "echo", &3));
    let down = under_way(send(&b, "a", LARGE));
    s2.await??;
    assert!(clock.ms() <= 7000, "the ACK of s2 within 5 s: {clock:?}");
    clock.reach(3.0).await;
    let asked = clock.ms();
    assert_eq!(a.request::<u32>("c", "echo", &4).await?, 4);
    assert!(clock.ms() <= asked + 100, "{clock:?}");
    let mut slowest = Duration::ZERO;
    while !(up.is_finished() && down.is_finished()) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        for (from, to) in [(&a, "b"), (&b, "a")] {
            let link = from.link(&app(to)).unwrap();
            slowest = slowest.max(link.round_trip.unwrap_or_default());
        }
    }
    assert!((64_000..80_000).contains(&clock.ms()), "{clock:?}");
    assert!(slowest <= Duration::from_secs(5), "{slowest:?}");
    assert_eq!(up.await??, (LARGE, true));
    assert_eq!(down.await??, (LARGE, true));
    assert_eq!(q.await??, 3);
    s1.await??;
    // Handlers run side by side, what is handed to them is in order.
    assert_eq!(arrived.all(), [LARGE as u32, 1], "order is kept");
    let mut at_b = at_b.all();
    at_b.sort_unstable();
    assert_eq!(at_b, [1, LARGE as u32], "once each");
    assert_eq!(at_a.all(), [2, LARGE as u32]);
    for watch in &mut watches {
        assert_eq!(changes(watch), [], "all stayed online");
    }
    for node in [&a, &b, &c] {
        assert_eq!(node.totals().reasons().count(), 0, "no ACK timed out");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn one_frame_of_sixty_four_mebibytes_counts_as_life_while_it_comes() -> Outcome {
    // T-16, 3: the other side is made by hand and speaks as the reference does: one frame of 100 MiB
    // at most, whatever else waits behind it.
    let net = Net::Wire(Wire::default());
    let Net::Wire(wire) = &net else {
        unreachable!("as made")
    };
    let mut hands = net.hands("b").await;
    let (alias, line) = wire.line_to("b.hand");
    let at_a = Heard::default();
    let a = beating(net.node("a"), &at_a).start().await?;
    let to = format!("b@{alias}");
    let connecting = tokio::spawn(a.connect(to).into_future());
    let mut b = hands.accept().await;
    b.info.instance = None;
    b.info.max_message_bytes = None;
    b.sender.set_chunk_size(ChunkSize::new(100 << 20).unwrap());
    b.admit(false, 1).await;
    connecting.await??;
    line.slow(1 << 20);
    let (mut watch, clock) = (a.watch_links(), Clock::start());
    let large = b.tell(request(RequestKind::Ability, "examine", patterned(LARGE)));
    // And as much the other way, in one frame too.
    let up = under_way(
        a.request_raw("b", "examine", patterned(LARGE))
            .into_future(),
    );
    let mut answer = None;
    while answer.is_none() || !up.is_finished() {
        let message = b.listen().await.ok_or("the node has closed")?;
        match message.body {
            Body::Request { kind, .. } => {
                let response = Response {
                    kind: Some(kind),
                    ..Response::ok(message.id.clone(), Payload::new(&true)?)
                };
                b.answer(&message.id, response);
            }
            // The sentinel that every foreign peer gets.
            Body::Subscribe { .. } => {
                b.answer(
                    &message.id,
                    Response::ok(message.id.clone(), Payload::empty()),
                );
            }
            Body::Response(response) if response.parent_id == large => {
                b.ack(message.id);
                answer = Some(response);
            }
            other @ (Body::Register(_)
            | Body::Unregister
            | Body::Unsubscribe { .. }
            | Body::Response(_)
            | Body::Signal { .. }
            | Body::Notify { .. }
            | Body::Ack { .. }) => assert!(matches!(other, Body::Ack { .. }), "{other:?}"),
        }
        tokio::task::yield_now().await;
    }
    let examined: (usize, bool) = answer.ok_or("no answer")?.payload.decode()?;
    assert_eq!(examined, (LARGE, true));
    up.await??;
    assert!(clock.ms() < 600_000, "{clock:?}");
    assert_eq!(at_a.all(), [LARGE as u32], "once");
    assert_eq!(changes(&mut watch), [], "it stayed online");
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
    // T-23, 1, 2 and 4.
    give_up_half_way(Net::Tcp, 1000, None).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropped_futures_tear_no_frame_while_the_link_goes_and_comes() -> Outcome {
    // T-23, 3: fewer rounds, because each cut sends anew whatever was not acknowledged.
    give_up_half_way(Net::Tcp, 200, Some(10)).await
}

/// Starts large requests and gives each up after a random time, in one of three ways; between them
/// go small signals that are kept. Every so many rounds the line is cut.
async fn give_up_half_way(net: Net, rounds: u32, cut_every: Option<u32>) -> Outcome {
    let (seed, mut random) = crate::support::seeded();
    let small_buffers = |builder: nacp::Builder| {
        builder
            .heartbeat_interval(None)
            .config(|config| config.poison_limit(0))
            .reconnect(quick())
            .tcp(|options| {
                options
                    .unsent_bytes(Some(16 << 10))
                    .send_buffer(Some(64 << 10))
            })
    };
    let whole = Arc::new(AtomicUsize::new(0));
    let torn = Arc::new(AtomicUsize::new(0));
    let (counted, broken) = (Arc::clone(&whole), Arc::clone(&torn));
    let heard = Heard::default();
    let server = small_buffers(hearing(net.server("server"), &heard))
        .ability_raw("examine", move |_, payload: Payload| {
            let counter = match examine(&payload) {
                Ok((_, true)) => Arc::clone(&counted),
                _ => Arc::clone(&broken),
            };
            counter.fetch_add(1, Ordering::SeqCst);
            async { Ok(Payload::null()) }
        })
        .start()
        .await?;
    let mut events = server.events();
    let line = net.line_to(&server).await;
    let client = small_buffers(net.node("client")).start().await?;
    client.connect(line.target()).await?;
    let job = start_hearing(&client, "server").await;
    let payloads: Vec<_> = (1..=8).map(|n| patterned(n << 20)).collect();
    let mut signals = Vec::new();
    for round in 0..rounds {
        let payload = payloads[random(payloads.len() as u64) as usize].clone();
        let request = client.request_raw("server", "examine", payload);
        let limit = Duration::from_micros(random(20_000));
        // Polled at least once, so it is on its way.
        match random(3) {
            0 => drop(tokio::time::timeout(limit, request).await),
            1 => {
                tokio::select! {
                    biased;
                    _ = request.into_future() => {}
                    () = tokio::time::sleep(limit) => {}
                }
            }
            _ => {
                let task = under_way(request.into_future());
                drop(tokio::time::timeout(limit, std::future::pending::<()>()).await);
                task.abort();
            }
        }
        signals.push(send_number(&client, "server", &job, round));
        if random(3) == 0 {
            for signal in signals.drain(..) {
                within("a signal", signal).await??;
            }
        }
        if cut_every.is_some_and(|every| round % every == every - 1) {
            line.cut();
        }
    }
    for signal in signals {
        within("a signal", signal).await??;
    }
    let what = format!("all requests, seed {seed}");
    crate::support::until(&what, || whole.load(Ordering::SeqCst) == rounds as usize).await;
    assert_eq!(torn.load(Ordering::SeqCst), 0, "seed {seed}");
    // An ACK says that a signal has come, not that its handler has looked at it.
    crate::support::until("all signals", || heard.len() >= rounds as usize).await;
    assert_eq!(heard.all(), (0..rounds).collect::<Vec<_>>(), "seed {seed}");
    drop(job);
    crate::support::until("the books", || {
        let link = client.link(&app("server")).unwrap();
        client.snapshot().calls == 0
            && link.ack_pending.count + link.submitted.count + link.backlog.count == 0
    })
    .await;
    while let Some(Some(event)) = futures_util::FutureExt::now_or_never(events.next()) {
        if &*event.name == "nact:peer:error" {
            let reason = crate::support::reason_of(&event);
            let is_cut = cut_every.is_some() && reason.as_deref() == Some("transport-error");
            assert!(is_cut, "no error of framing: {reason:?}, seed {seed}");
        }
    }
    Ok(())
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

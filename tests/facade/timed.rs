//! Everything timed, with a clock that stands still until nobody has anything to do.

use std::time::Duration;

use async_trait::async_trait;
use nacp::proto::{Body, Response};
use nacp::{
    Channel, EventContext, HandlerError, Jitter, LinkState, Listener, MemoryTransport, Payload,
    Reconnect, RequestError, RequestKind, SubscribeError, Transport, TransportError, Undelivered,
};
use tokio::time::Instant;

use crate::hand::Hand;
use crate::support::{Clock, Net, Outcome, app, sees, target, under_way};
use crate::wire::Wire;

const NEVER: Duration = Duration::from_secs(3600);

/// A memory network whose connections can be made to fail.
#[derive(Debug, Clone)]
struct Flaky {
    network: MemoryTransport,
    dials: std::sync::Arc<std::sync::Mutex<Vec<Instant>>>,
    mode: std::sync::Arc<std::sync::Mutex<Mode>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Works,
    /// Nobody listens.
    Fails,
    /// The name is none.
    Unresolved,
    /// The listener accepts and closes at once.
    Closes,
}

impl Flaky {
    fn new(network: &MemoryTransport) -> Self {
        Self {
            network: network.clone(),
            dials: std::sync::Arc::default(),
            mode: std::sync::Arc::new(std::sync::Mutex::new(Mode::Works)),
        }
    }

    fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    fn dials(&self) -> Vec<Instant> {
        self.dials.lock().unwrap().clone()
    }
}

#[async_trait]
impl Transport for Flaky {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        self.dials.lock().unwrap().push(Instant::now());
        let mode = *self.mode.lock().unwrap();
        match mode {
            Mode::Works => self.network.dial(address).await,
            Mode::Fails => Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into()),
            Mode::Unresolved => Err(TransportError::Other("no such host".into())),
            Mode::Closes => {
                let (ours, _) = tokio::io::duplex(64);
                Ok(Channel::from_io(ours, &nacp::transport::Options::default()))
            }
        }
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        self.network.listen(address).await
    }
}

fn steady() -> Reconnect {
    Reconnect::default()
        .jitter(Jitter::None)
        .longest(Duration::from_secs(5))
}

#[tokio::test(start_paused = true)]
async fn the_wait_between_dials_grows_and_only_a_stable_link_resets_it() -> Outcome {
    // T-18, 1 and 4 and 5.
    for mode in [Mode::Fails, Mode::Unresolved, Mode::Closes] {
        let network = MemoryTransport::new();
        let net = Net::Memory(network.clone());
        let server = net.server("server").start().await?;
        let flaky = Flaky::new(&network);
        let client = net
            .node("client")
            .transport(flaky.clone())
            .reconnect(steady())
            .start()
            .await?;
        client.connect(target(&server)).await?;
        tokio::time::sleep(Duration::from_secs(600)).await;
        flaky.set(mode);
        let before = flaky.dials().len();
        let lost = Instant::now();
        server.disconnect("client").await?;
        tokio::time::sleep(Duration::from_secs(60)).await;
        let dials = flaky.dials().split_off(before);
        assert!(
            (10..=20).contains(&dials.len()),
            "{mode:?}: {} dials",
            dials.len()
        );
        assert_eq!(
            (dials[0] - lost).as_millis() / 10,
            10,
            "the first after the shortest wait"
        );
        flaky.set(Mode::Works);
        sees(&client, "server", LinkState::Online).await;
    }
    Ok(())
}

/// What the dials were after this moment, in milliseconds from it.
fn since(flaky: &Flaky, moment: Instant) -> Vec<u128> {
    let later = flaky.dials().into_iter().filter(|dial| *dial > moment);
    later.map(|dial| (dial - moment).as_millis()).collect()
}

#[tokio::test(start_paused = true)]
async fn waits_double_from_the_shortest_to_the_longest_to_the_millisecond() -> Outcome {
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let flaky = Flaky::new(&network);
    let client = net
        .node("client")
        .transport(flaky.clone())
        .heartbeat_interval(None)
        .reconnect(steady())
        .start()
        .await?;
    client.connect(target(&server)).await?;
    tokio::time::sleep(Duration::from_secs(600)).await;
    let lost = Instant::now();
    flaky.set(Mode::Fails);
    network.cut();
    sees(&client, "server", LinkState::Offline).await;
    tokio::time::sleep(Duration::from_secs(25)).await;
    let expected = [100, 300, 700, 1500, 3100, 6300, 11_300, 16_300, 21_300];
    assert_eq!(since(&flaky, lost), expected);

    // It lives for a second less than the longest wait: the next row begins where this one was.
    flaky.set(Mode::Works);
    sees(&client, "server", LinkState::Online).await;
    tokio::time::sleep(Duration::from_secs(4)).await;
    for (lived, first) in [(0, 5000), (6, 100)] {
        sees(&client, "server", LinkState::Online).await;
        tokio::time::sleep(Duration::from_secs(lived)).await;
        let lost = Instant::now();
        network.cut();
        sees(&client, "server", LinkState::Offline).await;
        sees(&client, "server", LinkState::Online).await;
        assert_eq!(since(&flaky, lost), [first], "after {lived} s");
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn full_jitter_draws_each_wait_from_zero_to_its_length() -> Outcome {
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let flaky = Flaky::new(&network);
    let client = net
        .node("client")
        .transport(flaky.clone())
        .reconnect_grace(Duration::MAX)
        .reconnect(steady().jitter(Jitter::Full))
        .start()
        .await?;
    client.connect(target(&server)).await?;
    flaky.set(Mode::Fails);
    let lost = Instant::now();
    network.cut();
    sees(&client, "server", LinkState::Offline).await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let dials = since(&flaky, lost);
    let waits: Vec<_> = std::iter::once(dials[0])
        .chain(dials.windows(2).map(|pair| pair[1] - pair[0]))
        .collect();
    for (wait, longest) in waits.iter().zip([100, 200, 400, 800, 1600, 3200]) {
        // A timer of tokio is up to a millisecond late.
        assert!(*wait <= longest + 1, "{waits:?}");
    }
    assert!(waits.iter().all(|wait| *wait <= 5001), "{waits:?}");
    // Over a thousand draws of 0 to 5 s: the mean is off by 0.3 s once in a trillion runs.
    let mean = waits[6..].iter().sum::<u128>() / (waits.len() as u128 - 6);
    assert!((2200..2800).contains(&mean), "{mean}");
    drop(client);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_register_that_does_not_last_does_not_reset_the_wait() -> Outcome {
    // T-18, 2.
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let flaky = Flaky::new(&network);
    let client = net
        .node("client")
        .transport(flaky.clone())
        .reconnect(steady())
        .start()
        .await?;
    let mut watch = server.watch_links();
    client.connect(target(&server)).await?;
    let until = Instant::now() + Duration::from_secs(60);
    while let Ok(Some(change)) = tokio::time::timeout_at(until, watch.next()).await {
        if change.state == LinkState::Online {
            tokio::time::sleep(Duration::from_millis(10)).await;
            server.disconnect("client").await?;
        }
    }
    let dials = flaky.dials().len();
    assert!((10..=20).contains(&dials), "{dials} dials");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refusals_are_waited_out_and_a_wait_ends_with_the_wish() -> Outcome {
    // T-18, 3, and the last line.
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let flaky = Flaky::new(&network);
    let client = net
        .node("twin")
        .transport(flaky.clone())
        .reconnect(steady())
        .start()
        .await?;
    client.connect(target(&server)).await?;
    sees(&server, "twin", LinkState::Online).await;
    server.disconnect("twin").await?;
    let twin = net.node("twin").start().await?;
    twin.connect(target(&server)).await?;
    let before = flaky.dials().len();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let dials = flaky.dials().len() - before;
    assert!((9..=20).contains(&dials), "{dials} dials");
    client.disconnect("server").await?;
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(flaky.dials().len() - before, dials);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn full_jitter_spreads_the_attempts() -> Outcome {
    // T-18, 6.
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let mut clients = Vec::new();
    for n in 0..100 {
        let flaky = Flaky::new(&network);
        let reconnect = steady().jitter(Jitter::Full);
        let client = net
            .node(&format!("client-{n}"))
            .transport(flaky.clone())
            .reconnect(reconnect)
            .start()
            .await?;
        client.connect(target(&server)).await?;
        flaky.set(Mode::Fails);
        clients.push((client, flaky));
    }
    let lost = Instant::now();
    server.terminate_now();
    tokio::time::sleep(Duration::from_secs(60)).await;
    let mut thirds: Vec<_> = clients
        .iter()
        .map(|(_, flaky)| flaky.dials()[3] - lost)
        .collect();
    thirds.sort_unstable();
    assert!(
        thirds[99] - thirds[0] >= Duration::from_millis(200),
        "{thirds:?}"
    );
    assert!(clients.iter().all(|(_, flaky)| flaky.dials().len() <= 60));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_subscribe_that_timed_out_never_comes_alive() -> Outcome {
    // T-27, 1 and 3.
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net
        .server("server")
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let client = net
        .node("client")
        .heartbeat_interval(None)
        .reconnect(Reconnect::off())
        .start()
        .await?;
    client.connect(target(&server)).await?;
    network.cut();
    sees(&client, "server", LinkState::Offline).await;
    let start = Instant::now();
    for at in [0, 11, 22] {
        tokio::time::sleep_until(start + Duration::from_secs(at)).await;
        let refused = client.subscribe("server", "x:*").await.unwrap_err();
        assert_eq!(refused, SubscribeError::Undelivered(Undelivered::Timeout));
        assert_eq!(start.elapsed().as_secs(), at + 10);
    }
    let limit = Duration::from_secs(5);
    let late = client
        .request::<u32>("server", "echo", &1)
        .timeout(limit)
        .await
        .unwrap_err();
    assert_eq!(late, RequestError::Undelivered(Undelivered::Timeout));
    client.connect(target(&server)).await?;
    client.heartbeat("server").await?;
    assert_eq!(server.snapshot().subscriptions, 0);
    assert_eq!(server.emit("x:1", &1)?, 0);
    assert_eq!(client.snapshot().backlog.count, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_waiting_unsubscribe_is_withdrawn_at_its_limit_or_done() -> Outcome {
    // T-27, 2.
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let client = net
        .node("client")
        .reconnect(Reconnect::off())
        .start()
        .await?;
    client.connect(target(&server)).await?;
    let one = client.subscribe("server", "x").await?;
    let two = client.subscribe("server", "x").await?;
    network.cut();
    sees(&client, "server", LinkState::Offline).await;
    let late = tokio::spawn(one.unsubscribe());
    let late = late.await?;
    assert_eq!(late, Err(SubscribeError::Undelivered(Undelivered::Timeout)));
    let kept = tokio::spawn(two.unsubscribe());
    client.connect(target(&server)).await?;
    kept.await??;
    // What was told to be unsubscribed is not heard any more, whatever the other side still holds.
    server.emit("x", &1)?;
    client.heartbeat("server").await?;
    assert_eq!(client.snapshot().streams, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_grace_ends_to_the_second() -> Outcome {
    let network = MemoryTransport::new();
    let net = Net::Memory(network.clone());
    let server = net.server("server").start().await?;
    let client = net
        .node("client")
        .reconnect(Reconnect::off())
        .start()
        .await?;
    client.connect(target(&server)).await?;
    sees(&server, "client", LinkState::Online).await;
    let mut watch = server.watch_links();
    let start = Instant::now();
    network.cut();
    assert_eq!(watch.next().await.unwrap().state, LinkState::Offline);
    assert_eq!(watch.next().await.unwrap().state, LinkState::Dropped);
    assert_eq!(start.elapsed().as_secs(), 120);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_beat_goes_out_every_interval_and_keeps_the_link() -> Outcome {
    let net = Net::Memory(MemoryTransport::new());
    let server = net.server("server").start().await?;
    let client = net.node("client").start().await?;
    client.connect(target(&server)).await?;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let link = client.link(&app("server")).unwrap();
    assert_eq!(link.state, LinkState::Online);
    let beats = client
        .totals()
        .sent_of(Some(nacp::proto::MessageType::Request));
    assert!((60..=122).contains(&beats), "{beats} beats in an hour");
    assert!(link.round_trip.is_some());
    Ok(())
}

/// When a node beats, in seconds after its bind, as the hand at the other side hears it. The hand
/// answers each, and beats itself at these moments.
async fn beats(hand: &mut Hand, clock: Clock, own: &[f64], until: f64) -> Vec<u128> {
    let mut beats = Vec::new();
    let mut own = own.iter();
    let mut next = own.next();
    loop {
        let wake = next.copied().unwrap_or(until).min(until);
        tokio::select! {
            biased;
            message = hand.listen() => {
                let Some(message) = message else { return beats };
                if let Body::Request { .. } = message.body {
                    beats.push(clock.ms());
                    let answer = Response {
                        kind: Some(RequestKind::Ability),
                        ..Response::ok(message.id.clone(), Payload::new(&true).unwrap())
                    };
                    hand.answer(&message.id, answer);
                }
            }
            () = clock.reach(wake) => {
                if next.take().is_none() {
                    return beats;
                }
                next = own.next();
                let beat = crate::hand::request(
                    RequestKind::Ability,
                    "NApp.heartbeat",
                    Payload::empty(),
                );
                hand.tell(beat);
            }
        }
    }
}

/// As exact as a reader lets a write be, in whole seconds.
fn seconds(beats: &[u128]) -> Vec<u128> {
    for beat in beats {
        assert!(beat % 1000 <= 8, "{beats:?}");
    }
    beats.iter().map(|beat| beat / 1000).collect()
}

#[tokio::test(start_paused = true)]
async fn the_dialler_beats_at_once_and_the_acceptor_half_an_interval_later() -> Outcome {
    let net = Net::Wire(Wire::default());
    let mut hands = net.hands("b").await;
    let dialler = net.node("a").reconnect(Reconnect::off()).start().await?;
    let clock = Clock::start();
    let connecting = under_way(dialler.connect(hands.target()).into_future());
    let mut hand = hands.accept().await;
    hand.admit(false, 1).await;
    connecting.await??;
    assert_eq!(
        seconds(&beats(&mut hand, clock, &[], 200.0).await),
        [0, 60, 120, 180]
    );

    let acceptor = net.server("c").start().await?;
    let mut hand = net.hand("d", &acceptor).await;
    let clock = Clock::start();
    hand.register(&[]).await?;
    assert_eq!(
        seconds(&beats(&mut hand, clock, &[], 200.0).await),
        [30, 90, 150]
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_beat_received_brings_the_next_forward_and_never_pushes_it_back() -> Outcome {
    let net = Net::Wire(Wire::default());
    let acceptor = net.server("a").start().await?;
    let mut hand = net.hand("b", &acceptor).await;
    let clock = Clock::start();
    hand.register(&[]).await?;
    // 30; then 90, brought forward by the beat at 40 to 70; then 130, which the beat at 120 would
    // only push back.
    let heard = beats(&mut hand, clock, &[40.0, 120.0], 140.0).await;
    assert_eq!(seconds(&heard), [30, 70, 130]);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn every_call_that_waits_for_an_answer_ends_at_its_limit() -> Outcome {
    let net = Net::Wire(Wire::default());
    let mut hands = net.hands("b").await;
    let a = net
        .node("a")
        .heartbeat_interval(None)
        .ack_timeout(Duration::MAX)
        .reconnect(Reconnect::off())
        .start()
        .await?;

    // A register that is not answered.
    let clock = Clock::start();
    let connecting = under_way(a.connect(hands.target()).into_future());
    let _silent = hands.accept().await;
    let late = connecting.await?.unwrap_err();
    assert!(late.is_timeout(), "{late}");
    assert_eq!(clock.ms(), 10_000, "register");

    let connecting = under_way(a.connect(hands.target()).into_future());
    let mut hand = hands.accept().await;
    hand.admit(false, 1).await;
    connecting.await??;
    let clock = Clock::start();
    let late = a.subscribe("b", "x").await.unwrap_err();
    assert_eq!(late, SubscribeError::Undelivered(Undelivered::Timeout));
    assert_eq!(clock.ms(), 10_000, "subscribe");

    let limit = Duration::from_millis(2500);
    let late = a
        .request::<()>("b", "x", &())
        .timeout(limit)
        .await
        .unwrap_err();
    assert_eq!(late, RequestError::Undelivered(Undelivered::Timeout));
    assert_eq!(clock.ms(), 12_500, "a request with its caller's limit");
    let mut job = a.run("b", "x", &()).timeout(limit).await?;
    let late = job.response::<()>().await.unwrap_err();
    assert_eq!(late, RequestError::Undelivered(Undelivered::Timeout));
    assert_eq!(clock.ms(), 15_000, "an event with its caller's limit");

    let endless = under_way(a.request::<()>("b", "x", &()));
    clock.reach(86_400.0).await;
    assert!(!endless.is_finished(), "a request has none of its own");

    let clock = Clock::start();
    a.disconnect("b").await?;
    assert_eq!(clock.ms(), 10_000, "unregister");
    let gone = endless.await?.unwrap_err();
    assert_eq!(gone, RequestError::Undelivered(Undelivered::PeerGone));
    assert_eq!(a.snapshot(), nacp::NodeSnapshot::default());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_does_not_register_is_closed_at_its_limit() -> Outcome {
    let net = Net::Wire(Wire::default());
    let server = net.server("server").start().await?;
    let clock = Clock::start();
    let mut silent = net.hand("silent", &server).await;
    assert_eq!(silent.listen().await, None);
    assert_eq!(clock.ms(), 10_000);
    assert_eq!(server.snapshot().peers, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn all_good_byes_together_have_ten_seconds() -> Outcome {
    for answered in [0, 2, 3] {
        let net = Net::Wire(Wire::default());
        let a = net.server("a").heartbeat_interval(None).start().await?;
        let mut hands = Vec::new();
        for n in 0..3 {
            let mut hand = net.hand(&format!("hand-{n}"), &a).await;
            hand.register(&[]).await?;
            hands.push(hand);
        }
        let clock = Clock::start();
        let mut answering = tokio::task::JoinSet::new();
        for (n, mut hand) in hands.into_iter().enumerate() {
            answering.spawn(async move {
                while let Some(message) = hand.listen().await {
                    if n < answered && message.body == Body::Unregister {
                        hand.answer(
                            &message.id,
                            Response::ok(message.id.clone(), Payload::empty()),
                        );
                    }
                }
            });
        }
        a.terminate().await;
        if answered == 3 {
            assert!(clock.is_at(0.0), "{clock:?}");
        } else {
            assert_eq!(clock.ms(), 10_000, "{answered} of three have answered");
        }
        answering.join_all().await;
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_node_that_nobody_uses_does_nothing() -> Outcome {
    let net = Net::Memory(MemoryTransport::new());
    let server = net
        .server("server")
        .heartbeat_interval(None)
        .start()
        .await?;
    let client = net.node("client").heartbeat_interval(None).start().await?;
    client.connect(target(&server)).await?;
    client.heartbeat("server").await?;
    // The last acknowledgement is through, whatever it waited for.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let before = (client.totals(), server.totals());
    tokio::time::sleep(Duration::from_secs(86_400)).await;
    assert_eq!((client.totals(), server.totals()), before);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn durations_without_end_are_never() -> Outcome {
    // T-09, 3.
    let net = Net::Memory(MemoryTransport::new());
    let endless = |builder: nacp::Builder| {
        builder
            .ack_timeout(Duration::MAX)
            .reconnect_grace(Duration::MAX)
            .heartbeat_interval(Some(Duration::MAX))
            .response_timeout(Duration::MAX)
            .handshake_timeout(Duration::MAX)
            .terminate_timeout(Duration::MAX)
            .takeover_probe(Duration::MAX)
            .reconnect(
                Reconnect::default()
                    .longest(Duration::MAX)
                    .stable_after(Duration::MAX),
            )
    };
    let server = endless(net.server("server"))
        .event("wait", async |ctx: EventContext, (): ()| {
            Err::<(), HandlerError>(ctx.interrupted().await.into())
        })
        .start()
        .await?;
    let client = endless(net.node("client")).start().await?;
    client.connect(target(&server)).await?;
    let mut job = client
        .run("server", "wait", &())
        .timeout(Duration::MAX)
        .await?;
    let waited = tokio::time::timeout(NEVER, job.response::<()>()).await;
    assert!(waited.is_err());
    client.terminate().await;
    Ok(())
}

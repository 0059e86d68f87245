//! A register for an app that is online through another connection (T-14), to the millisecond: `b`
//! listens, the other sides are made by hand.

use nacp::link::Cause;
use nacp::proto::{Body, MessageId, MessageType, Outcome as Answer, Session, Signal};
use nacp::{
    ConnectError, DialError, HandlerError, LinkState, LinkWatch, NApp, Reconnect, SendError,
    Undelivered,
};

use crate::hand::{Hand, ack_of, fresh_id, id};
use crate::support::{Clock, Net, Outcome, app, sees, target, within};
use crate::wire::Wire;

/// `b`, and `a` online with it on a first connection, which neither answers nor ends by itself.
struct Site {
    net: Net,
    b: NApp,
    c1: Hand,
    session: Session,
    watch: LinkWatch,
    clock: Clock,
}

async fn site() -> Result<Site, Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let b = net.server("b").heartbeat_interval(None).start().await?;
    let mut c1 = net.hand("a", &b).await;
    let session = c1.register(&[]).await?.session.unwrap();
    // The acknowledgement of the answer is through, and no session but this one is known.
    assert!(c1.is_answered().await);
    Ok(Site {
        watch: b.watch_links(),
        net,
        b,
        c1,
        session,
        clock: Clock::start(),
    })
}

impl Site {
    /// Registers as `a` on a new connection, and waits for no answer. It is another instance.
    async fn held(&self) -> (Hand, MessageId) {
        let hand = self.net.hand("a", &self.b).await.instance(9);
        let register = fresh_id();
        hand.say([hand.register_message(register.clone(), &[])]);
        (hand, register)
    }

    fn send(&self, n: u32) -> tokio::task::JoinHandle<Result<(), SendError>> {
        let b = self.b.to_unowned();
        let signal = Signal::Normal(nacp::Payload::new(&n).unwrap());
        tokio::spawn(async move { b.signal("a", id("event"), signal).await })
    }

    async fn change(&mut self) -> (LinkState, Cause) {
        let change = self.watch.next().await.unwrap();
        (change.state, change.cause)
    }

    /// What the link has gone through that was not looked at yet.
    fn changes(&mut self) -> Vec<(LinkState, Cause)> {
        let mut changes = Vec::new();
        while let Some(Some(change)) = futures_util::FutureExt::now_or_never(self.watch.next()) {
            changes.push((change.state, change.cause));
        }
        changes
    }
}

/// Hears signals and acknowledges each; returns their values.
async fn take_signals(hand: &mut Hand, count: usize) -> Vec<u32> {
    let mut values = Vec::new();
    while values.len() < count {
        let (own, value) = hand
            .hear_that(|message| {
                let Body::Signal {
                    signal: Signal::Normal(payload),
                    ..
                } = &message.body
                else {
                    return None;
                };
                Some((message.id.clone(), payload.decode::<u32>().unwrap()))
            })
            .await;
        hand.ack(own);
        values.push(value);
    }
    values
}

const TAKEN_OVER: [(LinkState, Cause); 2] = [
    (LinkState::Offline, Cause::TakenOver),
    (LinkState::Online, Cause::Registered),
];

/// What follows a takeover: sends arrive on the new connection, and the end of the old one, whenever
/// it comes, is nothing to it.
async fn the_old_end_changes_nothing(mut site: Site, mut c2: Hand) -> Outcome {
    site.clock.reach(30.0).await;
    site.c1.cut();
    site.watch = site.b.watch_links();
    let (b, clock) = (&site.b, site.clock);
    for n in 0..100 {
        let signal = Signal::Normal(nacp::Payload::new(&n)?);
        let sent = b.signal("a", id("event"), signal);
        let (sent, heard) = tokio::join!(sent, take_signals(&mut c2, 1));
        sent?;
        assert_eq!(heard, [n]);
    }
    // Longer than the grace.
    clock.reach(200.0).await;
    let changed = futures_util::FutureExt::now_or_never(site.watch.next());
    assert_eq!(changed, None, "no grace runs");
    assert_eq!(b.link(&app("a")).unwrap().state, LinkState::Online);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_silent_old_connection_is_taken_over_after_the_probe() -> Outcome {
    // T-14, 1: another instance, whose register holds no session.
    let mut site = site().await?;
    site.clock.reach(1.0).await;
    let (mut c2, register) = site.held().await;
    site.clock.reach(2.0).await;
    let x1 = site.send(1);
    assert_eq!(site.change().await, TAKEN_OVER[0]);
    assert_eq!(site.change().await, TAKEN_OVER[1]);
    assert!(site.clock.is_at(3.0), "{:?}", site.clock);
    let registered = c2.registered(&register).await?;
    assert_eq!(registered.resumed, Some(false));
    let lost = SendError::Undelivered(Undelivered::SessionLost);
    assert_eq!(x1.await?, Err(lost), "what was for the old instance");
    assert_eq!(site.changes(), []);
    the_old_end_changes_nothing(site, c2).await
}

#[tokio::test(start_paused = true)]
async fn a_register_that_holds_the_session_takes_over_at_once() -> Outcome {
    // T-14, 1: the same process.
    let mut site = site().await?;
    site.clock.reach(1.0).await;
    let mut c2 = site.net.hand("a", &site.b).await;
    let registered = c2.register(&[site.session]).await?;
    assert_eq!(registered.resumed, Some(true));
    assert!(site.clock.is_at(1.0), "without a probe: {:?}", site.clock);
    assert_eq!(site.changes(), TAKEN_OVER);
    site.clock.reach(2.0).await;
    let x1 = site.send(1);
    assert_eq!(take_signals(&mut c2, 1).await, [1]);
    x1.await??;
    the_old_end_changes_nothing(site, c2).await
}

#[tokio::test(start_paused = true)]
async fn a_living_connection_is_never_taken_over_however_often_it_is_tried() -> Outcome {
    // T-14, 2: a hundred times, one a second.
    let net = Net::Wire(Wire::default());
    let b = net
        .server("b")
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    let first = net.node("a").start().await?;
    first.connect(target(&b)).await?;
    sees(&b, "a", LinkState::Online).await;
    let mut watches = [first.watch_links(), b.watch_links()];
    let clock = Clock::start();
    for n in 0..100u32 {
        clock.reach(f64::from(n)).await;
        let second = net.node("a").reconnect(Reconnect::off()).start().await?;
        let refused = second.connect(target(&b)).await;
        let Err(ConnectError::Handshake(DialError::Refused { why })) = refused else {
            panic!("{refused:?}");
        };
        assert_eq!(why, "appId-in-use");
        assert!(
            clock.is_at(f64::from(n)),
            "at the first sign of life: {clock:?}"
        );
        assert_eq!(first.request::<u32>("b", "echo", &n).await?, n);
    }
    for watch in &mut watches {
        assert_eq!(futures_util::FutureExt::now_or_never(watch.next()), None);
    }
    assert_eq!((first.totals().replayed(), b.links().len()), (0, 1));
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_held_connection_that_ends_is_forgotten() -> Outcome {
    // T-14, 3.
    let mut site = site().await?;
    site.clock.reach(1.0).await;
    let (c2, _) = site.held().await;
    site.clock.reach(2.0).await;
    c2.cut();
    site.clock.reach(10.9).await;
    assert_eq!(site.changes(), [], "nothing at 3 s");
    assert_eq!(site.b.snapshot().peers, 1);
    // The beat of the probe has a limit of its own, as any has.
    assert_eq!(site.change().await, (LinkState::Offline, Cause::AckTimeout));
    assert!(site.clock.is_at(11.0), "{:?}", site.clock);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn of_two_that_wait_for_one_app_exactly_one_is_bound() -> Outcome {
    // T-14, 4.
    let mut site = site().await?;
    site.clock.reach(1.0).await;
    let (mut c2, second) = site.held().await;
    site.clock.reach(1.5).await;
    let (mut c3, third) = site.held().await;
    assert_eq!(c3.registered(&third).await, Err("appId-in-use".to_owned()));
    assert!(site.clock.is_at(1.5), "{:?}", site.clock);
    assert!(c2.registered(&second).await.is_ok());
    assert!(site.clock.is_at(3.0), "{:?}", site.clock);
    assert_eq!(site.changes(), TAKEN_OVER);
    assert!(c2.is_answered().await);
    assert_eq!(site.b.links().len(), 1);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_old_connection_answers_who_waits_for_it_once() -> Outcome {
    // T-14, 5: at once.
    let mut site = site().await?;
    site.clock.reach(1.0).await;
    let (mut c2, register) = site.held().await;
    site.clock.reach(1.2).await;
    let c1 = std::mem::replace(&mut site.c1, site.net.hand("other", &site.b).await);
    c1.cut();
    c2.registered(&register).await?;
    assert!(site.clock.is_at(1.2), "{:?}", site.clock);
    assert_eq!(
        site.changes(),
        [
            (LinkState::Offline, Cause::Disconnected),
            (LinkState::Online, Cause::Registered)
        ]
    );
    site.clock.reach(60.0).await;
    assert_eq!(site.changes(), []);
    site.b.terminate_now();
    let again = c2.rest().await;
    assert!(
        again
            .iter()
            .all(|message| message.message_type() != MessageType::Response),
        "one answer: {again:?}"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_second_register_on_its_own_connection_changes_the_declarations_alone() -> Outcome {
    // T-14, 6: two signals wait for their ACK meanwhile, and are not sent again.
    let mut site = site().await?;
    let sends = [site.send(1), site.send(2)];
    let mut waiting = Vec::new();
    while waiting.len() < 2 {
        let signal = |message: &nacp::proto::Message| {
            matches!(message.body, Body::Signal { .. }).then(|| message.id.clone())
        };
        waiting.push(site.c1.hear_that(signal).await);
    }
    site.c1.info.decl.abilities = vec![nacp::Entry {
        name: "new".into(),
        description: "new".into(),
    }];
    let register = fresh_id();
    let again = site.c1.register_message(register.clone(), &[]);
    site.c1.say([again]);
    let acked = site.c1.hear().await;
    assert_eq!(acked.body, ack_of(&register));
    let Body::Response(answer) = site.c1.hear().await.body else {
        panic!("no answer");
    };
    assert_eq!((answer.parent_id, answer.outcome), (register, Answer::Ok));
    assert_eq!(site.changes(), []);
    let link = site.b.link(&app("a")).unwrap();
    assert_eq!((link.decl, link.replayed), (site.c1.info.decl.clone(), 0));
    for id in waiting {
        site.c1.ack(id);
    }
    for sent in sends {
        within("the acknowledgement", sent).await??;
    }
    Ok(())
}

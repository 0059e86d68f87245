//! Everybody who can wait for a node, at once, and each way in which that ends (T-26).

use std::collections::BTreeMap;
use std::future::Future;
use std::time::Duration;

use nacp::link::Cause;
use nacp::proto::{Body, MessageId, Response, Session};
use nacp::{
    AbilityContext, ConnectError, DialError, HandlerError, LinkState, NApp, NotifyError,
    OverflowPolicy, Payload, Reconnect, RequestError, SendError, Signal, StreamEnd, SubscribeError,
    Undelivered,
};
use tokio::task::JoinHandle;

use crate::hand::{Hand, id};
use crate::support::{Clock, Net, Outcome, app, sees, target, under_way, until, within};
use crate::wire::{VOID, Wire};

/// Why a wait has ended; `None` if it went well.
trait Reason {
    fn reason(self) -> Option<Undelivered>;
}

macro_rules! undelivered {
    ($($error:ident),+) => {
        $(
            impl<T: std::fmt::Debug> Reason for Result<T, $error> {
                fn reason(self) -> Option<Undelivered> {
                    match self {
                        Ok(_) => None,
                        Err($error::Undelivered(reason)) => Some(reason),
                        Err(error) => panic!("{error:?}"),
                    }
                }
            }
        )+
    };
}

undelivered!(SendError, RequestError, SubscribeError, NotifyError);

impl Reason for Result<(), Undelivered> {
    fn reason(self) -> Option<Undelivered> {
        self.err()
    }
}

impl Reason for Result<nacp::AppId, ConnectError> {
    fn reason(self) -> Option<Undelivered> {
        match self {
            Err(ConnectError::Handshake(DialError::Terminated)) => Some(Undelivered::Terminated),
            other => panic!("{other:?}"),
        }
    }
}

/// Whose waiters they are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Of {
    B,
    C,
    D,
    Nobody,
}

type Waiter = (&'static str, JoinHandle<Option<Undelivered>>);

struct Site {
    a: NApp,
    /// Of the link to `c`, which is offline.
    of_c: Session,
    /// `b`, which is online and answers nothing any more, and whoever else was made by hand.
    hands: Vec<Hand>,
    d: NApp,
    net: Net,
    waiters: BTreeMap<Of, Vec<Waiter>>,
}

impl Site {
    fn wait<F>(&mut self, of: Of, what: &'static str, future: F)
    where
        F: Future<Output: Reason> + Send + 'static,
    {
        let waiting = under_way(async move { future.await.reason() });
        self.waiters.entry(of).or_default().push((what, waiting));
    }

    /// The waiters of one app settle with this reason, and nobody else does.
    async fn only(&mut self, of: Of, reason: Undelivered) {
        for (what, waiting) in self.waiters.remove(&of).unwrap() {
            assert_eq!(within(what, waiting).await.unwrap(), Some(reason), "{what}");
        }
        self.nobody_else();
    }

    /// Those who are left wait on.
    fn nobody_else(&self) {
        for (of, waiters) in &self.waiters {
            for (what, waiting) in waiters {
                assert!(!waiting.is_finished(), "{what} of {of:?}");
            }
        }
    }

    async fn all(&mut self, reason: Undelivered) {
        for (what, waiting) in std::mem::take(&mut self.waiters).into_values().flatten() {
            assert_eq!(within(what, waiting).await.unwrap(), Some(reason), "{what}");
        }
    }
}

fn signal(
    a: &NApp,
    to: &'static str,
    len: usize,
) -> impl Future<Output = Result<(), SendError>> + Send + 'static {
    let a = a.to_unowned();
    let signal = Signal::Normal(Payload::byte_string(vec![7; len]));
    async move { a.signal(to, id("event"), signal).await }
}

/// Hears reliable messages and acknowledges them.
async fn acknowledge(hand: &mut Hand, count: usize) -> Vec<MessageId> {
    let mut ids = Vec::new();
    while ids.len() < count {
        let message = hand.hear().await;
        if message.message_type().is_reliable() {
            hand.ack(message.id.clone());
            ids.push(message.id);
        }
    }
    ids
}

/// What T-26 sets up.
async fn site() -> Result<Site, Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let d = net.server("d").heartbeat_interval(None).start().await?;
    let a = net
        .server("a")
        .heartbeat_interval(None)
        .ack_timeout(Duration::MAX)
        .response_timeout(Duration::MAX)
        .ability("terminate", async |ctx: AbilityContext, (): ()| {
            ctx.napp().terminate().await;
            Ok::<_, HandlerError>(())
        })
        .start()
        .await?;
    a.connect(target(&d)).await?;
    let (mut b, mut c) = (net.hand("b", &a).await, net.hand("c", &a).await);
    b.register(&[]).await?;
    let of_c = c.register(&[]).await?.session.unwrap();

    // c listens, and is offline.
    let subscribe = c.tell(Body::Subscribe {
        target_sub_name: "n".into(),
    });
    c.answer_to(&subscribe).await;
    assert!(c.is_answered().await);
    c.cut();
    sees(&a, "c", LinkState::Offline).await;

    // A reconnect that waits: e was dialled and is gone.
    let mut hands = net.hands("e").await;
    let patient = Reconnect::default()
        .shortest(Duration::from_secs(20))
        .longest(Duration::from_secs(60));
    let connecting = under_way(a.connect(hands.target()).reconnect(patient).into_future());
    let mut e = hands.accept().await;
    e.admit(false, 1).await;
    connecting.await??;
    e.cut();
    sees(&a, "e", LinkState::Offline).await;
    drop(hands);

    let mut site = Site {
        net,
        a,
        of_c,
        hands: Vec::new(),
        d,
        waiters: BTreeMap::new(),
    };

    // An unsubscribe needs a subscription.
    let napp = site.a.to_unowned();
    let subscribing = under_way(async move { napp.subscribe("b", "x").await });
    let subscribed = acknowledge(&mut b, 1).await.remove(0);
    b.answer(
        &subscribed,
        Response::ok(subscribed.clone(), Payload::empty()),
    );
    let subscription = subscribing.await??;

    // Acknowledged and not answered.
    for _ in 0..5 {
        let request = site.a.request::<()>("b", "x", &());
        site.wait(Of::B, "a request", request);
    }
    for _ in 0..2 {
        let mut job = site.a.run("b", "y", &()).await?;
        site.wait(Of::B, "an event", async move {
            assert_eq!(job.next().await, None);
            job.response::<()>().await
        });
    }
    for _ in 0..3 {
        let napp = site.a.to_unowned();
        site.wait(Of::B, "a subscribe", async move {
            napp.subscribe("b", "x").await
        });
    }
    site.wait(Of::B, "an unsubscribe", subscription.unsubscribe());
    acknowledge(&mut b, 11).await;
    until("the ACKs", || {
        site.a.link(&app("b")).unwrap().ack_pending.count == 0
    })
    .await;

    // Accepted and not acknowledged, then submitted and not accepted.
    for _ in 0..10 {
        let signal = signal(&site.a, "b", 1);
        site.wait(Of::B, "an accepted signal", signal);
    }
    for _ in 0..10 {
        b.hear().await;
    }
    for _ in 0..5 {
        let signal = signal(&site.a, "b", 100 << 10);
        site.wait(Of::B, "a submitted signal", signal);
    }
    let link = site.a.link(&app("b")).unwrap();
    assert_eq!((link.ack_pending.count, link.submitted.count), (10, 5));

    for _ in 0..20 {
        let signal = signal(&site.a, "c", 1);
        site.wait(Of::C, "a queued signal", signal);
    }
    for n in 0..3 {
        let napp = site.a.to_unowned();
        site.wait(Of::C, "a queued notify", async move {
            napp.notify("c", "n", &n).await
        });
    }
    assert_eq!(site.a.link(&app("c")).unwrap().backlog.count, 23);

    for _ in 0..4 {
        let mut stream = site.a.subscribe("d", "z").await?;
        site.wait(Of::D, "a stream", async move {
            assert_eq!(stream.next().await, None);
            match stream.ended() {
                Some(StreamEnd::Undelivered(reason)) => Err(reason),
                other => panic!("{other:?}"),
            }
        });
    }

    let dial = site.a.connect(format!("v@{VOID}")).into_future();
    site.wait(Of::Nobody, "a dial", dial);
    let mut hands = site.net.hands("silent").await;
    let register = site.a.connect(hands.target()).into_future();
    site.wait(Of::Nobody, "a register", register);
    site.hands.extend([b, hands.accept().await]);
    for _ in 0..4 {
        let napp = site.a.to_unowned();
        site.wait(Of::Nobody, "a wish", async move {
            napp.wait_online(&app("nobody")).await
        });
    }
    Ok(site)
}

/// Ends the node so: all waiters settle, everything that is called later fails at once.
async fn ends<F: Future<Output = ()>>(
    end: impl FnOnce(NApp) -> F,
    seconds: f64,
    at_d: Cause,
) -> Outcome {
    let mut site = site().await?;
    let mut watch = site.d.watch_links();
    let unowned = site.a.to_unowned();
    let a = std::mem::replace(&mut site.a, unowned);
    let clock = Clock::start();
    // b and the silent one neither read nor answer.
    end(a).await;
    assert!(clock.is_at(seconds), "{clock:?}");
    site.all(Undelivered::Terminated).await;
    assert!(clock.is_at(seconds), "nobody waits any longer: {clock:?}");
    assert_eq!(
        site.a.snapshot(),
        nacp::NodeSnapshot::default(),
        "nothing is left"
    );
    assert_eq!(watch.next().await.unwrap().cause, at_d);
    // T-26, 3; every other call is tried in `ending`.
    let late = site.a.request::<()>("d", "x", &()).await;
    assert_eq!(late.reason(), Some(Undelivered::Terminated));
    let again = site.net.server("a").start().await?;
    within("its address", again.connect(target(&site.d)).into_future()).await?;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn terminate_settles_every_waiter_within_the_shared_limit() -> Outcome {
    // T-26, 1: b never answers; d is told good-bye at once.
    ends(
        async |a: NApp| a.terminate().await,
        10.0,
        Cause::Unregistered,
    )
    .await
}

#[tokio::test(start_paused = true)]
async fn terminating_again_and_at_once_settles_every_waiter_once() -> Outcome {
    // T-26, 1.
    let twice = async |a: NApp| {
        tokio::join!(a.terminate(), a.terminate());
        a.terminate().await;
    };
    ends(twice, 10.0, Cause::Unregistered).await
}

#[tokio::test(start_paused = true)]
async fn the_last_handle_that_is_dropped_settles_every_waiter_at_once() -> Outcome {
    // T-26, 1.
    ends(async |a: NApp| drop(a), 0.0, Cause::Disconnected).await
}

#[tokio::test(start_paused = true)]
async fn terminate_from_inside_a_handler_settles_every_waiter() -> Outcome {
    // T-26, 1: d asks for it.
    let mut site = site().await?;
    let clock = Clock::start();
    let answer = site.d.request::<()>("a", "terminate", &()).await;
    assert_eq!(answer.reason(), Some(Undelivered::PeerGone));
    site.all(Undelivered::Terminated).await;
    assert!(clock.is_at(10.0), "{clock:?}");
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn the_end_of_one_app_settles_its_waiters_and_no_others() -> Outcome {
    // T-26, 2: the grace of c ends; c says good-bye; a says good-bye to b.
    let mut first = site().await?;
    Clock::start().reach(120.5).await;
    first.only(Of::C, Undelivered::PeerGone).await;

    let mut second = site().await?;
    let mut c = second.net.hand("c", &second.a).await;
    // In one write: what is replayed between the two is not acknowledged.
    c.say([
        c.register_message(id("register"), &[second.of_c]),
        c.message(id("bye"), Body::Unregister),
    ]);
    c.rest().await;
    for (what, waiting) in second.waiters.remove(&Of::C).unwrap() {
        let reason = within(what, waiting).await?;
        // A notify is through when it is accepted.
        let is_notify = what == "a queued notify" && reason.is_none();
        assert!(
            is_notify || reason == Some(Undelivered::PeerGone),
            "{what}: {reason:?}"
        );
    }
    second.nobody_else();

    let mut third = site().await?;
    third.a.disconnect("b").await?;
    third.only(Of::B, Undelivered::PeerGone).await;
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn sends_that_wait_for_room_settle_with_the_node() -> Outcome {
    // T-26, 1: two of them, under `Wait`.
    let net = Net::Wire(Wire::default());
    let a = net
        .server("a")
        .heartbeat_interval(None)
        .queue_max_count(4)
        .overflow(OverflowPolicy::Wait)
        .start()
        .await?;
    let mut b = net.hand("b", &a).await;
    b.register(&[]).await?;
    assert!(b.is_answered().await);
    let sends: Vec<_> = (0..6).map(|_| under_way(signal(&a, "b", 1))).collect();
    assert_eq!(a.snapshot().blocked, 2);
    a.terminate_now();
    for send in sends {
        assert_eq!(send.await?.reason(), Some(Undelivered::Terminated));
    }
    Ok(())
}

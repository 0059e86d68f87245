//! What goes through a gateway is kept, ordered and bounded like a node's own (T-30). Seconds are
//! virtual; `a` and `b` are linked with `g` alone.

use std::time::Duration;

use futures_util::FutureExt;
use nacp::link::Reason;
use nacp::proto::{Body, MessageType};
use nacp::{
    Builder, HandlerError, LinkState, NApp, Reconnect, Report, RequestError, SendError, Undelivered,
};

use crate::faults::{Flow, Way};
use crate::hand::{fresh_id, signal_to};
use crate::support::{
    Clock, Heard, Line, Net, Outcome, app, hearing, reported, sees, send_number, start_hearing,
    target, under_way, within,
};
use crate::wire::Wire;

fn quiet(builder: Builder) -> Builder {
    builder.heartbeat_interval(None).reconnect(Reconnect::off())
}

struct Site {
    net: Net,
    g: NApp,
    a: NApp,
    b: NApp,
    /// From `a` to `g`, and from `b` to `g`.
    of_a: Line,
    of_b: Line,
    heard: Heard,
    runs: Heard,
}

async fn site(
    of_a: impl FnOnce(Builder) -> Builder,
    of_g: impl FnOnce(Builder) -> Builder,
) -> Result<Site, Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let (heard, runs) = (Heard::default(), Heard::default());
    let ran = runs.clone();
    let g = of_g(quiet(net.server("g"))).gateway().start().await?;
    let b = quiet(hearing(net.node("b"), &heard))
        .ability("count", move |n: u32| {
            ran.push(n);
            async move { Ok::<_, HandlerError>(n) }
        })
        .start()
        .await?;
    let a = of_a(quiet(net.node("a"))).start().await?;
    let (line_a, line_b) = (net.line_to(&g).await, net.line_to(&g).await);
    a.connect(line_a.target()).await?;
    b.connect(line_b.target()).await?;
    sees(&g, "b", LinkState::Online).await;
    Ok(Site {
        net,
        g,
        a,
        b,
        of_a: line_a,
        of_b: line_b,
        heard,
        runs,
    })
}

#[tokio::test(start_paused = true)]
async fn what_a_gateway_had_handed_over_before_a_cut_is_handled_once_all_the_same() -> Outcome {
    // T-30, 1: once what it handed over is lost, once the ACKs for it are.
    for lost in [Way::Down, Way::Up] {
        let Site {
            g,
            a,
            b,
            of_b,
            heard,
            ..
        } = &site(|a| a, |g| g).await?;
        let job = start_hearing(a, "b").await;
        let mut watch = a.watch_links();
        let clock = Clock::start();
        let mut sent: Vec<_> = (1..=2).map(|n| send_number(a, "b", &job, n)).collect();
        for sent in &mut sent {
            sent.await??;
        }
        match lost {
            Way::Down => of_b.down(Flow::Hold),
            Way::Up => of_b.up(Flow::Hold),
        }
        let mut sent: Vec<_> = (3..=6).map(|n| send_number(a, "b", &job, n)).collect();
        clock.reach(1.0).await;
        let link = g.link(&app("b")).unwrap();
        assert_eq!(
            (link.backlog.count, link.submitted.count),
            (0, 0),
            "accepted"
        );
        of_b.cut();
        of_b.both(Flow::Pass);
        clock.reach(1.1).await;
        sent.extend((7..=10).map(|n| send_number(a, "b", &job, n)));
        clock.reach(2.0).await;
        assert_eq!(
            g.link(&app("b")).unwrap().backlog.count,
            4,
            "s7 to s10 wait"
        );
        clock.reach(5.0).await;
        b.connect(of_b.target()).await?;
        for sent in sent {
            sent.await??;
        }
        assert!(clock.is_at(10.0), "s3 to s6 went out again: {clock:?}");
        let mut all = heard.all();
        if lost == Way::Up {
            assert_eq!(all, (1..=10).collect::<Vec<_>>());
        }
        all.sort_unstable();
        assert_eq!(all, (1..=10).collect::<Vec<_>>(), "once each");
        assert_eq!(watch.next().now_or_never(), None, "g stays online for a");
        assert_eq!(a.totals().count_of(Reason::RelayRetry), 4);
    }
    Ok(())
}

/// Lets `b` be away from the start, `a` ask at 1 s, and `b` come back then. Returns the answer, and
/// when `a` had sent its request.
async fn ask_while_away(
    site: &Site,
    back: f64,
) -> Result<(Result<u32, RequestError>, Vec<u128>, Clock), Box<dyn std::error::Error>> {
    let Site { g, a, b, of_b, .. } = site;
    let clock = Clock::start();
    of_b.cut();
    sees(g, "b", LinkState::Offline).await;
    sees(b, "g", LinkState::Offline).await;
    let times = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let noted = std::sync::Arc::clone(&times);
    a.listen("nacp:outbound:request", move |event| {
        if let Some(Report::Outbound { subject, .. }) = event.payload().report()
            && matches!(&subject.body, Some(Body::Request { target, .. })
                if target.as_deref() == Some("count"))
        {
            noted.lock().unwrap().push(clock.ms());
        }
    })?;
    clock.reach(1.0).await;
    let asked = under_way(a.request::<u32>("b", "count", &1));
    clock.reach(back).await;
    b.connect(of_b.target()).await?;
    let answer = asked.await?;
    clock.reach(60.0).await;
    let times = times.lock().unwrap().clone();
    Ok((answer, times, clock))
}

#[tokio::test(start_paused = true)]
async fn a_request_to_an_app_that_is_back_in_time_is_answered_once() -> Outcome {
    // T-30, 2, first.
    let site = site(|a| a, |g| g).await?;
    let (answer, sent, _) = ask_while_away(&site, 25.0).await?;
    assert_eq!(answer?, 1);
    assert_eq!(sent, [1000, 11_000, 21_000]);
    assert_eq!(site.runs.all(), [1]);
    let totals = site.a.totals();
    assert_eq!(
        totals.received_of(Some(MessageType::Response)),
        2,
        "the register's and this"
    );
    assert_eq!(totals.count_of(Reason::HasNoConsumer), 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_request_that_was_given_up_may_still_be_handled_and_its_answer_harms_nothing() -> Outcome
{
    // T-30, 2, second: told at 31 s, handled at 40 s from the gateway's queue.
    let site = site(|a| a, |g| g).await?;
    let mut warned = site.a.events();
    let told = Clock::start();
    let asking = ask_while_away(&site, 40.0);
    let warning = async {
        let warning = "nacp:internal:ack:warning";
        loop {
            let event = warned.next().await.unwrap();
            if &*event.name == warning
                && crate::support::reason_of(&event).as_deref() == Some("unroutable-relay")
            {
                return told.ms();
            }
        }
    };
    let (asked, told) = tokio::join!(asking, warning);
    let (answer, sent, _) = asked?;
    assert_eq!(
        answer,
        Err(RequestError::Undelivered(Undelivered::UnroutableRelay))
    );
    assert_eq!(told, 31_000);
    assert_eq!(sent, [1000, 11_000, 21_000]);
    assert_eq!(site.runs.all(), [1], "undelivered is not never handled");
    assert_eq!(
        site.a.totals().count_of(Reason::HasNoConsumer),
        2,
        "the late ACK and answer"
    );
    assert_eq!(site.a.link(&app("g")).unwrap().state, LinkState::Online);
    assert_eq!(site.a.snapshot().calls, 0);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_waits_for_the_gateway_is_replayed_in_order() -> Outcome {
    // T-30, 3: the connection to the gateway is cut and back.
    let Site { a, of_a, heard, .. } = &site(|a| a, |g| g).await?;
    let job = start_hearing(a, "b").await;
    of_a.down(Flow::Hold);
    let mut sent: Vec<_> = (0..10).map(|n| send_number(a, "b", &job, n)).collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    of_a.cut();
    of_a.both(Flow::Pass);
    sees(a, "g", LinkState::Offline).await;
    sent.extend((10..20).map(|n| send_number(a, "b", &job, n)));
    // The clock of a retry stands while the gateway is away.
    tokio::time::sleep(Duration::from_secs(60)).await;
    a.connect(of_a.target()).await?;
    for sent in sent {
        sent.await??;
    }
    crate::support::until("all signals", || heard.len() >= 20).await;
    assert_eq!(heard.all(), (0..20).collect::<Vec<_>>());
    assert_eq!(
        a.totals().count_of(Reason::RelayRetry),
        0,
        "a replay is no try"
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn what_a_full_gateway_drops_is_sent_again() -> Outcome {
    // T-30, 3: the queue of `g` for `b` holds four.
    let Site {
        g,
        a,
        b,
        of_b,
        heard,
        ..
    } = &site(|a| a, |g| g.queue_max_count(4)).await?;
    let job = start_hearing(a, "b").await;
    let clock = Clock::start();
    of_b.cut();
    sees(g, "b", LinkState::Offline).await;
    sees(b, "g", LinkState::Offline).await;
    let sent: Vec<_> = (0..10).map(|n| send_number(a, "b", &job, n)).collect();
    clock.reach(1.0).await;
    assert_eq!(g.link(&app("b")).unwrap().backlog.count, 4);
    clock.reach(2.0).await;
    b.connect(of_b.target()).await?;
    for sent in sent {
        sent.await??;
    }
    assert!(clock.is_at(10.0), "at the second try: {clock:?}");
    let mut all = heard.all();
    all.sort_unstable();
    assert_eq!(all, (0..10).collect::<Vec<_>>());
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn apps_find_each_other_again_when_their_gateway_restarts() -> Outcome {
    // T-30, 3: `g` ends without a word and starts anew.
    let Site {
        net,
        g,
        a,
        b,
        of_a,
        of_b,
        heard,
        ..
    } = site(|a| a, |g| g).await?;
    let job = start_hearing(&a, "b").await;
    g.terminate_now();
    for node in [&a, &b] {
        sees(node, "g", LinkState::Offline).await;
    }
    let sent: Vec<_> = (0..10).map(|n| send_number(&a, "b", &job, n)).collect();
    let g = quiet(net.server("g")).gateway().start().await?;
    b.connect(of_b.target()).await?;
    a.connect(of_a.target()).await?;
    for sent in sent {
        sent.await??;
    }
    assert_eq!(
        heard.all(),
        (0..10).collect::<Vec<_>>(),
        "the apps behind it are the same"
    );
    drop(g);
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_messages_for_an_absent_app_stay_within_the_caps_and_disturb_nobody() -> Outcome
{
    // T-30, 5.
    const MESSAGES: u32 = 10_000;
    let Site {
        net,
        g,
        a,
        b,
        of_b,
        heard,
        ..
    } = &site(|a| a, |g| g).await?;
    let c = quiet(net.node("c")).start().await?;
    let d = quiet(net.node("d"))
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    c.connect(target(g)).await?;
    d.connect(target(g)).await?;
    let job = start_hearing(a, "b").await;
    of_b.cut();
    sees(g, "b", LinkState::Offline).await;
    sees(b, "g", LinkState::Offline).await;
    let clock = Clock::start();
    let mut sent = Vec::new();
    let mut largest = 0;
    for n in 0..MESSAGES {
        sent.push(send_number(a, "b", &job, n));
        if n % 100 == 0 {
            let before = clock.ms();
            assert_eq!(c.request::<u32>("d", "echo", &n).await?, n);
            assert!(clock.ms() <= before + 10, "c and d notice nothing");
            let (at_g, at_a) = (g.snapshot(), a.snapshot());
            largest = largest.max(at_g.backlog.count).max(at_a.backlog.count);
            assert!(at_a.ack_pending.count <= 1024, "{at_a:?}");
        }
    }
    assert!((1000..=1024).contains(&largest), "{largest}");
    clock.reach(5.0).await;
    b.connect(of_b.target()).await?;
    let mut delivered = Vec::new();
    for (n, sent) in sent.into_iter().enumerate() {
        match within("a settlement", sent).await? {
            Ok(()) => delivered.push(n as u32),
            Err(SendError::Undelivered(reason)) => assert!(
                matches!(reason, Undelivered::Evicted | Undelivered::UnroutableRelay),
                "{reason:?}"
            ),
            Err(error) => return Err(error.into()),
        }
    }
    let mut all = heard.all();
    all.sort_unstable();
    let handled = all.len();
    all.dedup();
    assert_eq!(all.len(), handled, "once each");
    assert!(delivered.iter().all(|n| all.binary_search(n).is_ok()));
    assert!(delivered.len() >= 1024, "{}", delivered.len());
    let (at_g, at_a) = (g.snapshot(), a.snapshot());
    assert_eq!(
        (
            at_g.backlog.count,
            at_a.backlog.count,
            at_a.ack_pending.count
        ),
        (0, 0, 0)
    );
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_message_never_goes_back_to_where_it_came_from() -> Outcome {
    // T-30, 6.
    let Site { net, g, .. } = &site(|a| a, |g| g).await?;
    let mut events = g.events();
    let mut c = net.hand("c", g).await;
    c.register(&[]).await?;
    c.node = app("c");
    let event = fresh_id();
    let sent = c.tell(signal_to(&event, 1));
    reported(&mut events, "nacp:internal:gateway:error", "dropped").await;
    c.node = app("g");
    assert!(c.is_answered().await);
    g.terminate_now();
    assert!(
        c.rest().await.iter().all(|message| message.id != sent),
        "it did not come back"
    );
    let mut others = 0;
    while let Some(Some(event)) = events.next().now_or_never() {
        others += usize::from(&*event.name == "nacp:internal:gateway:error");
    }
    assert_eq!(others, 0, "one error");
    Ok(())
}

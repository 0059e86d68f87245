//! Process items around the final answer, as the wire and broken lines have them (T-28).

use std::sync::Arc;
use std::time::Duration;

use nacp::link::Reason;
use nacp::proto::{Body, MessageId, MessageType, Response};
use nacp::{
    EventContext, HandlerError, LinkState, NApp, Payload, Reconnect, RequestKind, SendError,
    Undelivered,
};
use tokio::sync::Semaphore;

use crate::hand::{Hand, fresh_id};
use crate::support::{Line, Net, Outcome, app, reported, sees, target, until, within};
use crate::wire::Wire;

async fn count(ctx: EventContext, up_to: u64) -> Result<u64, HandlerError> {
    for n in 1..=up_to {
        ctx.process(&n).await?;
    }
    Ok(up_to)
}

/// A process item, as the wire has it.
fn item(request: &MessageId, seq: u64) -> Body {
    let name = format!("nacp:event:{}:process", request.to_smol_str());
    Body::Notify {
        parent_id: request.clone(),
        target_sub_name: name.as_str().into(),
        hit_sub_name: name.as_str().into(),
        payload: Payload::new(&(seq + 1)).unwrap(),
        seq: Some(seq),
    }
}

fn answer_after(request: &MessageId, items: u64) -> Response {
    Response {
        kind: Some(RequestKind::Event),
        seq: Some(items),
        ..Response::ok(request.clone(), Payload::new(&items).unwrap())
    }
}

/// A node, and the other side of its link by hand.
async fn by_hand(net: &Net) -> Result<(NApp, Hand), Box<dyn std::error::Error>> {
    let a = net.server("a").heartbeat_interval(None).start().await?;
    let mut b = net.hand("b", &a).await;
    b.register(&[]).await?;
    Ok((a, b))
}

over_lines! {
    async fn a_thousand_jobs_yield_every_item_before_their_answer(net: Net) -> Outcome {
        // T-28, 1: fifty at a time, in whatever order tasks run.
        let b = net.server("b").event("count", count).start().await?;
        let a = net.node("a").start().await?;
        a.connect(target(&b)).await?;
        for _ in 0..20 {
            let jobs = (0..50).map(|_| async {
                let mut job = a.run("b", "count", &100).await?;
                let answered = within("the answer", job.response::<u64>()).await?;
                let mut items = Vec::new();
                while let Some(item) = job.next().await {
                    items.push(item.decode::<u64>()?);
                }
                Ok::<_, Box<dyn std::error::Error>>((answered, items))
            });
            for job in futures_util::future::join_all(jobs).await {
                let (answered, items) = job?;
                assert_eq!((answered, items), (100, (1..=100).collect()));
            }
        }
        Ok(())
    }

    async fn an_item_after_the_answer_or_for_nothing_is_reported_and_the_peer_stays(net: Net) -> Outcome {
        // T-28, 2.
        let (a, mut b) = by_hand(&net).await?;
        let mut events = a.events();
        let mut job = a.run("b", "x", &()).await?;
        let request = job.id().unwrap().clone();
        b.hear_that(|message| (message.id == request).then_some(())).await;
        for seq in 0..100 {
            b.tell(item(&request, seq));
        }
        b.answer(&request, answer_after(&request, 100));
        b.tell(item(&request, 100));
        b.tell(item(&fresh_id(), 0));
        assert_eq!(within("the answer", job.response::<u64>()).await?, 100);
        for _ in 0..2 {
            reported(&mut events, "nacp:internal:notify:error", "has-no-consumer").await;
        }
        let mut items = Vec::new();
        while let Some(item) = job.next().await {
            items.push(item.decode::<u64>()?);
        }
        assert_eq!(items, (1..=100).collect::<Vec<_>>());
        assert!(b.is_answered().await);
        assert_eq!(a.links()[0].state, LinkState::Online);
        Ok(())
    }

    async fn items_of_a_job_that_nobody_holds_go_nowhere_and_nothing_is_said_for_it(net: Net) -> Outcome {
        // T-28, 4: once the stream alone is dropped, once the whole run.
        let (a, mut b) = by_hand(&net).await?;
        let (items, mut response) = a.run("b", "x", &()).await?.split();
        drop(items);
        let dropped = a.run("b", "y", &()).await?;
        let requests = [response.id().unwrap().clone(), dropped.id().unwrap().clone()];
        drop(dropped);
        for request in &requests {
            b.hear_that(|message| (message.id == *request).then_some(())).await;
            b.tell(item(request, 0));
            b.answer(request, answer_after(request, 1));
        }
        assert_eq!(within("the answer", response.response::<u64>()).await?, 1);
        assert!(b.is_answered().await);
        for said in [MessageType::Signal, MessageType::Unsubscribe] {
            assert_eq!(a.totals().sent_of(Some(said)), 0, "neither cancel nor abort");
        }
        assert_eq!(a.snapshot().calls, 0);
        Ok(())
    }
}

#[tokio::test]
async fn a_million_items_that_nobody_reads_leave_the_newest_and_disturb_nobody() -> Outcome {
    // T-28, 3.
    const ITEMS: u64 = 1_000_000;
    let net = Net::Wire(Wire::default());
    let (a, mut b) = by_hand(&net).await?;
    let c = net
        .server("c")
        .ability("echo", async |n: u64| Ok::<_, HandlerError>(n))
        .start()
        .await?;
    a.connect(target(&c)).await?;
    // Listening to all would build a report for each.
    let (sender, mut overflowed) = tokio::sync::mpsc::channel(1);
    a.listen_once("napp:internal:notify:warning", move |event| {
        let _ = sender.try_send(event.payload().clone());
    })?;
    let mut job = a.run("b", "x", &()).await?;
    let request = job.id().unwrap().clone();
    b.hear_that(|message| (message.id == request).then_some(()))
        .await;
    let mut resident = Vec::new();
    for start in (0..ITEMS).step_by(10_000) {
        b.say((start..start + 10_000).map(|seq| b.message(fresh_id(), item(&request, seq))));
        // Requests both ways are served between them.
        assert!(b.is_answered().await);
        assert_eq!(
            within("another app", a.request::<u64>("c", "echo", &start)).await?,
            start
        );
        resident.push(crate::repeats::resident_bytes());
    }
    b.answer(&request, answer_after(&request, ITEMS));
    assert_eq!(within("the answer", job.response::<u64>()).await?, ITEMS);
    let (early, late) = (resident[10], resident[99]);
    assert!(late < early + (8 << 20), "{early} bytes, later {late}");
    let first = job.next().await.unwrap();
    assert_eq!(
        first.missed,
        Some(ITEMS - 1024),
        "the newest 1024 are there"
    );
    assert_eq!(first.decode::<u64>()?, ITEMS - 1023);
    let mut left = 1;
    while job.next().await.is_some() {
        left += 1;
    }
    assert_eq!(left, 1024);
    #[derive(serde::Deserialize)]
    struct Overflow {
        reason: String,
        dropped: u64,
    }
    let overflow: Overflow = within("the report", overflowed.recv())
        .await
        .unwrap()
        .decode()?;
    assert_eq!(
        (overflow.reason.as_str(), overflow.dropped > 0),
        ("stream-overflow", true)
    );
    Ok(())
}

/// An event of a hundred items, which stops behind the 50th until it may go on, and sends ten at
/// once then.
async fn stepping(
    queue: usize,
) -> Result<(NApp, NApp, Line, Arc<Semaphore>, Arc<Semaphore>), Box<dyn std::error::Error>> {
    let net = Net::Wire(Wire::default());
    let (go, there) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let (may_go, is_there) = (Arc::clone(&go), Arc::clone(&there));
    let b = net
        .server("b")
        .queue_max_count(queue)
        .heartbeat_interval(None)
        .event("steps", move |ctx: EventContext, (): ()| {
            let (go, there) = (Arc::clone(&may_go), Arc::clone(&is_there));
            async move {
                for n in 1..=50 {
                    ctx.process(&n).await?;
                }
                go.acquire().await?.forget();
                let while_away: Vec<_> = (51..=60)
                    .map(|n| {
                        let ctx = ctx.clone();
                        crate::support::under_way(async move { ctx.process(&n).await })
                    })
                    .collect();
                there.add_permits(1);
                let mut refused = 0u64;
                for sent in while_away {
                    match sent.await? {
                        Ok(()) => {}
                        Err(SendError::Undelivered(Undelivered::Refused)) => refused += 1,
                        Err(error) => return Err(error.into()),
                    }
                }
                for n in 61..=100 {
                    ctx.process(&n).await?;
                }
                Ok::<_, HandlerError>(refused)
            }
        })
        .start()
        .await?;
    let line = net.line_to(&b).await;
    let a = net
        .node("a")
        .heartbeat_interval(None)
        .reconnect(Reconnect::off())
        .start()
        .await?;
    a.connect(line.target()).await?;
    Ok((a, b, line, go, there))
}

#[tokio::test(start_paused = true)]
async fn items_wait_for_an_app_that_is_away_and_come_in_order() -> Outcome {
    // T-28, 5: offline at the 50th, back at the 60th; once all fit the backlog, once four do.
    for (queue, missing) in [(1024, 0), (4, 6)] {
        let (a, b, line, go, there) = stepping(queue).await?;
        let mut job = a.run("b", "steps", &()).await?;
        let mut items = Vec::new();
        while items.len() < 50 {
            let item = within("an item", job.next()).await.ok_or("it has ended")?;
            items.push(item.decode::<u64>()?);
        }
        until("the acknowledgement", || {
            a.snapshot().ack_pending.count == 0
        })
        .await;
        line.cut();
        sees(&a, "b", LinkState::Offline).await;
        sees(&b, "a", LinkState::Offline).await;
        go.add_permits(1);
        there.acquire().await?.forget();
        assert_eq!(
            b.link(&app("a")).unwrap().backlog.count,
            (10 - missing) as usize
        );
        tokio::time::sleep(Duration::from_secs(10)).await;
        a.connect(line.target()).await?;
        assert_eq!(job.response::<u64>().await?, missing, "refused");
        let mut missed = 0;
        while let Some(item) = job.next().await {
            missed += item.missed.ok_or("it counts")?;
            items.push(item.decode::<u64>()?);
        }
        let kept = (1..=60 - missing).chain(61..=100);
        assert_eq!(items, kept.collect::<Vec<_>>(), "missing, never reordered");
        assert_eq!((missed, job.missed()), (missing, Some(missing)));
        assert_eq!(b.totals().count_of(Reason::NotifyDropped), missing);
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_the_reason_of_its_link_or_node_once() -> Outcome {
    // T-28, 6: dropped in the middle by either side, or ended with the node.
    let gone = Undelivered::PeerGone;
    for (how, reason) in [(0, gone), (1, gone), (2, Undelivered::Terminated)] {
        let (a, b, _line, _go, _there) = stepping(1024).await?;
        let mut job = a.run("b", "steps", &()).await?;
        for _ in 0..50 {
            within("an item", job.next()).await.ok_or("it has ended")?;
        }
        match how {
            0 => a.disconnect("b").await?,
            1 => b.disconnect("a").await?,
            _ => a.terminate().await,
        }
        assert_eq!(within("the end", job.next()).await, None);
        let error = job.response::<u64>().await.unwrap_err();
        assert_eq!(error, nacp::RequestError::Undelivered(reason));
        let again = job.response::<u64>().await.unwrap_err();
        assert_eq!(
            again,
            nacp::RequestError::Undelivered(Undelivered::Discarded)
        );
        until("the handler", || b.snapshot().running == 0).await;
    }
    Ok(())
}

//! Events: process items, signals, answers (T-28).

use std::time::Duration;

use nacp::{
    EventContext, HandlerError, Interrupted, LinkState, Payload, RequestError, SendError, Signal,
    Undelivered,
};

use crate::support::{Net, Outcome, reported, sees, target, within};

/// Counts up to its argument, item by item, and answers with the sum.
async fn count(ctx: EventContext, up_to: u64) -> Result<u64, HandlerError> {
    for n in 1..=up_to {
        ctx.pause_point().await?;
        ctx.process(&n).await?;
    }
    Ok((1..=up_to).sum())
}

over_both! {
    async fn a_job_yields_every_item_in_order_and_then_its_answer(net: Net) -> Outcome {
        let server = net.server("server").event("count", count).start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "count", &100).await?;
        let mut items = Vec::new();
        while let Some(item) = within("an item", job.next()).await {
            assert_eq!(item.missed, Some(0));
            items.push(item.decode::<u64>()?);
        }
        assert_eq!(items, (1..=100).collect::<Vec<_>>());
        assert_eq!(job.response::<u64>().await?, 5050);
        assert_eq!(job.missed(), Some(0));
        Ok(())
    }

    async fn a_failed_event_yields_what_it_sent_before(net: Net) -> Outcome {
        let server = net
            .server("server")
            .event("fail", async |ctx: EventContext, (): ()| {
                ctx.process("before").await?;
                Err::<(), _>(HandlerError::failed("broke"))
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "fail", &()).await?;
        let error = within("the answer", job.response::<()>()).await.unwrap_err();
        assert_eq!(error.remote_error().as_deref(), Some("broke"));
        assert_eq!(job.next().await.unwrap().decode::<String>()?, "before");
        assert_eq!(job.next().await, None);
        Ok(())
    }

    async fn signals_reach_a_running_event(net: Net) -> Outcome {
        let server = net
            .server("server")
            .event("sum", async |ctx: EventContext, (): ()| {
                ctx.process("ready").await?;
                let mut sum = 0;
                while let Some(signal) = ctx.next_signal().await {
                    match signal {
                        Signal::Normal(payload) => sum += payload.decode::<u64>()?,
                        Signal::Pause => break,
                        Signal::Resume | Signal::Abort => sum += 1000,
                    }
                }
                Ok::<_, HandlerError>(sum)
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "sum", &()).await?;
        job.next().await.unwrap();
        for n in 1..=10 {
            within("an acknowledgement", job.signal(&n)).await?;
        }
        job.pause().await?;
        assert_eq!(within("the sum", job.response::<u64>()).await?, 55);
        // An event that has ended takes signals all the same: nobody is there to hear them.
        job.signal(&7).await?;
        Ok(())
    }

    async fn a_paused_event_waits_until_it_is_resumed(net: Net) -> Outcome {
        let server = net
            .server("server")
            .event("steps", async |ctx: EventContext, (): ()| {
                ctx.process("ready").await?;
                let paused = ctx.next_signal().await;
                assert_eq!(paused, Some(Signal::Pause));
                ctx.process("paused").await?;
                ctx.pause_point().await?;
                Ok::<_, HandlerError>("resumed")
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "steps", &()).await?;
        job.next().await.unwrap();
        job.pause().await?;
        assert_eq!(within("an item", job.next()).await.unwrap().decode::<String>()?, "paused");
        job.resume().await?;
        assert_eq!(within("the answer", job.response::<String>()).await?, "resumed");
        Ok(())
    }

    async fn an_abort_interrupts_wherever_the_handler_waits(net: Net) -> Outcome {
        let server = net
            .server("server")
            .event("wait", async |ctx: EventContext, (): ()| {
                ctx.process("ready").await?;
                let interrupted = ctx.interrupted().await;
                assert_eq!(ctx.check(), Err(Interrupted::Aborted));
                assert_eq!(ctx.pause_point().await, Err(Interrupted::Aborted));
                Err::<(), HandlerError>(interrupted.into())
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "wait", &()).await?;
        job.next().await.unwrap();
        job.abort().await?;
        let error = within("the answer", job.response::<()>()).await.unwrap_err();
        assert_eq!(error.remote_error().as_deref(), Some("aborted by the caller"));
        Ok(())
    }

    async fn the_handler_of_a_dropped_requester_is_cancelled(net: Net) -> Outcome {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let server = net
            .server("server")
            .event("wait", move |ctx: EventContext, (): ()| {
                let sender = sender.clone();
                async move {
                    ctx.process("ready").await?;
                    let interrupted = ctx.interrupted().await;
                    // The test may be over.
                    let _ = sender.send((interrupted, ctx.process("late").await));
                    Ok::<_, HandlerError>(())
                }
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "wait", &()).await?;
        job.next().await.unwrap();
        client.disconnect("server").await?;
        let (interrupted, late) = within("the interruption", receiver.recv()).await.unwrap();
        assert_eq!(interrupted, Interrupted::Cancelled(Undelivered::PeerGone));
        assert_eq!(late, Err(SendError::Undelivered(Undelivered::PeerGone)));
        let error = job.response::<()>().await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::PeerGone));
        assert_eq!(job.next().await, None);
        Ok(())
    }

    async fn a_stream_that_nobody_reads_keeps_the_newest_and_tells_how_many_are_missing(net: Net) -> Outcome {
        let server = net.server("server").event("count", count).start().await?;
        let client = net.node("client").queue_max_count(16).start().await?;
        let mut events = client.events();
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "count", &5000).await?;
        assert_eq!(within("the answer", job.response::<u64>()).await?, 5000 * 5001 / 2);
        let first = job.next().await.unwrap();
        assert_eq!((first.missed, first.decode::<u64>()?), (Some(5000 - 16), 5000 - 15));
        let mut last = 0;
        while let Some(item) = job.next().await {
            last = item.decode::<u64>()?;
        }
        assert_eq!(last, 5000);
        reported(&mut events, "napp:internal:notify:warning", "stream-overflow").await;
        Ok(())
    }

    async fn a_dropped_stream_leaves_its_event_running(net: Net) -> Outcome {
        let server = net.server("server").event("count", count).start().await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let (items, mut response) = client.run("server", "count", &1000).await?.split();
        drop(items);
        assert_eq!(within("the answer", response.response::<u64>()).await?, 500_500);
        let job = client.run("server", "count", &10).await?;
        drop(job);
        // The event of the dropped job goes on, and the link with it.
        let mut job = client.run("server", "count", &10).await?;
        assert_eq!(within("the answer", job.response::<u64>()).await?, 55);
        Ok(())
    }

    async fn a_handler_answers_by_hand_and_goes_on(net: Net) -> Outcome {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        let server = net
            .server("server")
            .event("early", move |ctx: EventContext, (): ()| {
                let sender = sender.clone();
                async move {
                    let first = ctx.respond("early").await;
                    let second = ctx.respond("again").await;
                    let late = ctx.process("late").await;
                    let _ = sender.send((first, second, late));
                    Ok::<_, HandlerError>("at the end")
                }
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "early", &()).await?;
        assert_eq!(within("the answer", job.response::<String>()).await?, "early");
        let (first, second, late) = within("the handler", receiver.recv()).await.unwrap();
        let discarded = Err(SendError::Undelivered(Undelivered::Discarded));
        assert_eq!((first, second, late), (Ok(()), discarded.clone(), discarded));
        Ok(())
    }

    async fn events_of_a_request_are_told_on_the_bus_of_its_handler(net: Net) -> Outcome {
        let server = net.server("server").event("count", count).start().await?;
        let client = net.node("client").start().await?;
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        server.listen("nacp:event:*:*", move |event| {
            let _ = sender.send(event.name().to_owned());
        })?;
        client.connect(target(&server)).await?;
        let mut job = client.run("server", "count", &2).await?;
        within("the answer", job.response::<u64>()).await?;
        let id = job.id().unwrap().to_smol_str();
        let mut names = Vec::new();
        for _ in 0..3 {
            names.push(within("an event", receiver.recv()).await.unwrap());
        }
        let name = |what: &str| format!("nacp:event:{id}:{what}");
        assert_eq!(names, [name("process"), name("process"), name("response")]);
        Ok(())
    }

    async fn a_job_that_cannot_be_sent_ends_with_the_reason(net: Net) -> Outcome {
        let client = net.node("client").start().await?;
        let mut job = client.run("nobody", "x", &()).await?;
        assert_eq!(job.id(), None);
        assert_eq!(job.next().await, None);
        let error = job.response::<()>().await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::NoRoute));
        assert_eq!(job.pause().await, Err(SendError::Undelivered(Undelivered::NoRoute)));
        Ok(())
    }

    async fn a_job_has_its_own_limit(net: Net) -> Outcome {
        let server = net
            .server("server")
            .event_raw("never", async |ctx: EventContext, _: Payload| {
                Err(ctx.interrupted().await.into())
            })
            .start()
            .await?;
        let client = net.node("client").start().await?;
        client.connect(target(&server)).await?;
        let limit = Duration::from_millis(20);
        let mut job = client.run("server", "never", &()).timeout(limit).await?;
        let error = within("the limit", job.response::<()>()).await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::Timeout));
        sees(&client, "server", LinkState::Online).await;
        Ok(())
    }
}

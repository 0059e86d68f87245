//! The lifecycle of a link and of its messages from end to end, as the lifecycle document tells it.

use std::time::Duration;

use nacp::link::Cause;
use nacp::proto::MessageType;
use nacp::{
    ConnectError, DialError, HandlerError, LinkState, LinkWatch, Reconnect, RequestError,
    SendError, StreamEnd, Undelivered,
};

use crate::faults::Flow;
use crate::support::{
    Heard, Net, Outcome, app, hearing, sees, send_number, start_hearing, under_way, until, within,
};

const PEER_GONE: Undelivered = Undelivered::PeerGone;

async fn change(watch: &mut LinkWatch) -> (LinkState, Cause, Option<bool>) {
    let change = within("a change", watch.next()).await.unwrap();
    (change.state, change.cause, change.resumed)
}

over_lines! {
    async fn a_link_lives_from_its_register_to_the_end_of_its_node(net: Net) -> Outcome {
        let heard = Heard::default();
        let b = hearing(net.server("b"), &heard)
            .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
            .ability("never", async |ctx: nacp::AbilityContext, (): ()| {
                Err::<(), HandlerError>(ctx.interrupted().await.into())
            })
            .reconnect_grace(Duration::from_millis(300))
            .start()
            .await?;
        let line = net.line_to(&b).await;
        let a = net
            .node("a")
            .reconnect_grace(Duration::from_millis(300))
            .reconnect(Reconnect::off())
            .start()
            .await?;
        let (mut ours, mut theirs) = (a.watch_links(), b.watch_links());

        // Connect and register.
        a.connect(line.target()).await?;
        for watch in [&mut ours, &mut theirs] {
            let bound = (LinkState::Online, Cause::Registered, Some(false));
            assert_eq!(change(watch).await, bound);
        }

        // Introduce and heartbeat.
        let decl = a.introduce("b").await?;
        assert_eq!(decl.events[0].name, "hear");
        assert_eq!((&*decl.abilities[0].name, &*decl.abilities[1].name), ("echo", "never"));
        a.heartbeat("b").await?;
        until("the first beat", || a.link(&app("b")).unwrap().round_trip.is_some()).await;

        // What is handled and not acknowledged, what is not even sent, and calls that wait.
        let job = start_hearing(&a, "b").await;
        let mut stream = a.subscribe("b", "x").await?;
        until("quiet", || a.snapshot().ack_pending.count == 0).await;
        line.down(Flow::Hold);
        let unacknowledged: Vec<_> = (0..10).map(|n| send_number(&a, "b", &job, n)).collect();
        let never = under_way(a.request::<()>("b", "never", &()));
        until("the first ten", || heard.len() == 10).await;

        // Cut: offline on both sides, and everything waits in the backlog.
        line.cut();
        line.down(Flow::Pass);
        for watch in [&mut ours, &mut theirs] {
            let offline = (LinkState::Offline, Cause::Disconnected, None);
            assert_eq!(change(watch).await, offline);
        }
        let queued: Vec<_> = (10..20).map(|n| send_number(&a, "b", &job, n)).collect();
        let asked = under_way(a.request::<u32>("b", "echo", &7));
        let link = a.link(&app("b")).unwrap();
        assert_eq!((link.backlog.count, link.ack_pending.count, link.streams), (22, 0, 1));
        assert!(unacknowledged.iter().chain(&queued).all(|send| !send.is_finished()));

        // Back within the grace: replayed in order, and what was handled is not handled again.
        a.connect(line.target()).await?;
        for watch in [&mut ours, &mut theirs] {
            assert_eq!(change(watch).await, (LinkState::Online, Cause::Registered, Some(true)));
        }
        for send in unacknowledged.into_iter().chain(queued) {
            within("an acknowledgement", send).await??;
        }
        assert_eq!(within("the answer", asked).await??, 7);
        until("all signals", || heard.len() >= 20).await;
        assert_eq!(heard.all(), (0..20).collect::<Vec<_>>());
        assert_eq!(a.link(&app("b")).unwrap().replayed, 22, "each of them once");
        assert!(!never.is_finished(), "the call still waits");
        assert_eq!(b.emit("x", &1)?, 1);
        assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 1);

        // The grace is over: dropped, and every waiter settles with its reason.
        line.refuse(true);
        line.cut();
        sees(&a, "b", LinkState::Offline).await;
        let lost = send_number(&a, "b", &job, 20);
        for watch in [&mut ours, &mut theirs] {
            assert_eq!(change(watch).await.0, LinkState::Offline);
            let dropped = (LinkState::Dropped, Cause::GraceEnded, None);
            assert_eq!(change(watch).await, dropped);
        }
        assert_eq!(within("the send", lost).await?, Err(SendError::Undelivered(PEER_GONE)));
        let mut job = job;
        let unanswered = Err(RequestError::Undelivered(PEER_GONE));
        assert_eq!(within("the call", never).await?, unanswered);
        assert_eq!(within("the job", job.response::<()>()).await, unanswered);
        assert_eq!(within("the stream", stream.next()).await, None);
        assert_eq!(stream.ended(), Some(StreamEnd::Undelivered(PEER_GONE)));
        assert_eq!((a.links().len(), b.links().len()), (0, 0));
        assert_eq!(b.emit("x", &2)?, 0, "no subscription is left");
        until("the handlers", || b.snapshot().running == 0).await;
        let refused = a.connect(line.target()).await;
        assert!(refused.is_err(), "{refused:?}");

        // A register after that is a first one; unregister drops the link without any grace.
        line.refuse(false);
        a.connect(line.target()).await?;
        for watch in [&mut ours, &mut theirs] {
            assert_eq!(change(watch).await, (LinkState::Online, Cause::Registered, Some(false)));
        }
        within("the good-bye", a.disconnect("b")).await?;
        assert_eq!(change(&mut ours).await.1, Cause::Disconnecting);
        assert_eq!(change(&mut theirs).await.1, Cause::Unregistered);
        assert_eq!(a.totals().sent_of(Some(MessageType::Unregister)), 1);

        // Terminate: nothing is left, and nothing is taken any more.
        a.connect(line.target()).await?;
        let never = under_way(a.request::<()>("b", "never", &()));
        within("the end", a.terminate()).await;
        let terminated = Undelivered::Terminated;
        assert_eq!(within("the call", never).await?, Err(RequestError::Undelivered(terminated)));
        assert_eq!(a.snapshot(), nacp::NodeSnapshot::default());
        let late = a.connect(line.target()).await;
        assert!(matches!(late, Err(ConnectError::Handshake(DialError::Terminated))), "{late:?}");
        sees(&b, "a", LinkState::Dropped).await;
        Ok(())
    }
}

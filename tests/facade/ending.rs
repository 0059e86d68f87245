//! The end of a node, from wherever it comes (T-26).

use std::future::Future;
use std::sync::{Arc, Mutex};
use std::task::{Context, Wake};

use nacp::{
    AbilityContext, ConnectError, DialError, EventContext, HandlerError, LinkState, NApp,
    RequestError, SendError, Signal, StreamEnd, SubscribeError, Undelivered,
};
use tokio::task::JoinHandle;

use crate::support::{Net, Outcome, app, sees, target, until, within};

const TERMINATED: Undelivered = Undelivered::Terminated;

/// Takes a watch when it is woken.
struct WatchOnWake(NApp, Mutex<Option<nacp::LinkWatch>>);

impl Wake for WatchOnWake {
    fn wake(self: Arc<Self>) {
        *self.1.lock().unwrap() = Some(self.0.watch_links());
    }
}

#[tokio::test]
async fn a_watch_that_begins_while_the_node_ends_ends_too() -> Outcome {
    // T-26: whoever waits, and from whenever.
    let client = NApp::builder("client").start().await?;
    let nobody = app("nobody");
    let watching = Arc::new(WatchOnWake(client.to_unowned(), Mutex::default()));
    let mut waiting = Box::pin(client.wait_online(&nobody));
    let waker = Arc::clone(&watching).into();
    let mut cx = Context::from_waker(&waker);
    assert!(waiting.as_mut().poll(&mut cx).is_pending());
    client.terminate_now();
    let mut watch = watching.1.lock().unwrap().take().unwrap();
    assert_eq!(within("the end", watch.next()).await, None);
    Ok(())
}

async fn pending_ability(ctx: AbilityContext, (): ()) -> Result<(), HandlerError> {
    Err(ctx.interrupted().await.into())
}

async fn pending_event(ctx: EventContext, (): ()) -> Result<(), HandlerError> {
    ctx.process("ready").await?;
    Err(ctx.interrupted().await.into())
}

/// One of every kind of waiter at a server that answers none.
struct Waiters {
    requests: Vec<JoinHandle<Result<(), RequestError>>>,
    jobs: Vec<nacp::Job>,
    streams: Vec<nacp::Subscription>,
    online: Vec<JoinHandle<Result<(), Undelivered>>>,
    watch: nacp::LinkWatch,
}

async fn waiters(client: &NApp) -> Result<Waiters, Box<dyn std::error::Error>> {
    let mut requests = Vec::new();
    for _ in 0..5 {
        requests.push(tokio::spawn(client.request::<()>("server", "pending", &())));
    }
    let mut jobs = Vec::new();
    for _ in 0..2 {
        let mut job = client.run("server", "pending", &()).await?;
        within("the start", job.next()).await.unwrap();
        jobs.push(job);
    }
    let mut streams = Vec::new();
    for _ in 0..4 {
        streams.push(client.subscribe("server", "x:*").await?);
    }
    let mut online = Vec::new();
    for _ in 0..4 {
        let client = client.to_unowned();
        online.push(tokio::spawn(async move {
            client.wait_online(&app("nobody")).await
        }));
    }
    until("the requests", || client.snapshot().calls == 7).await;
    let watch = client.watch_links();
    Ok(Waiters {
        requests,
        jobs,
        streams,
        online,
        watch,
    })
}

impl Waiters {
    async fn all_end(self, reason: Undelivered) -> Outcome {
        for request in self.requests {
            let error = within("a request", request).await?.unwrap_err();
            assert_eq!(error, RequestError::Undelivered(reason));
        }
        for mut job in self.jobs {
            assert_eq!(within("the items", job.next()).await, None);
            let error = within("a job", job.response::<()>()).await.unwrap_err();
            assert_eq!(error, RequestError::Undelivered(reason));
        }
        for mut stream in self.streams {
            assert_eq!(within("a stream", stream.next()).await, None);
            assert_eq!(stream.ended(), Some(StreamEnd::Undelivered(reason)));
        }
        if reason == TERMINATED {
            for online in self.online {
                assert_eq!(within("a wish", online).await?, Err(TERMINATED));
            }
            let mut watch = self.watch;
            within("the watch", async { while watch.next().await.is_some() {} }).await;
        }
        Ok(())
    }
}

async fn pair(net: &Net) -> Result<(NApp, NApp), Box<dyn std::error::Error>> {
    let server = net
        .server("server")
        .ability("pending", pending_ability)
        .event("pending", pending_event)
        .start()
        .await?;
    let client = net
        .node("client")
        .ability("terminate", async |ctx: AbilityContext, (): ()| {
            ctx.napp().terminate().await;
            Ok::<_, HandlerError>(())
        })
        .start()
        .await?;
    client.connect(target(&server)).await?;
    sees(&server, "client", LinkState::Online).await;
    Ok((server, client))
}

/// Everything that is called afterwards fails at once.
async fn nothing_is_taken(client: &NApp) -> Outcome {
    let error = client.request::<()>("server", "x", &()).await.unwrap_err();
    assert_eq!(error, RequestError::Undelivered(TERMINATED));
    let error = client.subscribe("server", "x").await.unwrap_err();
    assert_eq!(error, SubscribeError::Undelivered(TERMINATED));
    let id = nacp::MessageId::new("x")?;
    let error = client
        .signal("server", id, Signal::Pause)
        .await
        .unwrap_err();
    assert_eq!(error, SendError::Undelivered(TERMINATED));
    let error = client.connect("127.0.0.1:1").await.unwrap_err();
    assert!(
        matches!(error, ConnectError::Handshake(DialError::Terminated)),
        "{error:?}"
    );
    client.disconnect("server").await?;
    assert_eq!(client.emit("x", &1)?, 0);
    let snapshot = client.snapshot();
    assert_eq!(snapshot, nacp::NodeSnapshot::default());
    Ok(())
}

/// Ends the client so, and checks that nobody is left waiting.
async fn ends_all<F: Future<Output = ()>>(net: Net, end: impl FnOnce(NApp) -> F) -> Outcome {
    let (server, client) = pair(&net).await?;
    let waiters = waiters(&client).await?;
    let unowned = client.to_unowned();
    within("the end", end(client)).await;
    waiters.all_end(TERMINATED).await?;
    nothing_is_taken(&unowned).await?;
    until("the good-bye at the other side", || {
        !server
            .links()
            .iter()
            .any(|link| link.state == LinkState::Online)
    })
    .await;
    until("the handlers", || {
        server.snapshot().running == 0 || !server.links().is_empty()
    })
    .await;
    Ok(())
}

over_both! {
    async fn terminate_leaves_nobody_waiting(net: Net) -> Outcome {
        ends_all(net, async |client: NApp| client.terminate().await).await
    }

    async fn terminating_twice_and_at_once_ends_once(net: Net) -> Outcome {
        ends_all(net, async |client: NApp| {
            tokio::join!(client.terminate(), client.terminate());
            client.terminate().await;
            client.terminate_now();
        })
        .await
    }

    async fn terminate_now_leaves_nobody_waiting(net: Net) -> Outcome {
        ends_all(net, async |client: NApp| client.terminate_now()).await
    }

    async fn the_last_handle_that_is_dropped_ends_the_node(net: Net) -> Outcome {
        ends_all(net, async |client: NApp| {
            let other = client.clone();
            drop(client);
            other.heartbeat("server").await.unwrap();
            drop(other);
        })
        .await
    }

    async fn a_handler_terminates_its_own_node(net: Net) -> Outcome {
        let (server, client) = pair(&net).await?;
        let waiters = waiters(&client).await?;
        let answer = server.request::<()>("client", "terminate", &());
        let error = within("the rejection", answer).await.unwrap_err();
        assert_eq!(error, RequestError::Undelivered(Undelivered::PeerGone));
        waiters.all_end(TERMINATED).await?;
        nothing_is_taken(&client).await
    }

    async fn a_good_bye_ends_what_is_of_that_app_and_nothing_else(net: Net) -> Outcome {
        let (server, client) = pair(&net).await?;
        let other = net.server("other").ability("pending", pending_ability).start().await?;
        client.connect(target(&other)).await?;
        let waiters = waiters(&client).await?;
        let stays = tokio::spawn(client.request::<()>("other", "pending", &()));
        let mut stream = client.subscribe("other", "x").await?;
        client.disconnect("server").await?;
        waiters.all_end(Undelivered::PeerGone).await?;
        other.emit("x", &1)?;
        assert_eq!(within("an event", stream.next()).await.unwrap().decode::<u32>()?, 1);
        assert!(!stays.is_finished());
        drop(server);
        Ok(())
    }

    async fn a_terminated_node_tells_its_peers_good_bye(net: Net) -> Outcome {
        let (server, client) = pair(&net).await?;
        let mut watch = server.watch_links();
        client.terminate().await;
        let change = within("the good-bye", watch.next()).await.unwrap();
        assert_eq!(
            (change.state, change.cause),
            (LinkState::Dropped, nacp::link::Cause::Unregistered)
        );
        Ok(())
    }
}

#[tokio::test]
async fn a_terminated_node_frees_its_port_at_once() -> Outcome {
    let server = Net::Tcp.server("server").start().await?;
    let addr = server.listen_addrs()[0];
    server.terminate().await;
    let again = NApp::builder("server").listen(addr).start().await?;
    assert_eq!(again.listen_addrs(), [addr]);
    Ok(())
}

#[tokio::test]
async fn a_dial_and_a_register_that_are_under_way_end_with_the_node() -> Outcome {
    // It accepts and says nothing.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let addr = silent.local_addr()?;
    let client = NApp::builder("client").start().await?;
    let registering = tokio::spawn(client.connect(addr).into_future());
    let (_held, _) = within("the connection", silent.accept()).await?;
    client.terminate_now();
    let error = within("the end", registering).await?.unwrap_err();
    assert!(
        matches!(error, ConnectError::Handshake(DialError::Terminated)),
        "{error:?}"
    );
    Ok(())
}

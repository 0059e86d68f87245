//! A thousand cycles of a link's life leave nothing behind.
//!
//! In a process of its own, for it counts descriptors and memory.
#![expect(
    clippy::unwrap_used,
    reason = "a test that fails in its set-up has failed"
)]

use std::net::Shutdown;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use nacp::transport::{Connection, Options};
use nacp::{
    AbilityContext, Channel, EventContext, HandlerError, LinkState, Listener, NApp, Reconnect,
    TcpTransport, Transport, TransportError,
};
use tokio::runtime::{Builder, Handle};

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Waits until something is so, with a deadline.
async fn until(what: &str, mut is_so: impl FnMut() -> bool) -> Outcome {
    let waited = tokio::time::timeout(Duration::from_secs(20), async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    });
    waited
        .await
        .map_err(|_| format!("waited in vain for {what}").into())
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Resident memory in KiB.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// TCP whose last connection can be cut.
#[derive(Debug, Clone, Default)]
struct Cuttable(Arc<Mutex<Option<std::net::TcpStream>>>);

impl Cuttable {
    fn cut(&self) {
        let stream = self.0.lock().unwrap().take();
        // It fails on one that is closed already.
        let _ = stream.map(|stream| stream.shutdown(Shutdown::Both));
    }
}

#[async_trait]
impl Transport for Cuttable {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        let stream = tokio::net::TcpStream::connect(address).await?.into_std()?;
        *self.0.lock().unwrap() = Some(stream.try_clone()?);
        let stream = tokio::net::TcpStream::from_std(stream)?;
        Ok(Connection::from_tcp(stream, &Options::default())?.into())
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        TcpTransport::default().listen(address).await
    }
}

/// Connect, call, cut, reconnect, call, terminate.
async fn cycle(n: u32) -> Outcome {
    let server = NApp::builder("server")
        .listen("127.0.0.1:0")
        .ability("echo", async |n: u32| Ok::<_, HandlerError>(n))
        .event("wait", async |ctx: EventContext, (): ()| {
            ctx.process("ready").await?;
            Err::<(), HandlerError>(ctx.interrupted().await.into())
        })
        .start()
        .await?;
    let line = Cuttable::default();
    let client = NApp::builder("client")
        .transport(line.clone())
        .reconnect(Reconnect::default().shortest(Duration::from_micros(1)))
        .ability("back", async |ctx: AbilityContext, (): ()| {
            Ok::<_, HandlerError>(ctx.caller().as_str().to_owned())
        })
        .start()
        .await?;
    client.connect(server.listen_addrs()[0]).await?;
    let mut job = client.run("server", "wait", &()).await?;
    job.next().await.ok_or("no item")?;
    let mut stream = client.subscribe("server", "x").await?;
    let mut watch = client.watch_links();
    let _events = client.events();
    drop(client.request::<()>("server", "never polled", &()));
    assert_eq!(client.request::<u32>("server", "echo", &n).await?, n);
    line.cut();
    for expected in [LinkState::Offline, LinkState::Online] {
        assert_eq!(
            watch.next().await.map(|change| change.state),
            Some(expected)
        );
    }
    assert_eq!(client.request::<u32>("server", "echo", &n).await?, n);
    server.emit("x", &n)?;
    let event = stream.next().await.ok_or("no event")?;
    assert_eq!(event.decode::<u32>()?, n);
    // The server forgets the client, which comes back by itself.
    server.disconnect("client").await?;
    for expected in [LinkState::Dropped, LinkState::Online] {
        assert_eq!(
            watch.next().await.map(|change| change.state),
            Some(expected)
        );
    }
    let app = client.app_id();
    let back = || {
        server
            .link(app)
            .is_some_and(|link| link.state == LinkState::Online)
    };
    until("the return", back).await?;
    assert_eq!(client.request::<u32>("server", "echo", &n).await?, n);
    assert_eq!(
        server.request::<String>("client", "back", &()).await?,
        "server"
    );
    assert_eq!(stream.next().await, None);
    match n % 3 {
        0 => client.terminate().await,
        1 => client.terminate_now(),
        _ => drop(client),
    }
    server.terminate().await;
    Ok(())
}

#[test]
fn a_thousand_cycles_leave_no_task_no_descriptor_and_no_memory_behind() -> Outcome {
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let tasks = || Handle::current().metrics().num_alive_tasks();
        for n in 0..100 {
            cycle(n).await?;
        }
        until("the tasks of the first hundred", || tasks() == 0).await?;
        let (before, held) = (descriptors(), resident());
        for n in 0..1000 {
            cycle(n).await?;
        }
        until("the tasks", || tasks() == 0).await?;
        until("the descriptors", || descriptors() <= before).await?;
        let grown = resident().saturating_sub(held);
        assert!(
            grown < 4 << 10,
            "{grown} KiB more than after a hundred cycles"
        );
        Ok(())
    })
}

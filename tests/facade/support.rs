//! What the tests of the whole share: two transports, deadlines, and waiting for events.

use std::future::Future;
use std::ops::Deref;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nacp::{
    AppId, Builder, EventContext, Events, HandlerError, Job, LinkState, MemoryTransport, NApp,
    NodeEvent, Reconnect, Signal,
};
use tokio::time::Instant;

use crate::faults::Faults;
use crate::hand::Hand;
use crate::proxy::Proxy;
use crate::wire::Wire;

pub(crate) type Outcome = Result<(), Box<dyn std::error::Error>>;

/// How long a test waits for what must happen.
const DEADLINE: Duration = Duration::from_secs(20);

/// Waits for what must happen, with a deadline.
pub(crate) async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(DEADLINE, future).await {
        Ok(result) => result,
        Err(_) => panic!("waited {DEADLINE:?} in vain for {what}"),
    }
}

/// Waits until something is so that no event tells of: looks again whenever the others have run, and
/// lets a paused clock go on.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    within(what, async {
        let mut clock = tokio::time::interval(Duration::from_millis(1));
        while !is_so() {
            for _ in 0..32 {
                tokio::task::yield_now().await;
            }
            clock.tick().await;
        }
    })
    .await;
}

/// Dials again so fast that a test need not wait.
pub(crate) fn quick() -> Reconnect {
    Reconnect::default()
        .shortest(Duration::from_millis(1))
        .longest(Duration::from_millis(20))
}

/// Where nodes meet.
#[derive(Clone)]
pub(crate) enum Net {
    Tcp,
    Memory(MemoryTransport),
    /// In memory, and breaks as a network does.
    Wire(Wire),
}

impl Net {
    /// A node that can dial.
    pub(crate) fn node(&self, app: &str) -> Builder {
        let builder = NApp::builder(app);
        match self {
            Self::Tcp => builder,
            Self::Memory(network) => builder.transport(network.clone()),
            Self::Wire(wire) => builder.transport(wire.clone()),
        }
    }

    /// A node that listens.
    pub(crate) fn server(&self, app: &str) -> Builder {
        match self {
            Self::Tcp => self.node(app).listen("127.0.0.1:0"),
            Self::Memory(_) | Self::Wire(_) => self.node(app).listen(format!("{app}.memory")),
        }
    }

    /// A line that breaks, to a node that listens.
    pub(crate) async fn line_to(&self, server: &NApp) -> Line {
        let app = server.app_id().as_str();
        match self {
            Self::Tcp => {
                let proxy = Proxy::to(server.listen_addrs()[0]).await;
                let target = format!("{app}@{}", proxy.addr());
                Line(Kind::Tcp(proxy), target)
            }
            Self::Memory(_) => panic!("the memory transport knows no faults but a cut"),
            Self::Wire(wire) => {
                let (alias, faults) = wire.line_to(&server.listen_addresses()[0]);
                Line(Kind::Wire(faults), format!("{app}@{alias}"))
            }
        }
    }

    /// A connection to a node that listens, made by hand.
    pub(crate) async fn hand(&self, name: &str, server: &NApp) -> Hand {
        let node = server.app_id().as_str();
        match self {
            Self::Tcp => {
                let addr = server.listen_addrs()[0];
                let stream = tokio::net::TcpStream::connect(addr).await.unwrap();
                Hand::over(name, node, stream)
            }
            Self::Memory(_) => panic!("no hand reaches into the memory transport"),
            Self::Wire(wire) => {
                let stream = wire.connect(&server.listen_addresses()[0]).unwrap();
                Hand::over(name, node, stream)
            }
        }
    }

    /// Listens by hand.
    pub(crate) async fn hands(&self, name: &str) -> Hands {
        match self {
            Self::Tcp => {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                let target = format!("{name}@{}", listener.local_addr().unwrap());
                Hands::Tcp(name.to_owned(), target, listener)
            }
            Self::Memory(_) => panic!("no hand reaches into the memory transport"),
            Self::Wire(wire) => {
                let address = format!("{name}.hand");
                let accepted = wire.accept_at(&address);
                Hands::Wire(name.to_owned(), format!("{name}@{address}"), accepted)
            }
        }
    }
}

/// Where a node dials the test itself.
pub(crate) enum Hands {
    Tcp(String, String, tokio::net::TcpListener),
    Wire(
        String,
        String,
        tokio::sync::mpsc::UnboundedReceiver<tokio::io::DuplexStream>,
    ),
}

impl Hands {
    pub(crate) fn target(&self) -> String {
        let (Self::Tcp(_, target, _) | Self::Wire(_, target, _)) = self;
        target.clone()
    }

    pub(crate) async fn accept(&mut self) -> Hand {
        match self {
            Self::Tcp(name, _, listener) => {
                let (stream, _) = within("a connection", listener.accept()).await.unwrap();
                Hand::over(name, "?", stream)
            }
            Self::Wire(name, _, accepted) => {
                let stream = within("a connection", accepted.recv()).await.unwrap();
                Hand::over(name, "?", stream)
            }
        }
    }
}

/// A line to a node that breaks in every way a network does.
pub(crate) struct Line(Kind, String);

enum Kind {
    Tcp(Proxy),
    Wire(Arc<Faults>),
}

impl Line {
    /// What to connect to.
    pub(crate) fn target(&self) -> String {
        self.1.clone()
    }
}

impl Deref for Line {
    type Target = Faults;

    fn deref(&self) -> &Faults {
        match &self.0 {
            Kind::Tcp(proxy) => proxy,
            Kind::Wire(faults) => faults,
        }
    }
}

/// What handlers heard, in order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<u32>>>);

impl Heard {
    pub(crate) fn push(&self, n: u32) {
        self.0.lock().unwrap().push(n);
    }

    pub(crate) fn all(&self) -> Vec<u32> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Has an event `hear`, which is ready when it says so, and hears numbers until it is paused.
pub(crate) fn hearing(builder: Builder, heard: &Heard) -> Builder {
    let heard = heard.clone();
    builder.event("hear", move |ctx: EventContext, (): ()| {
        let heard = heard.clone();
        async move {
            ctx.process("ready").await?;
            while let Some(Signal::Normal(payload)) = ctx.next_signal().await {
                heard.push(payload.decode::<u32>()?);
            }
            Ok::<_, HandlerError>(())
        }
    })
}

/// Starts the event of [`hearing`].
pub(crate) async fn start_hearing(from: &NApp, to: &str) -> Job {
    let mut job = from.run(to, "hear", &()).await.unwrap();
    within("the start", job.next()).await.unwrap();
    job
}

/// Sends a number to the event of [`hearing`]: it is on its way, behind what was sent before.
pub(crate) fn send_number(
    from: &NApp,
    to: &str,
    job: &Job,
    n: u32,
) -> tokio::task::JoinHandle<Result<(), nacp::SendError>> {
    let (from, to) = (from.to_unowned(), to.to_owned());
    let id = job.id().unwrap().clone();
    let payload = nacp::Payload::new(&n).unwrap();
    under_way(async move { from.signal(to, id, Signal::Normal(payload)).await })
}

/// A future that has been polled once, and goes on by itself.
pub(crate) fn under_way<F>(future: F) -> tokio::task::JoinHandle<F::Output>
where
    F: Future<Output: Send> + Send + 'static,
{
    let mut future = Box::pin(futures_util::future::maybe_done(future));
    // The task polls it again with a waker of its own.
    let _ = futures_util::FutureExt::now_or_never(&mut future);
    tokio::spawn(async move {
        future.as_mut().await;
        future.as_mut().take_output().unwrap()
    })
}

/// A clock that begins now: a test's own timeline.
#[derive(Clone, Copy)]
pub(crate) struct Clock(Instant);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at {} ms", self.ms())
    }
}

impl Clock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    /// Lets virtual time go on until then.
    pub(crate) async fn reach(self, seconds: f64) {
        tokio::time::sleep_until(self.0 + Duration::from_secs_f64(seconds)).await;
    }

    /// Whether it is this late, or as much later as a reader may put a write off for others to
    /// join it.
    pub(crate) fn is_at(self, seconds: f64) -> bool {
        let at = (seconds * 1000.0).round() as u128;
        (at..=at + 2).contains(&self.ms())
    }

    /// Milliseconds on the timeline.
    pub(crate) fn ms(self) -> u128 {
        self.0.elapsed().as_millis()
    }
}

/// Numbers below a bound, from a seed that `NACP_SEED` sets. Tell the seed when the test fails.
pub(crate) fn seeded() -> (u64, impl FnMut(u64) -> u64) {
    let from_env = std::env::var("NACP_SEED")
        .ok()
        .and_then(|seed| seed.parse().ok());
    let seed: u64 = from_env.unwrap_or_else(|| getrandom::u64().unwrap());
    let mut state = seed;
    (seed, move |below| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    })
}

/// The target of a node that listens.
pub(crate) fn target(napp: &NApp) -> String {
    format!("{}@{}", napp.app_id().as_str(), napp.listen_addresses()[0])
}

pub(crate) fn app(name: &str) -> AppId {
    AppId::new(name).unwrap()
}

/// Waits until a node sees an app in this state.
pub(crate) async fn sees(napp: &NApp, name: &str, state: LinkState) {
    let name = app(name);
    let mut watch = napp.watch_links();
    if napp
        .link(&name)
        .map_or(LinkState::Dropped, |link| link.state)
        == state
    {
        return;
    }
    within(&format!("{name} to be {state:?}"), async {
        while let Some(change) = watch.next().await {
            if change.app == name && change.state == state {
                return;
            }
        }
        panic!("the node ended");
    })
    .await;
}

/// Waits for a report of this name and reason.
pub(crate) async fn reported(events: &mut Events, name: &str, reason: &str) -> NodeEvent {
    within(&format!("{name} {reason}"), async {
        loop {
            let event = events.next().await.expect("the node ended");
            if &*event.name == name && reason_of(&event).as_deref() == Some(reason) {
                return event;
            }
        }
    })
    .await
}

/// The reason of a report, if it has one.
pub(crate) fn reason_of(event: &NodeEvent) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Reason {
        reason: Option<String>,
    }
    event.value.decode::<Reason>().ok()?.reason
}

/// Runs a test over TCP, on one thread and on two, and over a network in memory.
macro_rules! over_tcp_and {
    ($memory:expr; $($(#[$meta:meta])* async fn $name:ident($net:ident: Net) -> Outcome $body:block)+) => {
        $(
            mod $name {
                use super::*;

                async fn body($net: Net) -> Outcome $body

                #[tokio::test]
                async fn over_tcp() -> Outcome {
                    body(Net::Tcp).await
                }

                #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                async fn over_tcp_on_two_threads() -> Outcome {
                    body(Net::Tcp).await
                }

                #[tokio::test]
                async fn in_memory() -> Outcome {
                    body($memory).await
                }
            }
        )+
    };
}

/// Runs a test over both transports.
macro_rules! over_both {
    ($($test:tt)+) => {
        over_tcp_and! { Net::Memory(nacp::MemoryTransport::new()); $($test)+ }
    };
}

/// Runs a test over both kinds of lines that break.
macro_rules! over_lines {
    ($($test:tt)+) => {
        over_tcp_and! { Net::Wire(crate::wire::Wire::default()); $($test)+ }
    };
}

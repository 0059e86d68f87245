//! A TCP proxy that breaks connections in every way a network does.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// What happens to bytes of one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    /// They are passed on.
    Pass,
    /// They are kept back, and passed on later.
    Hold,
    /// They are taken and never seen again.
    Swallow,
}

/// How connections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Cut,
    Reset,
}

#[derive(Debug, Clone, Copy)]
struct Rules {
    up: Flow,
    down: Flow,
    /// Bytes a second in each direction.
    speed: Option<u64>,
    refuses: bool,
    /// Connections before this number end so.
    ended: (usize, End),
}

/// Stands between a dialling node and a listening one.
pub(crate) struct Proxy {
    addr: SocketAddr,
    rules: watch::Sender<Rules>,
    accepted: Arc<AtomicUsize>,
    passed: Arc<AtomicU64>,
    task: tokio::task::JoinHandle<()>,
}

impl Proxy {
    pub(crate) async fn to(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        let (rules, seen) = watch::channel(Rules {
            up: Flow::Pass,
            down: Flow::Pass,
            speed: None,
            refuses: false,
            ended: (0, End::Cut),
        });
        let (accepted, passed) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicU64::new(0)));
        let counters = (Arc::clone(&accepted), Arc::clone(&passed));
        let task = tokio::spawn(serve(listener, target, seen, counters));
        Self {
            addr,
            rules,
            accepted,
            passed,
            task,
        }
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    /// Connections that were accepted until now.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Bytes that were passed on until now.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    /// Rules both directions.
    pub(crate) fn both(&self, flow: Flow) {
        self.rules
            .send_modify(|rules| (rules.up, rules.down) = (flow, flow));
    }

    /// Rules what goes to the dialling node.
    pub(crate) fn down(&self, flow: Flow) {
        self.rules.send_modify(|rules| rules.down = flow);
    }

    /// Slows both directions down to so many bytes a second.
    pub(crate) fn slow(&self, speed: u64) {
        self.rules.send_modify(|rules| rules.speed = Some(speed));
    }

    /// Closes new connections at once, or no longer.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.rules.send_modify(|rules| rules.refuses = refuses);
    }

    /// Closes the connections there are.
    pub(crate) fn cut(&self) {
        self.end(End::Cut);
    }

    /// Resets the connections there are.
    pub(crate) fn reset(&self) {
        self.end(End::Reset);
    }

    fn end(&self, how: End) {
        let until = self.accepted();
        self.rules.send_modify(|rules| rules.ended = (until, how));
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(
    listener: TcpListener,
    target: SocketAddr,
    rules: watch::Receiver<Rules>,
    (accepted, passed): (Arc<AtomicUsize>, Arc<AtomicU64>),
) {
    loop {
        let Ok((near, _)) = listener.accept().await else {
            return;
        };
        let number = accepted.fetch_add(1, Ordering::SeqCst);
        if rules.borrow().refuses {
            continue;
        }
        let Ok(far) = TcpStream::connect(target).await else {
            continue;
        };
        let (rules, passed) = (rules.clone(), Arc::clone(&passed));
        tokio::spawn(relay(near, far, number, rules, passed));
    }
}

async fn relay(
    near: TcpStream,
    far: TcpStream,
    number: usize,
    mut rules: watch::Receiver<Rules>,
    passed: Arc<AtomicU64>,
) {
    let _ = (near.set_nodelay(true), far.set_nodelay(true));
    let is_ended = |rules: &Rules| number < rules.ended.0;
    let (near_in, near_out) = near.into_split();
    let (far_in, far_out) = far.into_split();
    let resets = Arc::new(AtomicBool::new(false));
    let far_out = Linger(far_out, Arc::clone(&resets));
    let near_out = Linger(near_out, Arc::clone(&resets));
    let counter = Arc::clone(&passed);
    let up = pump(near_in, far_out, rules.clone(), |rules| rules.up, counter);
    let down = pump(far_in, near_out, rules.clone(), |rules| rules.down, passed);
    let pumping = tokio::spawn(async move { tokio::join!(up, down) });
    let abort = pumping.abort_handle();
    let ended = tokio::select! {
        _ = pumping => None,
        found = rules.wait_for(is_ended) => found.ok().map(|rules| rules.ended.1),
    };
    resets.store(ended == Some(End::Reset), Ordering::SeqCst);
    abort.abort();
}

/// Passes bytes on until either end is gone, as the rules say at each moment.
async fn pump(
    mut from: OwnedReadHalf,
    mut to: Linger,
    mut rules: watch::Receiver<Rules>,
    flow: impl Fn(&Rules) -> Flow + Send,
    passed: Arc<AtomicU64>,
) {
    let mut buffer = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer).await {
        let released = rules.wait_for(|rules| flow(rules) != Flow::Hold).await;
        let Ok(ruled) = released.map(|rules| *rules) else {
            return;
        };
        let speed = ruled.speed;
        if flow(&ruled) == Flow::Swallow {
            continue;
        }
        if let Some(speed) = speed {
            let nanos = count as u64 * 1_000_000_000 / speed;
            tokio::time::sleep(Duration::from_nanos(nanos)).await;
        }
        if to.0.write_all(&buffer[..count]).await.is_err() {
            break;
        }
        passed.fetch_add(count as u64, Ordering::SeqCst);
    }
    let _ = to.0.shutdown().await;
}

/// Resets its connection when dropped, if that is how it is to end.
struct Linger(OwnedWriteHalf, Arc<AtomicBool>);

impl Drop for Linger {
    fn drop(&mut self) {
        if self.1.load(Ordering::SeqCst) {
            let _ = self.0.as_ref().set_zero_linger();
        }
    }
}

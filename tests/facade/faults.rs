//! What a line between two nodes does to what passes over it: hold, swallow, cut, slow, reset, sift.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nacp::proto::{Decoded, Encoded};
use nacp::transport::{Close, Connection, Lane, Options, Receiver, Sender};
use tokio::io::{
    AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, split,
};
use tokio::net::TcpStream;
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

/// A direction, as the dialling node sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Up,
    Down,
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
    /// Connections before this number flow so; later ones pass.
    flowing: usize,
    /// Bytes a second in each direction.
    speed: Option<u64>,
    refuses: bool,
    /// Connections before this number end so.
    ended: (usize, End),
}

impl Rules {
    fn flow(&self, number: usize, way: Way) -> Flow {
        match way {
            // What is kept back when a connection ends is lost with it.
            _ if number < self.ended.0 => Flow::Hold,
            _ if number >= self.flowing => Flow::Pass,
            Way::Up => self.up,
            Way::Down => self.down,
        }
    }
}

/// Says of a message whether it is passed on.
pub(crate) type Sieve = Arc<dyn Fn(Way, &Decoded) -> bool + Send + Sync>;

/// The faults of all connections over one line.
pub(crate) struct Faults {
    rules: watch::Sender<Rules>,
    sieve: Mutex<Option<Sieve>>,
    accepted: AtomicUsize,
    passed: AtomicU64,
}

impl std::fmt::Debug for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Faults").finish_non_exhaustive()
    }
}

impl Default for Faults {
    fn default() -> Self {
        let rules = Rules {
            up: Flow::Pass,
            down: Flow::Pass,
            flowing: usize::MAX,
            speed: None,
            refuses: false,
            ended: (0, End::Cut),
        };
        Self {
            rules: watch::channel(rules).0,
            sieve: Mutex::default(),
            accepted: AtomicUsize::new(0),
            passed: AtomicU64::new(0),
        }
    }
}

impl Faults {
    /// Connections that were accepted until now.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }

    /// Bytes that were passed on until now.
    pub(crate) fn passed(&self) -> u64 {
        self.passed.load(Ordering::SeqCst)
    }

    fn flow(&self, flow: Flow, flowing: usize) {
        self.rules.send_modify(|rules| {
            (rules.up, rules.down, rules.flowing) = (flow, flow, flowing);
        });
    }

    /// Rules both directions.
    pub(crate) fn both(&self, flow: Flow) {
        self.flow(flow, usize::MAX);
    }

    /// Rules what comes from the dialling node.
    pub(crate) fn up(&self, flow: Flow) {
        self.rules.send_modify(|rules| {
            (rules.up, rules.flowing) = (flow, usize::MAX);
        });
    }

    /// Rules what goes to the dialling node.
    pub(crate) fn down(&self, flow: Flow) {
        self.rules.send_modify(|rules| {
            (rules.down, rules.flowing) = (flow, usize::MAX);
        });
    }

    /// Swallows all of the connections there are; later ones pass.
    pub(crate) fn kill(&self) {
        self.flow(Flow::Swallow, self.accepted());
    }

    /// Slows both directions down to so many bytes a second.
    pub(crate) fn slow(&self, speed: u64) {
        self.rules.send_modify(|rules| rules.speed = Some(speed));
    }

    /// Closes new connections at once, or no longer.
    pub(crate) fn refuse(&self, refuses: bool) {
        self.rules.send_modify(|rules| rules.refuses = refuses);
    }

    /// Sifts the messages of later connections, which then know no other fault than their end.
    pub(crate) fn sift(&self, passes: impl Fn(Way, &Decoded) -> bool + Send + Sync + 'static) {
        *self.sieve.lock().unwrap() = Some(Arc::new(passes));
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

    /// The number of the next connection; `None` if it is refused.
    pub(crate) fn accept(&self) -> Option<usize> {
        let number = self.accepted.fetch_add(1, Ordering::SeqCst);
        (!self.rules.borrow().refuses).then_some(number)
    }

    /// Joins the two halves of a connection until it ends.
    pub(crate) async fn join<S: Stream>(self: Arc<Self>, number: usize, near: S, far: S) {
        let mut rules = self.rules.subscribe();
        let ended = rules.wait_for(|rules| number < rules.ended.0);
        let sieve = self.sieve.lock().unwrap().clone();
        match sieve {
            Some(sieve) => {
                tokio::select! {
                    () = sift(near, far, sieve) => {}
                    _ = ended => {}
                }
            }
            None => self.pass_on(number, near, far, ended).await,
        }
    }

    async fn pass_on<S: Stream>(
        &self,
        number: usize,
        mut near: S,
        mut far: S,
        ended: impl Future<Output = Result<watch::Ref<'_, Rules>, watch::error::RecvError>>,
    ) {
        let (near_in, near_out) = split(&mut near);
        let (far_in, far_out) = split(&mut far);
        let pumps = async {
            tokio::join!(
                self.pump(number, Way::Up, near_in, far_out),
                self.pump(number, Way::Down, far_in, near_out)
            )
        };
        let end = tokio::select! {
            _ = pumps => None,
            ended = ended => ended.ok().map(|rules| rules.ended.1),
        };
        if end == Some(End::Reset) {
            near.reset_when_dropped();
            far.reset_when_dropped();
        }
    }

    /// Passes bytes on until either end is gone, as the rules say at each moment. An end is news
    /// too: it goes the way of the bytes.
    async fn pump<S: Stream>(
        &self,
        number: usize,
        way: Way,
        mut from: ReadHalf<&mut S>,
        mut to: WriteHalf<&mut S>,
    ) {
        let mut rules = self.rules.subscribe();
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer).await {
            let released = rules.wait_for(|rules| rules.flow(number, way) != Flow::Hold);
            let Ok(ruled) = released.await.map(|rules| *rules) else {
                return;
            };
            if ruled.flow(number, way) == Flow::Swallow {
                continue;
            }
            if let Some(speed) = ruled.speed {
                let nanos = count as u64 * 1_000_000_000 / speed;
                tokio::time::sleep(Duration::from_nanos(nanos)).await;
            }
            if to.write_all(&buffer[..count]).await.is_err() {
                break;
            }
            self.passed.fetch_add(count as u64, Ordering::SeqCst);
        }
        let passes = rules.wait_for(|rules| rules.flow(number, way) == Flow::Pass);
        if passes.await.is_ok() {
            // The other end may be gone already.
            let _ = to.shutdown().await;
        }
    }
}

/// What the two halves of a connection are.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    fn reset_when_dropped(&self) {}
}

impl Stream for TcpStream {
    fn reset_when_dropped(&self) {
        let _ = self.set_zero_linger();
    }
}

impl Stream for DuplexStream {}

/// Passes on the messages that a sieve lets through.
async fn sift<S: Stream>(near: S, far: S, sieve: Sieve) {
    let (near_out, near_in) = opened(near);
    let (far_out, far_in) = opened(far);
    let (near_end, far_end) = (Aborts(near_out.clone()), Aborts(far_out.clone()));
    tokio::join!(
        sift_way(near_in, far_out, &sieve, Way::Up),
        sift_way(far_in, near_out, &sieve, Way::Down)
    );
    drop((near_end, far_end));
}

fn opened<S: Stream>(stream: S) -> (Sender, Receiver) {
    let (sender, mut receiver, writer) = Connection::from_io(stream, &Options::default()).split();
    receiver.registered();
    tokio::spawn(writer.run(|_| ()));
    (sender, receiver)
}

async fn sift_way(mut from: Receiver, to: Sender, sieve: &Sieve, way: Way) {
    while let Ok(Some(batch)) = from.recv().await {
        for message in batch.messages.drain(..) {
            if sieve(way, &message.decoded) {
                // A closed connection ends the other way too.
                let _ = to.queue(Lane::Bulk, Encoded::from(message.bytes));
            }
        }
        to.flush();
    }
    to.close(Close::Flush);
}

/// Ends a connection when dropped, whoever still writes to it.
struct Aborts(Sender);

impl Drop for Aborts {
    fn drop(&mut self) {
        self.0.close(Close::Abort);
    }
}

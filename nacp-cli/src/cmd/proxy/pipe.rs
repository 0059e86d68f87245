use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

use super::faults::Faults;
use crate::args::ProxyArgs;

/// Two connections and what is wrong between them.
pub(super) struct Line {
    pub(super) near: TcpStream,
    pub(super) far: TcpStream,
    pub(super) faults: watch::Receiver<Faults>,
}

/// How a connection ended, and what went over it.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) why: &'static str,
    pub(super) sent: u64,
    pub(super) received: u64,
}

/// Bytes held back in one direction: beyond that nothing more is read.
const MOST_HELD: usize = 4 << 20;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

impl Ended {
    pub(super) const fn unreachable() -> Self {
        Self {
            why: "target-unreachable",
            sent: 0,
            received: 0,
        }
    }
}

impl Line {
    /// Passes bytes on until one side ends, or the line is cut.
    pub(super) async fn carry(mut self, args: &ProxyArgs) -> Ended {
        // Frames are passed on as they come.
        let _ = self.near.set_nodelay(true);
        let _ = self.far.set_nodelay(true);
        let born = Instant::now();
        let (mut sent, mut received) = (0, 0);
        let why = {
            let (near_read, near_write) = self.near.split();
            let (far_read, far_write) = self.far.split();
            let hole = args.blackhole_after.map(|after| born + after);
            let there = Way::new(self.faults.clone(), hole, &mut sent);
            let back = Way::new(self.faults.clone(), hole, &mut received);
            tokio::select! {
                biased;
                () = cut(self.faults.clone(), args.cut_after.map(|after| born + after)) => "cut",
                (one, other) = async {
                    tokio::join!(there.carry(near_read, far_write), back.carry(far_read, near_write))
                } => if one.and(other).is_ok() { "closed" } else { "broken" },
            }
        };
        Ended {
            why,
            sent,
            received,
        }
    }
}

/// Completes when the connection is to be cut.
async fn cut(mut faults: watch::Receiver<Faults>, at: Option<Instant>) {
    let before = faults.borrow().cuts;
    let by_key = async {
        if faults
            .wait_for(|faults| faults.cuts > before)
            .await
            .is_err()
        {
            std::future::pending::<()>().await;
        }
    };
    let by_age = async {
        match at {
            Some(at) => sleep_until(at).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        () = by_key => {}
        () = by_age => {}
    }
}

/// One direction.
struct Way<'a> {
    faults: watch::Receiver<Faults>,
    /// From when on everything is swallowed.
    hole: Option<Instant>,
    passed: &'a mut u64,
    held: VecDeque<(Instant, Vec<u8>)>,
    held_bytes: usize,
    /// Until when the slow line is busy with what it has.
    busy_until: Instant,
}

impl<'a> Way<'a> {
    fn new(faults: watch::Receiver<Faults>, hole: Option<Instant>, passed: &'a mut u64) -> Self {
        Self {
            faults,
            hole,
            passed,
            held: VecDeque::new(),
            held_bytes: 0,
            busy_until: Instant::now(),
        }
    }

    async fn carry(
        mut self,
        mut from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
    ) -> io::Result<()> {
        let mut is_open = true;
        let mut buffer = vec![0; CHUNK];
        loop {
            let due = self.held.front().map(|(due, _)| *due);
            tokio::select! {
                biased;
                () = wait(due), if due.is_some() => {
                    if let Some((_, bytes)) = self.held.pop_front() {
                        self.held_bytes -= bytes.len();
                        to.write_all(&bytes).await?;
                        *self.passed += bytes.len() as u64;
                    }
                }
                read = from.read(&mut buffer), if is_open && self.held_bytes < MOST_HELD => {
                    match read? {
                        0 => is_open = false,
                        read => self.hold(&buffer[..read]),
                    }
                }
                else => return to.shutdown().await,
            }
        }
    }

    /// Says when these bytes may go on, if ever.
    fn hold(&mut self, bytes: &[u8]) {
        let faults = *self.faults.borrow();
        let now = Instant::now();
        if faults.blackhole || self.hole.is_some_and(|hole| now >= hole) {
            return;
        }
        if let Some(rate) = faults.slow {
            let taken = Duration::from_secs_f64(bytes.len() as f64 / f64::from(rate));
            self.busy_until = self.busy_until.max(now) + taken;
        }
        let delay = faults.delay.unwrap_or(Duration::ZERO);
        let due = self.busy_until.max(now) + delay;
        self.held_bytes += bytes.len();
        self.held.push_back((due, bytes.to_vec()));
    }
}

/// Completes at that moment; never without one.
async fn wait(due: Option<Instant>) {
    match due {
        Some(due) => sleep_until(due).await,
        None => std::future::pending().await,
    }
}

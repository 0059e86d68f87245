use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use indicatif::ProgressBar;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep_until};

use super::load::Load;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::latency::Latency;

/// How to measure.
#[derive(Debug)]
pub(super) struct Measure<'a> {
    pub(super) duration: Duration,
    pub(super) concurrency: u32,
    /// Requests a second; without it the next begins when one has ended.
    pub(super) rate: Option<u32>,
    /// How long nothing may be answered.
    pub(super) limit: Duration,
    pub(super) bar: &'a ProgressBar,
}

/// What was measured.
#[derive(Debug)]
pub(super) struct Taken {
    pub(super) latency: Latency,
    pub(super) took: Duration,
    /// Whether the user let it come to its end.
    pub(super) is_whole: bool,
}

/// One of the tasks that measure beside each other, on the threads where the node's own tasks live.
#[derive(Debug, Clone)]
struct Caller {
    load: Arc<Load>,
    began: Instant,
    ends: Instant,
    done: Arc<AtomicU64>,
    /// Nothing more is to be begun.
    stop: Arc<AtomicBool>,
}

/// How long what is under way at Ctrl-C may still take.
const PATIENCE: Duration = Duration::from_millis(500);

/// How often the bar moves.
const STEP: Duration = Duration::from_millis(100);

/// More than this many are not begun beside each other: the peer is hopelessly behind then.
const MOST: usize = 100_000;

impl Measure<'_> {
    /// Measures, until the time is over or the user has seen enough.
    pub(super) async fn run(
        &self,
        load: &Arc<Load>,
        interrupt: &Interrupt,
    ) -> Result<Taken, Failure> {
        let began = Instant::now();
        let caller = Caller {
            load: Arc::clone(load),
            began,
            ends: began + self.duration,
            done: Arc::new(AtomicU64::new(0)),
            stop: Arc::new(AtomicBool::new(false)),
        };
        let mut tasks = JoinSet::new();
        if let Some(rate) = self.rate {
            tasks.spawn(caller.clone().open(rate));
        } else {
            for _ in 0..self.concurrency {
                tasks.spawn(caller.clone().closed());
            }
        }
        let mut latency = Latency::new();
        let mut ticks = interval(STEP);
        let mut progress = (0, began);
        let mut given_up = None;
        loop {
            tokio::select! {
                ended = tasks.join_next() => match ended {
                    None => break,
                    Some(ended) => latency.add(&ended.map_err(|error| broken(&error))??),
                },
                () = interrupt.times(1), if !caller.is_stopped() => {
                    caller.stop.store(true, Ordering::Relaxed);
                    given_up = Some(Instant::now() + PATIENCE);
                }
                () = wait_until(given_up) => break,
                _ = ticks.tick() => {
                    self.show(&caller);
                    self.check(&caller, &mut progress)?;
                }
            }
        }
        Ok(Taken {
            latency,
            took: began.elapsed(),
            is_whole: given_up.is_none(),
        })
    }

    /// One look now and then instead of a timer for each request, which would be measured too.
    fn check(&self, caller: &Caller, progress: &mut (u64, Instant)) -> Result<(), Failure> {
        let done = caller.done.load(Ordering::Relaxed);
        if done != progress.0 {
            *progress = (done, Instant::now());
        }
        if progress.1.elapsed() < self.limit {
            return Ok(());
        }
        let message = format!("no answer within {:?}", self.limit);
        Err(Failure::timed_out("bench", message))
    }

    fn show(&self, caller: &Caller) {
        let elapsed = u64::try_from(caller.began.elapsed().as_millis());
        self.bar.set_position(elapsed.unwrap_or(u64::MAX));
        self.bar
            .set_message(format!("{} done", caller.done.load(Ordering::Relaxed)));
    }
}

fn broken(error: &tokio::task::JoinError) -> Failure {
    Failure::local("bench", error.to_string())
}

async fn wait_until(moment: Option<Instant>) {
    match moment {
        Some(moment) => sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

impl Caller {
    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// One after another; one at least, however late it is.
    async fn closed(self) -> Result<Latency, Failure> {
        let mut latency = Latency::new();
        let mut due = Instant::now();
        loop {
            let took = self.once(due).await?;
            latency.record(took);
            due += took;
            if due >= self.ends || self.is_stopped() {
                return Ok(latency);
            }
        }
    }

    /// So many a second, and each counts from when it was due.
    async fn open(self, rate: u32) -> Result<Latency, Failure> {
        let gap = Duration::from_secs(1) / rate;
        let mut latency = Latency::new();
        let mut running = FuturesUnordered::new();
        let mut due = self.began;
        while due < self.ends && !self.is_stopped() {
            tokio::select! {
                biased;
                () = sleep_until(due), if running.len() < MOST => {
                    running.push(self.once(due));
                    due += gap;
                }
                Some(took) = running.next() => latency.record(took?),
            }
        }
        while let Some(took) = running.next().await {
            latency.record(took?);
        }
        Ok(latency)
    }

    /// One, and how long it took since it was due.
    async fn once(&self, due: Instant) -> Result<Duration, Failure> {
        self.load.once().await?;
        self.done.fetch_add(1, Ordering::Relaxed);
        Ok(due.elapsed())
    }
}

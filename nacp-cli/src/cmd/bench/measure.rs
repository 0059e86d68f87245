use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use indicatif::ProgressBar;
use tokio::time::{Instant, sleep_until, timeout};

use super::elapsed;
use super::load::Load;
use crate::failure::Failure;
use crate::latency::Latency;

/// How to measure.
#[derive(Debug)]
pub(super) struct Measure<'a> {
    pub(super) duration: Duration,
    pub(super) concurrency: u32,
    /// Requests a second; without it the next begins when one has ended.
    pub(super) rate: Option<u32>,
    /// Of each.
    pub(super) limit: Duration,
    pub(super) bar: &'a ProgressBar,
}

/// The bar moves after so many.
const STEP: u64 = 256;

/// More than this many are not begun beside each other: the peer is hopelessly behind then.
const MOST: usize = 100_000;

impl Measure<'_> {
    /// Measures, and says how long that took.
    pub(super) async fn run(&self, load: &Load) -> Result<(Latency, Duration), Failure> {
        let began = Instant::now();
        let latency = match self.rate {
            Some(rate) => self.open(load, rate).await?,
            None => self.closed(load).await?,
        };
        Ok((latency, began.elapsed()))
    }

    /// So many in flight, always.
    async fn closed(&self, load: &Load) -> Result<Latency, Failure> {
        let began = Instant::now();
        let ends = began + self.duration;
        let mut latency = Latency::new();
        let mut running: FuturesUnordered<_> = (0..self.concurrency)
            .map(|_| self.once(load, Instant::now()))
            .collect();
        while let Some(took) = running.next().await {
            latency.record(took?);
            self.show(&latency, began);
            if Instant::now() < ends {
                running.push(self.once(load, Instant::now()));
            }
        }
        Ok(latency)
    }

    /// So many a second, and each counts from when it was due.
    async fn open(&self, load: &Load, rate: u32) -> Result<Latency, Failure> {
        let began = Instant::now();
        let ends = began + self.duration;
        let gap = Duration::from_secs(1) / rate;
        let mut latency = Latency::new();
        let mut running = FuturesUnordered::new();
        let mut due = began;
        while due < ends {
            tokio::select! {
                biased;
                () = sleep_until(due), if running.len() < MOST => {
                    running.push(self.once(load, due));
                    due += gap;
                }
                Some(took) = running.next() => {
                    latency.record(took?);
                    self.show(&latency, began);
                }
            }
        }
        while let Some(took) = running.next().await {
            latency.record(took?);
        }
        Ok(latency)
    }

    /// One, and how long it took since it was due.
    async fn once(&self, load: &Load, due: Instant) -> Result<Duration, Failure> {
        match timeout(self.limit, load.once()).await {
            Ok(Ok(())) => Ok(due.elapsed()),
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::timed_out(
                "bench",
                format!("no answer within {:?}", self.limit),
            )),
        }
    }

    fn show(&self, latency: &Latency, began: Instant) {
        let count = latency.count();
        if count.is_multiple_of(STEP) {
            self.bar.set_position(elapsed(began));
            self.bar.set_message(format!("{count} done"));
        }
    }
}

use std::fmt;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// Round trips, or other times, with their distribution: from 1 ns to an hour, to three digits.
#[derive(Debug, Clone)]
pub(crate) struct Latency {
    histogram: Histogram<u64>,
}

/// What is told of them, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Summary {
    pub(crate) count: u64,
    pub(crate) min_ms: f64,
    pub(crate) mean_ms: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
    pub(crate) max_ms: f64,
}

const HOUR: u64 = 3_600_000_000_000;

impl Latency {
    pub(crate) fn new() -> Self {
        let histogram = Histogram::new_with_bounds(1, HOUR, 3);
        Self {
            histogram: histogram.expect("the bounds are constants, and in order"),
        }
    }

    pub(crate) fn record(&mut self, time: Duration) {
        let nanos = u64::try_from(time.as_nanos()).unwrap_or(HOUR);
        self.histogram.saturating_record(nanos.clamp(1, HOUR));
    }

    pub(crate) fn add(&mut self, other: &Self) {
        let added = self.histogram.add(&other.histogram);
        added.expect("all have the same bounds");
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// The time within which this share of them was, in milliseconds.
    pub(crate) fn quantile_ms(&self, quantile: f64) -> f64 {
        ms(self.histogram.value_at_quantile(quantile))
    }

    /// A line for each doubling of the time, with a bar as long as its share.
    pub(crate) fn histogram(&self) -> Vec<String> {
        const LONGEST: u64 = 40;
        let steps: Vec<_> = self
            .histogram
            .iter_log(1_000, 2.0)
            .map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
            .collect();
        let most = steps
            .iter()
            .map(|(_, count)| *count)
            .max()
            .unwrap_or(1)
            .max(1);
        let first = steps.iter().position(|(_, count)| *count > 0).unwrap_or(0);
        let shown = steps.iter().skip(first).map(|(until, count)| {
            let length = usize::try_from(count * LONGEST / most).unwrap_or(0);
            format!(
                "  up to {:>10.3} ms {count:>8}  {}",
                ms(*until),
                "#".repeat(length)
            )
        });
        shown.collect()
    }

    /// `None` if there is nothing to tell.
    pub(crate) fn summary(&self) -> Option<Summary> {
        if self.histogram.is_empty() {
            return None;
        }
        Some(Summary {
            count: self.histogram.len(),
            min_ms: ms(self.histogram.min()),
            mean_ms: round(self.histogram.mean() / 1e6),
            p50_ms: self.quantile_ms(0.5),
            p99_ms: self.quantile_ms(0.99),
            max_ms: ms(self.histogram.max()),
        })
    }
}

impl Summary {
    /// Of nothing.
    pub(crate) const fn nothing() -> Self {
        Self {
            count: 0,
            min_ms: 0.0,
            mean_ms: 0.0,
            p50_ms: 0.0,
            p99_ms: 0.0,
            max_ms: 0.0,
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            min_ms,
            p50_ms,
            p99_ms,
            max_ms,
            ..
        } = self;
        write!(
            f,
            "min {min_ms:.3}, p50 {p50_ms:.3}, p99 {p99_ms:.3}, max {max_ms:.3} ms"
        )
    }
}

/// A duration in milliseconds, to the microsecond.
pub(crate) fn millis(time: Duration) -> f64 {
    round(time.as_secs_f64() * 1e3)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "an hour in nanoseconds is below 2^53"
)]
fn ms(nanos: u64) -> f64 {
    round(nanos as f64 / 1e6)
}

/// To three digits behind the point.
pub(crate) fn round(ms: f64) -> f64 {
    (ms * 1e3).round() / 1e3
}

use std::io;

use nacp::proto::AppId;
use serde::{Deserialize, Serialize};

use super::load::Load;
use super::measure::{Measure, Taken};
use crate::args::BenchArgs;
use crate::latency::{Latency, Summary, round};
use crate::output::Output;

/// What was measured.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Measured {
    pub(super) mode: String,
    pub(super) app: String,
    /// What was called.
    what: String,
    concurrency: u32,
    rate: Option<u32>,
    payload_bytes: u64,
    seconds: f64,
    pub(super) count: u64,
    pub(super) per_second: f64,
    /// Payload bytes there and back.
    mib_per_second: f64,
    /// From the call, or from when it was due, to its end.
    pub(super) latency: Percentiles,
}

/// In milliseconds.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(super) struct Percentiles {
    min_ms: f64,
    mean_ms: f64,
    pub(super) p50_ms: f64,
    p90_ms: f64,
    pub(super) p99_ms: f64,
    p999_ms: f64,
    max_ms: f64,
}

impl Percentiles {
    fn new(latency: &Latency) -> Self {
        let summary = latency.summary().unwrap_or_else(Summary::nothing);
        Self {
            min_ms: summary.min_ms,
            mean_ms: summary.mean_ms,
            p50_ms: summary.p50_ms,
            p90_ms: latency.quantile_ms(0.9),
            p99_ms: summary.p99_ms,
            p999_ms: latency.quantile_ms(0.999),
            max_ms: summary.max_ms,
        }
    }
}

impl Measured {
    pub(super) fn new(
        args: &BenchArgs,
        measure: &Measure<'_>,
        load: &Load,
        peer: &AppId,
        taken: &Taken,
    ) -> Self {
        let Taken { latency, took, .. } = taken;
        let count = latency.count();
        let seconds = took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate to three digits")]
        let (count_f, bytes_f) = (count as f64, (count * load.bytes()) as f64);
        Self {
            mode: args.mode.name().to_owned(),
            app: peer.as_str().to_owned(),
            what: load.what().to_owned(),
            concurrency: measure.concurrency,
            rate: args.rate,
            payload_bytes: load.bytes(),
            seconds: round(seconds),
            count,
            per_second: round(count_f / seconds),
            mib_per_second: round(bytes_f / seconds / f64::from(1 << 20)),
            latency: Percentiles::new(latency),
        }
    }

    /// As a table.
    pub(super) fn rows(&self, output: &mut Output) -> io::Result<()> {
        let Self {
            mode,
            concurrency,
            seconds,
            count,
            per_second,
            mib_per_second,
            latency,
            ..
        } = self;
        let Percentiles {
            min_ms,
            mean_ms,
            p50_ms,
            p90_ms,
            p99_ms,
            p999_ms,
            max_ms,
        } = latency;
        output.row(&[
            &"mode",
            &"concurrency",
            &"seconds",
            &"count",
            &"per_second",
            &"mib_per_second",
            &"min_ms",
            &"mean_ms",
            &"p50_ms",
            &"p90_ms",
            &"p99_ms",
            &"p999_ms",
            &"max_ms",
        ])?;
        output.row(&[
            mode,
            concurrency,
            seconds,
            count,
            per_second,
            mib_per_second,
            min_ms,
            mean_ms,
            p50_ms,
            p90_ms,
            p99_ms,
            p999_ms,
            max_ms,
        ])
    }

    /// For people.
    pub(super) fn lines(&self) -> [String; 3] {
        let Self {
            mode,
            app,
            what,
            concurrency,
            seconds,
            count,
            per_second,
            mib_per_second,
            latency,
            ..
        } = self;
        let app = crate::escape::escaped(app);
        let flight = match self.rate {
            Some(rate) => format!("{rate} a second"),
            None => format!("{concurrency} in flight"),
        };
        let Percentiles {
            min_ms,
            p50_ms,
            p90_ms,
            p99_ms,
            p999_ms,
            max_ms,
            ..
        } = latency;
        [
            format!("{mode}: {what} at {app}, {flight}"),
            format!("  {count} in {seconds:.2} s: {per_second:.0}/s, {mib_per_second:.1} MiB/s"),
            format!(
                "  min {min_ms:.3}, p50 {p50_ms:.3}, p90 {p90_ms:.3}, p99 {p99_ms:.3}, \
                 p99.9 {p999_ms:.3}, max {max_ms:.3} ms"
            ),
        ]
    }
}

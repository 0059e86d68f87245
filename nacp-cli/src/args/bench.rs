use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{DialArgs, duration, share};
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  nacp-cli bench rtt                          a peer inside this process
  nacp-cli bench throughput -c 256 host:7420  256 requests in flight
  nacp-cli bench rtt --rate 5000 host:7420    5000 a second, however slow it is
  nacp-cli bench rtt --save before.json host:7420
  nacp-cli bench rtt --compare before.json --max-regress 5% host:7420

rtt has one request in flight and throughput many; large sends big ones, and
small answers come back; signal counts signals until their ACK, and notify the
events that one subscription gets. The last two take a peer such as
`nacp-cli serve`. With --rate a request counts from the moment when it was due,
so that a stall of the peer shows in all that it delayed (no coordinated
omission).";

/// Measure a peer: round trips, throughput, signals, notifies, bulk
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct BenchArgs {
    /// What
    #[arg(value_enum)]
    pub(crate) mode: BenchMode,

    /// [APP@]HOST:PORT; a peer inside this process if left away
    #[arg(env = "NACP_TARGET", hide_env = true)]
    pub(crate) target: Option<Target>,

    /// How long to measure
    #[arg(short, long, default_value = "5s", value_name = "TIME", value_parser = duration)]
    pub(crate) duration: Duration,

    /// In flight [default: 1; throughput, signal: 64]
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub(crate) concurrency: Option<u32>,

    /// Requests a second, whether answers come or not
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) rate: Option<u32>,

    /// Payload [default: 64; large: 16 MiB; signal: none]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub(crate) size: Option<u32>,

    /// Write the result there, to compare with
    #[arg(long, hide_short_help = true, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Compare with a saved result; if worse, exit code 1
    #[arg(long, value_name = "FILE")]
    pub(crate) compare: Option<PathBuf>,

    /// How much worse it may be than what --compare names
    #[arg(long, hide_short_help = true, value_name = "SHARE", default_value = "5%", value_parser = share)]
    pub(crate) max_regress: f64,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BenchMode {
    /// Round trips, one after another
    Rtt,
    /// Many requests in flight
    Throughput,
    /// Signals until their ACK
    Signal,
    /// Events of one subscription
    Notify,
    /// Large payloads there
    Large,
}

impl BenchMode {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::Throughput => "throughput",
            Self::Signal => "signal",
            Self::Notify => "notify",
            Self::Large => "large",
        }
    }
}

use std::time::Duration;

use clap::Args;

use super::{DialArgs, duration};
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  nacp-cli ping                           the peer that `nacp-cli serve` runs
  nacp-cli ping -n 5 -i 200ms host:7420   five beats, five a second
  nacp-cli ping -n 9 --size 100000 -H     large ones, a histogram at the end
  nacp-cli ping -n 5 --json host:7420     one document with the summary

Without -n it goes on until Ctrl-C. A beat is a request to NApp.heartbeat, which
every app answers.";

/// Measure round trips to a peer until Ctrl-C
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct PingArgs {
    /// [APP@]HOST:PORT [default: 127.0.0.1:7420, where `serve` listens]
    #[arg(env = "NACP_TARGET", hide_env = true)]
    pub(crate) target: Option<Target>,

    /// Stop after so many
    #[arg(short = 'n', short_alias = 'c', long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Time from one to the next
    #[arg(short, long, default_value = "1s", value_name = "TIME", value_parser = duration)]
    pub(crate) interval: Duration,

    /// Add so many bytes to each beat
    #[arg(short, long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(..=1 << 30))]
    pub(crate) size: Option<u32>,

    /// Show how the round trips are distributed
    #[arg(short = 'H', long)]
    pub(crate) histogram: bool,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

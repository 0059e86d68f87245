use std::time::Duration;

use clap::{Args, ValueEnum};

use super::{DialArgs, duration};
use crate::target::Target;

const EXAMPLES: &str = r#"Examples:
  nacp-cli check -q weather@host:7420      for cron: the exit code tells
  nacp-cli check -w 50ms -c 500ms --format nagios host:7420
  nacp-cli check --ability today --format prometheus host:7420

The time is the slowest of -n beats. With --format nagios the exit code is 0 OK,
1 WARNING, 2 CRITICAL or 3 UNKNOWN; otherwise it is that of every command, and 1
if -c or --ability fails. A Kubernetes probe:
exec: {command: [nacp-cli, check, -q, "127.0.0.1:7420"]}"#;

/// Check a peer once, for cron, Kubernetes, Nagios or Prometheus
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CheckArgs {
    /// [APP@]HOST:PORT [default: 127.0.0.1:7420, where `serve` listens]
    #[arg(env = "NACP_TARGET", hide_env = true)]
    pub(crate) target: Option<Target>,

    /// Beats to make
    #[arg(short = 'n', long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) count: u32,

    /// A beat that takes longer is a warning
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) warn: Option<Duration>,

    /// A beat that takes longer is a failure
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    pub(crate) critical: Option<Duration>,

    /// The peer must declare this ability; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) ability: Vec<String>,

    /// Form of the verdict [default: text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<CheckFormat>,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

/// Who reads the verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum CheckFormat {
    Text,
    Json,
    Nagios,
    Prometheus,
}

use clap::Args;

use super::DialArgs;
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  nacp-cli watch weather@host:7420       a line for each change, until Ctrl-C
  nacp-cli watch --json host:7420 | jq -r .state
  nacp-cli watch -n 1 host:7420          the first change alone

Broken connections are made again. It ends with 6 when the link is dropped for
good: the peer said good-bye, or did not come back within the grace of 120 s.";

/// Watch the link to a peer: one line per change
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct WatchArgs {
    /// [APP@]HOST:PORT [default: 127.0.0.1:7420, where `serve` listens]
    #[arg(env = "NACP_TARGET", hide_env = true)]
    pub(crate) target: Option<Target>,

    /// Stop after so many changes
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) count: Option<u64>,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

use clap::Args;

use super::DialArgs;
use crate::target::Target;

const EXAMPLES: &str = "\
Examples:
  nacp-cli probe                          probe a peer inside this process
  nacp-cli probe 127.0.0.1:7420           whoever answers there
  nacp-cli probe weather@[::1]:7420       a certain app
  nacp-cli probe --json host:7420 | jq .heartbeat.p99_ms

TARGET is [APP@]HOST:PORT. Without APP the AppId is learned, which peers of the TypeScript
implementation do not answer to: name theirs.";

/// Diagnose a peer, stage by stage; without TARGET one of its own
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ProbeArgs {
    /// [APP@]HOST:PORT; a peer inside this process if left away
    #[arg(env = "NACP_TARGET", hide_env = true)]
    pub(crate) target: Option<Target>,

    /// Heartbeat round trips to make
    #[arg(short = 'n', long, default_value_t = 10, value_name = "N")]
    pub(crate) count: u32,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

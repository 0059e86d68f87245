use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::{DialArgs, duration};
use crate::target::Target;

const EXAMPLES: &str = r#"Examples:
  nacp-cli probe                          probe a peer inside this process
  nacp-cli probe 127.0.0.1:7420           whoever answers there
  nacp-cli probe weather@[::1]:7420       a certain app
  nacp-cli probe --resume host:7420       cut the connection, and come back
  nacp-cli probe --ability add -d '{"a":1,"b":2}' host:7420
  nacp-cli probe --json host:7420 | jq .heartbeat.p99_ms

TARGET is [APP@]HOST:PORT. Without APP the AppId is learned, which peers of the
TypeScript implementation do not answer to: name theirs."#;

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

    /// Call an ability too
    #[arg(long, value_name = "NAME")]
    pub(crate) ability: Option<String>,

    /// Its argument: JSON, @FILE, or - for standard input
    #[arg(
        short,
        long,
        value_name = "JSON",
        requires = "ability",
        allow_hyphen_values = true
    )]
    pub(crate) data: Option<String>,

    /// Cut the connection, come back: is the link resumed?
    #[arg(long)]
    pub(crate) resume: bool,

    /// Again and again, with this pause [default: 5s]
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        default_missing_value = "5s",
        require_equals = true,
        value_parser = duration
    )]
    pub(crate) watch: Option<Duration>,

    /// Report for a bug tracker: no payloads, no secrets
    #[arg(long, value_name = "FILE")]
    pub(crate) report: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

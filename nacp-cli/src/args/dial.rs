use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use nacp::proto::AppId;

use super::duration;
use crate::target::Target;

/// The heading of these options.
pub(crate) const CONNECTION: &str = "Connection";

/// How to reach the peer.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = CONNECTION)]
pub(crate) struct DialArgs {
    /// Limit of the run, or of each wait [default: 10s]
    #[arg(
        long,
        global = true,
        env = "NACP_TIMEOUT",
        hide_env = true,
        value_name = "TIME",
        value_parser = duration
    )]
    pub(crate) timeout: Option<Duration>,

    /// Limit of resolving and connecting, inside of --timeout [default: 5s]
    #[arg(
        long,
        global = true,
        env = "NACP_CONNECT_TIMEOUT",
        hide_env = true,
        value_name = "TIME",
        value_parser = duration,
        hide_short_help = true
    )]
    pub(crate) connect_timeout: Option<Duration>,

    /// Own AppId [default: nacp-cli- and 8 random digits]
    #[arg(
        long = "as",
        global = true,
        env = "NACP_AS",
        hide_env = true,
        value_name = "APP"
    )]
    pub(crate) own: Option<AppId>,

    /// Named target of the config file, with what belongs to it
    #[arg(
        long,
        global = true,
        env = "NACP_CONTEXT",
        hide_env = true,
        value_name = "NAME",
        hide_short_help = true
    )]
    pub(crate) context: Option<String>,

    /// File with the credential to register with, mode 0600; or NACP_AUTH
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    pub(crate) auth_file: Option<PathBuf>,
}

/// Whom to talk to, for commands that take other things first.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = CONNECTION)]
pub(crate) struct TargetArg {
    /// [APP@]HOST:PORT [default: 127.0.0.1:7420, where `serve` listens]
    #[arg(
        short,
        long,
        env = "NACP_TARGET",
        hide_env = true,
        value_name = "TARGET"
    )]
    pub(crate) target: Option<Target>,
}

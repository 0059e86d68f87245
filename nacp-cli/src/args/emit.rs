use clap::Args;
use nacp::transport::Address;

use super::{DialArgs, TargetArg};

const EXAMPLES: &str = r#"Examples:
  nacp-cli emit -t log@host:7420 job:7:done '{"ok":true}'  to one peer
  printf 'a:b 1\na:c {"x":2}\n' | nacp-cli emit -t host:7420  NAME JSON a line
  nacp-cli emit --listen 127.0.0.1:7421 a:b 1              to whoever comes

The event goes to peers that have subscribed to its name. It is waited for a
subscription as long as --timeout says; if none comes, the exit code is 1."#;

/// Emit events to peers that have subscribed to us
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct EmitArgs {
    /// Name of the event; without it, lines of NAME JSON are read from standard input
    pub(crate) name: Option<String>,

    /// What it carries: JSON, @FILE, or - for standard input [default: an empty map]
    #[arg(value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,

    /// Wait to be dialled there, instead of dialling
    // A target of the environment is no contradiction to it.
    #[arg(long, value_name = "HOST:PORT", value_parser = Address::to_listen_on)]
    pub(crate) listen: Option<Address>,

    #[command(flatten)]
    pub(crate) target: TargetArg,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

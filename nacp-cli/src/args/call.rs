use clap::Args;

use super::{DialArgs, TargetArg};

const EXAMPLES: &str = r#"Examples:
  nacp-cli call add -d '{"a":1,"b":2}'            the peer that `nacp-cli serve` runs
  nacp-cli call -t weather@host:7420 today        a certain app
  nacp-cli call store -d @record.json             the argument from a file
  echo '[1,2,3]' | nacp-cli call sum -d -         the argument from standard input

What JSON lacks is written {"$bytes":"00ff"}, {"$float":"NaN"}, {"$bigint":"1"},
{"$map":[[1,2]]} or {"$tag":1,"value":0}, and is shown so too."#;

/// Call an ability of a peer and print its answer
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The ability
    pub(crate) name: String,

    /// The argument: JSON, @FILE, or - for standard input [default: an empty map]
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetArg,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

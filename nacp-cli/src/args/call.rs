use clap::Args;

use super::{DialArgs, TargetArg};

const EXAMPLES: &str = r#"Examples:
  nacp-cli call add -d '{"a":1,"b":2}'      the peer that `nacp-cli serve` runs
  nacp-cli call countdown -d '{"from":3}'   an event: its items, then its answer
  nacp-cli call -t weather@host:7420 today  a certain app
  nacp-cli call store -d @record.json       the argument from a file
  echo '[1,2,3]' | nacp-cli call sum -d -   the argument from standard input

While an event runs, the keys p, r and a pause, resume and abort it, if standard
input is a terminal. Ctrl-C aborts it and waits for its answer; once more leaves
it. Of an event, --timeout limits the silence between two items.

What JSON lacks is written {"$bytes":"00ff"}, {"$float":"NaN"}, {"$bigint":"1"},
{"$map":[[1,2]]} or {"$tag":1,"value":0}, and is shown so too."#;

/// Call an ability or an event of a peer and print its answer
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct CallArgs {
    /// The ability or event
    pub(crate) name: String,

    /// The argument: JSON, @FILE, or - for standard input [default: an empty map]
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,

    /// It is an event, whether the peer declares it or not
    #[arg(long)]
    pub(crate) event: bool,

    #[command(flatten)]
    pub(crate) target: TargetArg,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

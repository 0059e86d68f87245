use std::time::Duration;

use clap::Args;

use super::{DialArgs, TargetArg, duration};

const EXAMPLES: &str = "\
Examples:
  nacp-cli sub 'clock:*'                    the peer that `nacp-cli serve` runs
  nacp-cli sub -n 1 clock:tick              the next one
  nacp-cli sub --idle 5s 'clock:*' 'job:*'  until 5 s have passed without any
  nacp-cli sub --format '{name} {/user/id}' 'login:*'
  nacp-cli sub --json 'clock:*' | jq .payload

Names are segments joined by `:`; in a pattern * stands for exactly one. Broken
connections are made again, and standard error tells. So it does of a pattern
that the peer refuses afterwards; the others go on, and the exit code at the end
is of the first that was lost. A template has {name}, {payload}, {app},
{pattern}, {missed}, and {/a/b} for a part of the payload (a JSON pointer).";

/// Subscribe to events of a peer and print them
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SubArgs {
    /// Names or patterns
    #[arg(required = true, value_name = "PATTERN")]
    pub(crate) patterns: Vec<String>,

    /// Stop after so many
    #[arg(short = 'n', short_alias = 'C', long, value_name = "N")]
    pub(crate) count: Option<u64>,

    /// Stop after so much silence
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) idle: Option<Duration>,

    /// Print each so
    #[arg(long, value_name = "TEMPLATE")]
    pub(crate) format: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetArg,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

use clap::{Args, ValueEnum};

use super::{DialArgs, TargetArg};

const EXAMPLES: &str = r#"Examples:
  nacp-cli signal -t host:7420 --as console-1 REQUEST abort
  nacp-cli signal -t host:7420 --as console-1 REQUEST normal -d '{"speed":2}'

REQUEST is the id that `nacp-cli call` prints on standard error. A native peer
takes signals of an event only from the app that started it: use the same --as.
That a signal was delivered does not say that the event still runs."#;

/// Send a signal to an event that runs at a peer
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct SignalArgs {
    /// The id of the request that started the event
    pub(crate) request: String,

    /// What to tell it
    #[arg(value_enum)]
    pub(crate) kind: SignalKind,

    /// What a normal signal carries: JSON, @FILE, or - for standard input
    #[arg(short, long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) data: Option<String>,

    #[command(flatten)]
    pub(crate) target: TargetArg,

    #[command(flatten)]
    pub(crate) dial: DialArgs,
}

/// The kinds of signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum SignalKind {
    Normal,
    Pause,
    Resume,
    Abort,
}

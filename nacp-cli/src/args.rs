//! What can be typed.

mod bench;
mod call;
mod check;
mod decode;
mod dial;
mod duration;
mod emit;
mod explain;
mod generate;
mod ping;
mod probe;
mod proxy;
mod serve;
mod signal;
mod sub;
mod top;
mod watch;

use anstream::ColorChoice;
use clap::{Arg, ArgAction, Args as ClapArgs, Parser, Subcommand, ValueEnum};

pub(crate) use bench::{BenchArgs, BenchMode};
pub(crate) use call::CallArgs;
pub(crate) use check::{CheckArgs, CheckFormat};
pub(crate) use decode::{DecodeArgs, What};
pub(crate) use dial::{CONNECTION, DialArgs, TargetArg};
pub(crate) use duration::duration;
pub(crate) use emit::EmitArgs;
pub(crate) use explain::ExplainArgs;
pub(crate) use generate::{CompletionsArgs, ManArgs};
pub(crate) use ping::PingArgs;
pub(crate) use probe::ProbeArgs;
pub(crate) use proxy::ProxyArgs;
pub(crate) use serve::{ServeArgs, share};
pub(crate) use signal::{SignalArgs, SignalKind};
pub(crate) use sub::SubArgs;
pub(crate) use top::TopArgs;
pub(crate) use watch::WatchArgs;

use crate::output::Format;

/// The same for `-h` and `--help`, so that it fits one screen; each command's own tells more.
const TEMPLATE: &str = "\
Usage: nacp-cli [OPTIONS] COMMAND; `nacp-cli COMMAND --help` gives examples
{subcommands}

Options: -o human|json|ndjson|csv, --json, -q, -v (-vv, -vvv), --no-progress, -V
  --context NAME, --as APP, --timeout TIME, --connect-timeout TIME, --color WHEN
Exit codes: 0 fine, or nobody reads on · 1 the peer said no · 2 usage
  3 cannot connect · 4 handshake refused · 5 timed out · 6 link lost
  7 protocol violation · 8 local problem · 130 interrupted
";

/// Probe, call and watch NACP peers
#[derive(Debug, Parser)]
#[command(
    name = "nacp-cli",
    version,
    disable_help_subcommand = true,
    help_template = TEMPLATE,
    mut_args = hidden_here,
)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: GlobalArgs,

    /// So that they may come before the command, too; the commands that dial have them as their own.
    #[command(flatten)]
    dial: DialArgs,

    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// Commands that do not dial take the options of those that do, and do not show them.
fn hidden_here(arg: Arg) -> Arg {
    let is_dial = arg.get_help_heading() == Some(CONNECTION);
    arg.hide(is_dial)
}

/// How results are shown; the same for every command.
#[derive(Debug, Clone, ClapArgs)]
#[command(next_help_heading = "Output")]
pub(crate) struct GlobalArgs {
    /// Print one JSON document (streams: one a line); short for -o json
    #[arg(long, global = true)]
    pub(crate) json: bool,

    /// Form of the results
    #[arg(
        short,
        long,
        global = true,
        env = "NACP_OUTPUT",
        hide_env = true,
        value_name = "FORMAT",
        hide_short_help = true,
        value_enum
    )]
    pub(crate) output: Option<Format>,

    /// When to colour [default: auto]; NO_COLOR is obeyed
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        hide_short_help = true,
        value_enum
    )]
    pub(crate) color: Option<Color>,

    /// Say nothing on standard error but what went wrong
    #[arg(short, long, global = true, hide_short_help = true)]
    pub(crate) quiet: bool,

    /// Log what the node does to standard error; -vv for messages, -vvv for frames, too
    #[arg(short, long, global = true, action = ArgAction::Count, hide_short_help = true)]
    pub(crate) verbose: u8,

    /// Show no progress bar
    #[arg(long, global = true, hide_short_help = true)]
    pub(crate) no_progress: bool,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Command {
    Probe(ProbeArgs),
    Ping(PingArgs),
    Check(CheckArgs),
    Watch(WatchArgs),
    Top(TopArgs),
    Call(CallArgs),
    Signal(SignalArgs),
    Sub(SubArgs),
    Emit(EmitArgs),
    Serve(ServeArgs),
    Bench(BenchArgs),
    Proxy(ProxyArgs),
    Decode(DecodeArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

impl Command {
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Probe(_) => "probe",
            Self::Ping(_) => "ping",
            Self::Check(_) => "check",
            Self::Watch(_) => "watch",
            Self::Top(_) => "top",
            Self::Call(_) => "call",
            Self::Signal(_) => "signal",
            Self::Sub(_) => "sub",
            Self::Emit(_) => "emit",
            Self::Serve(_) => "serve",
            Self::Bench(_) => "bench",
            Self::Proxy(_) => "proxy",
            Self::Decode(_) => "decode",
            Self::Explain(_) => "explain",
            Self::Completions(_) => "completions",
            Self::Man(_) => "man",
        }
    }
}

impl Command {
    /// Whether it prints a document for each thing that happens, and not one at the end.
    pub(crate) const fn is_stream(&self) -> bool {
        match self {
            Self::Watch(_) | Self::Sub(_) | Self::Serve(_) | Self::Proxy(_) => true,
            Self::Top(args) => !args.once,
            Self::Probe(args) => args.watch.is_some(),
            Self::Ping(_)
            | Self::Check(_)
            | Self::Call(_)
            | Self::Signal(_)
            | Self::Emit(_)
            | Self::Bench(_)
            | Self::Decode(_)
            | Self::Explain(_)
            | Self::Completions(_)
            | Self::Man(_) => false,
        }
    }

    /// Whether its results have the form of a table.
    pub(crate) const fn has_table(&self) -> bool {
        matches!(
            self,
            Self::Probe(_)
                | Self::Ping(_)
                | Self::Watch(_)
                | Self::Top(_)
                | Self::Sub(_)
                | Self::Bench(_)
                | Self::Explain(_)
        )
    }
}

impl GlobalArgs {
    pub(crate) fn format(&self) -> Format {
        if self.json {
            Format::Json
        } else {
            self.output.unwrap_or_default()
        }
    }

    /// What to colour; with `auto`, a stream that is no terminal gets none.
    pub(crate) fn color(&self) -> ColorChoice {
        match self.color {
            None | Some(Color::Auto) => ColorChoice::Auto,
            Some(Color::Always) => ColorChoice::AlwaysAnsi,
            Some(Color::Never) => ColorChoice::Never,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Args, TEMPLATE};
    use crate::exit::Exit;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn every_exit_code_is_listed() {
        for exit in Exit::ALL {
            let entry = format!("{} {}", exit.number(), exit.meaning());
            assert!(TEMPLATE.contains(&entry), "{entry}");
        }
    }
}

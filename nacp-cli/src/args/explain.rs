use clap::Args;

const EXAMPLES: &str = "\
Examples:
  nacp-cli explain appId-in-use    a reason that a peer or a report gave
  nacp-cli explain 4               an exit code of this program
  nacp-cli explain                 all reasons there are";

/// Explain a reason or an exit code: what it means, what to try
#[derive(Debug, Clone, Args)]
#[command(after_long_help = EXAMPLES)]
pub(crate) struct ExplainArgs {
    /// A reason, such as appId-in-use, or an exit code
    pub(crate) code: Option<String>,
}

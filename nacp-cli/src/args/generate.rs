use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS: &str = "\
Examples:
  nacp-cli completions bash > /etc/bash_completion.d/nacp-cli
  nacp-cli completions zsh > ~/.zfunc/_nacp-cli
  nacp-cli completions fish > ~/.config/fish/completions/nacp-cli.fish";

/// Print completions for a shell
#[derive(Debug, Clone, Args)]
#[command(after_long_help = COMPLETIONS)]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub(crate) shell: Shell,
}

const MAN: &str = "\
Examples:
  nacp-cli man | man -l -                 read it
  nacp-cli man --dir /usr/share/man/man1  a page for each command, too";

/// Print the manual page, or write all pages into a folder
#[derive(Debug, Clone, Args)]
#[command(after_long_help = MAN)]
pub(crate) struct ManArgs {
    /// Folder for the pages of the program and of each command
    #[arg(long, value_name = "FOLDER")]
    pub(crate) dir: Option<PathBuf>,
}

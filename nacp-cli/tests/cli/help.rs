//! The helps: how long they are, and that what they show works.

use crate::support::{Run, command, finish};

/// What a terminal shows at once.
const ROWS: usize = 24;
const COLUMNS: usize = 80;

fn help(args: &[&str]) -> Run {
    let mut command = command();
    command.args(args).env("COLUMNS", COLUMNS.to_string());
    finish(command.spawn().unwrap())
}

/// The commands there are, as the program lists them.
pub(crate) fn commands() -> Vec<String> {
    let help = help(&["--help"]);
    let listed = help.stdout.lines().skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    let names: Vec<_> = listed
        .map(|line| line.split_whitespace().next().unwrap().to_owned())
        .collect();
    assert!(names.len() > 10, "{help:?}");
    names
}

#[test]
fn the_short_help_of_every_command_fits_one_screen() {
    for command in commands() {
        let run = help(&[&command, "-h"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        // One row is for the prompt.
        let rows = run.stdout.lines().count();
        assert!(rows < ROWS, "{command} takes {rows} rows: {}", run.stdout);
        fits(&run.stdout);
    }
}

#[test]
fn the_help_of_the_program_fits_one_screen_and_lists_every_exit_code() {
    for flag in ["-h", "--help"] {
        let run = help(&[flag]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{flag}");
        assert!(run.stdout.lines().count() < ROWS, "{}", run.stdout);
        fits(&run.stdout);
        for code in ["0 fine", "1 the peer said no", "2 usage", "130 interrupted"] {
            assert!(run.stdout.contains(code), "{code} is not in {}", run.stdout);
        }
    }
}

#[test]
fn the_long_help_of_every_command_has_examples_and_is_not_broken_by_a_narrow_terminal() {
    for command in commands() {
        let run = help(&[&command, "--help"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{command}");
        fits(&run.stdout);
        let (_, after) = run.stdout.split_once("\nExamples:\n").unwrap();
        let example = format!("nacp-cli {command}");
        assert!(after.contains(&example), "{command}: {after}");
    }
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = help(&["completions", shell]);
        assert_eq!(script.code, 0, "{script:?}");
        for command in commands() {
            assert!(script.stdout.contains(&command), "{shell}: {command}");
        }
    }
    let page = help(&["man"]);
    assert_eq!(page.code, 0);
    assert!(page.stdout.contains(".TH nacp-cli 1"), "{page:?}");
    let folder = std::env::temp_dir().join(format!("nacp-cli-man-{}", std::process::id()));
    assert_eq!(help(&["man", "--dir", folder.to_str().unwrap()]).code, 0);
    for command in commands() {
        let page = std::fs::read_to_string(folder.join(format!("nacp-cli-{command}.1"))).unwrap();
        assert!(page.contains("Examples:"), "{command}: {page}");
    }
    assert!(folder.join("nacp-cli.1").is_file());
    std::fs::remove_dir_all(&folder).unwrap();
}

fn fits(help: &str) {
    for line in help.lines() {
        assert!(line.chars().count() <= COLUMNS, "{line}");
    }
}

use std::env;
use std::io;

use anstream::ColorChoice;
use clap::error::ErrorKind;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Output};

/// Shows the help or version that was asked for, or what is wrong with the arguments.
pub(crate) fn answer(error: &clap::Error) -> Exit {
    let is_wrong = error.use_stderr();
    let printed = error.print();
    if !is_wrong {
        return written(printed);
    }
    let Some(format) = format_asked_for() else {
        return Exit::Usage;
    };
    let failure = Failure::usage(sentence(error));
    let mut output = Output::new(format, ColorChoice::Never, true);
    match output.failure_document("error", &failure) {
        Ok(()) => Exit::Usage,
        Err(error) => written(Err(error)),
    }
}

/// How a run ends whose output could not be written: a reader that has gone wants no more.
pub(crate) fn written(result: io::Result<()>) -> Exit {
    match result {
        Ok(()) => Exit::Fine,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
        Err(error) => {
            let failure = Failure::local("output", format!("cannot write the output: {error}"));
            let output = Output::new(Format::Human, ColorChoice::Auto, false);
            output.notes().failure("", &failure);
            Exit::Local
        }
    }
}

/// The arguments could not be read, so they are looked through for this one alone.
fn format_asked_for() -> Option<Format> {
    let mut previous = String::new();
    for argument in env::args_os().skip(1) {
        let argument = argument.to_string_lossy().into_owned();
        let value = match argument.as_str() {
            "--json" => Some("json"),
            value if matches!(previous.as_str(), "-o" | "--output") => Some(value),
            joined => joined
                .strip_prefix("--output=")
                .or_else(|| joined.strip_prefix("-o")),
        };
        match value.map(|value| value.trim_start_matches('=')) {
            Some("json") => return Some(Format::Json),
            Some("ndjson") => return Some(Format::Ndjson),
            _ => previous = argument,
        }
    }
    None
}

/// What is wrong, without usage and tips.
fn sentence(error: &clap::Error) -> String {
    if error.kind() == ErrorKind::MissingSubcommand {
        return "a command is missing".to_owned();
    }
    let rendered = error.render().to_string();
    let sentence = rendered.split("\n\n").next().unwrap_or_default();
    let sentence = sentence.trim_start_matches("error: ");
    sentence.split_whitespace().collect::<Vec<_>>().join(" ")
}

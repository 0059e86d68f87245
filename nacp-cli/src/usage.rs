use std::env;
use std::io;

use anstream::ColorChoice;
use clap::error::ErrorKind;

use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Output};

/// Shows the help or version that was asked for, or what is wrong with the arguments; the exit code.
pub(crate) fn answer(error: &clap::Error) -> u8 {
    let is_wrong = error.use_stderr();
    let printed = error.print();
    if !is_wrong {
        return written(printed).number();
    }
    if value_of(&["--format"]).as_deref() == Some("nagios") {
        let mut output = Output::new(Format::Human, ColorChoice::Never, true);
        return match output.plain(format_args!("NACP UNKNOWN - {}", sentence(error))) {
            Ok(()) => NAGIOS_UNKNOWN,
            Err(error) => written(Err(error)).number(),
        };
    }
    let Some(format) = format_asked_for() else {
        return Exit::Usage.number();
    };
    let failure = Failure::usage(sentence(error));
    let mut output = Output::new(format, ColorChoice::Never, true);
    match output.failure_document("error", &failure) {
        Ok(()) => Exit::Usage.number(),
        Err(error) => written(Err(error)).number(),
    }
}

/// What `check --format nagios` ends with if it cannot tell.
const NAGIOS_UNKNOWN: u8 = 3;

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

fn format_asked_for() -> Option<Format> {
    if env::args_os().any(|argument| argument == "--json") {
        return Some(Format::Json);
    }
    match value_of(&["-o", "--output"])?.as_str() {
        "json" => Some(Format::Json),
        "ndjson" => Some(Format::Ndjson),
        _ => None,
    }
}

/// The value of an option. The arguments could not be read, so they are looked through for this one
/// alone.
fn value_of(names: &[&str]) -> Option<String> {
    let arguments = || {
        env::args_os()
            .skip(1)
            .map(|text| text.to_string_lossy().into_owned())
    };
    let behind = arguments().zip(arguments().skip(1));
    let apart = behind
        .filter(|(name, _)| names.contains(&name.as_str()))
        .map(|(_, value)| value);
    let joined = arguments().filter_map(|argument| {
        let value = names.iter().find_map(|name| argument.strip_prefix(name))?;
        Some(value.trim_start_matches('=').to_owned()).filter(|value| !value.is_empty())
    });
    apart.chain(joined).next()
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

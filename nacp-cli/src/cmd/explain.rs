use serde::Serialize;

use crate::args::ExplainArgs;
use crate::exit::Exit;
use crate::failure::{Failure, Stop};
use crate::output::{Output, Tone};
use crate::reasons::{self, Known};

#[derive(Serialize)]
struct Explained {
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<ExitCode>,
    reasons: Vec<&'static Known>,
}

#[derive(Serialize)]
struct ExitCode {
    code: Exit,
    meaning: &'static str,
    when: &'static str,
}

pub(crate) fn run(args: &ExplainArgs, output: &mut Output) -> Result<(), Stop> {
    let Some(code) = &args.code else {
        return list(output);
    };
    if let Some(exit) = exit_code(code) {
        return explain_exit(exit, output);
    }
    let known = reasons::find(code).ok_or_else(|| unknown(code))?;
    output.human(Tone::Strong.paint(known.word))?;
    output.human(format_args!("  met as   {}", known.met.words()))?;
    output.human(format_args!("  means    {}", known.meaning))?;
    output.human(format_args!("  heals    {}", known.heals))?;
    output.human(format_args!("  try      {}", known.advice))?;
    rows(std::iter::once(known), output)?;
    let explained = Explained {
        exit_code: None,
        reasons: vec![known],
    };
    Ok(output.document("explain", explained, None)?)
}

fn list(output: &mut Output) -> Result<(), Stop> {
    for known in reasons::all() {
        output.human(format_args!("{:<25} {}", known.word, known.met.words()))?;
    }
    rows(reasons::all(), output)?;
    let explained = Explained {
        exit_code: None,
        reasons: reasons::all().collect(),
    };
    Ok(output.document("explain", explained, None)?)
}

fn explain_exit(exit: Exit, output: &mut Output) -> Result<(), Stop> {
    let heading = format!("exit code {}: {}", exit.number(), exit.meaning());
    output.human(Tone::Strong.paint(heading))?;
    output.human(format_args!("  when     {}", when(exit)))?;
    output.row(&[&"code", &"meaning", &"when"])?;
    output.row(&[&exit.number(), &exit.meaning(), &when(exit)])?;
    let explained = Explained {
        exit_code: Some(ExitCode {
            code: exit,
            meaning: exit.meaning(),
            when: when(exit),
        }),
        reasons: Vec::new(),
    };
    Ok(output.document("explain", explained, None)?)
}

fn rows(reasons: impl Iterator<Item = &'static Known>, output: &mut Output) -> std::io::Result<()> {
    output.row(&[&"word", &"met", &"meaning", &"heals", &"advice"])?;
    for known in reasons {
        output.row(&[
            &known.word,
            &known.met.words(),
            &known.meaning,
            &known.heals,
            &known.advice,
        ])?;
    }
    Ok(())
}

fn exit_code(text: &str) -> Option<Exit> {
    let number: u8 = text.parse().ok()?;
    Exit::ALL.into_iter().find(|exit| exit.number() == number)
}

fn unknown(code: &str) -> Failure {
    let message = format!("there is no reason `{}`", crate::escape::escaped(code));
    let failure = Failure::usage(message);
    match reasons::nearest(code) {
        Some(word) => failure.hint(format!("did you mean {word}?")),
        None => failure.hint("`nacp-cli explain` lists them all"),
    }
}

const fn when(exit: Exit) -> &'static str {
    match exit {
        Exit::Fine => {
            "everything that was asked for was done; also when the reader of the output went away"
        }
        Exit::SaidNo => {
            "the peer was reached and answered no: no such ability, a handler that failed, a threshold that was passed"
        }
        Exit::Usage => {
            "an option, argument, address or file that cannot be: found before anything was dialled"
        }
        Exit::CannotConnect => {
            "the name does not resolve, nothing listens, or the address swallows the packets"
        }
        Exit::Refused => {
            "the connection stands and the register was refused, or another app answered"
        }
        Exit::TimedOut => "no answer came within --timeout: to the register, a beat or a call",
        Exit::LinkLost => "the connection ended before the answer came",
        Exit::Violation => "what came was not NACP: wrong frames, or messages that cannot be read",
        Exit::Local => {
            "something of this machine: a port in use, a full disk, an output that cannot be written"
        }
        Exit::Interrupted => "Ctrl-C, or the system asked the program to end",
    }
}

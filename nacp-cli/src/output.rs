//! Results go to standard output, in the format that was asked for, and everything else to standard
//! error.

mod format;
mod style;

use std::fmt;
use std::io::{self, IsTerminal, StdoutLock, Write};

use anstream::{AutoStream, ColorChoice};
use serde::Serialize;

pub(crate) use format::Format;
pub(crate) use style::Tone;

use crate::escape::harmless;
use crate::exit::Exit;
use crate::failure::Failure;

/// Where results go.
#[derive(Debug)]
pub(crate) struct Output {
    stdout: AutoStream<StdoutLock<'static>>,
    notes: Notes,
    format: Format,
}

/// Where everything else goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Notes {
    color: ColorChoice,
    quiet: bool,
    no_progress: bool,
}

/// What every JSON document has around its own fields.
#[derive(Serialize)]
struct Document<'a, T> {
    schema: String,
    ok: bool,
    exit: Exit,
    #[serde(flatten)]
    body: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

#[derive(Serialize)]
struct Line<T> {
    schema: String,
    #[serde(flatten)]
    body: T,
}

#[derive(Serialize)]
struct Nothing {}

impl Output {
    pub(crate) fn new(format: Format, color: ColorChoice, quiet: bool) -> Self {
        Self {
            stdout: AutoStream::new(io::stdout().lock(), color),
            notes: Notes {
                color,
                quiet,
                no_progress: quiet,
            },
            format,
        }
    }

    /// Shows nothing that moves.
    #[must_use]
    pub(crate) const fn without_progress(mut self, no_progress: bool) -> Self {
        self.notes.no_progress |= no_progress;
        self
    }

    pub(crate) const fn format(&self) -> Format {
        self.format
    }

    pub(crate) const fn is_human(&self) -> bool {
        matches!(self.format, Format::Human)
    }

    /// How many columns there are. A pipe has as many as it takes, so that no line is broken.
    pub(crate) fn width(&self) -> usize {
        let size = terminal_size::terminal_size_of(io::stdout());
        size.map_or(usize::MAX, |(terminal_size::Width(width), _)| {
            usize::from(width)
        })
    }

    /// For what is not a result.
    pub(crate) const fn notes(&self) -> Notes {
        self.notes
    }

    /// One line for people; nothing in the other formats.
    pub(crate) fn human(&mut self, line: impl fmt::Display) -> io::Result<()> {
        if self.is_human() {
            self.plain(line)?;
        }
        Ok(())
    }

    /// One line, whatever the format. Nothing in it takes hold of a terminal but our own colours: in
    /// the strings of a JSON text, other control characters than those it escapes are escaped, too.
    pub(crate) fn plain(&mut self, line: impl fmt::Display) -> io::Result<()> {
        writeln!(self.stdout, "{}", harmless(line.to_string()))?;
        self.stdout.flush()
    }

    /// One row of a table (RFC 4180); nothing in the other formats.
    pub(crate) fn row(&mut self, cells: &[&dyn fmt::Display]) -> io::Result<()> {
        if self.format != Format::Csv {
            return Ok(());
        }
        let cells = cells.iter().map(|cell| quoted(cell.to_string()));
        self.plain(cells.collect::<Vec<_>>().join(","))
    }

    /// Takes another format than was asked for in general.
    pub(crate) const fn set_format(&mut self, format: Format) {
        self.format = format;
    }

    /// There are many documents, each on a line.
    pub(crate) fn stream(&mut self) {
        if self.format == Format::Json {
            self.format = Format::Ndjson;
        }
    }

    /// The one document of a command; nothing for people and in tables.
    pub(crate) fn document(
        &mut self,
        name: &str,
        body: impl Serialize,
        failure: Option<&Failure>,
    ) -> io::Result<()> {
        let exit = failure.map_or(Exit::Fine, |failure| failure.exit);
        let document = Document {
            schema: schema(name),
            ok: exit.is_fine(),
            exit,
            body,
            error: failure,
        };
        match self.format {
            Format::Human | Format::Csv => Ok(()),
            Format::Json => self.plain(serde_json::to_string_pretty(&document)?),
            Format::Ndjson => self.plain(serde_json::to_string(&document)?),
        }
    }

    /// One document of a stream of them, always on one line; nothing for people and in tables.
    pub(crate) fn record(&mut self, name: &str, body: impl Serialize) -> io::Result<()> {
        match self.format {
            Format::Human | Format::Csv => Ok(()),
            Format::Json | Format::Ndjson => {
                let schema = schema(name);
                self.plain(serde_json::to_string(&Line { schema, body })?)
            }
        }
    }

    /// The document of a command that failed before it had anything of its own to tell.
    pub(crate) fn failure_document(&mut self, name: &str, failure: &Failure) -> io::Result<()> {
        self.document(name, Nothing {}, Some(failure))
    }
}

impl Notes {
    /// A word on what happens, unless it was asked to be quiet.
    pub(crate) fn note(self, line: impl fmt::Display) {
        if !self.quiet {
            self.line(line);
        }
    }

    /// Whether somebody sees something that moves, and wants to.
    pub(crate) fn has_progress(self) -> bool {
        !self.no_progress && io::stderr().is_terminal()
    }

    /// What went wrong, and what to try.
    pub(crate) fn failure(self, command: &str, failure: &Failure) {
        if failure.exit == Exit::Interrupted {
            // The user knows who did that.
            return self.note(&failure.message);
        }
        let stage = failure.stage;
        let at = if stage.is_empty() || stage == command || failure.exit == Exit::Usage {
            String::new()
        } else {
            format!(" {stage}:")
        };
        let word = Tone::Bad.paint("error:");
        self.line(format_args!("{word}{at} {}", failure.message));
        if let Some(hint) = &failure.hint {
            let word = Tone::Faint.paint("hint:");
            self.line(format_args!("{word} {hint}"));
        }
    }

    /// What cannot be written to standard error is lost: there is nobody left to tell.
    fn line(self, line: impl fmt::Display) {
        let mut stderr = AutoStream::new(io::stderr().lock(), self.color);
        let _ = writeln!(stderr, "{line}");
    }
}

fn quoted(cell: String) -> String {
    if cell.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", cell.replace('"', "\"\""))
    } else {
        cell
    }
}

fn schema(name: &str) -> String {
    format!("nacp-cli/{name}/1")
}

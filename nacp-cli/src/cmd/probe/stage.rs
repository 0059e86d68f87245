use std::io;
use std::time::Duration;

use serde::Serialize;

use crate::failure::{Explained, Failure};
use crate::latency::millis;
use crate::output::{Output, Tone};

/// How a stage went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Ok,
    Warn,
    Fail,
    Skipped,
}

/// One stage of the diagnosis.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Stage {
    pub(super) name: &'static str,
    pub(super) status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) detail: Option<String>,
    /// The document's `error` has it.
    #[serde(skip)]
    explained: Option<Explained>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) hint: Option<String>,
}

impl Stage {
    pub(super) fn ok(
        name: &'static str,
        took: Option<Duration>,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            name,
            status: Status::Ok,
            ms: took.map(millis),
            detail: Some(detail.into()).filter(|detail| !detail.is_empty()),
            explained: None,
            hint: None,
        }
    }

    /// The stage went through, and something about it is not as it should be.
    #[must_use]
    pub(super) fn warn(mut self, hint: impl Into<String>) -> Self {
        self.status = Status::Warn;
        self.hint = Some(hint.into());
        self
    }

    pub(super) fn failed(failure: &Failure, took: Option<Duration>) -> Self {
        Self {
            name: failure.stage,
            status: Status::Fail,
            ms: took.map(millis),
            detail: Some(failure.message.clone()),
            explained: failure.explained,
            hint: failure.hint.clone(),
        }
    }

    fn skipped(name: &'static str) -> Self {
        Self {
            name,
            status: Status::Skipped,
            ms: None,
            detail: None,
            explained: None,
            hint: None,
        }
    }
}

/// The stages so far, each shown as it ends.
#[derive(Debug)]
pub(super) struct Stages {
    /// What there is to go through, in order.
    plan: Vec<&'static str>,
    pub(super) done: Vec<Stage>,
}

impl Stages {
    pub(super) const fn new(plan: Vec<&'static str>) -> Self {
        Self {
            plan,
            done: Vec::new(),
        }
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.done.iter().any(|stage| stage.name == name)
    }

    pub(super) fn push(&mut self, stage: Stage, output: &mut Output) -> io::Result<()> {
        show(&stage, output)?;
        self.done.push(stage);
        Ok(())
    }

    /// Everything that was not reached.
    pub(super) fn skip_rest(&mut self, output: &mut Output) -> io::Result<()> {
        for name in self.plan.clone() {
            if !self.has(name) {
                self.push(Stage::skipped(name), output)?;
            }
        }
        Ok(())
    }
}

fn show(stage: &Stage, output: &mut Output) -> io::Result<()> {
    let (tone, word) = match stage.status {
        Status::Ok => (Tone::Good, "ok"),
        Status::Warn => (Tone::Doubtful, "warn"),
        Status::Fail => (Tone::Bad, "FAIL"),
        Status::Skipped => (Tone::Faint, "skipped"),
    };
    let time = stage
        .ms
        .map_or_else(String::new, |ms| format!("{ms:.3} ms"));
    output.row(&[
        &stage.name,
        &word.to_lowercase(),
        &stage.ms.map_or_else(String::new, |ms| ms.to_string()),
        &stage
            .detail
            .as_deref()
            .unwrap_or_default()
            .replace('\n', "; "),
        &stage.hint.as_deref().unwrap_or_default(),
    ])?;
    let mut details = stage.detail.iter().flat_map(|detail| detail.lines());
    let line = format!(
        "  {:<10} {} {time:>13}  {}",
        stage.name,
        tone.paint(format_args!("{word:<7}")),
        details.next().unwrap_or_default()
    );
    output.human(line.trim_end())?;
    for more in details {
        output.human(format_args!("{INDENT}{more}"))?;
    }
    if let Some(Explained { meaning, heals }) = stage.explained {
        remark("means:", meaning, output)?;
        remark("heals:", heals, output)?;
    }
    match &stage.hint {
        Some(hint) => remark("hint:", hint, output),
        None => Ok(()),
    }
}

/// A sentence below a stage, over as many lines as it takes.
fn remark(word: &str, text: &str, output: &mut Output) -> io::Result<()> {
    let width = output.width().saturating_sub(INDENT.len()).max(40);
    let options = textwrap::Options::new(width).subsequent_indent("  ");
    for (index, line) in textwrap::wrap(&format!("{word} {text}"), options)
        .iter()
        .enumerate()
    {
        match line.strip_prefix(word).filter(|_| index == 0) {
            Some(rest) => {
                output.human(format_args!("{INDENT}{}{rest}", Tone::Faint.paint(word)))?
            }
            None => output.human(format_args!("{INDENT}{line}"))?,
        }
    }
    Ok(())
}

/// Where details begin.
const INDENT: &str = "                                    ";

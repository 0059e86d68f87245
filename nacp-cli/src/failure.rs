use std::io;
use std::ops::{Deref, DerefMut};

use serde::Serialize;

use crate::exit::Exit;
use crate::reasons::{self, Met};

/// Why a command did not do what it was asked for: a sentence for people, a word for scripts, and
/// what to try.
///
/// Small, because it is the rare half of every result.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
pub(crate) struct Failure(Box<Details>);

#[derive(Debug, Clone, Serialize)]
pub(crate) struct Details {
    #[serde(skip)]
    pub(crate) exit: Exit,
    /// What was being done.
    pub(crate) stage: &'static str,
    /// The specification's word where there is one.
    pub(crate) reason: String,
    pub(crate) message: String,
    /// What came with the peer's no.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<serde_json::Value>,
    /// What the reason means, and when it goes away by itself; of a refusal.
    #[serde(flatten)]
    pub(crate) explained: Option<Explained>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) hint: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize)]
pub(crate) struct Explained {
    pub(crate) meaning: &'static str,
    pub(crate) heals: &'static str,
}

impl Failure {
    /// A failure with the hint that belongs to its reason, if there is one.
    pub(crate) fn new(
        exit: Exit,
        stage: &'static str,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let reason = reason.into();
        let known = reasons::find(&reason).filter(|known| known.met != Met::Here);
        let hint = known.map(|known| known.advice.to_owned());
        Self(Box::new(Details {
            exit,
            stage,
            reason,
            message: message.into(),
            payload: None,
            explained: None,
            hint,
        }))
    }

    /// Tells what the reason means, if that is known.
    #[must_use]
    pub(crate) fn explained(mut self) -> Self {
        self.explained = reasons::find(&self.reason).map(|known| Explained {
            meaning: known.meaning,
            heals: known.heals,
        });
        self
    }

    #[must_use]
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Whether it would be no use to try again.
    pub(crate) fn ends_everything(&self) -> bool {
        matches!(self.exit, Exit::Usage | Exit::Local | Exit::Interrupted)
    }

    /// What the user asked for cannot be.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, "usage", "usage", message)
    }

    /// Something of this machine is in the way: a file, a port, a pipe.
    pub(crate) fn local(stage: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Local, stage, "local", message)
    }

    pub(crate) fn interrupted(stage: &'static str) -> Self {
        Self::new(Exit::Interrupted, stage, "interrupted", "interrupted")
    }

    pub(crate) fn timed_out(stage: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::TimedOut, stage, "timeout", message)
    }
}

impl Deref for Failure {
    type Target = Details;

    fn deref(&self) -> &Details {
        &self.0
    }
}

impl DerefMut for Failure {
    fn deref_mut(&mut self) -> &mut Details {
        &mut self.0
    }
}

/// What ends a command early.
#[derive(Debug)]
pub(crate) enum Stop {
    Failed(Failure),
    /// As [`Failed`](Self::Failed), and standard output has its document already.
    Told(Failure),
    /// Standard output takes nothing more.
    Output(io::Error),
    /// Everything has been told, and another convention than ours asks for this exit code.
    Status(u8),
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Output(error)
    }
}

use async_trait::async_trait;
use nacp_link::Answer;
use nacp_proto::Payload;
use smol_str::SmolStr;

use crate::{AbilityContext, EventContext};

/// Answers the requests for one ability.
///
/// Requests run concurrently, each in a task of its own; a panic of one is answered
/// `processor-failed` and touches no other. Async closures over serde types are handlers by
/// [`Builder::ability`](crate::Builder::ability).
#[async_trait]
pub trait AbilityHandler: Send + Sync + 'static {
    /// Answers one request.
    ///
    /// # Errors
    ///
    /// What the caller is told instead of a result.
    async fn handle(&self, ctx: AbilityContext, payload: Payload) -> Result<Payload, HandlerError>;
}

/// Runs the requests for one event: sends process items while it runs, listens to signals, and
/// answers at the end.
///
/// Concurrency and panics are as for an [`AbilityHandler`].
#[async_trait]
pub trait EventHandler: Send + Sync + 'static {
    /// Runs one request.
    ///
    /// # Errors
    ///
    /// What the caller is told instead of a result.
    async fn run(&self, ctx: EventContext, payload: Payload) -> Result<Payload, HandlerError>;
}

/// What a handler's caller is told when there is no result.
///
/// It is made from every [`std::error::Error`], so `?` works in handlers; for the same reason it is
/// none itself. The caller gets the error's text with the causes behind it, so keep secrets out.
#[derive(Debug, Clone)]
pub struct HandlerError {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Failed(String),
    Rejected(String),
    Custom { why: SmolStr, payload: Payload },
}

impl HandlerError {
    /// `processor-failed`, with this text.
    pub fn failed(error: impl Into<String>) -> Self {
        Self {
            kind: Kind::Failed(error.into()),
        }
    }

    /// `processor-rejected`, with this text: the request was refused before anything was done.
    pub fn rejected(error: impl Into<String>) -> Self {
        Self {
            kind: Kind::Rejected(error.into()),
        }
    }

    /// A reason of the handler's own, with a payload.
    pub fn custom(why: impl Into<SmolStr>, payload: Payload) -> Self {
        let why = why.into();
        Self {
            kind: Kind::Custom { why, payload },
        }
    }

    pub(crate) fn into_answer(self) -> Answer {
        match self.kind {
            Kind::Failed(error) => Answer::failed(&error),
            Kind::Rejected(error) => Answer::rejected(&error),
            Kind::Custom { why, payload } => Answer::not_ok(why, payload),
        }
    }

    /// The `whyNotOk` that the caller sees.
    pub(crate) fn why(&self) -> &str {
        match &self.kind {
            Kind::Failed(_) => "processor-failed",
            Kind::Rejected(_) => "processor-rejected",
            Kind::Custom { why, .. } => why,
        }
    }
}

impl<E: std::error::Error> From<E> for HandlerError {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            text.push_str(": ");
            text.push_str(&cause.to_string());
            source = cause.source();
        }
        Self::failed(text)
    }
}

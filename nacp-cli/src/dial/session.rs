use std::future::{Future, IntoFuture};
use std::time::Duration;

use nacp::proto::AppId;
use nacp::{Builder, NApp, Reconnect, RequestError};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Plan, diagnosis};
use crate::escape::escaped;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::target::Target;
use crate::trace::{Trace, TracedTransport};
use crate::value;

/// A node of ours that dials one peer.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) node: NApp,
    pub(crate) trace: Trace,
    pub(crate) target: Target,
    timeout: Duration,
}

/// How long a good-bye may take; the peer's answer to it is a courtesy.
const FAREWELL: Duration = Duration::from_millis(800);

impl Session {
    /// Starts the node; nothing is dialled yet.
    ///
    /// # Errors
    ///
    /// If it cannot be built.
    pub(crate) async fn start(
        plan: &Plan,
        target: Target,
        configure: impl FnOnce(Builder) -> Builder,
    ) -> Result<Self, Failure> {
        let trace = Trace::default();
        let mut builder = NApp::builder(plan.own.clone())
            .transport(TracedTransport::new(trace.clone(), plan.connect_timeout))
            .reconnect(Reconnect::off());
        if let Some(secret) = &plan.auth {
            builder = builder.auth(secret.reveal());
        }
        let node = configure(builder).start().await;
        Ok(Self {
            node: node.map_err(|error| Failure::local("start", error.to_string()))?,
            trace,
            target,
            timeout: plan.timeout,
        })
    }

    /// Connects and registers.
    ///
    /// # Errors
    ///
    /// What went wrong, at which stage.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<AppId, Failure> {
        let mut target = nacp::Target::from(&self.target.address);
        if let Some(app) = &self.target.app {
            target = target.expect(app.clone());
        }
        let connecting = self.node.connect(target).into_future();
        match timeout_at(deadline, connecting).await {
            Ok(Ok(peer)) => Ok(peer),
            Ok(Err(_)) | Err(_) => {
                let seen = self.trace.seen();
                Err(diagnosis::diagnose(&seen, &self.target, self.timeout))
            }
        }
    }

    /// Waits for the answer to a call, as long as there is time and a link.
    ///
    /// # Errors
    ///
    /// That the peer said no, that the link was lost, or that time ran out.
    pub(crate) async fn answer<T>(
        &self,
        stage: &'static str,
        deadline: Instant,
        call: impl Future<Output = Result<T, RequestError>>,
    ) -> Result<T, Failure> {
        tokio::select! {
            biased;
            answered = timeout_at(deadline, call) => match answered {
                Ok(Ok(answer)) => Ok(answer),
                Ok(Err(error)) => Err(unanswered(stage, &error)),
                Err(_) => Err(Failure::timed_out(
                    stage,
                    format!("no answer within {:?}", self.timeout),
                )),
            },
            () = self.lost() => Err(Failure::new(
                Exit::LinkLost,
                stage,
                "transport-error",
                "the connection ended before the answer came",
            )),
        }
    }

    /// Completes when the connection has ended.
    async fn lost(&self) {
        while self.trace.seen().ended.is_none() {
            self.trace.changed().await;
        }
    }

    /// Says good-bye, unless the user is in a hurry.
    pub(crate) async fn close(self, interrupt: &Interrupt) {
        tokio::select! {
            _ = timeout(FAREWELL, self.node.terminate()) => {}
            () = interrupt.times(2) => {}
        }
        self.node.terminate_now();
    }
}

/// What a request that has no result means.
fn unanswered(stage: &'static str, error: &RequestError) -> Failure {
    match error {
        RequestError::Rejected { why, payload } => {
            let why = why.as_deref().unwrap_or("without a reason");
            let message = match error.remote_error() {
                Some(text) => format!("{}: {}", escaped(why), escaped(text)),
                None => escaped(why),
            };
            let mut failure = Failure::new(Exit::SaidNo, stage, why, message);
            failure.payload = Some(value::shown(payload));
            failure
        }
        RequestError::Undelivered(reason) => {
            let exit = match reason {
                nacp::Undelivered::Timeout => Exit::TimedOut,
                nacp::Undelivered::TooLarge => Exit::SaidNo,
                _ => Exit::LinkLost,
            };
            Failure::new(
                exit,
                stage,
                reason.as_str(),
                format!("undelivered: {reason}"),
            )
        }
        RequestError::Decode(error) => Failure::new(
            Exit::Violation,
            stage,
            "malformed",
            format!("the answer cannot be read: {error}"),
        ),
        _ => Failure::usage(error.to_string()),
    }
}

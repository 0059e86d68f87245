use std::future::{Future, IntoFuture};
use std::time::Duration;

use nacp::proto::AppId;
use nacp::{Builder, NApp, Reconnect, RequestError, SubscribeError, Undelivered};
use tokio::time::{Instant, timeout, timeout_at};

use super::{Plan, diagnosis, plan};
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

/// How much of the limit is kept to find out who else answers, at most.
const LEARNING: Duration = Duration::from_secs(1);

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
            .response_timeout(plan.timeout)
            .reconnect(Reconnect::off());
        if let Some(secret) = &plan.auth {
            builder = builder.auth(secret.reveal());
        }
        let node = configure(builder).start().await;
        let node = node.map_err(|error| Failure::local("start", error.to_string()))?;
        watch_connections(&node, &trace)?;
        Ok(Self {
            node,
            trace,
            target,
            timeout: plan.timeout,
        })
    }

    /// Connects and registers.
    ///
    /// # Errors
    ///
    /// What went wrong, at which stage. If the app that was named stays silent, that somebody else
    /// is there, as far as that can be learned within the limit.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<AppId, Failure> {
        let Some(app) = &self.target.app else {
            return self.register(deadline, self.timeout).await;
        };
        let reserve = LEARNING.min(self.timeout / 4);
        let registered = self
            .register(deadline - reserve, self.timeout - reserve)
            .await;
        match registered {
            Err(silence) if silence.reason == "response-timeout" && !self.is_acked() => {
                Err(self.who_is_there(app, silence, deadline).await)
            }
            other => other,
        }
    }

    /// Whether the app that was asked for has the register.
    fn is_acked(&self) -> bool {
        self.trace.seen().handshake.ack.is_some()
    }

    async fn register(&self, deadline: Instant, limit: Duration) -> Result<AppId, Failure> {
        let mut target = nacp::Target::from(&self.target.address);
        if let Some(app) = &self.target.app {
            target = target.expect(app.clone());
        }
        let connecting = self.node.connect(target).into_future();
        match timeout_at(deadline, connecting).await {
            Ok(Ok(peer)) => Ok(peer),
            Ok(Err(error)) => Err(self.diagnose(error.is_timeout(), limit)),
            Err(_) => Err(self.diagnose(true, limit)),
        }
    }

    fn diagnose(&self, is_late: bool, limit: Duration) -> Failure {
        let end = diagnosis::End { is_late, limit };
        diagnosis::diagnose(&self.trace.seen(), &self.target, end)
    }

    /// Native peers tell their name to who asks for anybody.
    async fn who_is_there(&self, app: &AppId, mut silence: Failure, deadline: Instant) -> Failure {
        let Ok(asker) = NApp::builder(plan::random_app_id()).start().await else {
            return silence;
        };
        let anybody = nacp::Target::from(&self.target.address);
        let asking = asker
            .connect(anybody)
            .reconnect(Reconnect::off())
            .into_future();
        let learned = timeout_at(deadline, asking).await;
        asker.terminate_now();
        match learned {
            Ok(Ok(found)) => {
                silence.message = format!("{}: {found} is there, not {app}", silence.message);
                silence.hint(format!("use {found}@{}", self.target.address))
            }
            Ok(Err(_)) | Err(_) => silence,
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
            () = self.lost() => Err(self.ended(stage)),
        }
    }

    /// Why the connection is no more.
    pub(crate) fn ended(&self, stage: &'static str) -> Failure {
        match self.trace.seen().violation {
            Some(reason) => Failure::new(
                Exit::Violation,
                stage,
                reason,
                format!("what the peer sent is not NACP: {reason}; the connection was closed"),
            ),
            None => Failure::new(
                Exit::LinkLost,
                stage,
                "transport-error",
                "the connection ended before the answer came",
            ),
        }
    }

    /// Completes when the connection has ended.
    pub(crate) async fn lost(&self) {
        while !self.trace.seen().has_ended {
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

/// Leaves in the trace how connections end, and for which fault if the node closed them.
fn watch_connections(node: &NApp, trace: &Trace) -> Result<(), Failure> {
    let trace = trace.clone();
    let listening = node.listen("nact:peer:*", move |event| {
        if let Some(report) = event.payload().report() {
            trace.reported(report);
        }
    });
    let failed = |error: nacp::ListenError| Failure::local("start", error.to_string());
    listening.map(drop).map_err(failed)
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
            let exit = if *reason == Undelivered::Timeout {
                Exit::TimedOut
            } else if *reason == Undelivered::TooLarge {
                Exit::SaidNo
            } else {
                Exit::LinkLost
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
        RequestError::App(_) | RequestError::Encode(_) | _ => Failure::usage(error.to_string()),
    }
}

/// What a subscribe that failed means.
pub(crate) fn not_subscribed(stage: &'static str, error: &SubscribeError) -> Failure {
    if let SubscribeError::Rejected { why } = error {
        let why = why.as_deref().unwrap_or("without a reason");
        return Failure::new(Exit::SaidNo, stage, why, escaped(why));
    }
    if let SubscribeError::Undelivered(reason) = error {
        let is_late = *reason == Undelivered::Timeout;
        let exit = if is_late {
            Exit::TimedOut
        } else {
            Exit::LinkLost
        };
        return Failure::new(exit, stage, reason.as_str(), error.to_string());
    }
    Failure::usage(error.to_string())
}

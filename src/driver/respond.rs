use std::any::Any;
use std::future::{Future as _, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt as _;
use nacp_link::{Answer, PeerId, Requested, Token};
use nacp_proto::{Payload, RequestKind, ciborium};
use serde::Serialize;
use smol_str::SmolStr;

use super::Core;
use super::peer::PeerIo;
use crate::run::{Run, RunGuard};
use crate::{AbilityContext, AbilityHandler, EventContext, EventHandler, HandlerError};

/// The ability that every node has beside `NApp.heartbeat`, which the node itself answers.
const INTRODUCE: &str = "NApp.introduce";

/// A node without events has nobody to ask for one.
const NO_PROCESSOR: &str = "no-processor";

/// A request with its handler.
enum Job {
    Ability(Arc<dyn AbilityHandler>),
    Event(Arc<dyn EventHandler>),
}

impl Core {
    /// Starts the handler of a request in a task of its own.
    ///
    /// `creditor` is the peer whose reader has left it to this handler to write. A handler that
    /// answers at once takes along what is queued.
    pub(super) fn start_handler(
        self: &Arc<Self>,
        (requested, run): (Requested, Arc<Run>),
        creditor: Option<(PeerId, Arc<PeerIo>)>,
    ) {
        let Some(job) = self.find_handler(&requested, &run) else {
            return;
        };
        let payload = requested.payload;
        let core = Arc::clone(self);
        let guard = RunGuard {
            core: Arc::clone(self),
            run: Arc::clone(&run),
        };
        self.runtime.spawn(async move {
            let handling = handle(job, Arc::clone(&core), run, payload);
            let mut handled = pin!(AssertUnwindSafe(handling).catch_unwind());
            let at_once = poll_fn(|cx| Poll::Ready(handled.as_mut().poll(cx))).await;
            let answer = match (at_once, creditor) {
                (Poll::Ready(answer), _) => answer,
                (Poll::Pending, None) => handled.await,
                (Poll::Pending, Some((peer, io))) => {
                    core.pay(peer, &io);
                    handled.await
                }
            };
            guard.answer(answer.unwrap_or_else(|panic| Err(panicked(&*panic))));
        });
    }

    /// Finds the handler, or answers at once that there is none.
    fn find_handler(self: &Arc<Self>, requested: &Requested, run: &Arc<Run>) -> Option<Job> {
        let name = requested.target.as_deref().unwrap_or_default();
        let (job, has_any) = match requested.kind {
            RequestKind::Ability if name == INTRODUCE => {
                self.respond(run, Ok(self.parts.introduction.clone()), None);
                return None;
            }
            // Every node has the built-in abilities.
            RequestKind::Ability => (
                self.parts.abilities.get(name).cloned().map(Job::Ability),
                true,
            ),
            RequestKind::Event => {
                let events = &self.parts.events;
                (
                    events.get(name).cloned().map(Job::Event),
                    !events.is_empty(),
                )
            }
        };
        if job.is_none() {
            let kind = requested.kind;
            let error = if has_any {
                HandlerError::failed(format!("no {kind} handler registered for '{name}'"))
            } else {
                HandlerError::custom(NO_PROCESSOR, Payload::empty())
            };
            self.respond(run, Err(error), None);
        }
        job
    }

    /// Gives the answer of a request to the node.
    pub(crate) fn respond(
        self: &Arc<Self>,
        run: &Run,
        answer: Result<Payload, HandlerError>,
        token: Option<Token>,
    ) {
        self.emit_of_request(&run.id, run.kind, "response", || told(&answer));
        let answer = answer.map_or_else(HandlerError::into_answer, Answer::ok);
        self.turn(|state, now| {
            state.runs.remove(run.running);
            state.node.respond(now, run.running, answer, token);
        });
    }
}

/// What the bus is told of an answer.
fn told(answer: &Result<Payload, HandlerError>) -> Payload {
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Told<'a> {
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<ciborium::Value>,
        is_ok: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        why_not_ok: Option<&'a str>,
    }
    let told = Told {
        result: answer
            .as_ref()
            .ok()
            .and_then(|result| result.to_value().ok()),
        is_ok: answer.is_ok(),
        why_not_ok: answer.as_ref().err().map(HandlerError::why),
    };
    Payload::new(&told).unwrap_or_default()
}

async fn handle(
    job: Job,
    core: Arc<Core>,
    run: Arc<Run>,
    payload: Payload,
) -> Result<Payload, HandlerError> {
    match job {
        Job::Ability(handler) => {
            handler
                .handle(AbilityContext::new(core, run), payload)
                .await
        }
        Job::Event(handler) => handler.run(EventContext::new(core, run), payload).await,
    }
}

fn panicked(panic: &(dyn Any + Send)) -> HandlerError {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .map_or_else(|| SmolStr::new_static("no message"), SmolStr::from);
    tracing::error!(message = %text, "a handler panicked");
    HandlerError::failed(format!("the handler panicked: {text}"))
}

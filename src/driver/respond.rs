use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt as _;
use nacp_link::{Answer, Requested, Token};
use nacp_proto::{Payload, RequestKind};
use smol_str::SmolStr;

use super::Core;
use crate::run::{Run, RunGuard};
use crate::{AbilityContext, AbilityHandler, EventContext, EventHandler, HandlerError};

/// The ability that every node has beside `NApp.heartbeat`, which the node itself answers.
const INTRODUCE: &str = "NApp.introduce";

/// A request with its handler.
enum Job {
    Ability(Arc<dyn AbilityHandler>),
    Event(Arc<dyn EventHandler>),
}

impl Core {
    /// Starts the handler of a request in a task of its own.
    pub(super) fn start_handler(self: &Arc<Self>, requested: Requested, run: Arc<Run>) {
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
            let handled = AssertUnwindSafe(handle(job, core, run, payload)).catch_unwind();
            guard.answer(match handled.await {
                Ok(Ok(payload)) => Answer::ok(payload),
                Ok(Err(error)) => error.into_answer(),
                Err(panic) => panicked(&*panic),
            });
        });
    }

    /// Finds the handler, or answers at once that there is none.
    fn find_handler(self: &Arc<Self>, requested: &Requested, run: &Arc<Run>) -> Option<Job> {
        let name = requested.target.as_deref().unwrap_or_default();
        let (job, has_any) = match requested.kind {
            RequestKind::Ability if name == INTRODUCE => {
                let answer = Answer::ok(self.parts.introduction.clone());
                self.respond(run, answer, None);
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
            let answer = if has_any {
                Answer::failed(&format!("no {kind} handler registered for '{name}'"))
            } else {
                Answer::no_processor()
            };
            self.respond(run, answer, None);
        }
        job
    }

    /// Gives the answer of a request to the node.
    pub(crate) fn respond(self: &Arc<Self>, run: &Run, answer: Answer, token: Option<Token>) {
        self.turn(|state, now| {
            state.runs.remove(run.running);
            state.node.respond(now, run.running, answer, token);
        });
    }
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

fn panicked(panic: &(dyn Any + Send)) -> Answer {
    let text = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .map_or_else(|| SmolStr::new_static("no message"), SmolStr::from);
    tracing::error!(message = %text, "a handler panicked");
    Answer::failed(&format!("the handler panicked: {text}"))
}

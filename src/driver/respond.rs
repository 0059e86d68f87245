use std::any::Any;
use std::future::{Future, poll_fn};
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use futures_util::FutureExt as _;
use nacp_link::{Answer, PeerId, Requested, Token};
use nacp_proto::{Payload, RequestKind, ciborium};
use serde::Serialize;
use smol_str::SmolStr;

use super::peer::PeerIo;
use super::starts::Starter;
use super::{After, Core, now};
use crate::run::{Run, RunGuard};
use crate::{AbilityContext, AbilityHandler, EventContext, EventHandler, HandlerError};

/// The ability that every node has beside `NApp.heartbeat`, which the node itself answers.
const INTRODUCE: &str = "NApp.introduce";

/// A node without events has nobody to ask for one.
const NO_PROCESSOR: &str = "no-processor";

/// Requests that one task starts before others have their turn.
const MAX_STARTS: usize = 64;

/// A handler that takes so long before it first gives way is worth a thread of its own.
const SLOW: Duration = Duration::from_micros(50);

/// A handler at work, whose panic is an answer too.
type Handling = Pin<Box<dyn Future<Output = HandlerAnswer> + Send>>;

type HandlerAnswer = Result<Payload, HandlerError>;

/// What answers a request.
enum Answerer {
    Ability(Arc<dyn AbilityHandler>),
    Event(Arc<dyn EventHandler>),
    /// No handler is needed, or there is none.
    Known(HandlerAnswer),
}

impl Core {
    /// Starts handlers of the requests that wait on a peer. One that answers when it is first polled
    /// takes no task of its own, and such answers leave in one write. One that does not keeps this
    /// task, and another goes on with the rest.
    pub(super) async fn start_waiting(self: Arc<Self>, peer: PeerId, io: Arc<PeerIo>) {
        let mut after = After::default();
        let mut starter = Starter::new(&io.starts);
        let mut pending = None;
        for _ in 0..MAX_STARTS {
            let Some((requested, run)) = starter.next() else {
                break;
            };
            let began = now();
            let (guard, mut handling) = self.begin(requested, run);
            match poll_fn(|cx| Poll::Ready(handling.as_mut().poll(cx))).await {
                Poll::Ready(answer) => guard.answer_in(&mut after, answer),
                Poll::Pending => {
                    pending = Some((guard, handling));
                    break;
                }
            }
            if now().saturating_duration_since(began) >= SLOW {
                // The other workers of the runtime shall help, if there are any.
                self.help_start(peer, &io, self.runtime.metrics().num_workers());
                self.finish(&mut after);
            } else {
                self.watch_over(&io);
                self.start_others(&mut after);
            }
        }
        if starter.stop() {
            self.spawn_starter(peer, &io);
        }
        drop(starter);
        self.finish(&mut after);
        self.pay(peer, &io);
        drop((self, after, io));
        if let Some((guard, handling)) = pending {
            guard.answer(handling.await);
        }
    }

    /// Makes one more task that starts requests, if any wait and there are fewer than `most`.
    pub(super) fn help_start(self: &Arc<Self>, peer: PeerId, io: &Arc<PeerIo>, most: usize) {
        if io.starts.help(most) {
            self.spawn_starter(peer, io);
        }
    }

    pub(super) fn spawn_starter(self: &Arc<Self>, peer: PeerId, io: &Arc<PeerIo>) {
        let starting = Arc::clone(self).start_waiting(peer, Arc::clone(io));
        self.runtime.spawn(starting);
    }

    /// Starts the handler of one request in a task of its own.
    pub(super) fn start_handler(self: &Arc<Self>, requested: Requested, run: Arc<Run>) {
        let (guard, handling) = self.begin(requested, run);
        self.runtime
            .spawn(async move { guard.answer(handling.await) });
    }

    fn begin(self: &Arc<Self>, requested: Requested, run: Arc<Run>) -> (RunGuard, Handling) {
        let answerer = self.answerer(&requested);
        let guard = RunGuard {
            core: Arc::clone(self),
            run: Arc::clone(&run),
        };
        let handling = handle(answerer, Arc::clone(self), run, requested.payload);
        let caught = AssertUnwindSafe(handling).catch_unwind();
        let handling = caught.map(|result| result.unwrap_or_else(|panic| Err(panicked(&*panic))));
        (guard, Box::pin(handling))
    }

    fn answerer(&self, requested: &Requested) -> Answerer {
        let name = requested.target.as_deref().unwrap_or_default();
        let (found, has_any) = match requested.kind {
            RequestKind::Ability if name == INTRODUCE => {
                return Answerer::Known(Ok(self.parts.introduction.clone()));
            }
            // Every node has the built-in abilities.
            RequestKind::Ability => {
                let ability = self.parts.abilities.get(name);
                (ability.cloned().map(Answerer::Ability), true)
            }
            RequestKind::Event => {
                let events = &self.parts.events;
                let event = events.get(name);
                (event.cloned().map(Answerer::Event), !events.is_empty())
            }
        };
        found.unwrap_or_else(|| {
            let kind = requested.kind;
            Answerer::Known(Err(if has_any {
                HandlerError::failed(format!("no {kind} handler registered for '{name}'"))
            } else {
                HandlerError::custom(NO_PROCESSOR, Payload::empty())
            }))
        })
    }

    /// Gives the answer of a request to the node.
    pub(crate) fn respond(
        self: &Arc<Self>,
        run: &Run,
        answer: HandlerAnswer,
        token: Option<Token>,
    ) {
        let mut after = After::default();
        self.respond_in(&mut after, run, answer, token);
        self.finish(&mut after);
    }

    pub(crate) fn respond_in(
        self: &Arc<Self>,
        after: &mut After,
        run: &Run,
        answer: HandlerAnswer,
        token: Option<Token>,
    ) {
        self.emit_of_request(&run.id, run.kind, "response", || told(&answer));
        let answer = answer.map_or_else(HandlerError::into_answer, Answer::ok);
        self.feed(after, |state, now| {
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
    answerer: Answerer,
    core: Arc<Core>,
    run: Arc<Run>,
    payload: Payload,
) -> HandlerAnswer {
    match answerer {
        Answerer::Ability(handler) => {
            handler
                .handle(AbilityContext::new(core, run), payload)
                .await
        }
        Answerer::Event(handler) => handler.run(EventContext::new(core, run), payload).await,
        Answerer::Known(answer) => answer,
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

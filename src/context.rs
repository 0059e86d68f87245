use std::sync::Arc;

use nacp_link::Undelivered;
use nacp_proto::{AppId, MessageId, Payload, Signal};
use serde::Serialize;
use thiserror::Error;

use crate::driver::Core;
use crate::run::{Interruption, Run};
use crate::{NApp, SendError};

/// What the handler of an ability knows beside its argument. Clones are the same context.
#[derive(Debug, Clone)]
pub struct AbilityContext {
    core: Arc<Core>,
    run: Arc<Run>,
}

/// What the handler of an event knows beside its argument, and its way to whoever asked. Clones are
/// the same context.
#[derive(Debug, Clone)]
pub struct EventContext {
    core: Arc<Core>,
    run: Arc<Run>,
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Interrupted {
    /// The caller sent an abort.
    #[error("aborted by the caller")]
    Aborted,
    /// Nobody waits for the answer any more.
    #[error("cancelled: {0}")]
    Cancelled(Undelivered),
}

impl From<Interruption> for Interrupted {
    fn from(interruption: Interruption) -> Self {
        match interruption {
            Interruption::Aborted => Self::Aborted,
            Interruption::Cancelled(reason) => Self::Cancelled(reason),
        }
    }
}

macro_rules! common {
    ($context:ident) => {
        impl $context {
            pub(crate) const fn new(core: Arc<Core>, run: Arc<Run>) -> Self {
                Self { core, run }
            }

            /// The app that asks.
            pub fn caller(&self) -> &AppId {
                &self.run.from
            }

            /// The request's message id.
            pub fn request_id(&self) -> &MessageId {
                &self.run.id
            }

            /// The node that the handler belongs to. This handle does not keep it alive.
            pub fn napp(&self) -> NApp {
                NApp::unowned(Arc::clone(&self.core))
            }

            /// Whether the handler should stop.
            ///
            /// # Errors
            ///
            /// [`Interrupted`] if it should, and why: the caller aborted it, its link was dropped,
            /// or the node ends.
            pub fn check(&self) -> Result<(), Interrupted> {
                self.run.interrupted().map_or(Ok(()), |why| Err(why.into()))
            }

            /// Completes when the handler should stop, at once if it should already. Use it in a
            /// `select!` beside the work.
            ///
            /// # Cancel safety
            ///
            /// Dropping the future loses nothing.
            pub async fn interrupted(&self) -> Interrupted {
                self.run.wait_interrupted().await.into()
            }

            /// Answers before the handler is through; what it returns later counts for nothing.
            /// Completes when the answer is acknowledged.
            ///
            /// # Errors
            ///
            /// [`SendError::Encode`] if the value is none for the wire, and nothing is answered then;
            /// [`SendError::Undelivered`] with `discarded` if the request has been answered, else
            /// with the reason that the answer did not arrive.
            ///
            /// # Cancel safety
            ///
            /// An answer that was polled once is on its way.
            pub async fn respond<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), SendError> {
                let payload = Payload::new(value)?;
                if !self.run.take_answer() {
                    return Err(SendError::Undelivered(Undelivered::Discarded));
                }
                self.core
                    .sending(|core, token| {
                        core.respond(&self.run, Ok(payload), Some(token));
                    })
                    .await
            }
        }
    };
}

common!(AbilityContext);
common!(EventContext);

impl EventContext {
    /// Sends one process item to whoever asked. Completes at its acceptance by the transport, so that
    /// a handler faster than its link is slowed; while the link is offline it waits.
    ///
    /// # Errors
    ///
    /// [`SendError::Encode`] if the value is none for the wire; [`SendError::Undelivered`] if the
    /// request is answered, cancelled, or its link has ended.
    ///
    /// # Cancel safety
    ///
    /// An item whose future was polled once is on its way; one that was never polled is not sent.
    pub async fn process<T: Serialize + ?Sized>(&self, item: &T) -> Result<(), SendError> {
        self.process_raw(Payload::new(item)?).await
    }

    /// [`process`](Self::process) for a payload that is there already.
    ///
    /// # Errors
    ///
    /// [`SendError::Undelivered`] as there.
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn process_raw(&self, payload: Payload) -> Result<(), SendError> {
        let run = &self.run;
        self.core
            .emit_of_request(&run.id, run.kind, "process", || payload.clone());
        self.core
            .sending(|core, token| {
                let running = self.run.running;
                core.turn(|state, now| state.node.process(now, running, payload, Some(token)));
            })
            .await
    }

    /// The next signal that the caller sends, pauses and aborts included; `None` once the handler is
    /// interrupted and all are read. Clones of the context share one row of signals.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no signal.
    pub async fn next_signal(&self) -> Option<Signal> {
        self.run.next_signal().await
    }

    /// A point at which the handler may be paused: completes at once, or when it is resumed.
    ///
    /// # Errors
    ///
    /// [`Interrupted`] if the handler should stop.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub async fn pause_point(&self) -> Result<(), Interrupted> {
        self.run.wait_resumed().await.map_err(Interrupted::from)
    }
}

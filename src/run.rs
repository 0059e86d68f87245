use std::collections::VecDeque;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacp_link::{Requested, RunningId, Undelivered};
use nacp_proto::{AppId, MessageId, Payload, RequestKind, Signal};
use tokio::sync::Notify;

use crate::HandlerError;
use crate::driver::{After, Core};

/// One request that a handler runs, shared by its context and the driver.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) running: RunningId,
    pub(crate) from: AppId,
    pub(crate) id: MessageId,
    pub(crate) kind: RequestKind,
    state: Mutex<RunState>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct RunState {
    interrupted: Option<Interruption>,
    paused: bool,
    signals: VecDeque<Signal>,
    answered: bool,
}

/// Why a handler should stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Interruption {
    Aborted,
    Cancelled(Undelivered),
}

impl Run {
    pub(crate) fn new(requested: &Requested) -> Self {
        Self {
            running: requested.running,
            from: requested.from.clone(),
            id: requested.id.clone(),
            kind: requested.kind,
            state: Mutex::default(),
            changed: Notify::new(),
        }
    }

    /// A signal has come. Beyond `capacity` unread ones the oldest is dropped.
    pub(crate) fn signal(&self, signal: Signal, capacity: usize) {
        let mut state = self.lock();
        match signal {
            Signal::Pause => state.paused = true,
            Signal::Resume => state.paused = false,
            Signal::Abort => {
                state.interrupted.get_or_insert(Interruption::Aborted);
            }
            Signal::Normal(_) => {}
        }
        if state.signals.len() >= capacity {
            state.signals.pop_front();
            tracing::warn!(request = %self.id, "dropped a signal that its handler does not read");
        }
        state.signals.push_back(signal);
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) fn cancel(&self, reason: Undelivered) {
        self.lock()
            .interrupted
            .get_or_insert(Interruption::Cancelled(reason));
        self.changed.notify_waiters();
    }

    pub(crate) fn interrupted(&self) -> Option<Interruption> {
        self.lock().interrupted
    }

    /// Waits for what `look` finds.
    async fn wait_for<T>(&self, mut look: impl FnMut(&mut RunState) -> Option<T>) -> T {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if let Some(found) = look(&mut self.lock()) {
                return found;
            }
            changed.await;
        }
    }

    pub(crate) async fn wait_interrupted(&self) -> Interruption {
        self.wait_for(|state| state.interrupted).await
    }

    /// Waits while paused.
    pub(crate) async fn wait_resumed(&self) -> Result<(), Interruption> {
        self.wait_for(|state| match (state.interrupted, state.paused) {
            (Some(interruption), _) => Some(Err(interruption)),
            (None, false) => Some(Ok(())),
            (None, true) => None,
        })
        .await
    }

    /// The next signal; `None` once there is nothing left and no more can come.
    pub(crate) async fn next_signal(&self) -> Option<Signal> {
        self.wait_for(
            |state| match (state.signals.pop_front(), state.interrupted) {
                (Some(signal), _) => Some(Some(signal)),
                (None, Some(_)) => Some(None),
                (None, None) => None,
            },
        )
        .await
    }

    /// Whether the answer is still to be given; from now on it is not.
    pub(crate) fn take_answer(&self) -> bool {
        !std::mem::replace(&mut self.lock().answered, true)
    }

    fn lock(&self) -> MutexGuard<'_, RunState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Answers for a handler that never does: its future was dropped half-way.
#[derive(Debug)]
pub(crate) struct RunGuard {
    pub(crate) core: Arc<Core>,
    pub(crate) run: Arc<Run>,
}

impl RunGuard {
    pub(crate) fn answer(self, answer: Result<Payload, HandlerError>) {
        if self.run.take_answer() {
            self.core.respond(&self.run, answer, None);
        }
    }

    /// Gives the answer to the node, and leaves it to the caller to finish.
    pub(crate) fn answer_in(self, after: &mut After, answer: Result<Payload, HandlerError>) {
        if self.run.take_answer() {
            self.core.respond_in(after, &self.run, answer, None);
        }
    }
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        if self.run.take_answer() {
            let dropped = HandlerError::failed("the handler was dropped before it had answered");
            self.core.respond(&self.run, Err(dropped), None);
        }
    }
}

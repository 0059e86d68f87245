use std::sync::Arc;

use nacp_bus::{PatternError, escape_segment};
use nacp_link::Settlement;
use nacp_proto::{AppId, AppIdError, MessageId, Payload, PayloadError, RequestKind};
use smol_str::SmolStr;
use thiserror::Error;

use crate::SendError;
use crate::driver::{Core, Waiter};
use crate::send::{Waiting, delivered};
use crate::slot::Slot;

/// Why an event was not emitted.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EmitError {
    /// The value cannot go over the wire.
    #[error("cannot encode: {0}")]
    Encode(#[from] PayloadError),
}

/// Why a listener was not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ListenError {
    /// The text is no pattern.
    #[error(transparent)]
    Pattern(#[from] PatternError),
}

/// Why an app was not notified.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum NotifyError {
    /// It is no name of an app.
    #[error("no app: {0}")]
    App(#[from] AppIdError),
    /// The value cannot go over the wire.
    #[error("cannot encode: {0}")]
    Encode(#[from] PayloadError),
    /// The app holds no subscription that matches the name.
    #[error("the app does not listen to that name")]
    NotSubscribed,
    /// A notify for one of its subscriptions was not accepted.
    #[error("undelivered: {0}")]
    Undelivered(nacp_link::Undelivered),
}

impl Core {
    /// Whether anyone can hear an event at all.
    pub(crate) fn has_audience(&self) -> bool {
        self.has_remotes() || !self.bus.is_empty()
    }

    /// Emits to the listeners here, then to the apps that have subscribed. Returns how many there
    /// were.
    pub(crate) fn emit(self: &Arc<Self>, name: &str, payload: impl FnOnce() -> Payload) -> usize {
        if !self.has_audience() {
            return 0;
        }
        let payload = payload();
        let local = self.bus.emit(name, &payload.clone().into()).called();
        local + self.forward(name, None, || payload)
    }

    /// Sends an event to the apps, or the one, that have subscribed to it.
    pub(crate) fn forward(
        self: &Arc<Self>,
        name: &str,
        only: Option<&AppId>,
        payload: impl FnOnce() -> Payload,
    ) -> usize {
        if !self.has_remotes() {
            return 0;
        }
        self.turn(|state, now| {
            let hits = state.hits(name, only);
            if hits.is_empty() {
                return 0;
            }
            let (name, payload) = (SmolStr::new(name), payload());
            for hit in &hits {
                state.node.notify(now, *hit, &name, payload.clone(), None);
            }
            hits.len()
        })
    }

    /// Sends an event to one app's matching subscriptions, each with a waiter.
    pub(crate) fn notify(
        self: &Arc<Self>,
        app: &AppId,
        name: &str,
        payload: &Payload,
    ) -> Vec<Waiting> {
        self.turn(|state, now| {
            let name = SmolStr::new(name);
            let hits = state.hits(&name, Some(app));
            let send = |hit| {
                let slot = Arc::new(Slot::new());
                let key = state.waiters.insert(Waiter::Settlement(Arc::clone(&slot)));
                let token = Some(key.token());
                state.node.notify(now, hit, &name, payload.clone(), token);
                Waiting::new(Arc::clone(self), key, slot)
            };
            hits.into_iter().map(send).collect()
        })
    }

    /// Emits an event about one request.
    pub(crate) fn emit_of_request(
        self: &Arc<Self>,
        id: &MessageId,
        kind: RequestKind,
        what: &str,
        payload: impl FnOnce() -> Payload,
    ) {
        if self.has_audience() {
            let name = format!("nacp:{kind}:{}:{what}", escape_segment(&id.to_smol_str()));
            self.emit(&name, payload);
        }
    }
}

/// Waits for all of them; the first failure counts.
pub(crate) async fn all_accepted(waiting: Vec<Waiting>) -> Result<usize, NotifyError> {
    let count = waiting.len();
    let mut result = Ok(count);
    for mut one in waiting {
        let settlement: Settlement = std::future::poll_fn(|cx| one.poll(cx)).await;
        if let Err(SendError::Undelivered(reason)) = delivered(settlement) {
            result = result.and(Err(NotifyError::Undelivered(reason)));
        }
    }
    result
}

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use nacp_link::{Settlement, StreamEnd, StreamId, Undelivered};
use nacp_proto::{AppId, AppIdError, Outcome, Payload, PayloadReadError};
use serde::de::DeserializeOwned;
use smol_str::SmolStr;
use std::task::Waker;
use thiserror::Error;

use crate::driver::{After, Core, Notices, Overflow, Waiter};
use crate::queue::{CountsMissed, ItemQueue};
use crate::send::Waiting;
use crate::slot::Slot;

/// Why a subscription was not made.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubscribeError {
    /// The destination is no name of an app.
    #[error("no app: {0}")]
    App(#[from] AppIdError),
    /// The other side said no.
    #[error("rejected: {}", why.as_deref().unwrap_or("without a reason"))]
    Rejected {
        /// Its `whyNotOk`: `not-exposed`, `self-exciting`, `limit-reached`, …
        why: Option<SmolStr>,
    },
    /// It ended without an answer; the other side does not keep it.
    #[error("undelivered: {0}")]
    Undelivered(#[from] Undelivered),
}

/// One event of another app's bus.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Notification {
    /// The app.
    pub from: AppId,
    /// The event's name.
    pub name: SmolStr,
    /// What it carries.
    pub payload: Payload,
    /// How many events before this one are missing: they did not arrive, or this stream had to drop
    /// them because it was not read. `None` from a foreign peer, which does not count.
    pub missed: Option<u64>,
}

impl Notification {
    /// Reads the payload as any deserializable type.
    ///
    /// # Errors
    ///
    /// [`PayloadReadError`] if it is no such value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadReadError> {
        self.payload.decode()
    }
}

impl CountsMissed for Notification {
    fn missed(&mut self) -> Option<&mut u64> {
        self.missed.as_mut()
    }
}

/// What the driver fills and the subscription reads.
#[derive(Debug)]
pub(crate) struct StreamState {
    app: AppId,
    pattern: SmolStr,
    items: ItemQueue<Notification, StreamEnd>,
}

impl StreamState {
    pub(crate) fn push(
        &self,
        (from, name, payload, missed): (AppId, SmolStr, Payload, Option<u64>),
        notices: &mut Notices,
        after: &mut After,
    ) {
        let pushed = self.items.push(Notification {
            from,
            name,
            payload,
            missed,
        });
        after.wake(pushed.waker);
        if let Some(dropped) = pushed.overflowed {
            notices.overflow(Overflow {
                app_id: self.app.clone(),
                sub_id: String::new(),
                target_sub_name: self.pattern.clone(),
                dropped,
                reason: "stream-overflow",
            });
        }
    }

    pub(crate) fn end(&self, reason: StreamEnd) -> Option<Waker> {
        self.items.end(reason)
    }
}

/// The events of another app's bus that a pattern matches, as a stream.
///
/// It survives broken connections: what was emitted meanwhile comes behind the reconnect, as far
/// as it fits the other side's queue, and [`missed`](field@Notification::missed) tells the rest. If the
/// other side has forgotten it, it is made again. It ends when its link is dropped.
///
/// Dropping it unsubscribes.
#[derive(Debug)]
#[must_use = "dropping the subscription ends it"]
pub struct Subscription {
    core: Arc<Core>,
    id: StreamId,
    state: Arc<StreamState>,
}

impl Subscription {
    /// Subscribes. Dropping the future ends the subscription again.
    pub(crate) async fn make(
        core: &Arc<Core>,
        to: AppId,
        pattern: &str,
    ) -> Result<Self, SubscribeError> {
        let pattern = SmolStr::new(pattern);
        let capacity = core.parts.stream_capacity;
        let state = Arc::new(StreamState {
            app: to.clone(),
            pattern: pattern.clone(),
            items: ItemQueue::new(capacity),
        });
        let slot = Arc::new(Slot::new());
        let (key, id) = core.turn(|known, now| {
            let key = known.waiters.insert(Waiter::Settlement(Arc::clone(&slot)));
            let id = known.node.subscribe(now, &to, pattern, Some(key.token()));
            if let Some(id) = id {
                known.streams.insert(id, Arc::clone(&state));
            }
            (key, id)
        });
        let subscription = id.map(|id| Self {
            core: Arc::clone(core),
            id,
            state,
        });
        let mut waiting = Waiting::new(Arc::clone(core), key, slot);
        granted(poll_fn(|cx| waiting.poll(cx)).await)?;
        subscription.ok_or(SubscribeError::Undelivered(Undelivered::Terminated))
    }

    /// The app whose bus it listens to.
    pub fn app(&self) -> &AppId {
        &self.state.app
    }

    /// What it listens for.
    pub fn pattern(&self) -> &str {
        &self.state.pattern
    }

    /// The next event; `None` when the subscription has ended, and [`ended`](Self::ended) says why.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Notification> {
        self.state.items.recv().await
    }

    /// Why the subscription has ended; `None` while it has not. Events may still be there to read.
    pub fn ended(&self) -> Option<StreamEnd> {
        self.state.items.ended()
    }

    /// Unsubscribes, and completes with the other side's answer.
    ///
    /// # Errors
    ///
    /// [`SubscribeError`] if the other side did not know of it any more, or no answer came.
    ///
    /// # Cancel safety
    ///
    /// Once polled, the subscription has ended.
    pub async fn unsubscribe(self) -> Result<(), SubscribeError> {
        let slot = Arc::new(Slot::new());
        let key = self.core.turn(|state, now| {
            state.streams.remove(self.id);
            let key = state.waiters.insert(Waiter::Settlement(Arc::clone(&slot)));
            state.node.unsubscribe(now, self.id, Some(key.token()));
            key
        });
        let mut waiting = Waiting::new(Arc::clone(&self.core), key, slot);
        granted(poll_fn(|cx| waiting.poll(cx)).await)
    }
}

impl Stream for Subscription {
    type Item = Notification;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Notification>> {
        self.state.items.poll(cx)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        self.core.turn(|state, now| {
            if state.streams.remove(self.id).is_some() {
                state.node.unsubscribe(now, self.id, None);
            }
        });
    }
}

fn granted(settlement: Settlement) -> Result<(), SubscribeError> {
    match settlement {
        Settlement::Answered(answered) => match answered.response.outcome {
            Outcome::Ok => Ok(()),
            Outcome::NotOk { why } => Err(SubscribeError::Rejected { why }),
        },
        Settlement::Undelivered(reason) => Err(reason.into()),
        Settlement::Delivered | Settlement::Connected(_) | Settlement::DialFailed(_) | _ => Ok(()),
    }
}

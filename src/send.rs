use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use nacp_link::{Settlement, Undelivered};
use nacp_proto::{AppIdError, PayloadError};
use thiserror::Error;

use crate::driver::{Core, WaiterKey};
use crate::slot::Slot;

/// Why something that is sent without an answer did not reach the other side.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SendError {
    /// The destination is no name of an app.
    #[error("no app: {0}")]
    App(#[from] AppIdError),
    /// The value cannot go over the wire.
    #[error("cannot encode: {0}")]
    Encode(#[from] PayloadError),
    /// It was not delivered, as far as this node can know.
    #[error("undelivered: {0}")]
    Undelivered(#[from] Undelivered),
}

/// A send that is under way. Completes when it has settled.
///
/// # Cancel safety
///
/// It is on its way already; dropping the future only stops waiting.
#[derive(Debug)]
#[must_use = "the send is under way, but nobody learns how it ends"]
pub struct Sending {
    pub(crate) waiting: Waiting,
}

impl Future for Sending {
    type Output = Result<(), SendError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.waiting.poll(cx).map(delivered)
    }
}

/// What a settlement means for a send.
pub(crate) fn delivered(settlement: Settlement) -> Result<(), SendError> {
    match settlement {
        Settlement::Undelivered(reason) => Err(SendError::Undelivered(reason)),
        Settlement::Delivered
        | Settlement::Answered(_)
        | Settlement::Connected(_)
        | Settlement::DialFailed(_)
        | _ => Ok(()),
    }
}

/// A waiter of the node. Dropped before it has settled, it leaves the books.
#[derive(Debug)]
pub(crate) struct Waiting {
    core: Arc<Core>,
    key: WaiterKey,
    slot: Arc<Slot<Settlement>>,
    settled: bool,
}

impl Waiting {
    pub(crate) const fn new(core: Arc<Core>, key: WaiterKey, slot: Arc<Slot<Settlement>>) -> Self {
        Self {
            core,
            key,
            slot,
            settled: false,
        }
    }

    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Settlement> {
        let settlement = self.slot.poll(cx);
        self.settled |= settlement.is_ready();
        settlement
    }

    pub(crate) const fn is_settled(&self) -> bool {
        self.settled
    }

    pub(crate) const fn core(&self) -> &Arc<Core> {
        &self.core
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if !self.settled {
            self.core.forget_waiter(self.key);
        }
    }
}

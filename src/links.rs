use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use nacp_link::{LinkChange, LinkSnapshot, LinkState, Table};
use nacp_proto::{AppId, Decl};

use crate::queue::{CountsMissed, ItemQueue};

/// One link of a node, as it was when it was asked for.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct LinkInfo {
    /// The remote app.
    pub app: AppId,
    /// Its state.
    pub state: LinkState,
    /// Whether the app is a gateway.
    pub is_gateway: bool,
    /// Whether the app speaks our dialect (specification, section 1).
    pub is_native: bool,
    /// What the app declares.
    pub decl: Decl,
    /// Waiting to be submitted.
    pub backlog: Table,
    /// Submitted and not accepted.
    pub submitted: Table,
    /// Accepted and not acknowledged.
    pub ack_pending: Table,
    /// Sends that wait for room.
    pub blocked: usize,
    /// Requests that handlers run for it.
    pub running: usize,
    /// Subscriptions that it holds here.
    pub subscriptions: usize,
    /// Subscriptions of ours there.
    pub streams: usize,
    /// From the last beat to its answer.
    pub round_trip: Option<Duration>,
    /// Messages that came from it.
    pub messages_in: u64,
    /// Messages submitted to it, replays included, control messages not.
    pub messages_out: u64,
    /// Messages replayed.
    pub replayed: u64,
}

impl From<LinkSnapshot<'_>> for LinkInfo {
    fn from(link: LinkSnapshot<'_>) -> Self {
        Self {
            app: link.app.clone(),
            state: link.state,
            is_gateway: link.is_gateway,
            is_native: link.is_native,
            decl: link.decl.clone(),
            backlog: link.backlog,
            submitted: link.submitted,
            ack_pending: link.ack_pending,
            blocked: link.blocked,
            running: link.running,
            subscriptions: link.subscriptions,
            streams: link.streams,
            round_trip: link.round_trip,
            messages_in: link.messages_in,
            messages_out: link.messages_out,
            replayed: link.replayed,
        }
    }
}

/// What a watch reads.
#[derive(Debug)]
pub(crate) struct WatchQueue(ItemQueue<Changed, ()>);

#[derive(Debug)]
struct Changed(LinkChange);

impl CountsMissed for Changed {
    fn missed(&mut self) -> Option<&mut u64> {
        None
    }
}

/// Changes that a watch holds. The state that matters is the last of each app, and
/// [`NApp::links`](crate::NApp::links) has it.
const CAPACITY: usize = 1024;

impl WatchQueue {
    pub(crate) fn new() -> Self {
        Self(ItemQueue::new(CAPACITY))
    }

    pub(crate) fn push(&self, change: LinkChange) -> Option<std::task::Waker> {
        self.0.push(Changed(change)).waker
    }

    pub(crate) fn end(&self) -> Option<std::task::Waker> {
        self.0.end(())
    }
}

/// The changes of all links from now on, in order, as a stream. Ends with the node.
///
/// It holds the newest 1024 changes that are not read.
#[derive(Debug)]
#[must_use = "dropping the watch ends it"]
pub struct LinkWatch {
    pub(crate) queue: Arc<WatchQueue>,
}

impl LinkWatch {
    /// The next change; `None` when the node has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no change.
    pub async fn next(&mut self) -> Option<LinkChange> {
        self.queue.0.recv().await.map(|Changed(change)| change)
    }
}

impl Stream for LinkWatch {
    type Item = LinkChange;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<LinkChange>> {
        let next = self.queue.0.poll(cx);
        next.map(|next| next.map(|Changed(change)| change))
    }
}

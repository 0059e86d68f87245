use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use nacp_bus::{EventBus, ListenerId, Pattern};
use nacp_link::Report;
use nacp_proto::{Payload, PayloadReadError};
use serde::de::DeserializeOwned;

use crate::queue::{CountsMissed, ItemQueue};
use crate::report;

/// What an event on a node's bus carries: a payload, or a report about the node itself.
#[derive(Clone)]
pub struct Value(Kind);

#[derive(Clone)]
enum Kind {
    Payload(Payload),
    Report(Arc<Report>),
}

impl Value {
    /// As a payload; of a report, the one that the specification gives it (section 13).
    pub fn to_payload(&self) -> Payload {
        match &self.0 {
            Kind::Payload(payload) => payload.clone(),
            Kind::Report(report) => report::to_payload(report),
        }
    }

    /// Reads the payload as any deserializable type.
    ///
    /// # Errors
    ///
    /// [`PayloadReadError`] if it is no such value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadReadError> {
        self.to_payload().decode()
    }

    /// The report, if it is one.
    pub fn report(&self) -> Option<&Report> {
        match &self.0 {
            Kind::Payload(_) => None,
            Kind::Report(report) => Some(report),
        }
    }
}

impl From<Payload> for Value {
    fn from(payload: Payload) -> Self {
        Self(Kind::Payload(payload))
    }
}

impl From<Arc<Report>> for Value {
    fn from(report: Arc<Report>) -> Self {
        Self(Kind::Report(report))
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Kind::Payload(payload) => payload.fmt(f),
            Kind::Report(report) => report.fmt(f),
        }
    }
}

/// One event about the node.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct NodeEvent {
    /// Its name: `nacp:internal:napp:success` and so on.
    pub name: Arc<str>,
    /// What it carries.
    pub value: Value,
    /// How many events before it this stream had to drop.
    pub missed: u64,
}

impl CountsMissed for NodeEvent {
    fn missed(&mut self) -> Option<&mut u64> {
        Some(&mut self.missed)
    }
}

/// Everything that a node reports (specification, section 13), in order, as a stream.
///
/// It holds a bounded number of events; the oldest makes room, and the next says how many were
/// lost. Ends with the node. While it lives, the node builds every report, also about each message.
#[must_use = "dropping the stream ends it"]
pub struct Events {
    queue: Arc<ItemQueue<NodeEvent, ()>>,
    bus: EventBus<Value>,
    listeners: Vec<ListenerId>,
}

/// Patterns that together match every name of section 13.
const ALL: [&str; 7] = [
    "nact:peer:*",
    "nacp:inbound:*",
    "nacp:outbound:*",
    "nacp:internal:*:*",
    "nacp:event:*:*",
    "nacp:ability:*:*",
    "napp:internal:*:*",
];

impl Events {
    pub(crate) fn new(bus: &EventBus<Value>, capacity: usize) -> Self {
        let queue = Arc::new(ItemQueue::new(capacity));
        let closing = Arc::new(Closing(Arc::clone(&queue)));
        let listen = |pattern: &str| {
            let pattern = Pattern::parse(pattern).ok()?;
            let closing = Arc::clone(&closing);
            Some(bus.listen(&pattern, move |event| {
                let pushed = closing.0.push(NodeEvent {
                    name: event.name().into(),
                    value: event.payload().clone(),
                    missed: 0,
                });
                if let Some(waker) = pushed.waker {
                    waker.wake();
                }
            }))
        };
        Self {
            queue,
            bus: bus.clone(),
            listeners: ALL.into_iter().filter_map(listen).collect(),
        }
    }

    /// The next event; `None` when the node has ended.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<NodeEvent> {
        self.queue.recv().await
    }
}

impl Stream for Events {
    type Item = NodeEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<NodeEvent>> {
        self.queue.poll(cx)
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.bus.off_all(self.listeners.drain(..));
    }
}

impl fmt::Debug for Events {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Events")
            .field("waiting", &self.queue.len())
            .finish_non_exhaustive()
    }
}

/// Ends the queue when the listeners are gone.
struct Closing(Arc<ItemQueue<NodeEvent, ()>>);

impl Drop for Closing {
    fn drop(&mut self) {
        if let Some(waker) = self.0.end(()) {
            waker.wake();
        }
    }
}

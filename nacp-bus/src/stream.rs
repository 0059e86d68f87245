use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::num::NonZeroUsize;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;
use futures_core::stream::FusedStream;
use thiserror::Error;

use crate::bus::WeakBus;
use crate::{Event, ListenerId, Pattern};

/// The events of one pattern, in the order of their emission; made by
/// [`EventBus::stream`](crate::EventBus::stream).
///
/// It holds a bounded number of events. When one more comes, the oldest is dropped, and the item
/// that is then the oldest says so in [`missed`](StreamItem::missed): an emit never waits for a
/// slow reader, and no gap goes unnoticed.
///
/// Dropping the stream takes its listener out of the bus. It ends, after the events it still holds,
/// when the listener was taken out by [`off`](crate::EventBus::off),
/// [`off_all`](crate::EventBus::off_all) or [`clear`](crate::EventBus::clear), or when the last
/// handle of the bus is gone; the stream itself is none.
///
/// Runs under any executor: read it as a [`Stream`], by [`recv`](Self::recv), or without any by
/// [`try_recv`](Self::try_recv).
///
/// # Example
///
/// ```
/// use std::num::NonZeroUsize;
/// use nacp_bus::{EventBus, Pattern};
///
/// let bus = EventBus::new();
/// let mut stream = bus.stream(&Pattern::parse("tick:*")?, NonZeroUsize::MIN);
/// bus.emit("tick:a", &1);
/// bus.emit("tick:b", &2);
///
/// let item = stream.try_recv()?;
/// assert_eq!((&*item.name, item.payload, item.missed), ("tick:b", 2, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "dropping the stream ends it"]
pub struct EventStream<P> {
    queue: Arc<Queue<P>>,
    id: ListenerId,
    bus: WeakBus<P>,
}

/// One event out of an [`EventStream`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StreamItem<P> {
    /// The name under which the event was emitted.
    pub name: Arc<str>,
    /// What was emitted.
    pub payload: P,
    /// How many events were dropped between the item before and this one.
    pub missed: u64,
}

/// Why [`EventStream::try_recv`] has no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum TryRecvError {
    /// None is waiting; more may come.
    #[error("no event is waiting")]
    Empty,
    /// None is waiting, and none will come.
    #[error("the stream has ended")]
    Ended,
}

impl<P> EventStream<P> {
    pub(crate) fn new(queue: Arc<Queue<P>>, id: ListenerId, bus: WeakBus<P>) -> Self {
        Self { queue, id, bus }
    }

    /// The listener that feeds the stream.
    #[must_use]
    pub fn id(&self) -> ListenerId {
        self.id
    }

    /// The next event; `None` when the stream has ended. Completes as soon as an event is waiting.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no event.
    pub async fn recv(&mut self) -> Option<StreamItem<P>> {
        poll_fn(|cx| self.queue.poll(cx)).await
    }

    /// The next event, if one is waiting.
    ///
    /// # Errors
    ///
    /// [`TryRecvError::Empty`] if none is waiting, [`TryRecvError::Ended`] if none will come.
    pub fn try_recv(&mut self) -> Result<StreamItem<P>, TryRecvError> {
        let mut state = self.queue.lock();
        match state.items.pop_front() {
            Some(item) => Ok(item),
            None if state.is_closed => Err(TryRecvError::Ended),
            None => Err(TryRecvError::Empty),
        }
    }
}

impl<P> Stream for EventStream<P> {
    type Item = StreamItem<P>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamItem<P>>> {
        self.queue.poll(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let state = self.queue.lock();
        let waiting = state.items.len();
        (waiting, state.is_closed.then_some(waiting))
    }
}

impl<P> FusedStream for EventStream<P> {
    fn is_terminated(&self) -> bool {
        let state = self.queue.lock();
        state.is_closed && state.items.is_empty()
    }
}

impl<P> Drop for EventStream<P> {
    fn drop(&mut self) {
        if let Some(bus) = self.bus.upgrade() {
            bus.off(self.id);
        }
    }
}

impl<P> fmt::Debug for EventStream<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.queue.lock();
        f.debug_struct("EventStream")
            .field("id", &self.id)
            .field("capacity", &self.queue.capacity)
            .field("waiting", &state.items.len())
            .field("ended", &state.is_closed)
            .finish_non_exhaustive()
    }
}

/// The end of the queue that the listener holds. With it goes the queue's future.
pub(crate) struct Sender<P> {
    queue: Arc<Queue<P>>,
    pattern: Pattern,
}

pub(crate) struct Queue<P> {
    capacity: NonZeroUsize,
    state: Mutex<State<P>>,
}

struct State<P> {
    items: VecDeque<StreamItem<P>>,
    waker: Option<Waker>,
    is_closed: bool,
}

pub(crate) fn channel<P>(pattern: &Pattern, capacity: NonZeroUsize) -> (Sender<P>, Arc<Queue<P>>) {
    let state = State {
        items: VecDeque::new(),
        waker: None,
        is_closed: false,
    };
    let queue = Arc::new(Queue {
        capacity,
        state: Mutex::new(state),
    });
    (
        Sender {
            queue: Arc::clone(&queue),
            pattern: pattern.clone(),
        },
        queue,
    )
}

impl<P: Clone> Sender<P> {
    pub(crate) fn send(&self, event: &Event<'_, P>) {
        let text = self.pattern.text();
        let name = if self.pattern.is_literal() {
            Arc::clone(text)
        } else {
            Arc::from(event.name())
        };
        self.queue.push(StreamItem {
            name,
            payload: event.payload().clone(),
            missed: 0,
        });
    }
}

impl<P> Drop for Sender<P> {
    fn drop(&mut self) {
        self.queue.close();
    }
}

// Items and wakers are foreign code: they are dropped and woken after the lock is released.
impl<P> Queue<P> {
    fn push(&self, item: StreamItem<P>) {
        let mut state = self.lock();
        let oldest = if state.items.len() >= self.capacity.get() {
            state.items.pop_front()
        } else {
            None
        };
        state.items.push_back(item);
        if let (Some(oldest), Some(first)) = (&oldest, state.items.front_mut()) {
            first.missed += oldest.missed + 1;
        }
        wake_unlocked(state);
    }

    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        wake_unlocked(state);
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<StreamItem<P>>> {
        let mut state = self.lock();
        if let Some(item) = state.items.pop_front() {
            return Poll::Ready(Some(item));
        }
        if state.is_closed {
            return Poll::Ready(None);
        }
        let is_known = state
            .waker
            .as_ref()
            .is_some_and(|waker| waker.will_wake(cx.waker()));
        if !is_known {
            let replaced = state.waker.replace(cx.waker().clone());
            drop(state);
            drop(replaced);
        }
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, State<P>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn wake_unlocked<P>(mut state: MutexGuard<'_, State<P>>) {
    let waker = state.waker.take();
    drop(state);
    if let Some(waker) = waker {
        waker.wake();
    }
}

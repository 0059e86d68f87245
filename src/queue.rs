use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop::poll_proceed;

/// What can say how many of its kind before it were lost.
pub(crate) trait CountsMissed {
    /// Where it says so; `None` if nobody can know.
    fn missed(&mut self) -> Option<&mut u64>;
}

/// A bounded queue for one reader. When it is full, the oldest item makes room, and the item that
/// is then the oldest says so.
///
/// `E` is why it ended.
#[derive(Debug)]
pub(crate) struct ItemQueue<T, E> {
    capacity: usize,
    state: Mutex<State<T, E>>,
}

#[derive(Debug)]
struct State<T, E> {
    items: VecDeque<T>,
    waker: Option<Waker>,
    end: Option<E>,
    /// Whether nobody reads any more.
    abandoned: bool,
    overflowed: u64,
}

/// What a push did.
#[derive(Debug, Default)]
pub(crate) struct Pushed {
    /// To be woken when no lock is held.
    pub(crate) waker: Option<Waker>,
    /// How many items this queue has dropped in all, if it has dropped one now.
    pub(crate) overflowed: Option<u64>,
}

impl<T: CountsMissed, E> ItemQueue<T, E> {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            state: Mutex::new(State {
                items: VecDeque::new(),
                waker: None,
                end: None,
                abandoned: false,
                overflowed: 0,
            }),
        }
    }

    pub(crate) fn push(&self, item: T) -> Pushed {
        let mut state = self.lock();
        if state.abandoned || state.end.is_some() {
            return Pushed::default();
        }
        let dropped = if state.items.len() >= self.capacity {
            state.items.pop_front()
        } else {
            None
        };
        state.items.push_back(item);
        let mut overflowed = None;
        if let Some(mut dropped) = dropped {
            state.overflowed += 1;
            overflowed = Some(state.overflowed);
            let lost = dropped.missed().map_or(0, |missed| *missed) + 1;
            if let Some(missed) = state.items.front_mut().and_then(T::missed) {
                *missed += lost;
            }
        }
        Pushed {
            waker: state.waker.take(),
            overflowed,
        }
    }

    /// Nothing more comes. The items that are there can still be read.
    pub(crate) fn end(&self, why: E) -> Option<Waker> {
        let mut state = self.lock();
        state.end.get_or_insert(why);
        state.waker.take()
    }

    /// Nobody reads any more: what is there is dropped, and what comes is not kept.
    pub(crate) fn abandon(&self) {
        let mut state = self.lock();
        state.abandoned = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        drop(items);
    }

    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<T>> {
        let budget = ready!(poll_proceed(cx));
        let mut state = self.lock();
        if let Some(item) = state.items.pop_front() {
            budget.made_progress();
            return Poll::Ready(Some(item));
        }
        if state.end.is_some() {
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

    pub(crate) async fn recv(&self) -> Option<T> {
        poll_fn(|cx| self.poll(cx)).await
    }

    pub(crate) fn len(&self) -> usize {
        self.lock().items.len()
    }

    fn lock(&self) -> MutexGuard<'_, State<T, E>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T, E: Clone> ItemQueue<T, E> {
    /// Why it ended, if it has.
    pub(crate) fn ended(&self) -> Option<E> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.end.clone()
    }
}

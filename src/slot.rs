use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop::poll_proceed;

/// Where one result is left for one waiting future.
#[derive(Debug)]
pub(crate) struct Slot<T> {
    state: Mutex<State<T>>,
}

#[derive(Debug)]
enum State<T> {
    Empty,
    Awaited(Waker),
    Settled(T),
    Taken,
}

impl<T> Slot<T> {
    pub(crate) const fn new() -> Self {
        Self {
            state: Mutex::new(State::Empty),
        }
    }

    /// Leaves the result. The waker returned is to be woken when no lock is held. Only the first
    /// result counts.
    pub(crate) fn settle(&self, result: T) -> Option<Waker> {
        let mut state = self.lock();
        match &*state {
            State::Settled(_) | State::Taken => None,
            State::Empty | State::Awaited(_) => {
                match std::mem::replace(&mut *state, State::Settled(result)) {
                    State::Awaited(waker) => Some(waker),
                    State::Empty | State::Settled(_) | State::Taken => None,
                }
            }
        }
    }

    /// Takes the result. Pending for ever once it is taken.
    ///
    /// It costs a part of the task's budget, so that a loop of sends that complete at once gives way
    /// to others now and then.
    pub(crate) fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let budget = ready!(poll_proceed(cx));
        let mut state = self.lock();
        match std::mem::replace(&mut *state, State::Taken) {
            State::Settled(result) => {
                budget.made_progress();
                Poll::Ready(result)
            }
            State::Taken => Poll::Pending,
            State::Awaited(waker) if waker.will_wake(cx.waker()) => {
                *state = State::Awaited(waker);
                Poll::Pending
            }
            State::Empty | State::Awaited(_) => {
                *state = State::Awaited(cx.waker().clone());
                Poll::Pending
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

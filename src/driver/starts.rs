//! The requests of one peer that no handler has been started for yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacp_link::Requested;

use crate::run::Run;

/// In the order in which they came. One task starts them all, and goes on as long as there are any.
#[derive(Debug, Default)]
pub(super) struct Starts(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<(Requested, Arc<Run>)>,
    /// How many have ever been taken out, and how many of them when that was last looked at.
    taken: u64,
    seen: Option<u64>,
}

/// The next request to be started.
pub(super) struct Start {
    pub(super) requested: Requested,
    pub(super) run: Arc<Run>,
    /// Whether nothing waits behind it, so that whoever starts it has nothing else to do.
    pub(super) is_last: bool,
}

/// What has become of the requests since they were last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Going,
    /// The task that starts them is held up by one of their handlers.
    Stuck,
}

impl Starts {
    /// Adds requests. Returns whether a task has to be made for them.
    pub(super) fn push(&self, requests: &mut Vec<(Requested, Arc<Run>)>) -> bool {
        let mut waiting = self.lock();
        let was_empty = waiting.requests.is_empty();
        waiting.requests.extend(requests.drain(..));
        was_empty
    }

    pub(super) fn pop(&self) -> Option<Start> {
        let mut waiting = self.lock();
        let (requested, run) = waiting.requests.pop_front()?;
        waiting.taken += 1;
        Some(Start {
            requested,
            run,
            is_last: waiting.requests.is_empty(),
        })
    }

    pub(super) fn look(&self) -> Progress {
        let mut waiting = self.lock();
        if waiting.requests.is_empty() {
            waiting.seen = None;
            return Progress::Nothing;
        }
        let taken = Some(waiting.taken);
        if waiting.seen == taken {
            return Progress::Stuck;
        }
        waiting.seen = taken;
        Progress::Going
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The requests of one peer that no handler has been started for yet.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use nacp_link::Requested;

use crate::run::Run;

/// In the order in which they came. Tasks start them: one while it keeps up, more when handlers take
/// long before they first give way.
#[derive(Debug, Default)]
pub(super) struct Starts(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    requests: VecDeque<(Requested, Arc<Run>)>,
    /// Tasks that take requests out. There is one as long as there are requests.
    starters: usize,
    /// How many have ever been taken out, and how many of them when that was last looked at.
    taken: u64,
    seen: Option<u64>,
}

/// What has become of the requests since they were last looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    Nothing,
    Going,
    /// Whoever starts them is held up by a handler.
    Stuck,
}

impl Starts {
    /// Adds requests. Returns whether a task has to be made for them.
    pub(super) fn push(&self, requests: &mut Vec<(Requested, Arc<Run>)>) -> bool {
        let mut waiting = self.lock();
        waiting.requests.extend(requests.drain(..));
        waiting.add_starter(1)
    }

    /// Whether another task shall be made beside those that there are, of which there may be `most`.
    pub(super) fn help(&self, most: usize) -> bool {
        self.lock().add_starter(most)
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

    pub(super) fn is_empty(&self) -> bool {
        self.lock().requests.is_empty()
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    fn add_starter(&mut self, most: usize) -> bool {
        let is_wanted = !self.requests.is_empty() && self.starters < most;
        self.starters += usize::from(is_wanted);
        is_wanted
    }
}

/// One of the tasks that start requests, which somebody has been told to make.
pub(super) struct Starter<'a> {
    starts: &'a Starts,
    has_left: bool,
}

impl<'a> Starter<'a> {
    pub(super) const fn new(starts: &'a Starts) -> Self {
        Self {
            starts,
            has_left: false,
        }
    }

    /// The next request. If there is none, this task is none of the starters any more.
    pub(super) fn next(&mut self) -> Option<(Requested, Arc<Run>)> {
        let mut waiting = self.starts.lock();
        let next = waiting.requests.pop_front();
        match next {
            Some(_) => waiting.taken += 1,
            None => self.leave(&mut waiting),
        }
        next
    }

    /// Stops before all are started. Returns whether another task has to be made in its place.
    pub(super) fn stop(&mut self) -> bool {
        let mut waiting = self.starts.lock();
        self.leave(&mut waiting);
        waiting.add_starter(1)
    }

    fn leave(&mut self, waiting: &mut Waiting) {
        if !std::mem::replace(&mut self.has_left, true) {
            waiting.starters -= 1;
        }
    }
}

impl Drop for Starter<'_> {
    fn drop(&mut self) {
        if !self.has_left {
            let mut waiting = self.starts.lock();
            self.leave(&mut waiting);
        }
    }
}

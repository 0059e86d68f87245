use std::fmt;
use std::future::{IntoFuture, Ready, poll_fn, ready};
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use nacp_link::{Settlement, Undelivered};
use nacp_proto::{
    AppId, AppIdError, MessageId, Payload, PayloadError, PayloadReadError, RequestKind, Signal,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use smol_str::SmolStr;

use crate::call::{answer, call};
use crate::driver::{After, Core, Notices, Overflow, Waiter, WaiterKey};
use crate::queue::{CountsMissed, ItemQueue};
use crate::slot::Slot;
use crate::{RequestError, SendError};

/// One process item of a running event.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct JobItem {
    /// What the handler sent.
    pub payload: Payload,
    /// How many items before this one are missing: they did not arrive, or this stream had to drop
    /// them because it was not read. `None` from a foreign peer, which does not count.
    pub missed: Option<u64>,
}

impl JobItem {
    /// Reads the payload as any deserializable type.
    ///
    /// # Errors
    ///
    /// [`PayloadReadError`] if it is no such value.
    pub fn decode<T: DeserializeOwned>(&self) -> Result<T, PayloadReadError> {
        self.payload.decode()
    }
}

impl CountsMissed for JobItem {
    fn missed(&mut self) -> Option<&mut u64> {
        self.missed.as_mut()
    }
}

/// What the driver fills and the handles of a job read.
#[derive(Debug)]
pub(crate) struct JobState {
    app: AppId,
    name: SmolStr,
    id: OnceLock<MessageId>,
    items: ItemQueue<JobItem, ()>,
    response: Slot<Settlement>,
    missed_at_end: OnceLock<Option<u64>>,
}

impl JobState {
    pub(crate) fn new(app: AppId, name: SmolStr, capacity: usize) -> Self {
        Self {
            app,
            name,
            id: OnceLock::new(),
            items: ItemQueue::new(capacity),
            response: Slot::new(),
            missed_at_end: OnceLock::new(),
        }
    }

    pub(crate) fn push(
        &self,
        payload: Payload,
        missed: Option<u64>,
        notices: &mut Notices,
        after: &mut After,
    ) {
        let pushed = self.items.push(JobItem { payload, missed });
        after.wake(pushed.waker);
        if let Some(dropped) = pushed.overflowed {
            notices.overflow(Overflow {
                app_id: self.app.clone(),
                sub_id: self
                    .id
                    .get()
                    .map(|id| id.to_smol_str().into())
                    .unwrap_or_default(),
                target_sub_name: self.name.clone(),
                dropped,
                reason: "stream-overflow",
            });
        }
    }

    pub(crate) fn settle(&self, settlement: Settlement, after: &mut After) {
        if let Settlement::Answered(answered) = &settlement {
            // Settles once.
            let _ = self.missed_at_end.set(answered.missed);
        }
        after.wake(self.items.end(()));
        after.wake(self.response.settle(settlement));
    }
}

/// A wish to run an event at another app. Await it; it completes at once with the [`Job`].
///
/// # Cancel safety
///
/// The request is sent when it is awaited, not before.
#[must_use = "nothing is sent before it is awaited"]
pub struct JobRequest {
    core: Arc<Core>,
    request: Result<nacp_link::Request, RequestError>,
}

impl JobRequest {
    pub(crate) fn new(
        core: Arc<Core>,
        to: Result<AppId, AppIdError>,
        name: &str,
        payload: Result<Payload, PayloadError>,
    ) -> Self {
        let request = call(RequestKind::Event, to, name, payload);
        Self { core, request }
    }

    /// How long to wait for the answer, from the moment of sending. Without a limit the job lasts as
    /// long as its link is kept.
    pub fn timeout(mut self, limit: Duration) -> Self {
        if let Ok(request) = &mut self.request {
            request.limit = Some(limit);
        }
        self
    }

    fn send(self) -> Result<Job, RequestError> {
        let (core, request) = (self.core, self.request?);
        let capacity = core.parts.stream_capacity;
        let (app, name) = (request.to.clone(), request.target.clone());
        let job = Arc::new(JobState::new(app, name, capacity));
        let (key, id) = core.turn(|state, now| {
            let key = state.waiters.insert(Waiter::Job(Arc::clone(&job)));
            (key, state.node.request(now, request, Some(key.token())))
        });
        Ok(Job::new(core, key, job, id))
    }
}

impl IntoFuture for JobRequest {
    type Output = Result<Job, RequestError>;
    type IntoFuture = Ready<Self::Output>;

    fn into_future(self) -> Self::IntoFuture {
        ready(self.send())
    }
}

impl fmt::Debug for JobRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("JobRequest").finish_non_exhaustive()
    }
}

/// An event that runs at another app: a stream of its process items, and its answer at the end.
///
/// Dropping it lets the event run on: it is neither cancelled nor aborted, and its items and its
/// answer are ignored. [`split`](Self::split) lets you drop the items alone.
#[derive(Debug)]
#[must_use = "dropping the job ignores its items and its answer"]
pub struct Job {
    items: JobItems,
    response: JobResponse,
}

/// The process items of a [`Job`].
#[derive(Debug)]
pub struct JobItems {
    state: Arc<JobState>,
}

/// The answer of a [`Job`], and the way to signal it.
#[derive(Debug)]
pub struct JobResponse {
    core: Arc<Core>,
    key: WaiterKey,
    state: Arc<JobState>,
    answered: bool,
}

impl Job {
    pub(crate) fn new(
        core: Arc<Core>,
        key: WaiterKey,
        state: Arc<JobState>,
        id: Option<MessageId>,
    ) -> Self {
        if let Some(id) = id {
            // Nobody else sets it.
            let _ = state.id.set(id);
        }
        Self {
            items: JobItems {
                state: Arc::clone(&state),
            },
            response: JobResponse {
                core,
                key,
                state,
                answered: false,
            },
        }
    }

    /// The request's message id; `None` if it could not be sent at all, which its response tells.
    pub fn id(&self) -> Option<&MessageId> {
        self.response.id()
    }

    /// The next process item; `None` when the event has ended, for whatever reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<JobItem> {
        self.items.next().await
    }

    /// The answer. Items that have not been read are still there afterwards.
    ///
    /// # Errors
    ///
    /// As [`JobResponse::response`].
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; the answer can be had once.
    pub async fn response<R: DeserializeOwned>(&mut self) -> Result<R, RequestError> {
        self.response.response().await
    }

    /// The answer's payload as it came.
    ///
    /// # Errors
    ///
    /// As [`JobResponse::response`].
    ///
    /// # Cancel safety
    ///
    /// As [`response`](Self::response).
    pub async fn response_raw(&mut self) -> Result<Payload, RequestError> {
        self.response.response_raw().await
    }

    /// Once answered: how many process items did not arrive in all; `None` before the answer, or if
    /// the other side does not count.
    pub fn missed(&self) -> Option<u64> {
        self.response.state.missed_at_end.get().copied().flatten()
    }

    /// Separates the items from the answer.
    pub fn split(self) -> (JobItems, JobResponse) {
        (self.items, self.response)
    }

    /// Gives the running event some input. Completes when it is acknowledged.
    ///
    /// # Errors
    ///
    /// As [`NApp::signal`](crate::NApp::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn signal<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), SendError> {
        self.response.signal(value).await
    }

    /// Asks the running event to pause.
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn pause(&self) -> Result<(), SendError> {
        self.response.send(Signal::Pause).await
    }

    /// Asks the running event to go on.
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn resume(&self) -> Result<(), SendError> {
        self.response.send(Signal::Resume).await
    }

    /// Asks the running event to end.
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn abort(&self) -> Result<(), SendError> {
        self.response.send(Signal::Abort).await
    }
}

impl Stream for Job {
    type Item = JobItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<JobItem>> {
        self.items.state.items.poll(cx)
    }
}

impl JobItems {
    /// The next process item; `None` when the event has ended, for whatever reason.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no item.
    pub async fn next(&mut self) -> Option<JobItem> {
        self.state.items.recv().await
    }
}

impl Stream for JobItems {
    type Item = JobItem;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<JobItem>> {
        self.state.items.poll(cx)
    }
}

impl Drop for JobItems {
    fn drop(&mut self) {
        self.state.items.abandon();
    }
}

impl JobResponse {
    /// The request's message id; `None` if it could not be sent at all.
    pub fn id(&self) -> Option<&MessageId> {
        self.state.id.get()
    }

    /// The answer of the event.
    ///
    /// # Errors
    ///
    /// [`RequestError`]: the other side said no, the job ended without an answer, or the result is not
    /// of this type.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing; the answer can be had once.
    pub async fn response<R: DeserializeOwned>(&mut self) -> Result<R, RequestError> {
        Ok(self.response_raw().await?.decode()?)
    }

    /// The answer's payload as it came.
    ///
    /// # Errors
    ///
    /// As [`response`](Self::response).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn response_raw(&mut self) -> Result<Payload, RequestError> {
        if self.answered {
            return Err(RequestError::Undelivered(Undelivered::Discarded));
        }
        let settlement = poll_fn(|cx| self.state.response.poll(cx)).await;
        self.answered = true;
        answer(settlement)
    }

    /// Gives the running event some input. Completes when it is acknowledged.
    ///
    /// # Errors
    ///
    /// As [`NApp::signal`](crate::NApp::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn signal<T: Serialize + ?Sized>(&self, value: &T) -> Result<(), SendError> {
        self.send(Signal::Normal(Payload::new(value)?)).await
    }

    /// Tells the running event something: input, pause, resume or abort. Completes when it is
    /// acknowledged.
    ///
    /// # Errors
    ///
    /// As [`signal`](Self::signal).
    ///
    /// # Cancel safety
    ///
    /// As there.
    pub async fn send(&self, signal: Signal) -> Result<(), SendError> {
        let Some(id) = self.id().cloned() else {
            return Err(SendError::Undelivered(Undelivered::NoRoute));
        };
        self.core.signal(&self.state.app, id, signal).await
    }
}

impl Drop for JobResponse {
    fn drop(&mut self) {
        let id = self.state.id.get();
        self.core.turn(|state, _| {
            let is_waiting = state.waiters.remove(self.key).is_some();
            if let Some(id) = id.filter(|_| is_waiting) {
                state.node.abandon(id);
            }
        });
    }
}

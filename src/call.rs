use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use nacp_link::{Settlement, Undelivered};
use nacp_proto::{
    AppIdError, MessageId, Outcome, Payload, PayloadError, PayloadReadError, RequestKind,
};
use serde::de::DeserializeOwned;
use smol_str::SmolStr;
use thiserror::Error;

use crate::driver::{Core, Waiter};
use crate::send::Waiting;
use crate::slot::Slot;

/// Why a request has no result.
#[derive(Debug, Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum RequestError {
    /// The destination is no name of an app.
    #[error("no app: {0}")]
    App(#[from] AppIdError),
    /// The argument cannot go over the wire.
    #[error("cannot encode the argument: {0}")]
    Encode(#[from] PayloadError),
    /// The other side said no.
    #[error("rejected: {}", why.as_deref().unwrap_or("without a reason"))]
    Rejected {
        /// Its `whyNotOk`: `processor-failed`, `no-processor`, …
        why: Option<SmolStr>,
        /// What came with it; `{error: text}` for the two above.
        payload: Payload,
    },
    /// It ended without an answer. It may have been handled all the same.
    #[error("undelivered: {0}")]
    Undelivered(#[from] Undelivered),
    /// The result is not of the type asked for.
    #[error("cannot read the result: {0}")]
    Decode(#[from] PayloadReadError),
}

impl RequestError {
    /// The other side's `whyNotOk`, if it said no and why.
    pub fn why(&self) -> Option<&str> {
        if let Self::Rejected { why, .. } = self {
            why.as_deref()
        } else {
            None
        }
    }

    /// The text that a failed handler of the other side gave, if it did.
    pub fn remote_error(&self) -> Option<String> {
        #[derive(serde::Deserialize)]
        struct Failure {
            error: String,
        }
        let Self::Rejected { payload, .. } = self else {
            return None;
        };
        payload
            .decode::<Failure>()
            .ok()
            .map(|failure| failure.error)
    }
}

/// A request for an ability. Sent when it is first polled; completes with its result.
///
/// # Cancel safety
///
/// A request that was polled once is delivered, also if the future is dropped; its answer is then
/// ignored. A request that was never polled is not sent.
#[must_use = "nothing is sent before the request is awaited"]
pub struct Request<R> {
    stage: Stage,
    result: PhantomData<fn() -> R>,
}

enum Stage {
    New(Box<New>),
    Waiting(Pending),
    Done,
}

struct New {
    core: Arc<Core>,
    request: Result<nacp_link::Request, RequestError>,
}

impl<R> Request<R> {
    pub(crate) fn new(
        core: Arc<Core>,
        to: Result<nacp_proto::AppId, AppIdError>,
        name: &str,
        payload: Result<Payload, PayloadError>,
    ) -> Self {
        let request = call(RequestKind::Ability, to, name, payload);
        Self {
            stage: Stage::New(Box::new(New { core, request })),
            result: PhantomData,
        }
    }

    /// How long to wait for the answer, from the first poll. Without a limit the request waits as long
    /// as its link is kept.
    ///
    /// At its limit the request is withdrawn: it is not sent any more if it has not been. If it was
    /// on its way, it may still be handled.
    pub fn timeout(mut self, limit: Duration) -> Self {
        if let Stage::New(new) = &mut self.stage
            && let Ok(request) = &mut new.request
        {
            request.limit = Some(limit);
        }
        self
    }

    fn poll_answer(&mut self, cx: &mut Context<'_>) -> Poll<Result<Payload, RequestError>> {
        loop {
            match std::mem::replace(&mut self.stage, Stage::Done) {
                Stage::New(new) => {
                    let request = match new.request {
                        Ok(request) => request,
                        Err(error) => return Poll::Ready(Err(error)),
                    };
                    self.stage = Stage::Waiting(Pending::send(new.core, request));
                }
                Stage::Waiting(mut pending) => {
                    let Poll::Ready(settlement) = pending.waiting.poll(cx) else {
                        self.stage = Stage::Waiting(pending);
                        return Poll::Pending;
                    };
                    return Poll::Ready(answer(settlement));
                }
                Stage::Done => return Poll::Pending,
            }
        }
    }
}

impl<R: DeserializeOwned> Future for Request<R> {
    type Output = Result<R, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let payload = ready!(self.poll_answer(cx))?;
        Poll::Ready(Ok(payload.decode()?))
    }
}

impl<R> fmt::Debug for Request<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request").finish_non_exhaustive()
    }
}

/// A [`Request`] whose result is the payload as it came.
#[derive(Debug)]
#[must_use = "nothing is sent before the request is awaited"]
pub struct RawRequest(pub(crate) Request<()>);

impl RawRequest {
    /// As [`Request::timeout`].
    pub fn timeout(self, limit: Duration) -> Self {
        Self(self.0.timeout(limit))
    }
}

impl Future for RawRequest {
    type Output = Result<Payload, RequestError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_answer(cx)
    }
}

/// A request of either kind, if its parts are good.
pub(crate) fn call(
    kind: RequestKind,
    to: Result<nacp_proto::AppId, AppIdError>,
    name: &str,
    payload: Result<Payload, PayloadError>,
) -> Result<nacp_link::Request, RequestError> {
    Ok(nacp_link::Request {
        to: to?,
        kind,
        target: name.into(),
        payload: payload?,
        limit: None,
    })
}

/// A request that is under way. Dropped before its answer, it is abandoned.
struct Pending {
    waiting: Waiting,
    id: Option<MessageId>,
}

impl Pending {
    fn send(core: Arc<Core>, request: nacp_link::Request) -> Self {
        let slot = Arc::new(Slot::new());
        let (key, id) = core.turn(|state, now| {
            let key = state.waiters.insert(Waiter::Settlement(Arc::clone(&slot)));
            (key, state.node.request(now, request, Some(key.token())))
        });
        Self {
            waiting: Waiting::new(core, key, slot),
            id,
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if let Some(id) = self.id.take().filter(|_| !self.waiting.is_settled()) {
            self.waiting.core().turn(|state, _| state.node.abandon(&id));
        }
    }
}

/// What a settlement means for a request.
pub(crate) fn answer(settlement: Settlement) -> Result<Payload, RequestError> {
    match settlement {
        Settlement::Answered(answered) => {
            let response = answered.response;
            match response.outcome {
                Outcome::Ok => Ok(response.payload),
                Outcome::NotOk { why } => Err(RequestError::Rejected {
                    why,
                    payload: response.payload,
                }),
            }
        }
        Settlement::Undelivered(reason) => Err(RequestError::Undelivered(reason)),
        // None of the others settles a request.
        Settlement::Delivered | Settlement::Connected(_) | Settlement::DialFailed(_) | _ => {
            Err(RequestError::Undelivered(Undelivered::Terminated))
        }
    }
}

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;

use async_trait::async_trait;
use nacp_proto::Payload;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::{AbilityContext, AbilityHandler, EventContext, EventHandler, HandlerError};

/// Async closures that can be an ability: `async |args: A| -> Result<R, E>` and
/// `async |ctx: AbilityContext, args: A| -> Result<R, E>`.
///
/// `A` is any deserializable type, `R` any serializable one, and `E` a [`HandlerError`] or any error.
/// A closure that captures something must not lend it to its future: clone it first, as in
/// `move |args: A| { let db = db.clone(); async move { … } }`.
pub trait IntoAbility<Shape>: Send + Sync + 'static {
    /// The handler that calls the closure.
    fn into_ability(self) -> impl AbilityHandler;
}

/// Async closures that can be an event: `async |ctx: EventContext, args: A| -> Result<R, E>`, with
/// the types of [`IntoAbility`].
pub trait IntoEvent<Shape>: Send + Sync + 'static {
    /// The handler that calls the closure.
    fn into_event(self) -> impl EventHandler;
}

impl<F, A, Fut, R, E> IntoAbility<(A,)> for F
where
    F: Fn(A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<HandlerError> + Send + 'static,
{
    fn into_ability(self) -> impl AbilityHandler {
        let without_context = move |_: AbilityContext, args: A| self(args);
        Typed::new(without_context)
    }
}

impl<F, A, Fut, R, E> IntoAbility<(AbilityContext, A)> for F
where
    F: Fn(AbilityContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<HandlerError> + Send + 'static,
{
    fn into_ability(self) -> impl AbilityHandler {
        Typed::new(self)
    }
}

impl<F, A, Fut, R, E> IntoEvent<(EventContext, A)> for F
where
    F: Fn(EventContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<HandlerError> + Send + 'static,
{
    fn into_event(self) -> impl EventHandler {
        Typed::new(self)
    }
}

/// A closure with the type of its argument.
struct Typed<F, A> {
    closure: F,
    argument: PhantomData<fn(A)>,
}

impl<F, A> Typed<F, A> {
    const fn new(closure: F) -> Self {
        Self {
            closure,
            argument: PhantomData,
        }
    }
}

impl<F, A> fmt::Debug for Typed<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Typed").finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, A, Fut, R, E> AbilityHandler for Typed<F, A>
where
    F: Fn(AbilityContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<HandlerError> + Send + 'static,
{
    async fn handle(&self, ctx: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        let args = decode(&payload)?;
        drop(payload);
        encode((self.closure)(ctx, args).await)
    }
}

#[async_trait]
impl<F, A, Fut, R, E> EventHandler for Typed<F, A>
where
    F: Fn(EventContext, A) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<R, E>> + Send + 'static,
    A: DeserializeOwned + Send + 'static,
    R: Serialize + Send + 'static,
    E: Into<HandlerError> + Send + 'static,
{
    async fn run(&self, ctx: EventContext, payload: Payload) -> Result<Payload, HandlerError> {
        let args = decode(&payload)?;
        drop(payload);
        encode((self.closure)(ctx, args).await)
    }
}

fn decode<A: DeserializeOwned>(payload: &Payload) -> Result<A, HandlerError> {
    payload
        .decode()
        .map_err(|error| HandlerError::rejected(format!("cannot read the argument: {error}")))
}

fn encode<R: Serialize, E: Into<HandlerError>>(
    result: Result<R, E>,
) -> Result<Payload, HandlerError> {
    Payload::new(&result.map_err(Into::into)?)
        .map_err(|error| HandlerError::rejected(format!("cannot encode the answer: {error}")))
}

/// A closure over raw payloads.
pub(crate) struct Raw<F>(pub(crate) F);

#[async_trait]
impl<F, Fut> AbilityHandler for Raw<F>
where
    F: Fn(AbilityContext, Payload) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Payload, HandlerError>> + Send + 'static,
{
    async fn handle(&self, ctx: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        (self.0)(ctx, payload).await
    }
}

#[async_trait]
impl<F, Fut> EventHandler for Raw<F>
where
    F: Fn(EventContext, Payload) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Payload, HandlerError>> + Send + 'static,
{
    async fn run(&self, ctx: EventContext, payload: Payload) -> Result<Payload, HandlerError> {
        (self.0)(ctx, payload).await
    }
}

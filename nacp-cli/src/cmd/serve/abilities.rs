use std::time::Duration;

use async_trait::async_trait;
use nacp::{AbilityContext, AbilityHandler, Builder, HandlerError, IntoAbility, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Number;

use super::Trouble;
use super::countdown::countdown;
use super::flood::flood;

#[derive(Deserialize)]
struct Add {
    a: f64,
    b: f64,
}

#[derive(Deserialize)]
struct Sleep {
    ms: u64,
}

#[derive(Serialize)]
struct Slept {
    slept_ms: u64,
}

#[derive(Default, Deserialize)]
struct Fail {
    error: Option<String>,
}

#[derive(Serialize)]
struct Sunk {
    bytes: u64,
}

/// Gives a node what a peer to test against should have.
pub(super) fn add_to(builder: Builder, trouble: Trouble) -> Builder {
    let troubled = |inner: Box<dyn AbilityHandler>| Troubled { trouble, inner };
    builder
        .ability_with("echo", troubled(Box::new(Echo)))
        .describe("echo", "gives back its argument")
        .ability_with("add", troubled(boxed(async |Add { a, b }: Add| sum(a, b))))
        .describe("add", "{a, b}: their sum")
        .ability_with("sleep", troubled(boxed(sleep)))
        .describe("sleep", "{ms}: answers after so many milliseconds")
        .ability_with("fail", troubled(Box::new(Failing)))
        .describe("fail", "{error}: always fails, with that text")
        .ability_with("sink", troubled(Box::new(Sink)))
        .describe("sink", "takes anything and answers its size in bytes")
        .event("countdown", countdown)
        .describe(
            "countdown",
            "{from, ms}: counts down to 0; pause, resume, abort, or a number",
        )
        .event("flood", flood)
        .describe(
            "flood",
            "{size}: emits flood:REQUEST as often as each signalled number says",
        )
}

fn boxed<Shape>(closure: impl IntoAbility<Shape>) -> Box<dyn AbilityHandler> {
    Box::new(closure.into_ability())
}

/// A whole sum is answered as a whole number.
fn sum(a: f64, b: f64) -> Result<Number, HandlerError> {
    let sum = a + b;
    #[expect(clippy::cast_possible_truncation, reason = "whole, and within 2^53")]
    let number = if sum.fract() == 0.0 && sum.abs() <= 9_007_199_254_740_992.0 {
        Some(Number::from(sum as i64))
    } else {
        Number::from_f64(sum)
    };
    number.ok_or_else(|| HandlerError::failed("the sum is no finite number"))
}

async fn sleep(ctx: AbilityContext, Sleep { ms }: Sleep) -> Result<Slept, HandlerError> {
    tokio::select! {
        () = tokio::time::sleep(Duration::from_millis(ms)) => Ok(Slept { slept_ms: ms }),
        why = ctx.interrupted() => Err(why.into()),
    }
}

struct Echo;

#[async_trait]
impl AbilityHandler for Echo {
    async fn handle(&self, _: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        Ok(payload)
    }
}

struct Failing;

#[async_trait]
impl AbilityHandler for Failing {
    async fn handle(&self, _: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        let Fail { error } = payload.decode().unwrap_or_default();
        Err(HandlerError::failed(
            error.unwrap_or_else(|| "as asked for".to_owned()),
        ))
    }
}

struct Sink;

#[async_trait]
impl AbilityHandler for Sink {
    async fn handle(&self, _: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        let bytes = payload
            .as_byte_string()
            .map_or(payload.len(), |bytes| bytes.len());
        Ok(Payload::new(&Sunk {
            bytes: bytes as u64,
        })?)
    }
}

/// An ability that is slow or fails now and then, as it was asked to.
struct Troubled {
    trouble: Trouble,
    inner: Box<dyn AbilityHandler>,
}

#[async_trait]
impl AbilityHandler for Troubled {
    async fn handle(&self, ctx: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
        self.trouble.befall().await?;
        self.inner.handle(ctx, payload).await
    }
}

use std::time::Duration;

use nacp::{AbilityContext, Builder, HandlerError, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Number;

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
pub(super) fn add_to(builder: Builder) -> Builder {
    builder
        .ability_raw("echo", |_, payload| async move { Ok(payload) })
        .describe("echo", "gives back its argument")
        .ability("add", async |Add { a, b }: Add| sum(a, b))
        .describe("add", "{a, b}: their sum")
        .ability("sleep", sleep)
        .describe("sleep", "{ms}: answers after so many milliseconds")
        .ability_raw("fail", fail)
        .describe("fail", "{error}: always fails, with that text")
        .ability_raw("sink", sink)
        .describe("sink", "takes anything and answers its size in bytes")
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

async fn fail(_: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
    let Fail { error } = payload.decode().unwrap_or_default();
    Err(HandlerError::failed(
        error.unwrap_or_else(|| "as asked for".to_owned()),
    ))
}

async fn sink(_: AbilityContext, payload: Payload) -> Result<Payload, HandlerError> {
    let bytes = payload
        .as_byte_string()
        .map_or(payload.len(), |bytes| bytes.len());
    Ok(Payload::new(&Sunk {
        bytes: bytes as u64,
    })?)
}

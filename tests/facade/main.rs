//! The facade over both transports, and over a network that breaks.
#![expect(
    clippy::unwrap_used,
    reason = "a test that fails in its set-up has failed"
)]

#[macro_use]
mod support;

mod bad_input;
mod calls;
mod ending;
mod gateways;
mod handlers;
mod jobs;
mod links;
mod proxy;
mod subscriptions;
mod timed;
mod transfers;

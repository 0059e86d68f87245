//! The facade over both transports, and over a network that breaks.
#![expect(
    clippy::unwrap_used,
    reason = "a test that fails in its set-up has failed"
)]

#[macro_use]
mod support;

mod acks;
mod addresses;
mod bad_input;
mod batches;
mod calls;
mod cuts;
mod ending;
mod faults;
mod feedback;
mod gateways;
mod hand;
mod handlers;
mod items;
mod jobs;
mod lifecycle;
mod links;
mod patterns;
mod proxy;
mod registering;
mod relays;
mod repeats;
mod resubscribing;
mod subscriptions;
mod takeovers;
mod timed;
mod transfers;
mod waiting;
mod wire;

//! The node in virtual time: one module a theme, one claim of the specification a test.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "../support/mod.rs"]
mod support;

mod acks;
mod blocked;
mod crossing;
mod dedup;
mod disconnect;
mod exposure;
mod heartbeat;
mod malformed;
mod online_offline;
mod overflow_evict;
mod overflow_wait;
mod poison;
mod register_accepting;
mod register_dialling;
mod replay;
mod requests;
mod sessions;
mod settlement;
mod streams;
mod subscriptions;
mod takeover;
mod terminate;
mod timers;

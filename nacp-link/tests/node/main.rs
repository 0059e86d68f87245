//! The node in virtual time: one module a theme, one claim of the specification a test.
#![expect(
    clippy::unwrap_used,
    reason = "a helper that cannot go on fails its test"
)]

#[path = "../support/mod.rs"]
mod support;

mod crossing;
mod heartbeat;
mod online_offline;
mod poison;
mod register_accepting;
mod register_dialling;
mod replay;
mod takeover;
mod timers;

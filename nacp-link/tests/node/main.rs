//! The node in virtual time: one module a theme, one claim of the specification a test.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a test picks the variants that it looks for"
)]
#![expect(clippy::unwrap_used, reason = "whatever cannot go on fails its test")]

#[path = "../support/mod.rs"]
mod support;

mod acks;
mod blocked;
mod callers;
mod crossing;
mod dedup;
mod disconnect;
mod edges;
mod exposure;
mod foreign_peer;
mod gateway;
mod heartbeat;
mod large;
mod malformed;
mod online_offline;
mod options;
mod overflow_evict;
mod overflow_pending;
mod overflow_wait;
mod poison;
mod register_accepting;
mod register_dialling;
mod register_policy;
mod relay;
mod relay_beats;
mod replay;
mod reports;
mod requests;
mod resubscribing;
mod room;
mod seed;
mod sessions;
mod settings;
mod settlement;
mod several;
mod streams;
mod subscriptions;
mod takeover;
mod terminate;
mod timers;
mod unregister;
mod withdrawal;

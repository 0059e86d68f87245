//! The binary as a user meets it.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bad_peers;
mod bench;
mod codes;
mod events;
mod every;
mod examples;
mod help;
mod look;
mod others;
mod pipes;
mod proxy;
mod screens;
mod serve;
mod support;
mod talk;
mod top;
mod usage;

//! The crate from outside: over real loopback sockets, and in memory with a clock of its own where
//! time matters.
#![expect(clippy::unwrap_used, reason = "a test that fails should say where")]

mod address;
mod cancelling;
mod closing;
mod connecting;
mod faults;
mod lanes;
mod support;
mod time;

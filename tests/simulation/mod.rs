//! Nodes in a world of virtual time, seeded networks and faults.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what a test does not name, it fails on or does not care for"
)]

mod app;
mod bindings;
mod books;
mod closing;
mod dialling;
mod driver;
mod faults;
mod handlers;
mod life;
mod oracle;
mod plan;
mod random;
mod sent;
mod settling;
mod shrink;
mod stats;
mod trace;
mod wire;
mod world;

pub(crate) use plan::{MIN_FAULTS, MIN_OPS, Plan};
pub(crate) use shrink::shrink;
pub(crate) use stats::Stats;
pub(crate) use world::{Outcome, World};

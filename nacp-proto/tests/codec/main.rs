//! Messages and payloads, through the public face of the crate.
#![expect(
    clippy::unwrap_used,
    reason = "what a test builds is good, or the test fails"
)]

mod decoding;
mod encoding;
mod limits;
mod names;
mod numbers;
mod payloads;
mod properties;
mod registering;
mod support;

//! The recorded traffic of the reference implementation, held against this crate.
#![expect(
    clippy::unwrap_used,
    reason = "a recording that cannot be read fails its test"
)]

mod hand_made;
mod items;
mod meaning;
mod messages;
mod recordings;

//! The recorded traffic of the reference implementation, held against this crate.

mod hand_made;
mod items;
mod meaning;
mod messages;
mod recordings;

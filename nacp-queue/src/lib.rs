//! Bounded message queues with exact caps and constant cost: backlog, ack-pending, received window.
#![warn(missing_docs)]

mod ack_pending;
mod backlog;
mod caps;
mod destinations;
mod evictions;
mod hash_index;
mod iter;
mod key_index;
mod list;
mod received;
mod record;
mod registry;
mod slot;
mod table;
mod window;

pub use ack_pending::AckPending;
pub use backlog::Backlog;
pub use caps::{Caps, CapsError, Room};
pub use evictions::{Evicted, Evictions, Overflow, Refusal, Refused};
pub use iter::{Drain, DrainPending, Iter, IterPending};
pub use received::{Forgotten, Heard, Received, ReceivedError};
pub use record::Record;

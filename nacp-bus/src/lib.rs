//! An event bus with wildcard patterns matched by a trie, generic over the payload.
#![warn(missing_docs)]

mod bus;
mod matcher;
mod pattern;
mod segment;
mod stream;
mod subscriptions;

pub use bus::{Emitted, Event, EventBus, Interest, ListenerId, ListenerPanic};
pub use matcher::{Key, Matcher};
pub use pattern::{Pattern, PatternError, Segment};
pub use segment::{escape_segment, unescape_segment};
pub use stream::{EventStream, StreamItem, TryRecvError};
pub use subscriptions::{InsertError, Subscriptions};

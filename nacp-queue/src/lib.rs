//! Bounded message queues with exact caps and constant cost: what waits to be sent, what was sent
//! and waits for its ACK, and what was received.
//!
//! ```
//! use nacp_queue::{AckPending, Backlog, Caps, Evicted, Record, Refusal};
//!
//! #[derive(Debug, PartialEq)]
//! struct Message {
//!     id: u64,
//!     to: u32,
//!     body: &'static [u8],
//!     progress: bool,
//! }
//!
//! impl Record for Message {
//!     type Key = u64;
//!     type Destination = u32;
//!
//!     fn key(&self) -> &u64 {
//!         &self.id
//!     }
//!     fn destination(&self) -> &u32 {
//!         &self.to
//!     }
//!     fn bytes(&self) -> u64 {
//!         self.body.len() as u64
//!     }
//!     fn droppable(&self) -> bool {
//!         self.progress
//!     }
//! }
//!
//! let message = |id, progress| Message { id, to: 7, body: b"hello", progress };
//!
//! // Two records of any size wait for app 7, which is away.
//! let mut backlog = Backlog::new(Caps::new(2, u64::MAX)?);
//! assert_eq!(backlog.push(message(1, true)).map(Iterator::count), Ok(0));
//! assert_eq!(backlog.push(message(2, false)).map(Iterator::count), Ok(0));
//!
//! // A third one evicts what can be spared, and hands it out with the reason.
//! let mut evicted = backlog.push(message(3, false)).map_err(|refused| refused.reason)?;
//! assert_eq!(evicted.next(), Some((message(1, true), Evicted::Droppable)));
//! drop(evicted);
//!
//! // What can be spared does not evict anything: it comes back.
//! let refused = backlog.push(message(4, true)).unwrap_err();
//! assert_eq!((refused.record, refused.reason), (message(4, true), Refusal::Full));
//!
//! // App 7 is here: what was sent waits for its ACK.
//! let mut pending = AckPending::new(Caps::new(1024, u64::MAX)?);
//! while let Some(message) = backlog.pop(&7) {
//!     let _overflow = pending.insert(message, None).map_err(|refused| refused.reason)?;
//! }
//! assert_eq!(pending.settle(&2), Some(message(2, false)));
//!
//! // The connection breaks: what is not settled goes back to the head, in order.
//! backlog.put_back(pending.drain(&7).map(|(message, _)| message)).for_each(drop);
//! assert_eq!(backlog.peek(&7), Some(&message(3, false)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # The tables
//!
//! - [`Backlog`]: records that wait to be sent. In at the tail or, for those put back, at the head;
//!   out by destination, by key, or by whose turn it is.
//! - [`AckPending`]: records that were sent, each with a deadline. In at the tail, out by key.
//!   Without caps it is a plain table of things that wait for an answer.
//! - [`Received`]: the last so many keys of each source, to tell a repeat from something new.
//!
//! The crate knows nothing of messages but what [`Record`] tells, and nothing of time but the
//! deadlines it is given. Sending, waiting for room and noticing that a deadline has passed are left
//! to the caller.
//!
//! # Overflow
//!
//! After every operation a table is within its [`Caps`], with one exception: a single record above
//! the cap on bytes is kept when it is alone. When a record that arrives at a backlog would break a
//! cap (specification, section 6):
//!
//! 1. a droppable record is refused and the table is unchanged;
//! 2. for any other, droppable records are evicted, oldest first, until it fits;
//! 3. if that is not enough, other records, oldest first, but never the arriving one.
//!
//! Records put back at the head call for rules 2 and 3, and none of them counts as arriving. An
//! ack-pending table evicts the oldest whatever it is. "Oldest" means nearest the head. Caps of a
//! destination come on top and evict only its own records.
//!
//! Nothing is lost on the way: what is refused comes back in [`Refused`], what is evicted comes out
//! of [`Evictions`] or [`Overflow`].
//!
//! # Cost
//!
//! Every operation on one record is O(1), those that move `k` records are O(k), and none scans a
//! table. A key is hashed at most once an operation, and not at all when it carries a
//! [sequence number](Record::sequence) whose place in the ring is its own. As with `Vec` and
//! `HashMap`, that is amortised: growing, shrinking and sweeping the hash table are paid for by the
//! operations that lead there, and one of these now and then takes O(n).
//!
//! A resident record takes at most 64 bytes beside itself, and its place in the index: 11 to 23
//! bytes in the hash table or 8 to 16 in the ring. While no table grows or shrinks, nothing is
//! allocated. Memory is given back when less than a quarter of it is in use, down to about 2048
//! records.
//!
//! The hash is seeded at random, so a peer that chooses keys cannot plan collisions; it is not a
//! cryptographic one. No order that can be seen depends on it.
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

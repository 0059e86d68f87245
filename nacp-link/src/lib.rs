//! The NACP node without I/O: links, timers, replay, routing, sessions.
//!
//! A [`Node`] is the whole protocol as a plain data structure. It is fed with what happened (a
//! connection came, a message was read, time has passed) and with what the application wants; it is
//! drained of what has to be done next. It opens no socket, reads no clock, spawns no task and locks
//! nothing: those are its driver's. The crate `nacp` is one such driver, for tokio.
//!
//! ```
//! use std::time::Instant;
//!
//! use nacp_link::{Answer, Config, Connect, Event, Inbound, Node, Origin, Request, Settlement};
//! use nacp_link::{PeerId, Token, Transmit, Trust};
//! use nacp_proto::{AppId, Message, Payload, RequestKind};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let now = Instant::now();
//! let mut asker = Node::new(Config::new(AppId::new("asker")?), now, 0.0, [1; 32])?;
//! let mut adder = Node::new(Config::new(AppId::new("adder")?), now, 0.0, [2; 32])?;
//!
//! // The asker dials: to the nodes a connection is a name that both ends have for it.
//! let to = AppId::new("adder")?;
//! let Connect::Dial(dial) = asker.connect(Some(to.clone()), None, None) else { return Ok(()) };
//! let at_asker = asker.handle_connected(now, Origin::Dialled(dial), Trust::Proven);
//! let at_adder = adder.handle_connected(now, Origin::Accepted, Trust::Proven);
//!
//! let mut sum = None;
//! let mut asked = false;
//! for _ in 0..8 {
//!     // Whatever one end wants to send, the other end is fed with.
//!     carry(now, &mut asker, at_adder, &mut adder)?;
//!     carry(now, &mut adder, at_asker, &mut asker)?;
//!
//!     while let Some(event) = adder.poll_event() {
//!         if let Event::Request(request) = event {
//!             let (a, b): (i64, i64) = request.payload.decode()?;
//!             adder.respond(now, request.running, Answer::ok(Payload::new(&(a + b))?), None);
//!         }
//!     }
//!     while let Some(event) = asker.poll_event() {
//!         match event {
//!             Event::Link(_) if !asked => {
//!                 asked = true;
//!                 let request = Request {
//!                     to: to.clone(),
//!                     kind: RequestKind::Ability,
//!                     target: "add".into(),
//!                     payload: Payload::new(&(1, 2))?,
//!                     limit: None,
//!                 };
//!                 asker.request(now, request, Some(Token(7)));
//!             }
//!             Event::Settled { token: Token(7), settlement: Settlement::Answered(answered) } => {
//!                 sum = Some(answered.response.payload.decode::<i64>()?);
//!             }
//!             _ => {}
//!         }
//!     }
//! }
//! assert_eq!(sum, Some(3));
//!
//! fn carry(now: Instant, from: &mut Node, at: PeerId, to: &mut Node) -> Result<(), Box<dyn std::error::Error>> {
//!     while let Some(transmit) = from.poll_transmit() {
//!         let Transmit::Send { encoded, .. } = transmit else { continue };
//!         let bytes = encoded.to_bytes();
//!         let decoded = Message::decode(&bytes)?;
//!         to.handle_message(now, at, Inbound { bytes, decoded });
//!     }
//!     Ok(())
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Driving a node
//!
//! One loop, in this order: feed what was read and accepted, call
//! [`handle_timeout`](Node::handle_timeout) if [`poll_timeout`](Node::poll_timeout) has come, drain
//! [`poll_transmit`](Node::poll_transmit) and [`poll_event`](Node::poll_event), sleep. A driver that is
//! late or lazy delays things; it breaks nothing. What it owes the node:
//!
//! - each [`Transmit::Send`] is written in the order of its lane, or its peer is reported ended;
//! - the totals of what was accepted, by [`handle_accepted`](Node::handle_accepted): without them
//!   windows stay shut, and ACK limits do not begin;
//! - each [`Event::Request`] is answered by [`respond`](Node::respond), also when its handler was
//!   cancelled, panicked or gave no answer.
//!
//! # The life of a link
//!
//! ```text
//!                 register                   peer ended, ACK or beat limit, takeover
//!    (unknown) ─────────────▶  online  ───────────────────────────────────────▶  offline
//!                              │    ▲                                            │    │
//!                   good-bye   │    └────────────── register within the grace ───┘    │ grace ended,
//!                              ▼                                                      ▼ good-bye
//!                           dropped  ◀──────────────────────────────────────────── dropped
//! ```
//!
//! Online, a message passes straight to its peer. Offline, it waits in the backlog. On return
//! everything un-ACKed goes out again, in its old order, with its old id and its old bytes, before
//! anything newer; the other side ACKs repeats and handles none twice. Dropped, everything that
//! waits for the app settles with a reason. How each sentence of the lifecycle document is kept, and
//! by which test, is listed in [`seed`].
//!
//! # Guarantees and limits
//!
//! - Every token settles exactly once. `undelivered` is not `never handled`.
//! - Within one instance of the other side, a reliable message is handled at most once; while that
//!   instance comes back within the grace, what was admitted is handled, unless its token says why not.
//! - What a peer sends costs at most that peer: nothing panics, no table passes its cap, and no
//!   operation scans a table that others can fill.
//! - Work per message does not grow with links or queue depth; deadlines cost O(log n).
//! - The same seed and the same inputs give the same outputs.
#![warn(missing_docs)]

mod accept;
mod admission;
mod answers;
mod beat;
mod blocked;
mod calls;
mod config;
mod connection;
mod dial;
mod ending;
mod event;
mod exposure;
mod ids;
mod incoming;
mod instances;
mod lifecycle;
mod link;
mod load;
mod moving;
mod node;
mod offline;
mod peer;
mod record;
mod relay;
mod remote;
mod report;
mod reporting;
mod sentinel;
mod served;
mod session;
mod snapshot;
mod submission;
mod subscribed;
mod subscribing;
mod takeover;
mod timers;
mod transmit;
mod undelivered;

pub use accept::Verdict;
pub use calls::Request;
pub use config::{Admittance, Config, ConfigError, OverflowPolicy};
pub use connection::{Origin, Trust};
pub use dial::{Connect, DialError};
pub use event::{
    Answered, Authorize, Cause, Event, LinkChange, LinkState, Requested, Settlement, StreamEnd,
};
pub use ids::{DialId, PeerId, RunningId, StreamId, SubscriptionId, Token};
pub use node::Node;
pub use peer::Inbound;
pub use report::{Interest, MessageReport, Reason, Report, Subject};
pub use served::Answer;
pub use snapshot::{LinkSnapshot, NodeSnapshot, Table, Totals};
pub use transmit::{Accepted, Close, Lane, Transmit};
pub use undelivered::Undelivered;

#[doc = include_str!("../docs/seed.md")]
pub mod seed {}

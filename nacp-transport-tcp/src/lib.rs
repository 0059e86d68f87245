//! NACT over TCP: encoded messages in, batches of decoded messages out.
//!
//! It carries messages between two peers and knows nothing of apps, links or timers of the
//! protocol: those are above it. Messages and frames are those of [`nacp_proto`].
//!
//! ```
//! use nacp_proto::{AppId, Body, Message, MessageId};
//! use nacp_transport_tcp::{Address, Close, Lane, Listener, Options, connect};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let options = Options::default();
//! let listener = Listener::bind(&Address::to_listen_on("127.0.0.1:0")?, options.clone()).await?;
//! let address = listener.local_addr().into();
//!
//! let (dialled, accepted) = tokio::join!(connect(&address, &options), listener.accept());
//! let (sender, _, writer) = dialled?.split();
//! let (_replies, mut receiver, replier) = accepted.split();
//! tokio::spawn(writer.run(|accepted| println!("accepted by the system: {accepted:?}")));
//! tokio::spawn(replier.run(|_| ()));
//!
//! let message = Message {
//!     id: MessageId::new("first")?,
//!     from: AppId::new("a")?,
//!     to: AppId::new("b")?,
//!     time: None,
//!     body: Body::Unregister,
//! };
//! sender.queue(Lane::Bulk, message.encode())?;
//! sender.flush();
//!
//! let batch = receiver.recv().await?.ok_or("closed")?;
//! assert_eq!(batch.messages.remove(0).decoded.into_message(), Some(message));
//!
//! sender.close(Close::Flush);
//! assert!(receiver.recv().await?.is_none());
//! # Ok(())
//! # }
//! ```
//!
//! # Concepts
//!
//! ```text
//!   queue ──> control lane ─┐                       ┌─> Batch of messages
//!   queue ──> bulk lane ────┴─> flush ─> socket ─> recv, with progress
//!                                │ what it does not take at once
//!                                └─> WriterTask ─> socket
//! ```
//!
//! A [`Connection`] is split into a [`Sender`], a [`Receiver`] and a [`WriterTask`]. Queueing is
//! separate from writing, so that any number of messages leave in one system call, and so that
//! nothing that is dropped can tear a frame. Flushing writes from the calling thread, which saves
//! the way over another task while the socket takes what is there. The [`Receiver`] is driven by
//! whoever calls [`Receiver::recv`], one read at a time.
//!
//! # Guarantees and limits
//!
//! A message that was queued is written whole, or the connection ends. Messages of a lane keep their
//! order. What is queued is bounded by the caller alone; what is received is bounded by
//! [`Options`]. Faults carry the reasons of the specification, section 2: [`Fault::reason`]. What
//! lies in the operating system's send buffer cannot be overtaken (specification, section 7).
#![warn(missing_docs)]

mod address;
mod batch;
mod budget;
mod connect;
mod connection;
mod fault;
mod io;
mod lanes;
mod listener;
mod lock;
mod msg_ids;
mod options;
mod receiver;
mod reuse;
mod sender;
mod shared;
mod socket;
mod writer;
mod writer_task;

pub use address::{Address, AddressError};
pub use budget::{MemoryBudget, MemoryShare};
pub use connect::{Attempt, ConnectError, connect, connect_to, resolve};
pub use connection::Connection;
pub use fault::Fault;
pub use lanes::{Lane, QueueError, Refusal};
pub use listener::Listener;
pub use options::Options;
pub use receiver::{Batch, Inbound, Receiver};
pub use sender::{Accepted, Close, Sender};
pub use writer_task::WriterTask;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

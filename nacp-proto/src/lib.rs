//! NACP messages, their CBOR, and NACT frames, without I/O.
//!
//! ```
//! use std::time::Instant;
//!
//! use bytes::BufMut;
//! use nacp_proto::{
//!     AppId, Body, ChunkSize, Chunker, FrameDecoder, Message, MessageId, MsgId, Payload,
//!     ReassemblyLimits, RequestKind,
//! };
//!
//! // A message, its bytes, and the frames that carry them.
//! let request = Message::new(
//!     MessageId::sequenced(1, 0x0123_4567_89ab_cdef),
//!     AppId::new("alice")?,
//!     AppId::new("bob")?,
//!     Body::Request {
//!         kind: RequestKind::Ability,
//!         target: Some("add".into()),
//!         payload: Payload::new(&(1, 2))?,
//!     },
//! );
//! let frames = Chunker::new(request.encode(), MsgId([7; 16]))?.frames(ChunkSize::new(64)?);
//!
//! // The other side gets a stream of bytes.
//! let mut decoder = FrameDecoder::new(ReassemblyLimits::default());
//! for frame in frames {
//!     let mut stream = decoder.read_buf();
//!     stream.put_slice(&frame.header.to_bytes());
//!     stream.put_slice(&frame.body.to_bytes());
//! }
//! let bytes = decoder.poll_message(Instant::now())?.ok_or("not whole")?;
//! let message = Message::decode(&bytes)?.into_message().ok_or("not good")?;
//! assert_eq!(message, request);
//!
//! let (one, two): (i32, i32) = message.body.payload().ok_or("no payload")?.decode()?;
//! assert_eq!(one + two, 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! What is here: the nine message types with exactly the fields that each may have, their bytes in
//! both directions, payloads, and frames. What is not: connections, links, timers, queues, and what a
//! node does with a message; those are crates of their own, which stand on this one.
//!
//! # From a value to the wire and back
//!
//! ```text
//!  value ──Payload::new──▶ Payload ─┐                                    ┌─▶ Payload ──decode──▶ value
//!                                   ├─ Message ──encode──▶ Encoded       │
//!  AppId, MessageId, names ─────────┘                         │       Message, Malformed or Unknown
//!                                                          Chunker       ▲
//!                                                             │   Message::decode
//!                                                          frames        │
//!                                                             └────▶ FrameDecoder
//! ```
//!
//! - [`Message`] is an envelope (id, from, to, time) and a [`Body`]. An impossible message cannot be
//!   built; one that came in and does not fit its type is [`Decoded::Malformed`] and keeps its
//!   envelope, so that it can be answered.
//! - [`Payload`] is CBOR that nobody decodes on the way. It is made of anything that serde serializes,
//!   and reads into anything that serde deserializes, or into a [`ciborium::Value`]. Its page tells how
//!   the numbers of JavaScript read.
//! - [`MessageId`] and [`AppId`] are opaque texts, compared byte by byte and shown with control
//!   characters escaped.
//! - [`Encoded`] are the bytes of a message in up to three pieces, so that a large payload is not copied.
//! - [`Chunker`] and [`FrameDecoder`] turn messages into frames and a stream back into messages, within
//!   [`ReassemblyLimits`].
//!
//! # What is guaranteed
//!
//! - Nothing that comes from outside makes it panic, and none of it reserves memory because a length
//!   says so. Nesting is limited to 128 levels, the message itself included.
//! - A payload comes out as the bytes that came in, and lies where they were received.
//! - Every byte sent is readable by the reference implementation (NASDK 1.0.4), and every byte it sends
//!   is read: the traffic recorded from it is part of the tests.
//! - Encoding into a buffer with room and decoding allocate nothing, unless a text is longer than 23
//!   bytes (ids that are UUIDs aside) or the message is a register.
//! - Time comes in as an argument; there is no clock, no randomness and no unsafe code here.
#![warn(missing_docs)]

mod app_id;
mod body;
mod chunker;
mod decode;
mod decoded;
mod encode;
mod encoded;
mod escape;
mod fields;
mod frame;
mod frame_decoder;
mod message_id;
mod message_type;
mod payload;
mod reassembly;
mod register;
mod scan;
mod write;

pub use ciborium;
pub use smol_str::SmolStr;

pub use app_id::{AppId, AppIdError};
pub use body::{Body, Message, Outcome, RequestKind, Response, Signal};
pub use chunker::{ChunkSize, ChunkSizeError, Chunker, Frame, Frames, OversizedMessage};
pub use decode::DecodeError;
pub use decoded::{Decoded, Envelope, EnvelopeRef, Malformed};
pub use encoded::Encoded;
pub use frame::{FrameError, FrameHeader, MsgId};
pub use frame_decoder::FrameDecoder;
pub use message_id::{MessageId, MessageIdError};
pub use message_type::MessageType;
pub use payload::{EpochMillis, Payload, PayloadError, PayloadReadError, js_integer};
pub use reassembly::{Reassembler, ReassemblyLimits};
pub use register::{
    Decl, Entry, Instance, PeerInfo, Register, Registered, RegisteredError, Session, Version,
};
pub use scan::ScanError;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
struct Readme;

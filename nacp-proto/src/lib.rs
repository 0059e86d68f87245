//! NACP messages, their CBOR, and NACT frames, without I/O.
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

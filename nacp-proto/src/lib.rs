//! NACP messages, their CBOR, and NACT frames, without I/O.
#![warn(missing_docs)]

mod app_id;
mod body;
mod chunker;
mod decode;
mod encode;
mod encoded;
mod escape;
mod fields;
mod frame;
mod frame_decoder;
mod message_id;
mod payload;
mod reassembly;
mod register;
mod scan;
mod write;

pub use app_id::{AppId, AppIdError};
pub use body::{
    Body, Decoded, Envelope, EnvelopeRef, Malformed, Message, MessageType, Outcome, RequestKind,
    Response, Signal,
};
pub use chunker::{ChunkSize, ChunkSizeError, Chunker, Frame, Frames, OversizedMessage};
pub use decode::DecodeError;
pub use encoded::Encoded;
pub use frame::{FrameError, FrameHeader, MsgId};
pub use frame_decoder::FrameDecoder;
pub use message_id::{MessageId, MessageIdError};
pub use payload::{Payload, PayloadError, PayloadReadError};
pub use reassembly::{Reassembler, ReassemblyLimits};
pub use register::{
    Decl, Entry, Instance, PeerInfo, Register, Registered, RegisteredError, Session, Version,
};
pub use scan::ScanError;

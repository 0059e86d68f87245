//! NACP messages, their CBOR, and NACT frames, without I/O.
#![warn(missing_docs)]

mod app_id;
mod body;
mod decode;
mod encode;
mod encoded;
mod frame;
mod message_id;
mod payload;
mod reassembly;
mod register;
mod scan;

pub use app_id::{AppId, AppIdError};
pub use body::{
    Body, Decoded, Envelope, Malformed, Message, MessageType, Outcome, RequestKind, Response,
    Signal,
};
pub use encoded::Encoded;
pub use frame::{FrameError, FrameHeader, MsgId};
pub use message_id::{MessageId, MessageIdError};
pub use payload::Payload;
pub use register::{Decl, Entry, Instance, PeerInfo, Register, Registered, Session, Version};

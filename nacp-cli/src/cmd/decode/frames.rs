use std::collections::HashMap;
use std::time::Instant;

use bytes::Bytes;
use nacp::proto::{FrameError, FrameHeader, MsgId, Reassembler, ReassemblyLimits};

use super::fault;
use super::item::{self, Item};
use crate::failure::Failure;

/// Walks through a recorded stream of frames.
pub(super) fn read(bytes: &Bytes, as_diag: bool, items: &mut Vec<Item>) -> Result<(), Failure> {
    let mut reassembler = Reassembler::new(ReassemblyLimits::default());
    reassembler.handle_registered();
    // Nothing times out in a recording.
    let now = Instant::now();
    let mut begun: HashMap<MsgId, usize> = HashMap::new();
    let mut at = 0;
    while at < bytes.len() {
        let (header, body) = frame(bytes, at)?;
        items.push(shown(&header, at));
        let body_at = at + FrameHeader::LEN;
        let next = body_at + body.len();
        let first = *begun.entry(header.msg_id()).or_insert(body_at);
        let whole = reassembler
            .handle_frame(now, &header, body)
            .map_err(|error| fault(at + place(&error), error.reason(), error))?;
        if let Some(message) = whole {
            begun.remove(&header.msg_id());
            item::message(&message, first, as_diag, items)?;
        }
        at = next;
    }
    match begun.values().min() {
        Some(first) => Err(fault(
            bytes.len(),
            "decode-failed",
            format_args!("the message that begins at byte {first} is not complete"),
        )),
        None => Ok(()),
    }
}

fn frame(bytes: &Bytes, at: usize) -> Result<(FrameHeader, Bytes), Failure> {
    let truncated = |what| {
        let message = format!("the {what} of the frame at byte {at} is not complete");
        fault(bytes.len(), "decode-failed", message)
    };
    let rest = bytes.get(at..).unwrap_or_default();
    let head = rest.first_chunk().ok_or_else(|| truncated("header"))?;
    let header = FrameHeader::parse(head)
        .map_err(|error| fault(at + place(&error), error.reason(), error))?;
    let len = usize::try_from(header.body_len()).unwrap_or(usize::MAX);
    let body_at = at + FrameHeader::LEN;
    match body_at.checked_add(len) {
        Some(end) if end <= bytes.len() => Ok((header, bytes.slice(body_at..end))),
        _ => Err(truncated("body")),
    }
}

fn shown(header: &FrameHeader, at: usize) -> Item {
    Item::Frame {
        at,
        msg_id: hex::encode(header.msg_id().0),
        offset: header.offset(),
        total_size: header.total_size(),
        body: header.body_len(),
    }
}

/// Where in the header the field lies that is wrong.
const fn place(error: &FrameError) -> usize {
    match error {
        FrameError::VersionMismatch { .. } => 31,
        FrameError::BadMagic { .. } => 30,
        FrameError::TooSmall { .. }
        | FrameError::TooLarge { .. }
        | FrameError::SizeMismatch { .. } => 24,
        FrameError::OutOfBounds { .. } | FrameError::Overlapping { .. } => 16,
        FrameError::TotalSizeChanged { .. }
        | FrameError::MessageTooLarge { .. }
        | FrameError::TooManyMessages { .. }
        | FrameError::ReassemblyTimeout
        | FrameError::Truncated
        | _ => 20,
    }
}

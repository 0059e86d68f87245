use std::collections::VecDeque;
use std::mem;

use bytes::{BufMut, BytesMut};
use nacp_proto::{ChunkSize, Chunker, Encoded, FrameHeader, Message};
use thiserror::Error;

use crate::batch::Batch;
use crate::msg_ids::MsgIds;
use crate::reuse::Reuse;

/// The two lanes of a connection (specification, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the specification has these two")]
pub enum Lane {
    /// Overtakes the other, also between the frames of a larger message. For small messages: they
    /// are copied.
    Control,
    /// Everything else.
    Bulk,
}

/// Why a message was not queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The connection is being closed, or has ended.
    #[error("connection is closed")]
    Closed,
    /// The message has more than 2^32-1 bytes, which no frame can describe.
    #[error("message is larger than a frame can describe")]
    Oversized,
}

/// A message that was not queued.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{refusal}")]
pub struct QueueError {
    /// Why.
    pub refusal: Refusal,
    /// The message.
    pub message: Encoded,
}

/// What the buffer of the control lane keeps allocated in any case.
const KEPT: usize = 4 << 10;

/// What has been queued and not yet taken to be written.
#[derive(Debug)]
pub(crate) struct Lanes {
    /// Whole frames, one behind the other.
    control: BytesMut,
    /// Where in `control` each of its messages ends.
    control_ends: Vec<usize>,
    bulk: VecDeque<Chunker>,
    msg_ids: MsgIds,
    chunk_size: ChunkSize,
    /// Whether the connection is being closed; nothing more is queued then.
    closed: bool,
}

impl Lanes {
    pub(crate) fn new(chunk_size: ChunkSize) -> Self {
        Self {
            control: BytesMut::new(),
            control_ends: Vec::new(),
            bulk: VecDeque::new(),
            msg_ids: MsgIds::new(),
            chunk_size,
            closed: false,
        }
    }

    pub(crate) const fn set_chunk_size(&mut self, chunk_size: ChunkSize) {
        self.chunk_size = chunk_size;
    }

    pub(crate) const fn chunk_size(&self) -> ChunkSize {
        self.chunk_size
    }

    /// Whether the connection is being closed.
    pub(crate) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes nothing more.
    pub(crate) const fn close(&mut self) {
        self.closed = true;
    }

    /// Drops what is queued.
    pub(crate) fn clear(&mut self) {
        self.control = BytesMut::new();
        self.control_ends = Vec::new();
        self.bulk = VecDeque::new();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.control.is_empty() && self.bulk.is_empty()
    }

    pub(crate) fn push(&mut self, lane: Lane, message: Encoded) -> Result<(), QueueError> {
        if self.closed {
            return Err(QueueError {
                refusal: Refusal::Closed,
                message,
            });
        }
        let chunker = Chunker::new(message, self.msg_ids.next()).map_err(|error| QueueError {
            refusal: Refusal::Oversized,
            message: error.into_message(),
        })?;
        match lane {
            Lane::Control => self.push_control(chunker),
            Lane::Bulk => self.bulk.push_back(chunker),
        }
        Ok(())
    }

    /// Encodes a message straight behind the control frames that wait.
    pub(crate) fn encode_control(&mut self, message: &Message) -> Result<(), Refusal> {
        if self.closed {
            return Err(Refusal::Closed);
        }
        let start = self.control.len();
        self.control.put_bytes(0, FrameHeader::LEN);
        message.encode_into(&mut self.control);
        let len = self.control.len() - start - FrameHeader::LEN;
        let header = u32::try_from(len)
            .ok()
            .filter(|&len| u64::from(len) + FrameHeader::LEN as u64 <= self.max_frame())
            .and_then(|len| FrameHeader::new(self.msg_ids.next(), 0, len, len).ok());
        let Some(header) = header else {
            return self.reframe_control(start);
        };
        self.control[start..start + FrameHeader::LEN].copy_from_slice(&header.to_bytes());
        self.control_ends.push(self.control.len());
        Ok(())
    }

    /// Hands over what is queued: all of the control lane to `batch`, and all of the other lane to
    /// `bulk` if that is empty.
    pub(crate) fn hand_over(&mut self, batch: &mut Batch, bulk: &mut VecDeque<Chunker>) {
        if !self.control.is_empty() {
            batch.push_control(&self.control, &self.control_ends);
            self.recycle_control();
        }
        if bulk.is_empty() && !self.bulk.is_empty() {
            mem::swap(bulk, &mut self.bulk);
            self.bulk.relax(bulk.len());
        }
    }

    fn recycle_control(&mut self) {
        let messages = self.control_ends.len();
        self.control_ends.clear();
        self.control_ends.relax(messages);
        if self.control.len() < self.control.capacity() / 8 && self.control.capacity() > KEPT {
            self.control = BytesMut::with_capacity(self.control.capacity() / 2);
        }
        self.control.clear();
    }

    fn max_frame(&self) -> u64 {
        u64::from(self.chunk_size.bytes())
    }

    /// Cuts a message that was encoded at `start` and is too large for one frame.
    fn reframe_control(&mut self, start: usize) -> Result<(), Refusal> {
        let body = self.control.split_off(start).split_off(FrameHeader::LEN);
        let chunker = Chunker::new(body.freeze().into(), self.msg_ids.next());
        self.push_control(chunker.map_err(|_| Refusal::Oversized)?);
        Ok(())
    }

    fn push_control(&mut self, chunker: Chunker) {
        for frame in chunker.frames(self.chunk_size) {
            self.control.extend_from_slice(&frame.header.to_bytes());
            frame
                .body
                .pieces()
                .iter()
                .for_each(|piece| self.control.extend_from_slice(piece));
        }
        self.control_ends.push(self.control.len());
    }
}

use std::collections::BTreeMap;
use std::time::Instant;

use bytes::{Bytes, BytesMut};

/// A message of which not all frames have come.
///
/// Bytes that continue the message go into one growing buffer, which is handed on whole. Bytes
/// that came too early wait in a second buffer, in the order of their arrival, until the first
/// reaches them. Neither is larger than twice what has come.
#[derive(Debug)]
pub(super) struct Partial {
    total_size: u32,
    prefix: BytesMut,
    early: BytesMut,
    spans: BTreeMap<u32, Span>,
    /// Body bytes of all complete frames.
    received: u32,
    /// When its last new byte came; at first, when its first frame came.
    pub(super) progress_at: Instant,
    /// Bytes that came since progress was last asked for.
    pub(super) fresh: u64,
}

/// Where in `early` the bytes of one stretch of the message lie.
#[derive(Debug, Clone, Copy)]
struct Span {
    at: u32,
    len: u32,
}

/// What one entry of `spans` costs: its 12 bytes, and its part of a half-full tree node.
const SPAN_COST: usize = 32;

/// Smallest step by which a buffer grows: one page.
const MIN_GROWTH: usize = 4096;

impl Partial {
    pub(super) fn new(total_size: u32, now: Instant) -> Self {
        Self {
            total_size,
            prefix: BytesMut::new(),
            early: BytesMut::new(),
            spans: BTreeMap::new(),
            received: 0,
            progress_at: now,
            fresh: 0,
        }
    }

    pub(super) const fn total_size(&self) -> u32 {
        self.total_size
    }

    /// Memory that it holds, in bytes.
    pub(super) fn held(&self) -> usize {
        self.prefix.len() + self.early.len() + self.spans.len() * SPAN_COST
    }

    /// The first byte from `offset` on that has come already, if the `len` bytes there have one.
    pub(super) fn overlap(&self, offset: u32, len: u32) -> Option<u32> {
        if len == 0 {
            return None;
        }
        if (offset as usize) < self.prefix.len() {
            return Some(offset);
        }
        let last = offset + (len - 1);
        let (&start, span) = self.spans.range(..=last).next_back()?;
        (start + (span.len - 1) >= offset).then_some(start.max(offset))
    }

    /// The buffer for bytes from `offset` on.
    pub(super) fn buffer(&mut self, offset: u32) -> &mut BytesMut {
        if self.continues(offset) {
            &mut self.prefix
        } else {
            &mut self.early
        }
    }

    /// As [`Self::buffer`], with room for some of the `missing` bytes, which are not zero.
    pub(super) fn room(&mut self, offset: u32, missing: usize) -> &mut BytesMut {
        let buffer = self.buffer(offset);
        if buffer.capacity() - buffer.len() < missing.min(MIN_GROWTH) {
            buffer.reserve(buffer.len().max(MIN_GROWTH).min(missing));
        }
        buffer
    }

    fn continues(&self, offset: u32) -> bool {
        // While a body comes in, `offset` stays and `prefix` grows past it.
        offset as usize <= self.prefix.len()
    }

    /// Takes note that the `len` bytes from `offset` on are complete in their buffer.
    pub(super) fn finish_frame(&mut self, offset: u32, len: u32) {
        if len == 0 {
            return;
        }
        self.received += len;
        if !self.continues(offset) {
            self.note_span(offset, len);
        } else if !self.spans.is_empty() {
            self.take_in_spans();
        }
    }

    fn note_span(&mut self, offset: u32, len: u32) {
        let at = self.early.len() as u32 - len;
        match self.spans.range_mut(..offset).next_back() {
            Some((&start, span)) if start + span.len == offset && span.at + span.len == at => {
                span.len += len;
            }
            _ => {
                self.spans.insert(offset, Span { at, len });
            }
        }
    }

    fn take_in_spans(&mut self) {
        if self.received == self.total_size {
            self.prefix
                .reserve(self.total_size as usize - self.prefix.len());
        }
        while let Some(Span { at, len }) = self.spans.remove(&(self.prefix.len() as u32)) {
            let (at, len) = (at as usize, len as usize);
            self.prefix.extend_from_slice(&self.early[at..at + len]);
        }
        if self.spans.is_empty() {
            self.early = BytesMut::new();
        }
    }

    pub(super) fn is_complete(&self) -> bool {
        self.prefix.len() == self.total_size as usize
    }

    pub(super) fn into_bytes(self) -> Bytes {
        self.prefix.freeze()
    }
}

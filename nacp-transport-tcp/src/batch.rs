use std::collections::VecDeque;
use std::io::IoSlice;

use bytes::{Buf, Bytes};
use nacp_proto::Frame;

use crate::reuse::Reuse;
use crate::{Accepted, Lane};

/// Frames that go out in one vectored write, or in as few as the stream makes of it.
///
/// Headers and small bodies lie joined in one buffer, larger bodies stay where they are.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    joined: Vec<u8>,
    /// How much of `joined` has been written.
    joined_at: usize,
    parts: VecDeque<Part>,
    /// Where messages end: after how many bytes, and in which lane.
    ends: VecDeque<(u64, Lane)>,
    /// How many messages have ended in the batch.
    messages: usize,
    filled: u64,
    written: u64,
}

#[derive(Debug)]
enum Part {
    /// The next bytes of `joined`.
    Joined(usize),
    Apart(Bytes),
}

impl Batch {
    /// How many parts there are at most.
    pub(crate) const MAX_PARTS: usize = 64;

    /// How many bytes make a batch full. Control messages wait for the batch before them, so it is
    /// no larger than a chunk.
    const FULL: u64 = 128 << 10;

    /// Bodies below this are joined: a copy of that many bytes costs what a slice of its own does.
    const JOINED: usize = 2048;

    /// What `joined` keeps allocated in any case.
    const KEPT: usize = 4 << 10;

    pub(crate) const fn is_empty(&self) -> bool {
        self.filled == self.written
    }

    pub(crate) fn is_full(&self) -> bool {
        self.filled - self.written >= Self::FULL || self.parts.len() + 4 > Self::MAX_PARTS
    }

    /// How many slices a write has.
    pub(crate) fn parts(&self) -> usize {
        self.parts.len()
    }

    /// How many bytes have been written since the connection began.
    pub(crate) const fn written(&self) -> u64 {
        self.written
    }

    pub(crate) fn push_control(&mut self, frames: &[u8], ends: &[usize]) {
        self.messages += ends.len();
        self.ends.extend(
            ends.iter()
                .map(|&end| (self.filled + end as u64, Lane::Control)),
        );
        self.join(frames);
    }

    /// Adds a frame of the bulk lane, the last of its message or not.
    pub(crate) fn push_frame(&mut self, frame: Frame, is_last: bool) {
        self.join(&frame.header.to_bytes());
        for piece in frame.body.into_pieces() {
            if piece.len() < Self::JOINED {
                self.join(&piece);
            } else {
                self.filled += piece.len() as u64;
                self.parts.push_back(Part::Apart(piece));
            }
        }
        if is_last {
            self.messages += 1;
            self.ends.push_back((self.filled, Lane::Bulk));
        }
    }

    fn join(&mut self, bytes: &[u8]) {
        self.joined.extend_from_slice(bytes);
        self.filled += bytes.len() as u64;
        match self.parts.back_mut() {
            Some(Part::Joined(len)) => *len += bytes.len(),
            _ if bytes.is_empty() => {}
            _ => self.parts.push_back(Part::Joined(bytes.len())),
        }
    }

    /// Lays out what is left to be written, as far as there are slices, and returns how many it took.
    pub(crate) fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut joined = &self.joined[self.joined_at..];
        let mut count = 0;
        for (slice, part) in slices.iter_mut().zip(&self.parts) {
            *slice = match part {
                Part::Apart(bytes) => IoSlice::new(bytes),
                Part::Joined(len) => {
                    let (now, later) = joined.split_at(*len);
                    joined = later;
                    IoSlice::new(now)
                }
            };
            count += 1;
        }
        count
    }

    /// Takes note that the next `count` bytes have been written.
    pub(crate) fn advance(&mut self, count: usize, accepted: &mut Accepted) {
        self.written += count as u64;
        let mut left = count;
        while let Some(part) = self.parts.front_mut() {
            let len = match part {
                Part::Joined(len) => *len,
                Part::Apart(bytes) => bytes.len(),
            };
            let taken = len.min(left);
            left -= taken;
            match part {
                Part::Joined(len) => {
                    *len -= taken;
                    self.joined_at += taken;
                }
                Part::Apart(bytes) => bytes.advance(taken),
            }
            if taken < len {
                break;
            }
            self.parts.pop_front();
        }
        while let Some(&(_, lane)) = self.ends.front().filter(|(end, _)| *end <= self.written) {
            accepted.count(lane);
            self.ends.pop_front();
        }
        if self.is_empty() {
            self.recycle();
        }
    }

    fn recycle(&mut self) {
        let joined = self.joined.len();
        self.joined.clear();
        self.joined_at = 0;
        self.joined.relax(joined.max(Self::KEPT / 8));
        self.ends.relax(self.messages);
        self.messages = 0;
    }
}

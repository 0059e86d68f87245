use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, Waker};

use nacp_proto::{ChunkSize, Chunker};

use crate::batch::Batch;
use crate::io::Sink;
use crate::shared::Shared;
use crate::{Accepted, Fault};

/// The writing side of a connection. Whoever holds its lock writes.
pub(crate) struct Writer {
    /// `None` when nothing more can be written.
    pub(crate) sink: Option<Sink>,
    batch: Batch,
    /// Messages of the bulk lane that were taken over, the first perhaps half cut into frames.
    bulk: VecDeque<Chunker>,
    chunk_size: ChunkSize,
    accepted: Accepted,
    /// Whether the stream still holds something back.
    unflushed: bool,
    /// Whether the writer task goes on from here, so that nobody else may write.
    pub(crate) in_task: bool,
    /// Wakes the writer task.
    pub(crate) task: Option<Waker>,
    /// What ended the writing, until the writer task returns it.
    pub(crate) fault: Option<Fault>,
}

/// Where a turn of writing ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// Everything that was queued has been written.
    Done,
    /// The stream takes no more.
    Blocked,
    /// It has had its share, and there may be more to write.
    Spent,
}

impl Writer {
    /// How many bytes one turn writes: about what the kernel copies in a tenth of a millisecond.
    const SHARE: usize = 512 << 10;

    pub(crate) fn new(sink: Sink, chunk_size: ChunkSize) -> Self {
        Self {
            sink: Some(sink),
            batch: Batch::default(),
            bulk: VecDeque::new(),
            chunk_size,
            accepted: Accepted::default(),
            unflushed: false,
            in_task: false,
            task: None,
            fault: None,
        }
    }

    /// How many bytes have been written since the connection began.
    pub(crate) const fn written(&self) -> u64 {
        self.batch.written()
    }

    /// Writes what is queued as far as the stream takes it. With a context, its task is woken when
    /// a blocked stream takes more; without, nobody is.
    pub(crate) fn write(
        &mut self,
        shared: &Shared,
        mut cx: Option<&mut Context<'_>>,
    ) -> io::Result<Turn> {
        let mut left = Self::SHARE;
        loop {
            if self.batch.is_empty() {
                if self.poll_flush(shared, cx.as_deref_mut())?.is_pending() {
                    return Ok(Turn::Blocked);
                }
                if left == 0 {
                    return Ok(Turn::Spent);
                }
                self.fill(shared);
                if self.batch.is_empty() {
                    return Ok(Turn::Done);
                }
            }
            let Poll::Ready(count) = self.poll_write(cx.as_deref_mut())? else {
                return Ok(Turn::Blocked);
            };
            self.batch.advance(count, &mut self.accepted);
            self.publish(shared);
            left = left.saturating_sub(count);
        }
    }

    /// Gives up: nothing of what is queued will be written.
    pub(crate) fn stop(&mut self) -> Option<Sink> {
        self.batch = Batch::default();
        self.bulk = VecDeque::new();
        self.sink.take()
    }

    fn poll_write(&mut self, cx: Option<&mut Context<'_>>) -> io::Result<Poll<usize>> {
        // Most batches are one part, and clearing room for many takes longer than laying it out.
        if self.batch.parts() <= 4 {
            self.poll_write_in::<4>(cx)
        } else {
            self.poll_write_in::<{ Batch::MAX_PARTS }>(cx)
        }
    }

    fn poll_write_in<const N: usize>(
        &mut self,
        cx: Option<&mut Context<'_>>,
    ) -> io::Result<Poll<usize>> {
        let sink = self.sink.as_mut().ok_or(io::ErrorKind::NotConnected)?;
        let mut slices = [IoSlice::new(&[]); N];
        let count = self.batch.slices(&mut slices);
        match sink.poll_write(cx, &slices[..count]) {
            Poll::Ready(Ok(0)) => Err(io::ErrorKind::WriteZero.into()),
            Poll::Ready(result) => result.map(Poll::Ready),
            Poll::Pending => Ok(Poll::Pending),
        }
    }

    fn poll_flush(
        &mut self,
        shared: &Shared,
        cx: Option<&mut Context<'_>>,
    ) -> io::Result<Poll<()>> {
        let Some(sink) = self.sink.as_mut().filter(|_| self.unflushed) else {
            return Ok(Poll::Ready(()));
        };
        let Poll::Ready(result) = sink.poll_flush(cx) else {
            return Ok(Poll::Pending);
        };
        result?;
        self.unflushed = false;
        shared.publish(self.accepted);
        Ok(Poll::Ready(()))
    }

    /// Tells what has been accepted, at once if the stream holds nothing back.
    fn publish(&mut self, shared: &Shared) {
        if self.sink.as_ref().is_some_and(Sink::is_direct) {
            shared.publish(self.accepted);
        } else {
            self.unflushed = true;
        }
    }

    /// Makes the next batch: the control lane, then frames of the other until it is full.
    fn fill(&mut self, shared: &Shared) {
        {
            let mut lanes = shared.lanes();
            lanes.hand_over(&mut self.batch, &mut self.bulk);
            self.chunk_size = lanes.chunk_size();
        }
        while !self.batch.is_full() {
            let Some(chunker) = self.bulk.front_mut() else {
                return;
            };
            let frame = chunker.next_frame(self.chunk_size);
            let is_last = chunker.is_done();
            if let Some(frame) = frame {
                self.batch.push_frame(frame, is_last);
            }
            if is_last {
                self.bulk.pop_front();
            }
        }
    }
}

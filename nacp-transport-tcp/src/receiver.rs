use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use nacp_proto::{Decoded, FrameDecoder, FrameError, Message, ReassemblyLimits};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::reuse::Reuse;
use crate::shared::Shared;
use crate::{Fault, MemoryShare, Options};

/// The receiving side of a connection.
///
/// It reads only inside of [`recv`](Self::recv): who does not call it slows the peer down, and holds
/// one read and the unfinished messages at most.
pub struct Receiver {
    shared: Arc<Shared>,
    decoder: FrameDecoder,
    memory: MemoryShare,
    batch: Batch,
    /// How many messages the last batch had.
    last_batch: usize,
    /// Whether the decoder may have more messages than the last batch had room for.
    has_more: bool,
    /// What comes behind the messages that were handed on.
    end: Option<End>,
    timer: Option<Pin<Box<Sleep>>>,
    /// When the last call returned, if a message was unfinished then.
    away_since: Option<Instant>,
}

/// How the peer's stream ended.
enum End {
    Clean,
    Fault(Fault),
}

/// What one call of [`Receiver::recv`] brought.
#[derive(Debug, Default)]
pub struct Batch {
    /// Whole messages in the order in which their last bytes came. Take them out; what is left is
    /// gone with the next call.
    pub messages: Vec<Inbound>,
    /// How many body bytes came of messages that are still unfinished.
    pub progress: u64,
}

/// A message as it came.
#[derive(Debug, Clone)]
pub struct Inbound {
    /// Its bytes, to be passed on unchanged.
    pub bytes: Bytes,
    /// What they say. Payloads are parts of `bytes`.
    pub decoded: Decoded,
}

/// How many messages one batch has at most: as many as a node can handle under one lock without
/// others waiting for a millisecond.
const MAX_BATCH: usize = 256;

/// How many reads one wake-up makes that bring no message: a peer that sends empty frames does not
/// keep others from running.
const MAX_READS: usize = 32;

/// After how many bytes of unfinished messages a batch is handed on although it has no message.
const MAX_PROGRESS: u64 = 1 << 20;

impl Receiver {
    pub(crate) fn new(shared: Arc<Shared>, options: &Options) -> Self {
        Self {
            shared,
            decoder: FrameDecoder::new(options.limits),
            memory: options.memory.clone().share(),
            batch: Batch::default(),
            last_batch: 0,
            has_more: false,
            end: None,
            timer: None,
            away_since: None,
        }
    }

    /// Waits for messages, or for progress of a larger one, and hands on all that a read brought.
    ///
    /// `None` is the end: the peer has closed between two frames, or we have closed by
    /// [`Close::Refuse`](crate::Close::Refuse) or [`Close::Abort`](crate::Close::Abort).
    ///
    /// # Errors
    ///
    /// What the peer did wrong, or what happened to the connection, once; `None` afterwards. The
    /// messages before it have been handed on. Nothing more is read, so close the connection.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing: what was read stays for the next call.
    pub async fn recv(&mut self) -> Result<Option<&mut Batch>, Fault> {
        self.come_back();
        let received = poll_fn(|cx| self.poll_recv(cx)).await?;
        self.last_batch = self.batch.messages.len();
        if self.decoder.unfinished_messages() > 0 {
            self.away_since = Some(Instant::now());
        }
        Ok(received.then_some(&mut self.batch))
    }

    /// Lifts the limit on bytes received before a register. Call it when the peer's app is bound.
    pub const fn registered(&mut self) {
        self.decoder.handle_registered();
    }

    /// Memory that unfinished messages hold, in bytes.
    pub fn held_bytes(&self) -> usize {
        self.decoder.held_bytes()
    }

    /// The time between two calls is ours, not the peer's.
    fn come_back(&mut self) {
        self.batch.clear(self.last_batch);
        if let Some(since) = self.away_since.take() {
            self.decoder.postpone(since.elapsed());
        }
    }

    /// Ready with whether the batch has something in it.
    fn poll_recv(&mut self, cx: &mut Context<'_>) -> Poll<Result<bool, Fault>> {
        if self.has_more {
            self.decode();
        }
        for _ in 0..MAX_READS {
            if let Some(outcome) = self.take_outcome() {
                return Poll::Ready(outcome);
            }
            match self.poll_read(cx) {
                Poll::Ready(()) => {}
                Poll::Pending if self.batch.progress > 0 => return Poll::Ready(Ok(true)),
                Poll::Pending => ready!(self.poll_timeout(cx)),
            }
        }
        match self.take_outcome() {
            Some(outcome) => Poll::Ready(outcome),
            None if self.batch.progress > 0 => Poll::Ready(Ok(true)),
            None => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }

    /// What can be handed on now, if it is worth it.
    fn take_outcome(&mut self) -> Option<Result<bool, Fault>> {
        self.batch.progress += self.decoder.take_progress();
        if !self.batch.messages.is_empty() || self.batch.progress >= MAX_PROGRESS {
            return Some(Ok(true));
        }
        self.end.take().map(|end| self.stop(end))
    }

    /// Reads once, and decodes what came.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut reader = self.shared.reader();
        let stopped = reader.stopped;
        let Some(source) = reader.source.as_mut().filter(|_| !stopped) else {
            drop(reader);
            self.end = Some(End::Clean);
            return Poll::Ready(());
        };
        let Poll::Ready(result) = source.poll_read(cx, || self.decoder.read_buf()) else {
            if !reader
                .receiver
                .as_ref()
                .is_some_and(|waker| waker.will_wake(cx.waker()))
            {
                reader.receiver = Some(cx.waker().clone());
            }
            return Poll::Pending;
        };
        reader.ended = matches!(result, Ok(0) | Err(_));
        drop(reader);
        match result {
            Ok(0) => {
                self.end = Some(
                    self.decoder
                        .handle_end()
                        .map_or_else(End::from, |()| End::Clean),
                )
            }
            Ok(_) => self.decode(),
            Err(error) => self.end = Some(End::Fault(Fault::Io(error))),
        }
        Poll::Ready(())
    }

    /// Decodes what has been read, up to a full batch, and looks at the clock behind it: a peer
    /// that always has something to read must not hide a message that stays unfinished.
    fn decode(&mut self) {
        let now = Instant::now().into_std();
        self.has_more = false;
        while self.end.is_none() && !self.has_more {
            match self.decoder.poll_message(now) {
                Ok(Some(bytes)) => self.take_in(bytes),
                Ok(None) => break,
                Err(fault) => self.end = Some(fault.into()),
            }
            self.has_more = self.batch.messages.len() == MAX_BATCH;
        }
        if self.end.is_none() && !self.has_more {
            self.check_timeout(now);
        }
        if !self.memory.resize(self.decoder.held_bytes() as u64) {
            let limit = self.memory.budget().limit();
            self.end
                .get_or_insert(End::Fault(Fault::MemoryExhausted { limit }));
        }
    }

    fn check_timeout(&mut self, now: std::time::Instant) {
        if let Err(fault) = self.decoder.handle_timeout(now) {
            self.end = Some(fault.into());
        }
    }

    fn take_in(&mut self, bytes: Bytes) {
        match Message::decode(&bytes) {
            Ok(decoded) => self.batch.messages.push(Inbound { bytes, decoded }),
            Err(error) => self.end = Some(End::Fault(Fault::Decode(error))),
        }
    }

    /// Waits until a message has been unfinished for too long.
    fn poll_timeout(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(due) = self.decoder.poll_timeout().map(Instant::from_std) else {
            self.timer = None;
            return Poll::Pending;
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        loop {
            if timer.deadline() > due {
                timer.as_mut().reset(due);
            }
            ready!(timer.as_mut().poll(cx));
            if timer.deadline() >= due {
                break;
            }
            timer.as_mut().reset(due);
        }
        self.check_timeout(Instant::now().into_std());
        Poll::Ready(())
    }

    /// Lets go of everything, and says how it ended.
    fn stop(&mut self, end: End) -> Result<bool, Fault> {
        self.shared.stop_reading();
        self.decoder = FrameDecoder::new(ReassemblyLimits::default());
        self.timer = None;
        // Giving back always succeeds.
        let _ = self.memory.resize(0);
        match end {
            End::Clean => Ok(false),
            End::Fault(fault) => Err(fault),
        }
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.shared.stop_reading();
    }
}

impl fmt::Debug for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Receiver")
            .field("decoder", &self.decoder)
            .finish_non_exhaustive()
    }
}

impl From<FrameError> for End {
    fn from(error: FrameError) -> Self {
        Self::Fault(Fault::Frame(error))
    }
}

impl Batch {
    fn clear(&mut self, needed: usize) {
        self.messages.clear();
        self.messages.relax(needed);
        self.progress = 0;
    }
}

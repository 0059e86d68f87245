use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{BufMut, BytesMut};
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::debug;

use crate::shared::Shared;
use crate::writer::Turn;
use crate::{Accepted, Close, Fault, Options};

/// Finishes what [`Sender::flush`](crate::Sender::flush) leaves, and closes the connection.
///
/// Spawn [`run`](Self::run): without it a message that the socket does not take at once is never
/// written. Dropped before it has returned, it resets the connection.
pub struct WriterTask {
    shared: Arc<Shared>,
    stall: Stall,
    flush_timeout: Duration,
    /// When a close that was asked for has to be over.
    close_by: Option<Pin<Box<Sleep>>>,
    stage: Stage,
    reported: Accepted,
    done: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Writing,
    /// All is written, and the end of our stream is to be told.
    ShuttingDown,
    /// Our stream has ended; that of the peer has not.
    Lingering,
}

/// How long the peer has to close after we have shut down writing (specification, section 4.2).
const LINGER: Duration = Duration::from_secs(1);

/// How many times one wake-up reads what is discarded.
const DISCARDS: usize = 16;

/// How many bytes each time.
const DISCARD: usize = 16 << 10;

impl WriterTask {
    pub(crate) fn new(shared: Arc<Shared>, options: &Options) -> Self {
        Self {
            shared,
            stall: Stall::new(options.write_stall_timeout),
            flush_timeout: options.flush_timeout,
            close_by: None,
            stage: Stage::Writing,
            reported: Accepted::default(),
            done: false,
        }
    }

    /// Runs until the connection is closed from this side, and calls `on_accepted` whenever it has
    /// got messages accepted, with the totals. What `flush` got accepted by itself is in what that
    /// returns.
    ///
    /// Completes when a [`Close`] is done. A peer that closes does not end it: close the sender
    /// when the receiver has ended.
    ///
    /// # Errors
    ///
    /// [`Fault::Io`] if the socket cannot be written to, [`Fault::WriteStalled`] if the peer took
    /// nothing for too long; the connection is reset then. Messages that are not accepted by now
    /// never will be.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future resets the connection: no torn frame is ever followed by another.
    pub async fn run(mut self, mut on_accepted: impl FnMut(Accepted) + Send) -> Result<(), Fault> {
        let result = poll_fn(|cx| self.poll(cx, &mut on_accepted)).await;
        self.finish(&result);
        result
    }

    fn poll(
        &mut self,
        cx: &mut Context<'_>,
        on_accepted: &mut impl FnMut(Accepted),
    ) -> Poll<Result<(), Fault>> {
        loop {
            let next = match self.stage {
                Stage::Writing => self.poll_write(cx),
                Stage::ShuttingDown => self.poll_shutdown(cx),
                Stage::Lingering => Ok(self.poll_linger(cx).map(|()| None)),
            };
            let accepted = self.shared.accepted();
            if accepted != self.reported {
                self.reported = accepted;
                on_accepted(accepted);
            }
            match ready!(next?) {
                Some(stage) => self.stage = stage,
                None => return Poll::Ready(Ok(())),
            }
        }
    }

    /// Writes until there is nothing to write and the connection is to be closed. Ready with the
    /// next stage, or with `None` if the connection is closed already.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Result<Poll<Option<Stage>>, Fault> {
        loop {
            let Some((turn, written)) = self.take_turn(cx)? else {
                return Ok(Poll::Ready(None));
            };
            match turn {
                Turn::Done => self.stall.rest(),
                Turn::Blocked => {
                    self.check_closing(cx)?;
                    self.stall.check(cx, written)?;
                    return Ok(Poll::Pending);
                }
                Turn::Spent => {
                    cx.waker().wake_by_ref();
                    return Ok(Poll::Pending);
                }
            }
            let lanes = self.shared.lanes();
            if lanes.is_empty() {
                return Ok(if lanes.is_closed() {
                    Poll::Ready(Some(Stage::ShuttingDown))
                } else {
                    Poll::Pending
                });
            }
        }
    }

    /// One turn of writing, and how much has been written in all. `None` if the connection is
    /// closed.
    fn take_turn(&self, cx: &mut Context<'_>) -> Result<Option<(Turn, u64)>, Fault> {
        let mut writer = self.shared.writer();
        writer.task = Some(cx.waker().clone());
        if let Some(fault) = writer.fault.take() {
            return Err(fault);
        }
        if writer.sink.is_none() {
            return Ok(None);
        }
        let turn = writer.write(&self.shared, Some(cx)).map_err(Fault::Io)?;
        writer.in_task = turn != Turn::Done;
        Ok(Some((turn, writer.written())))
    }

    /// Watches the time that a close may take to write what is queued.
    fn check_closing(&mut self, cx: &mut Context<'_>) -> Result<(), Fault> {
        let limit = self.flush_timeout;
        let closing = self.shared.lanes().is_closed();
        if closing && self.poll_close_by(cx, limit).is_ready() {
            return Err(Fault::WriteStalled { limit });
        }
        Ok(())
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Result<Poll<Option<Stage>>, Fault> {
        let shut_down = match &mut self.shared.writer().sink {
            Some(sink) => sink.poll_shutdown(cx),
            None => return Ok(Poll::Ready(None)),
        };
        // Whether it went well does not matter: a peer that is gone needs to be told nothing.
        if shut_down.is_pending() {
            self.check_closing(cx)?;
            return Ok(Poll::Pending);
        }
        self.close_by = None;
        Ok(Poll::Ready(Some(Stage::Lingering)))
    }

    /// Waits for the end of the peer's stream, so that what it still sends does not turn our close
    /// into a reset that overtakes our last messages.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.poll_close_by(cx, LINGER).is_ready() {
            return Poll::Ready(());
        }
        let mut reader = self.shared.reader();
        let reader = &mut *reader;
        for _ in 0..DISCARDS {
            let Some(source) = reader.source.as_mut().filter(|_| !reader.ended) else {
                return Poll::Ready(());
            };
            if !reader.stopped {
                reader.lingerer = Some(cx.waker().clone());
                return Poll::Pending;
            }
            let mut scratch = BytesMut::new();
            let read = source.poll_read(cx, || {
                scratch.reserve(DISCARD);
                (&mut scratch).limit(DISCARD)
            });
            reader.ended = matches!(ready!(read), Ok(0) | Err(_));
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    fn poll_close_by(&mut self, cx: &mut Context<'_>, limit: Duration) -> Poll<()> {
        if self.close_by.is_none() {
            let due = Instant::now().checked_add(limit);
            self.close_by = due.map(|due| Box::pin(sleep_until(due)));
        }
        match &mut self.close_by {
            Some(timer) => timer.as_mut().poll(cx),
            None => Poll::Pending,
        }
    }

    /// Lets go of the connection: nothing more is written.
    fn finish(&mut self, result: &Result<(), Fault>) {
        self.done = true;
        match result {
            Ok(()) => debug!("connection closed"),
            Err(fault) => debug!(reason = fault.reason(), %fault, "connection failed"),
        }
        match result {
            // The receiver still gets what came before the connection was lost.
            Ok(()) | Err(Fault::Io(_)) => self.shared.stop_writing(),
            Err(_) => self.shared.close(Close::Abort),
        }
    }
}

impl Drop for WriterTask {
    fn drop(&mut self) {
        if !self.done {
            self.shared.close(Close::Abort);
        }
    }
}

impl fmt::Debug for WriterTask {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WriterTask")
            .field("stage", &self.stage)
            .finish_non_exhaustive()
    }
}

/// Notices that a write makes no progress.
struct Stall {
    limit: Duration,
    /// Made when a write first blocks, and set anew only when it fires too early.
    timer: Option<Pin<Box<Sleep>>>,
    /// How much had been written when the last progress was seen, and when that was.
    seen: Option<(u64, Instant)>,
}

impl Stall {
    const fn new(limit: Duration) -> Self {
        Self {
            limit,
            timer: None,
            seen: None,
        }
    }

    /// Nothing is to be written. The timer stays for the next time; should it fire before, that
    /// wakes the task once for nothing.
    const fn rest(&mut self) {
        self.seen = None;
    }

    /// Fails when `written` has not changed for too long.
    fn check(&mut self, cx: &mut Context<'_>, written: u64) -> Result<(), Fault> {
        let since = match self.seen {
            Some((seen, since)) if seen == written => since,
            _ => {
                let now = Instant::now();
                self.seen = Some((written, now));
                now
            }
        };
        let Some(due) = since.checked_add(self.limit) else {
            return Ok(());
        };
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(due)));
        while timer.as_mut().poll(cx).is_ready() {
            if timer.deadline() >= due {
                return Err(Fault::WriteStalled { limit: self.limit });
            }
            timer.as_mut().reset(due);
        }
        Ok(())
    }
}

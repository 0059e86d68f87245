use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::task::Waker;

use tracing::debug;

use crate::io::{Io, Source};
use crate::lanes::Lanes;
use crate::lock::{lock, try_lock};
use crate::writer::{Turn, Writer};
use crate::{Accepted, Close, Fault, Options};

/// What the handles of one connection share.
///
/// Locks are taken in the order of the fields, and none is held across an await.
pub(crate) struct Shared {
    writer: Mutex<Writer>,
    lanes: Mutex<Lanes>,
    reader: Mutex<Reader>,
    accepted_control: AtomicU64,
    accepted_bulk: AtomicU64,
}

/// The reading side of a connection.
pub(crate) struct Reader {
    /// `None` when the connection is closed.
    pub(crate) source: Option<Source>,
    /// Whether nobody hands on messages any more.
    pub(crate) stopped: bool,
    /// Whether the stream has ended.
    pub(crate) ended: bool,
    /// Whether nothing more is written, so that the socket may go when reading stops.
    pub(crate) writing_stopped: bool,
    /// Wakes the receiver.
    pub(crate) receiver: Option<Waker>,
    /// Wakes the writer task that waits for the end of the stream.
    pub(crate) lingerer: Option<Waker>,
}

/// How many times one flush writes: all but the first are for what others queued meanwhile.
const MAX_TURNS: usize = 16;

impl Shared {
    pub(crate) fn new(io: Io, options: &Options) -> Self {
        let (source, sink) = io.into_split();
        Self {
            writer: Mutex::new(Writer::new(sink, options.chunk_size)),
            lanes: Mutex::new(Lanes::new(options.chunk_size)),
            reader: Mutex::new(Reader {
                source: Some(source),
                stopped: false,
                ended: false,
                writing_stopped: false,
                receiver: None,
                lingerer: None,
            }),
            accepted_control: AtomicU64::new(0),
            accepted_bulk: AtomicU64::new(0),
        }
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    pub(crate) fn lanes(&self) -> MutexGuard<'_, Lanes> {
        lock(&self.lanes)
    }

    pub(crate) fn reader(&self) -> MutexGuard<'_, Reader> {
        lock(&self.reader)
    }

    pub(crate) fn accepted(&self) -> Accepted {
        Accepted {
            control: self.accepted_control.load(Ordering::Acquire),
            bulk: self.accepted_bulk.load(Ordering::Acquire),
        }
    }

    /// Only for who holds the writer's lock, so that the totals never go back.
    pub(crate) fn publish(&self, accepted: Accepted) {
        self.accepted_control
            .store(accepted.control, Ordering::Release);
        self.accepted_bulk.store(accepted.bulk, Ordering::Release);
    }

    /// Writes what is queued, unless someone else is writing already.
    pub(crate) fn flush(&self) {
        for _ in 0..MAX_TURNS {
            // Who holds the lock looks at the lanes again after letting go of it, so nothing that
            // was queued before stays behind.
            let Some(mut writer) = try_lock(&self.writer) else {
                return;
            };
            if writer.in_task {
                return;
            }
            match writer.write(self, None) {
                Ok(Turn::Done) => drop(writer),
                unfinished => return Self::leave_to_task(writer, unfinished.err()),
            }
            if self.lanes().is_empty() {
                return;
            }
        }
        // Others queue as fast as this caller writes for them.
        if let Some(writer) = try_lock(&self.writer) {
            Self::leave_to_task(writer, None);
        }
    }

    fn leave_to_task(mut writer: MutexGuard<'_, Writer>, error: Option<io::Error>) {
        writer.in_task = true;
        if let Some(error) = error {
            writer.fault = Some(Fault::Io(error));
        }
        let task = writer.task.take();
        drop(writer);
        task.into_iter().for_each(Waker::wake);
    }

    pub(crate) fn close(&self, how: Close) {
        self.lanes().close();
        match how {
            Close::Flush => {}
            Close::Refuse => self.stop_reading(),
            Close::Abort => self.abort(),
        }
        let task = self.writer().task.take();
        task.into_iter().for_each(Waker::wake);
    }

    /// Closes the socket with a reset.
    fn abort(&self) {
        self.drop_queued();
        if let Some(sink) = self.writer().stop() {
            sink.reset();
            debug!("connection reset");
        }
        self.reader().writing_stopped = true;
        self.stop_reading();
    }

    /// Ends the receiver: what comes from now on is not handed on.
    pub(crate) fn stop_reading(&self) {
        let mut reader = self.reader();
        reader.stopped = true;
        if reader.writing_stopped {
            reader.source = None;
        }
        let wakers = [reader.receiver.take(), reader.lingerer.take()];
        drop(reader);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }

    fn drop_queued(&self) {
        let mut lanes = self.lanes();
        lanes.close();
        lanes.clear();
    }

    /// Ends the sender: what is queued is dropped.
    pub(crate) fn stop_writing(&self) {
        self.drop_queued();
        self.writer().stop();
        let mut reader = self.reader();
        reader.writing_stopped = true;
        if reader.stopped {
            reader.source = None;
        }
    }
}

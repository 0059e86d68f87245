use std::fmt;
use std::sync::Arc;

use nacp_proto::{ChunkSize, Encoded, Message};

use crate::lanes::{Lane, QueueError, Refusal};
use crate::shared::Shared;

/// The sending side of a connection; clones are handles to the same.
///
/// [`queue`](Self::queue) any number of messages, then [`flush`](Self::flush): they leave in one
/// system call. Messages of one lane leave in the order in which they were queued. What is queued
/// is not bounded here: hold back what is too much by looking at [`accepted`](Self::accepted).
///
/// When the last handle is dropped, the connection is closed as by [`Close::Flush`].
#[derive(Clone)]
pub struct Sender {
    handle: Arc<Handle>,
}

struct Handle {
    shared: Arc<Shared>,
}

/// How many messages of each lane the operating system has taken whole, since the connection began.
///
/// Both numbers only grow. A message counts when all its bytes are in the operating system's hands,
/// which says nothing about the peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Of the control lane.
    pub control: u64,
    /// Of the bulk lane.
    pub bulk: u64,
}

impl Accepted {
    pub(crate) const fn count(&mut self, lane: Lane) {
        match lane {
            Lane::Control => self.control += 1,
            Lane::Bulk => self.bulk += 1,
        }
    }
}

/// How to close a connection, from the gentlest to the hardest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Close {
    /// Write what is queued, then shut down writing. The receiver goes on until the peer closes, or
    /// for at most 1 s after it is dropped.
    Flush,
    /// Write what is queued, then shut down writing; discard what comes until the peer closes, for
    /// at most 1 s.
    Refuse,
    /// Write nothing more and reset the connection, so that the operating system delivers nothing
    /// of what it still has.
    Abort,
}

impl Sender {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            handle: Arc::new(Handle { shared }),
        }
    }

    /// Puts a message into a lane. Never blocks for longer than another such call takes.
    ///
    /// It is written whole, or the connection ends. Nothing is written before the next
    /// [`flush`](Self::flush) by anyone.
    ///
    /// # Errors
    ///
    /// The message comes back with the reason of its [`Refusal`].
    pub fn queue(&self, lane: Lane, message: Encoded) -> Result<(), QueueError> {
        self.handle.shared.lanes().push(lane, message)
    }

    /// Encodes a message straight into what will be written next of the control lane. Allocates
    /// only when that buffer has to grow.
    ///
    /// # Errors
    ///
    /// The reason of the refusal.
    pub fn queue_control(&self, message: &Message) -> Result<(), Refusal> {
        self.handle.shared.lanes().encode_control(message)
    }

    /// Writes what is queued from the calling thread, as much as the socket takes at once, and
    /// leaves the rest to the writer task. Does nothing if someone else is writing: they go on with
    /// what was queued meanwhile.
    ///
    /// Returns what has been accepted until now. Each acceptance is returned by the call that wrote
    /// it or told by [`WriterTask::run`](crate::WriterTask::run); several threads may learn of
    /// them out of order, so take the greatest.
    pub fn flush(&self) -> Accepted {
        self.handle.shared.flush();
        self.accepted()
    }

    /// What has been accepted until now.
    pub fn accepted(&self) -> Accepted {
        self.handle.shared.accepted()
    }

    /// The largest frame to send from the next one on.
    pub fn set_chunk_size(&self, chunk_size: ChunkSize) {
        self.handle.shared.lanes().set_chunk_size(chunk_size);
    }

    /// Closes the connection. Nothing more can be queued.
    ///
    /// Returns at once; [`WriterTask::run`](crate::WriterTask::run) returns when it is done. An
    /// abort is done when this returns. Closing again does nothing, or closes in a harder way if
    /// that is asked for.
    pub fn close(&self, how: Close) {
        self.handle.shared.close(how);
    }
}

impl fmt::Debug for Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sender")
            .field("accepted", &self.accepted())
            .finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.shared.close(Close::Flush);
    }
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, AtomicU64, Ordering};
use std::time::Duration;

use nacp_link::{Close, Inbound, Origin, PeerId};
use nacp_transport_tcp::{Accepted, Batch, Fault, Receiver, Sender, WriterTask};
use tokio::sync::Notify;

use super::after::After;
use super::starts::Starts;
use super::state::PeerEntry;
use super::sweep::Debt;
use super::{Core, now};
use crate::Channel;

/// What the driver and the tasks of one peer share.
pub(crate) struct PeerIo {
    pub(super) sender: Sender,
    /// Wakes the reader's task for something else than bytes.
    changed: Notify,
    /// The reader's task writes soon: nobody else needs to.
    reader_writes: AtomicBool,
    /// How many of the tasks that the reader has woken have not queued anything yet.
    awaited: AtomicIsize,
    flush_asked: AtomicBool,
    pub(super) debt: Debt,
    pub(super) starts: Starts,
    paused: AtomicBool,
    is_registered: AtomicBool,
    closed: AtomicBool,
    /// Nothing can be written any more: what can still be read is read, whatever else holds.
    reads_out: AtomicBool,
    /// The reader's task has ended.
    read_out: Notify,
    /// What the node knows to be accepted.
    told_control: AtomicU64,
    told_bulk: AtomicU64,
    /// When a caller last wrote, in nanoseconds since the connection was made, and how many
    /// messages others have left to the reader's task since.
    wrote_at: AtomicU64,
    left: AtomicU64,
    since: std::time::Instant,
}

/// A message so soon after another is the next of a row: it and those behind it leave in one write.
const ROW: Duration = Duration::from_micros(5);

/// But no more of them than this wait for the reader's task.
const MAX_LEFT: u64 = 64;

/// How long a peer that cannot be written to is read. What it has sent is here already.
const READ_OUT: Duration = Duration::from_secs(1);

/// How often a reader makes way for tasks that run on other threads, before it writes without theirs.
const TURNS: usize = 4;

impl PeerIo {
    fn new(sender: Sender) -> Self {
        Self {
            sender,
            changed: Notify::new(),
            reader_writes: AtomicBool::new(false),
            awaited: AtomicIsize::new(0),
            flush_asked: AtomicBool::new(false),
            debt: Debt::default(),
            starts: Starts::default(),
            paused: AtomicBool::new(false),
            is_registered: AtomicBool::new(false),
            closed: AtomicBool::new(false),
            reads_out: AtomicBool::new(false),
            read_out: Notify::new(),
            told_control: AtomicU64::new(0),
            told_bulk: AtomicU64::new(0),
            wrote_at: AtomicU64::new(0),
            left: AtomicU64::new(0),
            since: now(),
        }
    }

    /// Writes what is queued, unless the reader's task is about to, or this is one of a row of
    /// messages. Returns whether it has written.
    pub(super) fn flush_from_caller(&self) -> bool {
        if self.reader_writes.load(Ordering::SeqCst) {
            self.awaited.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let before = self.wrote_at.load(Ordering::Relaxed);
        let is_row = before != 0 && self.nanos().saturating_sub(before) < ROW.as_nanos() as u64;
        if is_row && self.left.fetch_add(1, Ordering::Relaxed) < MAX_LEFT {
            self.ask_for_flush();
            return false;
        }
        self.left.store(0, Ordering::Relaxed);
        self.debt.settle();
        self.sender.flush();
        self.wrote_at.store(self.nanos(), Ordering::Relaxed);
        true
    }

    fn nanos(&self) -> u64 {
        let elapsed = now().saturating_duration_since(self.since);
        u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX)
    }

    /// Writes what the reader has left to whoever does not write after all.
    pub(super) fn flush_debt(&self) -> bool {
        let owes = !self.reader_writes.load(Ordering::SeqCst) && self.debt.settle();
        if owes {
            self.sender.flush();
        }
        owes
    }

    /// Leaves the writing to the reader's task.
    pub(super) fn ask_for_flush(&self) {
        if !self.flush_asked.swap(true, Ordering::SeqCst) {
            self.changed.notify_one();
        }
    }

    pub(super) fn registered(&self) {
        self.is_registered.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    pub(super) fn set_paused(&self, paused: bool) {
        self.paused.store(paused, Ordering::Release);
        self.changed.notify_one();
    }

    pub(super) fn close(&self, how: Close) {
        use nacp_transport_tcp::Close as Way;
        self.sender.close(match how {
            Close::Flush => Way::Flush,
            Close::Refuse => Way::Refuse,
            Close::Abort | _ => Way::Abort,
        });
        self.closed.store(true, Ordering::Release);
        self.changed.notify_one();
    }

    /// A write has failed. What the peer had sent before it went may say why, so the reader comes
    /// to its end first, unless it takes too long.
    async fn read_out(&self) {
        self.reads_out.store(true, Ordering::Release);
        self.changed.notify_one();
        // Either way the connection is over.
        let _ = tokio::time::timeout(READ_OUT, self.read_out.notified()).await;
    }

    /// Whether more has been accepted than the node knows of; from now on it knows. Called under
    /// the lock of the node.
    pub(super) fn is_news(&self, accepted: Accepted) -> bool {
        let control = self.told_control.swap(accepted.control, Ordering::Relaxed);
        let bulk = self.told_bulk.swap(accepted.bulk, Ordering::Relaxed);
        control != accepted.control || bulk != accepted.bulk
    }
}

impl Core {
    /// Takes a connection over: the node hears of it, and its tasks begin.
    pub(super) fn attach(self: &Arc<Self>, channel: Channel, origin: Origin) {
        let Channel {
            connection,
            trust,
            remote,
        } = channel;
        let (sender, receiver, writer) = connection.split();
        let io = Arc::new(PeerIo::new(sender));
        let peer = self.turn(|state, now| {
            let peer = state.node.handle_connected(now, origin, trust);
            state
                .peers
                .insert(peer, PeerEntry::new(Arc::clone(&io), remote));
            peer
        });
        let (core, reading) = (Arc::clone(self), Arc::clone(&io));
        self.tasks
            .spawn_on(read(core, peer, reading, receiver), &self.runtime);
        self.tasks
            .spawn_on(write(Arc::clone(self), peer, io, writer), &self.runtime);
    }
}

/// Finishes what callers and the reader's task leave to be written.
async fn write(core: Arc<Core>, peer: PeerId, io: Arc<PeerIo>, writer: WriterTask) {
    let telling = Arc::clone(&core);
    let result = writer
        .run(move |_| telling.turn(|state, now| state.accepted(now, peer)))
        .await;
    if let Err(fault) = result {
        if let Fault::Io(_) = fault {
            io.read_out().await;
        }
        core.turn(|state, now| state.disconnected(now, peer, Some(fault.reason())));
        io.close(Close::Abort);
    }
}

/// Reads a peer until it ends, and writes what answers it.
async fn read(core: Arc<Core>, peer: PeerId, io: Arc<PeerIo>, mut receiver: Receiver) {
    let mut after = After::default();
    let fault = loop {
        if io.closed.load(Ordering::Acquire) {
            break None;
        }
        if io.is_registered.swap(false, Ordering::AcqRel) {
            receiver.registered();
        }
        if io.flush_asked.swap(false, Ordering::SeqCst) {
            core.flush_from_reader(&io, peer, &mut after);
        }
        let paused = io.paused.load(Ordering::Acquire) && !io.reads_out.load(Ordering::Acquire);
        let received = tokio::select! {
            biased;
            () = io.changed.notified() => continue,
            received = receiver.recv(), if !paused => received,
        };
        match received {
            Ok(Some(batch)) => core.handle(&io, peer, batch, &mut after).await,
            Ok(None) => break None,
            Err(fault) => break Some(fault),
        }
    };
    let reason = fault.as_ref().map(Fault::reason);
    core.turn(|state, now| state.disconnected(now, peer, reason));
    io.close(if fault.is_some() {
        Close::Abort
    } else {
        Close::Flush
    });
    io.read_out.notify_one();
}

impl Core {
    /// Handles a batch under one lock. Whoever it wakes gets to run before its answers are written,
    /// so that what they send goes out in the same write.
    async fn handle(
        self: &Arc<Self>,
        io: &Arc<PeerIo>,
        peer: PeerId,
        batch: &mut Batch,
        after: &mut After,
    ) {
        self.feed(after, |state, now| {
            if batch.progress > 0 {
                state.node.handle_progress(now, peer, batch.progress);
            }
            for message in batch.messages.drain(..) {
                let inbound = Inbound {
                    bytes: message.bytes,
                    decoded: message.decoded,
                };
                state.node.handle_message(now, peer, inbound);
            }
        });
        let has_requests = !after.requests.is_empty();
        if has_requests && io.starts.push(&mut after.requests) {
            self.spawn_starter(peer, io);
        }
        match after.others() + usize::from(has_requests) {
            0 => {}
            // It will write, most probably, and take along what is queued. To yield for it would
            // wake another thread.
            1 => {
                self.watch_over(io);
                after.is_flushed(peer);
                return self.finish(after);
            }
            others => {
                let writes = Writes::begin(io, others);
                self.watch_over(io);
                self.start_others(after);
                for _ in 0..TURNS {
                    tokio::task::yield_now().await;
                    if io.awaited.load(Ordering::Relaxed) <= 0 {
                        break;
                    }
                }
                drop(writes);
            }
        }
        self.flush_from_reader(io, peer, after);
    }

    /// Writes what a reader has left to a task that does not write.
    pub(super) fn pay(self: &Arc<Self>, peer: PeerId, io: &PeerIo) {
        if io.flush_debt() {
            self.turn(|state, now| state.accepted(now, peer));
        }
    }

    fn flush_from_reader(self: &Arc<Self>, io: &PeerIo, peer: PeerId, after: &mut After) {
        after.is_flushed(peer);
        io.debt.settle();
        io.left.store(0, Ordering::Relaxed);
        io.sender.flush();
        self.feed(after, |state, now| state.accepted(now, peer));
        self.finish(after);
    }
}

/// Nobody else writes until this is dropped.
struct Writes<'a>(&'a PeerIo);

impl<'a> Writes<'a> {
    fn begin(io: &'a PeerIo, others: usize) -> Self {
        let awaited = isize::try_from(others).unwrap_or(isize::MAX);
        io.awaited.store(awaited, Ordering::Relaxed);
        io.reader_writes.store(true, Ordering::SeqCst);
        Self(io)
    }
}

impl Drop for Writes<'_> {
    fn drop(&mut self) {
        self.0.reader_writes.store(false, Ordering::SeqCst);
    }
}

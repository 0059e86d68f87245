use std::sync::Arc;
use std::task::Waker;

use nacp_link::{Authorize, Close, PeerId, Requested};
use nacp_proto::AppId;

use super::Core;
use super::peer::PeerIo;
use crate::run::Run;

/// What is to be done when the lock is free again.
#[derive(Default)]
pub(crate) struct After {
    pub(super) flushes: Vec<Flush>,
    /// How many of `flushes` are from earlier turns.
    pub(super) listed: usize,
    pub(super) closes: Vec<(Arc<PeerIo>, Close)>,
    wakers: Vec<Waker>,
    pub(super) requests: Vec<(Requested, Arc<Run>)>,
    pub(super) applicants: Vec<(Box<Authorize>, Option<String>)>,
    pub(super) redials: Vec<AppId>,
    pub(super) notices: bool,
    pub(super) rearm: bool,
    pub(super) ended: bool,
}

/// A peer with something to write.
pub(super) struct Flush {
    pub(super) peer: PeerId,
    pub(super) io: Arc<PeerIo>,
}

/// Rounds of writing and telling the node of it before the peer's own task goes on: so a caller
/// is not made to write for others without end.
const ROUNDS: usize = 4;

impl After {
    pub(crate) fn wake(&mut self, waker: Option<Waker>) {
        self.wakers.extend(waker);
    }

    /// A turn is over: its flushes join those of earlier turns, each peer once.
    pub(super) fn list_flushes(&mut self) {
        let mut at = self.listed;
        while let Some(flush) = self.flushes.get(at) {
            let mut earlier = self.flushes.iter().take(self.listed);
            if earlier.any(|other| other.peer == flush.peer) {
                self.flushes.swap_remove(at);
            } else {
                at += 1;
            }
        }
        self.listed = at;
    }

    /// A peer is being flushed by its own task.
    pub(super) fn is_flushed(&mut self, peer: PeerId) {
        self.flushes.retain(|flush| flush.peer != peer);
        self.listed = self.flushes.len();
    }

    /// How many tasks are to be woken or started.
    pub(super) fn others(&self) -> usize {
        self.wakers.len() + self.requests.len()
    }
}

impl Core {
    /// Does everything that was left for after the lock.
    pub(crate) fn finish(self: &Arc<Self>, after: &mut After) {
        for _ in 0..ROUNDS {
            self.start_others(after);
            if !self.write(after) {
                break;
            }
        }
        self.start_others(after);
        for Flush { io, .. } in after.flushes.drain(..) {
            io.ask_for_flush();
        }
        after.listed = 0;
        self.deliver_notices(after);
    }

    /// Wakes callers and starts handlers.
    pub(super) fn start_others(self: &Arc<Self>, after: &mut After) {
        after.wakers.drain(..).for_each(Waker::wake);
        for (requested, run) in after.requests.drain(..) {
            self.start_handler(requested, run);
        }
        for (authorize, remote) in after.applicants.drain(..) {
            self.ask_policy(*authorize, remote);
        }
        for app in after.redials.drain(..) {
            self.redial(app);
        }
        if std::mem::take(&mut after.rearm) {
            self.timer.notify_one();
        }
        if std::mem::take(&mut after.ended) {
            self.end();
        }
    }

    /// Writes what is queued, and tells the node what was accepted. Returns whether there may be
    /// more to write.
    pub(super) fn write(self: &Arc<Self>, after: &mut After) -> bool {
        let flushes = std::mem::take(&mut after.flushes);
        after.listed = 0;
        let written: Vec<PeerId> = flushes
            .into_iter()
            .filter(|flush| flush.io.flush_from_caller())
            .map(|flush| flush.peer)
            .collect();
        for (io, how) in after.closes.drain(..) {
            io.close(how);
        }
        if written.is_empty() {
            return false;
        }
        self.feed(after, |state, now| {
            written.iter().for_each(|peer| state.accepted(now, *peer));
        });
        !after.flushes.is_empty() || !after.closes.is_empty() || after.others() > 0
    }

    /// The node has ended: so do its listeners, its tasks and its bus.
    fn end(&self) {
        self.ended.cancel();
        self.tasks.close();
        self.bus.clear();
    }
}

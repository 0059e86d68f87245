//! Does what readers have left to tasks that then did not do it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use nacp_link::PeerId;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::Core;
use super::peer::PeerIo;
use super::starts::Progress;

/// How long anything may wait for whom it was left to, once or twice over. The shortest that tokio's
/// timer knows.
const PERIOD: Duration = Duration::from_millis(1);

/// Whether there is anything to watch.
#[derive(Debug, Default)]
pub(super) struct Sweep {
    is_running: AtomicBool,
    wake: Notify,
}

/// Whether a reader has left something to be written by someone else.
#[derive(Debug, Default)]
pub(super) struct Debt(AtomicU8);

const NONE: u8 = 0;
const FRESH: u8 = 1;
const SEEN: u8 = 2;

impl Debt {
    /// Returns whether there was one.
    pub(super) fn settle(&self) -> bool {
        self.0.load(Ordering::SeqCst) != NONE && self.0.swap(NONE, Ordering::SeqCst) != NONE
    }

    /// An older one stays as old as it is.
    fn incur(&self) {
        if self.0.load(Ordering::SeqCst) == NONE {
            let _ = self
                .0
                .compare_exchange(NONE, FRESH, Ordering::SeqCst, Ordering::SeqCst);
        }
    }

    /// Looks at it once a period. `Some(true)` if it is old enough.
    fn look(&self) -> Option<bool> {
        match self
            .0
            .compare_exchange(FRESH, SEEN, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => Some(false),
            Err(SEEN) => Some(true),
            Err(_) => None,
        }
    }
}

impl Core {
    /// Sees to it that what a peer's reader has queued is written soon, and that its requests are
    /// started, whatever the tasks do that it is left to.
    pub(super) fn watch_over(&self, io: &PeerIo) {
        io.debt.incur();
        let sweep = &self.sweep;
        if !sweep.is_running.load(Ordering::SeqCst)
            && !sweep.is_running.swap(true, Ordering::SeqCst)
        {
            sweep.wake.notify_one();
        }
    }

    fn sweep_once(self: &Arc<Self>) -> bool {
        let mut is_idle = true;
        let late: Vec<(PeerId, Arc<PeerIo>, Progress)> = {
            let mut state = self.lock();
            state.gone.retain(|(_, io)| !io.starts.is_empty());
            let peers = state.peers.iter().map(|(peer, entry)| (peer, &entry.io));
            let gone = state.gone.iter().map(|(peer, io)| (*peer, io));
            peers
                .chain(gone)
                .filter_map(|(peer, io)| {
                    let (debt, starts) = (io.debt.look(), io.starts.look());
                    is_idle &= debt.is_none() && starts == Progress::Nothing;
                    let is_late = debt == Some(true) || starts == Progress::Stuck;
                    is_late.then(|| (peer, Arc::clone(io), starts))
                })
                .collect()
        };
        for (peer, io, starts) in late {
            self.pay(peer, &io);
            if starts == Progress::Stuck {
                self.help_start(peer, &io, usize::MAX);
            }
        }
        is_idle
    }
}

pub(super) async fn run(core: Arc<Core>) {
    loop {
        core.sweep.wake.notified().await;
        loop {
            sleep(PERIOD).await;
            if core.sweep_once() {
                core.sweep.is_running.store(false, Ordering::SeqCst);
                // A debt that was incurred just before that would be watched by nobody.
                if core.sweep_once() || core.sweep.is_running.swap(true, Ordering::SeqCst) {
                    break;
                }
            }
        }
    }
}

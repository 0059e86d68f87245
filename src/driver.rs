//! What lives at the rim of the node: one lock, the tasks of its peers, the clock.

mod accept;
mod after;
mod dial;
mod notices;
mod peer;
mod redial;
mod respond;
mod starts;
mod state;
mod sweep;
mod timer;

use std::collections::HashMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nacp_bus::EventBus;
use nacp_link::{Node, Token};
use nacp_proto::{AppId, Payload};
use smol_str::SmolStr;
use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::send::{Sending, Waiting};
use crate::slot::Slot;
use crate::{AbilityHandler, EventHandler, Reconnect, RegisterPolicy, Transport, Value};

pub(crate) use after::After;
pub(crate) use notices::{Notices, Overflow};
pub(crate) use state::{State, Waiter};

slotmap::new_key_type! {
    /// Names a waiter; its number is the node's token.
    pub(crate) struct WaiterKey;
}

impl WaiterKey {
    pub(crate) fn token(self) -> Token {
        Token(slotmap::Key::data(&self).as_ffi())
    }

    pub(crate) fn of(token: Token) -> Self {
        slotmap::KeyData::from_ffi(token.0).into()
    }
}

/// What a running node consists of.
pub(crate) struct Core {
    state: Mutex<State>,
    pub(crate) bus: EventBus<Value>,
    pub(crate) parts: Parts,
    remotes: Arc<AtomicUsize>,
    /// Wakes the task that waits for the node's deadlines.
    timer: Notify,
    sweep: sweep::Sweep,
    pub(crate) runtime: Handle,
    /// Tasks that end with the node.
    pub(crate) tasks: TaskTracker,
    /// Fires when the node has ended.
    pub(crate) ended: CancellationToken,
}

/// What the builder has put together.
pub(crate) struct Parts {
    pub(crate) app: AppId,
    pub(crate) abilities: HashMap<SmolStr, Arc<dyn AbilityHandler>>,
    pub(crate) events: HashMap<SmolStr, Arc<dyn EventHandler>>,
    pub(crate) policy: Option<Arc<dyn RegisterPolicy>>,
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) reconnect: Reconnect,
    pub(crate) auth: Option<Payload>,
    /// The answer to `NApp.introduce`.
    pub(crate) introduction: Payload,
    /// Items that a stream holds for its reader.
    pub(crate) stream_capacity: usize,
    pub(crate) exposes_internal_events: bool,
    /// Where it listens: in the transport's form, and as an address of the internet.
    pub(crate) listens: Vec<(String, Option<SocketAddr>)>,
}

/// The clock of the runtime, which tests can pause.
pub(crate) fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}

impl Core {
    pub(crate) fn start(node: Node, parts: Parts) -> Arc<Self> {
        let remotes = Arc::default();
        let core = Arc::new(Self {
            state: Mutex::new(State::new(node, Arc::clone(&remotes))),
            bus: EventBus::new(),
            parts,
            remotes,
            timer: Notify::new(),
            sweep: sweep::Sweep::default(),
            runtime: Handle::current(),
            tasks: TaskTracker::new(),
            ended: CancellationToken::new(),
        });
        core.spawn(timer::run(Arc::clone(&core)));
        core.spawn(sweep::run(Arc::clone(&core)));
        core
    }

    /// Runs a task that ends when the node does.
    pub(crate) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        let ended = self.ended.clone();
        let task = async move {
            ended.run_until_cancelled_owned(task).await;
        };
        self.tasks.spawn_on(task, &self.runtime);
    }

    /// The lock. Nobody runs foreign code, and nobody waits, while holding it.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Feeds the node something, and does what follows from it.
    pub(crate) fn turn<R>(self: &Arc<Self>, feed: impl FnOnce(&mut State, Instant) -> R) -> R {
        let mut after = After::default();
        let result = self.feed(&mut after, feed);
        self.finish(&mut after);
        result
    }

    /// Feeds the node, and collects what is to be done when the lock is free again.
    pub(crate) fn feed<R>(
        &self,
        after: &mut After,
        feed: impl FnOnce(&mut State, Instant) -> R,
    ) -> R {
        let mut state = self.lock();
        state.note_interest(&self.bus, &self.parts);
        let result = feed(&mut state, now());
        state.drain(&self.parts, after);
        result
    }

    /// Sends something that settles without an answer.
    pub(crate) fn sending(self: &Arc<Self>, send: impl FnOnce(&Arc<Self>, Token)) -> Sending {
        let slot = Arc::new(Slot::new());
        let key = self
            .lock()
            .waiters
            .insert(Waiter::Settlement(Arc::clone(&slot)));
        send(self, key.token());
        Sending {
            waiting: Waiting::new(Arc::clone(self), key, slot),
        }
    }

    /// Nobody waits for it any more.
    pub(crate) fn forget_waiter(&self, key: WaiterKey) {
        let waiter = self.lock().waiters.remove(key);
        drop(waiter);
    }

    /// Whether any remote app listens on our bus.
    pub(crate) fn has_remotes(&self) -> bool {
        self.remotes.load(Ordering::Acquire) > 0
    }

    pub(crate) fn terminate_now(self: &Arc<Self>) {
        self.turn(|state, now| state.node.terminate_now(now));
    }
}

impl fmt::Debug for Core {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Core")
            .field("app", &self.parts.app)
            .finish_non_exhaustive()
    }
}

mod event;
mod interest;
mod listener;

use std::fmt;
use std::mem::forget;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak};

use smallvec::SmallVec;

pub use self::event::{Emitted, Event};
pub use self::interest::Interest;
use self::listener::{Callback, Listener};
pub use self::listener::{ListenerId, ListenerPanic};
use crate::stream::{EventStream, channel};
use crate::{Matcher, Pattern};

/// Hands events to the listeners whose patterns match their names.
///
/// A handle: clones are the same bus. The listeners live until they are taken out or the last
/// handle is gone.
///
/// # Delivery
///
/// [`emit`](Self::emit) calls the listeners itself, one after the other in the order of their
/// registration, and returns after the last one. No lock is held meanwhile, so a callback may do
/// with the bus whatever it likes. The rules for that:
///
/// - An event goes to those who listened when it was emitted. A listener added during an emit hears
///   only later events.
/// - A listener taken out during an emit is not called any more if its turn has not come yet. Taking
///   out does not wait: a call that another thread has already begun goes on.
/// - An event emitted by a callback is delivered completely before the emit around it goes on. A
///   callback that emits what it listens to calls itself; to stop is its own affair.
/// - Emits of several threads run side by side, and so may the calls of one listener.
///
/// # Panics of listeners
///
/// A panic in a callback ends there: the others are called all the same, the listener stays
/// registered, the lock is not held and so cannot be poisoned. The panic is counted in [`Emitted`]
/// and reported once, as a `tracing` error or to the hook given to
/// [`with_panic_hook`](Self::with_panic_hook). (Where panics abort the process, they still do.)
/// A listener that fails in a milder way keeps that to itself.
///
/// # Cost
///
/// That of the [`Matcher`], and a reference count for each hit. Up to eight hits need no allocation.
///
/// # Example
///
/// ```
/// use std::sync::Arc;
/// use std::sync::atomic::{AtomicU32, Ordering};
/// use nacp_bus::{EventBus, Pattern};
///
/// let bus = EventBus::new();
/// let sum = Arc::new(AtomicU32::new(0));
/// let id = bus.listen(&Pattern::parse("cart:*:added")?, {
///     let sum = Arc::clone(&sum);
///     move |event| {
///         sum.fetch_add(*event.payload(), Ordering::Relaxed);
///     }
/// });
///
/// assert_eq!(bus.emit("cart:17:added", &3).called(), 1);
/// assert_eq!(bus.emit("cart:17:removed", &2).called(), 0);
/// assert_eq!(sum.load(Ordering::Relaxed), 3);
///
/// assert!(bus.off(id));
/// assert!(!bus.off(id), "the second time does nothing");
/// # Ok::<(), nacp_bus::PatternError>(())
/// ```
pub struct EventBus<P> {
    shared: Arc<Shared<P>>,
}

struct Shared<P> {
    listeners: RwLock<Listeners<P>>,
    version: AtomicU64,
    on_panic: Box<PanicHook>,
}

type Listeners<P> = Matcher<Arc<Listener<Callback<P>>>>;
type Hits<P> = SmallVec<[(ListenerId, Arc<Listener<Callback<P>>>); 8]>;
type PanicHook = dyn Fn(&ListenerPanic<'_>) + Send + Sync;

impl<P> EventBus<P> {
    /// A bus without listeners, which reports panics of listeners as `tracing` errors.
    #[must_use]
    pub fn new() -> Self {
        Self::with_panic_hook(|panic| {
            tracing::error!(
                listener = ?panic.listener(),
                name = panic.name(),
                message = panic.message(),
                "a listener panicked"
            );
        })
    }

    /// A bus without listeners, which reports panics of listeners to `hook` and nowhere else.
    ///
    /// The hook runs on the emitting thread, right after the panic, outside of the lock; it may use
    /// the bus. Its own panics are swallowed.
    #[must_use]
    pub fn with_panic_hook(hook: impl Fn(&ListenerPanic<'_>) + Send + Sync + 'static) -> Self {
        let shared = Shared {
            listeners: RwLock::new(Matcher::new()),
            version: AtomicU64::new(1),
            on_panic: Box::new(hook),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Calls `callback` with each event whose name `pattern` matches, until [`off`](Self::off).
    ///
    /// Each call of `listen` is a listener of its own, also with a pattern that is there already.
    pub fn listen<F>(&self, pattern: &Pattern, callback: F) -> ListenerId
    where
        F: Fn(&Event<'_, P>) + Send + Sync + 'static,
    {
        self.add(pattern, Arc::new(Listener::new(callback, false)))
    }

    /// Calls `callback` with the next event whose name `pattern` matches, and with no other.
    ///
    /// The listener is taken out before it is called. Of several emits at the same time, exactly
    /// one calls it.
    pub fn listen_once<F>(&self, pattern: &Pattern, callback: F) -> ListenerId
    where
        F: FnOnce(&Event<'_, P>) + Send + 'static,
    {
        let callback = Mutex::new(Some(callback));
        let call = move |event: &Event<'_, P>| {
            let callback = callback
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            if let Some(callback) = callback {
                callback(event);
            }
        };
        self.add(pattern, Arc::new(Listener::new(call, true)))
    }

    /// The events whose names `pattern` matches as a stream, which holds at most `capacity` of them
    /// and drops the oldest when there are more.
    ///
    /// The stream is a listener like any other until it is dropped. An event is in it when `emit`
    /// returns.
    pub fn stream(&self, pattern: &Pattern, capacity: NonZeroUsize) -> EventStream<P>
    where
        P: Clone + Send + 'static,
    {
        let (sender, receiver) = channel(pattern, capacity);
        let id = self.listen(pattern, move |event| sender.send(event));
        EventStream::new(receiver, id, self.downgrade())
    }

    /// Takes a listener out; `false` if it is out already.
    ///
    /// It is not called any more, but for a call that another thread has already begun. What the
    /// callback holds is dropped here, or by that call.
    pub fn off(&self, id: ListenerId) -> bool {
        // What the callback holds is dropped outside of the lock, for it may come back to the bus.
        let removed = self.change(|listeners| listeners.remove(id.0));
        removed.is_some_and(|listener| {
            listener.retire();
            true
        })
    }

    /// Takes several listeners out under one lock; returns how many of them were still there.
    pub fn off_all(&self, ids: impl IntoIterator<Item = ListenerId>) -> usize {
        let ids: Vec<ListenerId> = ids.into_iter().collect();
        let remove_all = |listeners: &mut Listeners<P>| {
            ids.iter()
                .filter_map(|id| listeners.remove(id.0))
                .collect::<Vec<_>>()
        };
        retire_all(self.change(remove_all))
    }

    /// Takes all listeners out; returns how many there were. Their streams end.
    pub fn clear(&self) -> usize {
        retire_all(self.change(Matcher::drain))
    }

    /// Calls every listener whose pattern matches `name`, as described [above](Self#delivery).
    pub fn emit(&self, name: &str, payload: &P) -> Emitted {
        self.deliver(&mut self.hits(name), Event::new(name, payload))
    }

    /// Like [`emit`](Self::emit), but makes the payload only if someone listens.
    pub fn emit_with(&self, name: &str, payload: impl FnOnce() -> P) -> Emitted {
        let mut hits = self.hits(name);
        if hits.is_empty() {
            return Emitted::default();
        }
        self.deliver(&mut hits, Event::new(name, &payload()))
    }

    /// Whether a listener's pattern matches `name` now. Costs a search but no call.
    #[must_use]
    pub fn has_listener(&self, name: &str) -> bool {
        self.read().has_match(name)
    }

    /// [`has_listener`](Self::has_listener) for one name, with a memory.
    #[must_use]
    pub fn interest(&self, name: &str) -> Interest<P> {
        Interest::new(self.clone(), name)
    }

    /// Grows with each change of the listeners; what was asked before holds while it is the same.
    ///
    /// To keep an answer of the bus, read the version *before* asking.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.shared.version.load(Ordering::Acquire)
    }

    /// How many listeners there are, streams included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.read().len()
    }

    /// Whether there is no listener.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn add(&self, pattern: &Pattern, listener: Arc<Listener<Callback<P>>>) -> ListenerId {
        ListenerId(self.change(|listeners| listeners.insert(pattern, listener)))
    }

    fn hits(&self, name: &str) -> Hits<P> {
        let mut hits = Hits::new();
        self.read().for_each_match(name, |key, listener| {
            hits.push((ListenerId(key), Arc::clone(listener)));
        });
        hits
    }

    fn deliver(&self, hits: &mut Hits<P>, event: Event<'_, P>) -> Emitted {
        let mut emitted = Emitted::default();
        for (id, listener) in hits.drain(..) {
            // This may be the last reference, so the listener is dropped in here as well.
            match catch_unwind(AssertUnwindSafe(move || self.call(id, &listener, &event))) {
                Ok(was_called) => emitted.count(was_called),
                Err(payload) => {
                    emitted.count_panic();
                    self.report(id, event.name(), payload);
                }
            }
        }
        emitted
    }

    fn call(&self, id: ListenerId, listener: &Listener<Callback<P>>, event: &Event<'_, P>) -> bool {
        let may_call = listener.claim();
        if may_call {
            if listener.once {
                self.off(id);
            }
            (listener.callback)(event);
        }
        may_call
    }

    fn report(&self, id: ListenerId, name: &str, payload: Box<dyn std::any::Any + Send>) {
        let report = AssertUnwindSafe(move || {
            (self.shared.on_panic)(&ListenerPanic::new(id, name, &*payload));
            drop(payload);
        });
        if let Err(payload) = catch_unwind(report) {
            // Dropping it could panic once more.
            forget(payload);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Listeners<P>> {
        self.shared
            .listeners
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The version moves while the lock is held: who reads the new one finds the new listeners.
    fn change<R>(&self, change: impl FnOnce(&mut Listeners<P>) -> R) -> R {
        let lock = &self.shared.listeners;
        let mut listeners: RwLockWriteGuard<'_, _> =
            lock.write().unwrap_or_else(PoisonError::into_inner);
        self.shared.version.fetch_add(1, Ordering::Release);
        change(&mut listeners)
    }

    fn downgrade(&self) -> WeakBus<P> {
        WeakBus {
            shared: Arc::downgrade(&self.shared),
        }
    }
}

fn retire_all<P>(listeners: Vec<Arc<Listener<Callback<P>>>>) -> usize {
    for listener in &listeners {
        listener.retire();
    }
    listeners.len()
}

impl<P> Clone for EventBus<P> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
        }
    }
}

impl<P> Default for EventBus<P> {
    fn default() -> Self {
        Self::new()
    }
}

impl<P> fmt::Debug for EventBus<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventBus")
            .field("listeners", &self.len())
            .field("version", &self.version())
            .finish_non_exhaustive()
    }
}

/// A bus that does not keep its listeners alive.
pub(crate) struct WeakBus<P> {
    shared: Weak<Shared<P>>,
}

impl<P> WeakBus<P> {
    pub(crate) fn upgrade(&self) -> Option<EventBus<P>> {
        self.shared.upgrade().map(|shared| EventBus { shared })
    }
}

use std::any::Any;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::{Event, Key};

/// Names one listener of an [`EventBus`](crate::EventBus).
///
/// No bus gives the same id twice. Ids of one bus are ordered like the registrations; to another
/// bus they mean nothing.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerId(pub(super) Key);

impl fmt::Debug for ListenerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ListenerId").field(&self.0).finish()
    }
}

pub(super) type Callback<P> = dyn Fn(&Event<'_, P>) + Send + Sync;

/// A callback, and whether it may still be called.
pub(super) struct Listener<F: ?Sized> {
    is_live: AtomicBool,
    pub(super) once: bool,
    pub(super) callback: F,
}

impl<F> Listener<F> {
    pub(super) fn new(callback: F, once: bool) -> Self {
        Self {
            is_live: AtomicBool::new(true),
            once,
            callback,
        }
    }
}

impl<F: ?Sized> Listener<F> {
    /// Whether the caller may call the listener now; for a listener of one event only one may.
    pub(super) fn claim(&self) -> bool {
        if self.once {
            self.is_live.swap(false, Ordering::AcqRel)
        } else {
            self.is_live.load(Ordering::Acquire)
        }
    }

    /// An emit that has not reached the listener yet does not call it any more.
    pub(super) fn retire(&self) {
        self.is_live.store(false, Ordering::Release);
    }
}

/// A listener panicked. The bus has contained it; the listener stays registered.
#[derive(Clone, Copy, Debug)]
pub struct ListenerPanic<'a> {
    listener: ListenerId,
    name: &'a str,
    message: &'a str,
}

impl<'a> ListenerPanic<'a> {
    pub(super) fn new(listener: ListenerId, name: &'a str, payload: &'a (dyn Any + Send)) -> Self {
        Self {
            listener,
            name,
            message: message_of(payload),
        }
    }

    /// Who panicked.
    #[must_use]
    pub fn listener(&self) -> ListenerId {
        self.listener
    }

    /// The name of the event it was called with.
    #[must_use]
    pub fn name(&self) -> &'a str {
        self.name
    }

    /// What the panic said.
    #[must_use]
    pub fn message(&self) -> &'a str {
        self.message
    }
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "a value that is no text"
    }
}

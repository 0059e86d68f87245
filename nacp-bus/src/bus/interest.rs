use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{Emitted, EventBus};

/// Remembers whether anyone listens to one name, until the listeners change.
///
/// For names that are emitted often and heard seldom: while nothing changes, asking costs two
/// atomic loads, neither lock nor search. Made by [`EventBus::interest`]; it is a handle to the bus
/// like any other and keeps it alive.
pub struct Interest<P> {
    bus: EventBus<P>,
    name: Arc<str>,
    /// The version of the listeners that was asked, times two, plus the answer. 0 is no answer.
    answer: AtomicU64,
}

impl<P> Interest<P> {
    pub(super) fn new(bus: EventBus<P>, name: &str) -> Self {
        Self {
            bus,
            name: name.into(),
            answer: AtomicU64::new(0),
        }
    }

    /// The name in question.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether a listener's pattern matches the name now.
    #[must_use]
    pub fn exists(&self) -> bool {
        // The version is read first. Should the listeners change before they are searched, the
        // answer is filed under a version that is over, and asked for anew next time.
        let version = self.bus.version();
        let known = self.answer.load(Ordering::Relaxed);
        if known >> 1 == version {
            return known & 1 == 1;
        }
        let exists = self.bus.has_listener(&self.name);
        self.answer
            .store(version << 1 | u64::from(exists), Ordering::Relaxed);
        exists
    }

    /// Like [`EventBus::emit_with`] under this name.
    pub fn emit_with(&self, payload: impl FnOnce() -> P) -> Emitted {
        if self.exists() {
            self.bus.emit_with(&self.name, payload)
        } else {
            Emitted::default()
        }
    }
}

impl<P> fmt::Debug for Interest<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interest")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

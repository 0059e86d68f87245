use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Memory that many connections share: unfinished messages, and whatever else the owner counts.
///
/// Clones are handles to the same budget. The specification (section 2) gives a node 4 GiB for
/// unfinished messages and unhandled payloads together, which is the default.
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    shared: Arc<Counter>,
}

#[derive(Debug)]
struct Counter {
    used: AtomicU64,
    limit: u64,
}

impl MemoryBudget {
    /// A budget of `limit` bytes, none of them used.
    pub fn new(limit: u64) -> Self {
        Self {
            shared: Arc::new(Counter {
                used: AtomicU64::new(0),
                limit,
            }),
        }
    }

    /// A part of the budget, of zero bytes.
    pub const fn share(self) -> MemoryShare {
        MemoryShare {
            budget: self,
            bytes: 0,
        }
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.shared.used.load(Ordering::Relaxed)
    }

    /// Bytes that may be in use.
    pub fn limit(&self) -> u64 {
        self.shared.limit
    }

    fn grow(&self, by: u64) -> bool {
        let grown = |used: u64| used.checked_add(by).filter(|&sum| sum <= self.shared.limit);
        self.shared
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown)
            .is_ok()
    }
}

impl Default for MemoryBudget {
    /// 4 GiB.
    fn default() -> Self {
        Self::new(4 << 30)
    }
}

/// What one holder uses of a [`MemoryBudget`]. Given back when dropped.
#[derive(Debug)]
pub struct MemoryShare {
    budget: MemoryBudget,
    bytes: u64,
}

impl MemoryShare {
    /// Uses `bytes` from now on, or stays as it is and returns `false` if the budget lacks them.
    #[must_use]
    pub fn resize(&mut self, bytes: u64) -> bool {
        if bytes > self.bytes {
            if !self.budget.grow(bytes - self.bytes) {
                return false;
            }
        } else if bytes < self.bytes {
            self.budget
                .shared
                .used
                .fetch_sub(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        true
    }

    /// Bytes in use by this holder.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The budget that it is a part of.
    pub const fn budget(&self) -> &MemoryBudget {
        &self.budget
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        self.budget
            .shared
            .used
            .fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// A number of records and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Load {
    pub(crate) count: usize,
    pub(crate) bytes: u64,
}

impl Load {
    pub(crate) const fn add(&mut self, bytes: u64) {
        self.count = self.count.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    pub(crate) const fn remove(&mut self, bytes: u64) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    /// Whether one more of `bytes` stays within the caps. One alone always does.
    pub(crate) const fn fits(self, bytes: u64, max_count: usize, max_bytes: u64) -> bool {
        self.count == 0 || (self.count < max_count && self.bytes.saturating_add(bytes) <= max_bytes)
    }
}

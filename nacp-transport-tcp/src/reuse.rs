use std::collections::VecDeque;

/// A buffer that is filled and emptied again and again.
pub(crate) trait Reuse {
    /// Lets go of half of an empty buffer if its last use needed less than an eighth of it, so that
    /// a connection that was busy once does not hold on to the memory.
    fn relax(&mut self, needed: usize);
}

/// A buffer of so many items stays as it is.
const KEPT: usize = 32;

impl<T> Reuse for Vec<T> {
    fn relax(&mut self, needed: usize) {
        if is_loose(self.capacity(), needed) {
            self.shrink_to(self.capacity() / 2);
        }
    }
}

impl<T> Reuse for VecDeque<T> {
    fn relax(&mut self, needed: usize) {
        if is_loose(self.capacity(), needed) {
            self.shrink_to(self.capacity() / 2);
        }
    }
}

const fn is_loose(capacity: usize, needed: usize) -> bool {
    capacity > KEPT && needed < capacity / 8
}

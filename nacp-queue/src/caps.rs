use thiserror::Error;

/// How much a table, or one destination in it, may hold.
///
/// ```
/// use nacp_queue::{Caps, CapsError};
///
/// let caps = Caps::new(1024, 4 << 30)?;
/// assert_eq!((caps.count(), caps.bytes()), (1024, 4 << 30));
/// assert_eq!(Caps::new(0, 1), Err(CapsError::ZeroCount));
/// assert_eq!(Caps::new(usize::MAX, u64::MAX), Ok(Caps::NONE));
/// # Ok::<(), CapsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caps {
    count: usize,
    bytes: u64,
}

impl Caps {
    /// No caps: [`usize::MAX`] records and [`u64::MAX`] bytes.
    ///
    /// A table still holds at most 2^32 - 2 records and `u64::MAX` bytes and applies its overflow
    /// rules there, so no count or sum ever wraps.
    pub const NONE: Self = Self {
        count: usize::MAX,
        bytes: u64::MAX,
    };

    /// Caps of `count` records and `bytes` bytes.
    ///
    /// `usize::MAX` and `u64::MAX` mean no cap.
    ///
    /// # Errors
    ///
    /// A cap of zero would hold nothing and is refused with the name of the option.
    pub const fn new(count: usize, bytes: u64) -> Result<Self, CapsError> {
        if count == 0 {
            return Err(CapsError::ZeroCount);
        }
        if bytes == 0 {
            return Err(CapsError::ZeroBytes);
        }
        Ok(Self { count, bytes })
    }

    /// The most records.
    #[must_use]
    pub const fn count(self) -> usize {
        self.count
    }

    /// The most bytes.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bytes
    }

    /// What is left of these caps beside `used`. Nothing, if one record alone is above them.
    pub(crate) fn room(self, used: Usage) -> Room {
        let Some(bytes) = u128::from(self.bytes).checked_sub(used.bytes) else {
            return Room { count: 0, bytes: 0 };
        };
        Room {
            count: self.most().saturating_sub(used.count),
            bytes: bytes as u64,
        }
    }

    /// Whether `used` is within these caps. One record that is alone always is.
    #[inline]
    pub(crate) fn hold(self, used: Usage) -> bool {
        used.count <= 1 || (used.count <= self.most() && used.bytes <= u128::from(self.bytes))
    }

    /// Whether one more record beside `used` breaks none of these caps.
    #[inline]
    pub(crate) fn admit(self, used: Usage, bytes: u64, droppable: bool) -> bool {
        self.room(used).fits(bytes) || (!droppable && used.count == 0)
    }

    #[inline]
    fn most(self) -> usize {
        self.count.min(MAX_RECORDS)
    }
}

/// Indices are 32 bits wide, one value of them means "none", and a record that arrives at a full
/// table has a slot before the evicted one gives up its own.
const MAX_RECORDS: usize = u32::MAX as usize - 1;

impl Default for Caps {
    /// [`Caps::NONE`].
    fn default() -> Self {
        Self::NONE
    }
}

/// Why caps were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum CapsError {
    /// The cap on records is zero.
    #[error("queue_max_count must be at least 1")]
    ZeroCount,
    /// The cap on bytes is zero.
    #[error("queue_max_bytes must be at least 1")]
    ZeroBytes,
}

/// What is left of the caps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub struct Room {
    /// So many more records.
    pub count: usize,
    /// So many more bytes.
    pub bytes: u64,
}

impl Room {
    /// Whether one more record of `bytes` bytes fits.
    #[must_use]
    pub const fn fits(self, bytes: u64) -> bool {
        self.count > 0 && self.bytes >= bytes
    }
}

/// Records and bytes held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) count: usize,
    /// Wide enough for every sum of 2^32 sizes.
    pub(crate) bytes: u128,
}

impl Usage {
    /// The sum of sizes. A table within its caps never holds more than 64 bits can count.
    pub(crate) fn total(self) -> u64 {
        u64::try_from(self.bytes).unwrap_or(u64::MAX)
    }

    #[inline]
    pub(crate) fn add(&mut self, bytes: u64) {
        self.count += 1;
        self.bytes += u128::from(bytes);
    }

    #[inline]
    pub(crate) fn subtract(&mut self, bytes: u64) {
        self.count -= 1;
        self.bytes -= u128::from(bytes);
    }
}

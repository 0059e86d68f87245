use std::hash::Hash;

/// What a table has to know of a record.
///
/// The answers must not change while the record is in a table, just as a key in a `HashMap` must
/// not. A record that breaks this makes a table forget or misplace it, but never makes it panic.
///
/// ```
/// use nacp_queue::Record;
///
/// struct Mail {
///     id: u64,
///     mailbox: u32,
///     body: Vec<u8>,
///     advertisement: bool,
/// }
///
/// impl Record for Mail {
///     type Key = u64;
///     type Destination = u32;
///
///     fn key(&self) -> &u64 {
///         &self.id
///     }
///     fn destination(&self) -> &u32 {
///         &self.mailbox
///     }
///     fn bytes(&self) -> u64 {
///         self.body.len() as u64
///     }
///     fn droppable(&self) -> bool {
///         self.advertisement
///     }
/// }
/// ```
pub trait Record {
    /// What names a record; unique within a table.
    type Key: Hash + Eq;

    /// Where a record is bound for. A small `Copy` id is best: a table keeps one clone for each
    /// destination that it holds records of.
    type Destination: Hash + Eq + Clone;

    /// The key of this record.
    fn key(&self) -> &Self::Key;

    /// The destination of this record.
    fn destination(&self) -> &Self::Destination;

    /// The size that counts against the byte caps, in bytes.
    fn bytes(&self) -> u64;

    /// Whether this record may be refused or evicted before any other.
    fn droppable(&self) -> bool;

    /// The sequence number that `key` carries, if it carries one.
    ///
    /// Keys whose numbers are mostly consecutive are then found in a ring addressed by that number
    /// instead of a hash table, which costs the same however many records there are. Any numbers
    /// are correct: they need not be unique nor dense, and a number whose place in the ring is
    /// taken falls back to the hash table. The memory of the ring depends on how many records
    /// there are, never on their numbers.
    #[inline]
    fn sequence(key: &Self::Key) -> Option<u64> {
        let _ = key;
        None
    }
}

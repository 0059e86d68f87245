//! Records for the tests, and a naive model of the tables.
#![expect(
    dead_code,
    clippy::unwrap_used,
    reason = "each test binary uses a part, and a failed helper fails its test"
)]

pub(crate) mod model;

use nacp_queue::{AckPending, Backlog, Caps, Evicted, Record};

/// How keys carry sequence numbers.
pub(crate) const NO_SEQUENCE: u8 = 0;
/// The number is the key.
pub(crate) const DENSE: u8 = 1;
/// Many keys fall on few places of the ring.
pub(crate) const COLLIDING: u8 = 2;
/// Every third key has none, and some are as far apart as they can be.
pub(crate) const MIXED: u8 = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Message<const KEYS: u8 = NO_SEQUENCE> {
    pub(crate) key: u64,
    pub(crate) destination: u8,
    pub(crate) bytes: u64,
    pub(crate) droppable: bool,
}

impl<const KEYS: u8> Record for Message<KEYS> {
    type Key = u64;
    type Destination = u8;

    fn key(&self) -> &u64 {
        &self.key
    }

    fn destination(&self) -> &u8 {
        &self.destination
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn droppable(&self) -> bool {
        self.droppable
    }

    fn sequence(key: &u64) -> Option<u64> {
        match KEYS {
            DENSE => Some(*key),
            COLLIDING => Some(key % 5 * 1024),
            MIXED if key.is_multiple_of(3) => None,
            MIXED => Some(key.wrapping_mul(u64::MAX / 7)),
            _ => None,
        }
    }
}

pub(crate) const B: u8 = 1;
pub(crate) const C: u8 = 2;

/// A record for B of one byte that is not droppable.
pub(crate) fn signal(key: u64) -> Message {
    Message {
        key,
        destination: B,
        bytes: 1,
        droppable: false,
    }
}

/// A record for B of one byte that is droppable.
pub(crate) fn notify(key: u64) -> Message {
    Message {
        droppable: true,
        ..signal(key)
    }
}

impl Message {
    pub(crate) fn to(self, destination: u8) -> Self {
        Self {
            destination,
            ..self
        }
    }

    pub(crate) fn sized(self, bytes: u64) -> Self {
        Self { bytes, ..self }
    }
}

pub(crate) fn caps(count: usize, bytes: u64) -> Caps {
    Caps::new(count, bytes).unwrap()
}

/// A backlog with a cap on records only.
pub(crate) fn backlog(count: usize) -> Backlog<Message> {
    Backlog::new(caps(count, u64::MAX))
}

/// Pushes and returns the keys that were evicted, or `None` if the record was refused.
pub(crate) fn push(backlog: &mut Backlog<Message>, record: Message) -> Option<Vec<(u64, Evicted)>> {
    let evicted = backlog.push(record).ok()?;
    Some(evicted.map(|(record, why)| (record.key, why)).collect())
}

/// The keys for a destination, in order.
pub(crate) fn keys(backlog: &Backlog<Message>, destination: u8) -> Vec<u64> {
    backlog
        .iter(&destination)
        .map(|record| record.key)
        .collect()
}

/// The keys of the whole table, in order.
pub(crate) fn all_keys(backlog: &Backlog<Message>) -> Vec<u64> {
    backlog.iter_all().map(|record| record.key).collect()
}

pub(crate) fn pending_keys(pending: &AckPending<Message>, destination: u8) -> Vec<u64> {
    pending
        .iter(&destination)
        .map(|(record, _)| record.key)
        .collect()
}

/// Small numbers that look random, from a seed.
#[derive(Debug)]
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut n = self.0;
        n = (n ^ (n >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        n = (n ^ (n >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (n ^ (n >> 31)) % sides
    }
}

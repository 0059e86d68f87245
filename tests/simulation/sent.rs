//! Every send and call of a run, and what became of it.

use std::time::Duration;

use bytes::{BufMut as _, BytesMut};
use nacp_link::Settlement;
use nacp_proto::Payload;

/// What was called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Signal,
    Ability,
    Event,
    Response {
        request: u64,
        items: Option<u64>,
    },
    Item {
        request: u64,
        index: u64,
    },
    Hit {
        subscribe: u64,
        serial: u64,
        index: u64,
    },
    Subscribe,
    Unsubscribe,
    Connect,
    Disconnect,
    Terminate,
}

/// One send or call. Its place in the table is its uid: it is told in the payload, names the
/// waiter, and grows with the time of sending.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) kind: Kind,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) at: Duration,
    pub(crate) limit: Option<Duration>,
    /// The next hop was the app's own link.
    pub(crate) is_direct: bool,
    /// Whom the sender was, or had last been, bound to.
    pub(crate) meant: Option<usize>,
    /// Sent by the node itself beside blocked sends.
    pub(crate) may_overtake: bool,
    pub(crate) is_large: bool,
    pub(crate) has_failed: bool,
    /// Its acceptance was not told before the connection ended.
    pub(crate) was_unreported: bool,
    /// Evicted from ack-pending, or its answer was lost with a reason: it may wait for ever.
    pub(crate) is_orphaned: bool,
    pub(crate) settled: Option<Settlement>,
    /// The lives whose nodes have read it, once for each time.
    pub(crate) read: Vec<usize>,
    /// The lives that it has reached.
    pub(crate) reached: Vec<usize>,
    /// Unsubscribes that were to end it, and were lost with a reason.
    pub(crate) lost_endings: usize,
    /// Unsubscribes that were to end it, and that a gateway has lost: they come again.
    pub(crate) late_endings: usize,
    pub(crate) disconnects_before: u32,
}

impl Kind {
    pub(crate) const fn is_notify(self) -> bool {
        matches!(self, Self::Item { .. } | Self::Hit { .. })
    }

    /// Whether it has a response waiter.
    pub(crate) const fn is_call(self) -> bool {
        matches!(
            self,
            Self::Ability | Self::Event | Self::Subscribe | Self::Unsubscribe
        )
    }
}

const HEAD: [u8; 2] = [0x82, 0x1b];
const BYTES: u8 = 0x5a;

/// An array of the uid and so many bytes.
pub(crate) fn payload(uid: u64, len: usize) -> Payload {
    let mut cbor = BytesMut::with_capacity(15 + len);
    cbor.put_slice(&HEAD);
    cbor.put_u64(uid);
    cbor.put_u8(BYTES);
    cbor.put_u32(u32::try_from(len).unwrap_or(0));
    cbor.put_bytes(filling(uid), len);
    Payload::from_cbor(cbor.freeze()).unwrap_or_else(|_| Payload::empty())
}

fn filling(uid: u64) -> u8 {
    uid.to_le_bytes()[0] ^ 0x5a
}

/// The uid of a payload of ours; an error if it is damaged, `None` if it is of another kind.
pub(crate) fn uid_of(payload: &Payload) -> Result<Option<u64>, String> {
    let cbor = payload.as_cbor();
    if !cbor.starts_with(&HEAD) {
        return Ok(None);
    }
    let number = |range: std::ops::Range<usize>| {
        cbor.get(range).map(|bytes| {
            bytes
                .iter()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        })
    };
    let (Some(uid), Some(len)) = (number(2..10), number(11..15)) else {
        return Err("a payload is cut".to_owned());
    };
    let body = cbor.get(15..).unwrap_or_default();
    if body.len() as u64 == len && body.iter().all(|byte| *byte == filling(uid)) {
        Ok(Some(uid))
    } else {
        Err(format!("the payload of #{uid} is damaged"))
    }
}

/// The name of a subscription of ours, and the pattern for it.
pub(crate) fn pattern(uid: u64) -> String {
    format!("sim:{uid}:*")
}

pub(crate) fn hit_name(uid: u64) -> String {
    format!("sim:{uid}:hit")
}

pub(crate) fn uid_of_pattern(pattern: &str) -> Option<u64> {
    pattern.split(':').nth(1)?.parse().ok()
}

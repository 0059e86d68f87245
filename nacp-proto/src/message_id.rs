mod uuid_text;

use std::{cmp::Ordering, fmt, str::FromStr};

use smol_str::SmolStr;
use uuid::Uuid;

use crate::escape::write_escaped;

/// The id of a message: 1 to 255 bytes of text, echoed unchanged by whoever answers
/// (specification, section 3).
///
/// An id that is exactly the canonical text of a UUID (lower case, hyphenated) takes 16 bytes and no
/// allocation; every other text is kept as it is, so what goes out is always what came in. Two ids are
/// equal if their texts are, and ordered as their texts are.
///
/// ```
/// use nacp_proto::MessageId;
///
/// let ours = MessageId::sequenced(7, 0x0123_4567_89ab_cdef);
/// assert_eq!(ours.sequence(), Some(7));
/// assert_eq!(MessageId::new(&ours.to_smol_str())?, ours);
/// assert_eq!(MessageId::new("a:b")?.to_smol_str(), "a:b");
/// # Ok::<(), nacp_proto::MessageIdError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MessageId(Repr);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Repr {
    Uuid([u8; 16]),
    Text(SmolStr),
}

/// Why a text is no [`MessageId`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageIdError {
    /// There is no message without an id.
    #[error("a message id is not empty")]
    Empty,
    /// The text is longer than [`MessageId::MAX_BYTES`].
    #[error("a message id has at most 255 bytes, this one has {bytes}")]
    TooLong {
        /// Length of the refused text.
        bytes: usize,
    },
}

impl MessageId {
    /// The longest id, in bytes of UTF-8.
    pub const MAX_BYTES: usize = 255;

    /// Length of a UUID's text, and of the buffer that [`text_in`](Self::text_in) asks for.
    pub const UUID_TEXT_LEN: usize = uuid_text::LEN;

    /// Bits of a number that [`sequenced`](Self::sequenced) keeps.
    pub const SEQUENCE_BITS: u32 = 58;

    /// An id with this text.
    ///
    /// # Errors
    ///
    /// Refuses the empty text and more than [`MAX_BYTES`](Self::MAX_BYTES) bytes.
    pub fn new(text: &str) -> Result<Self, MessageIdError> {
        match text.len() {
            0 => Err(MessageIdError::Empty),
            1..=Self::MAX_BYTES => Ok(match uuid_text::read(text.as_bytes()) {
                Some(bytes) => Self(Repr::Uuid(bytes)),
                None => Self(Repr::Text(SmolStr::new(text))),
            }),
            bytes => Err(MessageIdError::TooLong { bytes }),
        }
    }

    /// The id in the bytes of a text; `None` if they are none.
    pub(crate) fn from_wire(text: &[u8]) -> Option<Self> {
        if let Some(bytes) = uuid_text::read(text) {
            return Some(Self(Repr::Uuid(bytes)));
        }
        Self::new(std::str::from_utf8(text).ok()?).ok()
    }

    /// The id whose text is the canonical text of this UUID.
    pub const fn from_uuid_bytes(bytes: [u8; 16]) -> Self {
        Self(Repr::Uuid(bytes))
    }

    /// The 16 bytes, if the text is the canonical text of a UUID.
    pub const fn uuid_bytes(&self) -> Option<[u8; 16]> {
        match &self.0 {
            Repr::Uuid(bytes) => Some(*bytes),
            Repr::Text(_) => None,
        }
    }

    /// An id of our own: a version 8 UUID with the low [`SEQUENCE_BITS`](Self::SEQUENCE_BITS) bits of
    /// `sequence`, by which its sender finds it again, and all 64 bits of `random`, which nobody can guess.
    ///
    /// ```text
    ///  0                48    52        62  64 66              128
    /// | sequence 57..10 | 0x8 | seq 9..0 | r | 10 | random 61..0 |    r: random 63..62
    /// ```
    pub const fn sequenced(sequence: u64, random: u64) -> Self {
        let sequence = sequence & ((1 << Self::SEQUENCE_BITS) - 1);
        let high = ((sequence >> 10) << 16) | 0x8000 | ((sequence & 0x3ff) << 2) | (random >> 62);
        let low = (0b10 << 62) | (random & ((1 << 62) - 1));
        Self::from_uuid_bytes((((high as u128) << 64) | low as u128).to_be_bytes())
    }

    /// The sequence number, if the id has the form that [`sequenced`](Self::sequenced) makes.
    /// Anybody can send such an id, so check the whole id against the one that was given out.
    pub const fn sequence(&self) -> Option<u64> {
        let Repr::Uuid(bytes) = &self.0 else {
            return None;
        };
        let bits = u128::from_be_bytes(*bytes);
        let (high, low) = ((bits >> 64) as u64, bits as u64);
        if (high >> 12) & 0xf != 8 || low >> 62 != 0b10 {
            return None;
        }
        Some(((high >> 16) << 10) | ((high >> 2) & 0x3ff))
    }

    /// The text, unescaped, without an allocation.
    pub fn text_in<'a>(&'a self, buffer: &'a mut [u8; Self::UUID_TEXT_LEN]) -> &'a str {
        match &self.0 {
            Repr::Uuid(bytes) => Uuid::from_bytes(*bytes).hyphenated().encode_lower(buffer),
            Repr::Text(text) => text,
        }
    }

    /// The text, if it is the canonical text of a UUID.
    #[inline]
    pub(crate) fn uuid_text(&self) -> Option<[u8; Self::UUID_TEXT_LEN]> {
        self.uuid_bytes().map(uuid_text::write)
    }

    /// Length of the text in bytes.
    pub fn text_len(&self) -> usize {
        match &self.0 {
            Repr::Uuid(_) => Self::UUID_TEXT_LEN,
            Repr::Text(text) => text.len(),
        }
    }

    /// The text, unescaped.
    pub fn to_smol_str(&self) -> SmolStr {
        match &self.0 {
            Repr::Uuid(_) => SmolStr::new(self.text_in(&mut [0; Self::UUID_TEXT_LEN])),
            Repr::Text(text) => text.clone(),
        }
    }
}

impl Ord for MessageId {
    fn cmp(&self, other: &Self) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Uuid(a), Repr::Uuid(b)) => a.cmp(b),
            (Repr::Text(a), Repr::Text(b)) => a.cmp(b),
            (Repr::Uuid(_), Repr::Text(b)) => {
                self.text_in(&mut [0; Self::UUID_TEXT_LEN]).cmp(b.as_str())
            }
            (Repr::Text(_), Repr::Uuid(_)) => other.cmp(self).reverse(),
        }
    }
}

impl PartialOrd for MessageId {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_escaped(f, self.text_in(&mut [0; Self::UUID_TEXT_LEN]))
    }
}

impl fmt::Debug for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "MessageId({:?})",
            self.text_in(&mut [0; Self::UUID_TEXT_LEN])
        )
    }
}

impl FromStr for MessageId {
    type Err = MessageIdError;

    fn from_str(text: &str) -> Result<Self, MessageIdError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for MessageId {
    type Error = MessageIdError;

    fn try_from(text: &str) -> Result<Self, MessageIdError> {
        Self::new(text)
    }
}

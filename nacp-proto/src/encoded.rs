use bytes::Bytes;

/// The bytes of one encoded message, in up to three pieces that go out one behind the other.
///
/// A large payload stays where it is: only the map around it is written. Cloning copies no bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Encoded {
    pieces: [Bytes; 3],
}

impl Encoded {
    /// A message that lies in the three pieces, in this order; any of them may be empty.
    pub const fn from_pieces(head: Bytes, payload: Bytes, tail: Bytes) -> Self {
        Self {
            pieces: [head, payload, tail],
        }
    }

    /// The pieces in order. Some may be empty.
    pub const fn pieces(&self) -> &[Bytes; 3] {
        &self.pieces
    }

    /// The pieces in order. Some may be empty.
    pub fn into_pieces(self) -> [Bytes; 3] {
        self.pieces
    }

    /// Length of the whole message in bytes.
    pub fn len(&self) -> usize {
        self.pieces.iter().map(Bytes::len).sum()
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.pieces.iter().all(Bytes::is_empty)
    }

    /// Takes the first `len` bytes off, or all if there are fewer. No byte is copied.
    pub fn split_to(&mut self, len: usize) -> Self {
        let mut left = len;
        let pieces = self.pieces.each_mut().map(|piece| {
            let taken = piece.split_to(left.min(piece.len()));
            left -= taken.len();
            taken
        });
        Self { pieces }
    }

    /// The message in one piece; copies only if it lies in several.
    pub fn to_bytes(&self) -> Bytes {
        let mut filled = self.pieces.iter().filter(|piece| !piece.is_empty());
        match (filled.next(), filled.next()) {
            (None, _) => Bytes::new(),
            (Some(only), None) => only.clone(),
            (Some(_), Some(_)) => self.pieces.concat().into(),
        }
    }
}

impl From<Bytes> for Encoded {
    fn from(bytes: Bytes) -> Self {
        Self {
            pieces: [bytes, Bytes::new(), Bytes::new()],
        }
    }
}

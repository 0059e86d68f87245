use bytes::Bytes;

/// The bytes of one encoded message, in one piece or three that go out one behind the other.
///
/// A large payload stays where it is: only the map around it is written. Cloning copies no bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Encoded(Pieces);

/// Nearly all messages are one piece, and queues hold many of them: three are kept apart.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Pieces {
    One(Bytes),
    Three(Box<[Bytes; 3]>),
}

const _: () = assert!(size_of::<Encoded>() == size_of::<Bytes>());

impl Encoded {
    /// A message that lies in the three pieces, in this order; any of them may be empty.
    pub fn from_pieces(head: Bytes, payload: Bytes, tail: Bytes) -> Self {
        Self(Pieces::Three(Box::new([head, payload, tail])))
    }

    /// The one piece or the three in order. Some may be empty.
    pub fn pieces(&self) -> &[Bytes] {
        match &self.0 {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Three(pieces) => pieces.as_slice(),
        }
    }

    /// The one piece or the three in order. Some may be empty.
    pub fn into_pieces(self) -> impl Iterator<Item = Bytes> {
        let pieces = match self.0 {
            Pieces::One(piece) => [Some(piece), None, None],
            Pieces::Three(pieces) => pieces.map(Some),
        };
        pieces.into_iter().flatten()
    }

    /// Length of the whole message in bytes.
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    /// Whether there are no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.pieces().iter().all(Bytes::is_empty)
    }

    /// Takes the first `len` bytes off, or all if there are fewer. No byte is copied.
    pub fn split_to(&mut self, len: usize) -> Self {
        let mut left = len;
        let mut take = |piece: &mut Bytes| {
            let taken = piece.split_to(left.min(piece.len()));
            left -= taken.len();
            taken
        };
        Self(match &mut self.0 {
            Pieces::One(piece) => Pieces::One(take(piece)),
            Pieces::Three(pieces) => Pieces::Three(Box::new(pieces.each_mut().map(take))),
        })
    }

    /// The message in one piece; copies only if it lies in several.
    pub fn to_bytes(&self) -> Bytes {
        let mut filled = self.pieces().iter().filter(|piece| !piece.is_empty());
        match (filled.next(), filled.next()) {
            (None, _) => Bytes::new(),
            (Some(only), None) => only.clone(),
            (Some(_), Some(_)) => self.pieces().concat().into(),
        }
    }
}

impl Default for Encoded {
    fn default() -> Self {
        Bytes::new().into()
    }
}

impl From<Encoded> for Bytes {
    /// The message in one piece; copies only if it lies in several.
    fn from(encoded: Encoded) -> Self {
        match encoded.0 {
            Pieces::One(piece) => piece,
            Pieces::Three(_) => encoded.to_bytes(),
        }
    }
}

impl From<Bytes> for Encoded {
    fn from(bytes: Bytes) -> Self {
        Self(Pieces::One(bytes))
    }
}

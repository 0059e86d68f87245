use std::collections::VecDeque;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nacp_link::{Accepted, Close, Lane, PeerId};
use nacp_proto::{Decoded, Message};

/// One connection: two ends, and a way from each to the other.
#[derive(Debug)]
pub(crate) struct Wire {
    /// The dialling end and the accepting one.
    pub(crate) ends: [End; 2],
    /// From each end to the other.
    pub(crate) ways: [Way; 2],
    /// Which end has been told that the wire is no more.
    pub(crate) gone: [bool; 2],
    /// Which end does not read at present.
    pub(crate) paused: [bool; 2],
    /// Whether a hand on it ACKs what it hears.
    pub(crate) acks: bool,
}

/// Who sits at an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// A node.
    Site { site: usize, peer: PeerId },
    /// The test itself.
    Hand,
}

/// What happens to bytes that have left a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    /// They arrive after the way's delay.
    Deliver,
    /// They are kept back and can be released.
    Hold,
    /// They are lost, and nobody is told.
    Swallow,
}

/// How a node's provider takes messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Intake {
    /// All of them, with a report at once.
    Open,
    /// None: only what `World::accept` says.
    Stalled,
    /// All of them, with a report only from `World::report_accepted`.
    Unreported,
}

/// One direction of a wire.
#[derive(Debug)]
pub(crate) struct Way {
    pub(crate) mode: Mode,
    pub(crate) delay: Duration,
    pub(crate) intake: Intake,
    /// Submitted and not taken by the provider: the control lane and the bulk lane.
    pub(crate) outbox: [VecDeque<Bytes>; 2],
    pub(crate) accepted: Accepted,
    /// Kept back by [`Mode::Hold`].
    pub(crate) held: VecDeque<Parcel>,
    /// Arrived at an end that does not read.
    pub(crate) unread: VecDeque<Parcel>,
    pub(crate) last_arrival: Option<Instant>,
    pub(crate) closing: Option<Close>,
    /// The end of the stream has been sent.
    pub(crate) finished: bool,
}

/// What travels.
#[derive(Debug)]
pub(crate) enum Parcel {
    Message { bytes: Bytes, entry: usize },
    End { fault: Option<&'static str> },
}

/// One message that left a node or a hand.
#[derive(Debug, Clone)]
pub(crate) struct Crossing {
    /// When it left, since the world began.
    pub(crate) at: Duration,
    /// When it was read at the other end.
    pub(crate) arrived: Option<Duration>,
    pub(crate) wire: usize,
    /// The end that it left.
    pub(crate) from: usize,
    pub(crate) lane: Lane,
    pub(crate) bytes: Bytes,
    pub(crate) decoded: Option<Decoded>,
    /// Its line of text.
    pub(crate) line: String,
}

impl Crossing {
    /// The good message that it is.
    pub(crate) fn message(&self) -> &Message {
        match &self.decoded {
            Some(Decoded::Message(message)) => message,
            other => panic!("not a good message: {other:?}"),
        }
    }
}

impl Wire {
    pub(crate) fn new() -> Self {
        Self {
            ends: [End::Hand; 2],
            ways: [Way::new(), Way::new()],
            gone: [false; 2],
            paused: [false; 2],
            acks: false,
        }
    }

    pub(crate) fn is_site(&self, end: usize, wanted: usize) -> bool {
        matches!(self.ends[end], End::Site { site, .. } if site == wanted)
    }

    /// The peer at an end where a node sits.
    pub(crate) fn peer(&self, end: usize) -> PeerId {
        match self.ends[end] {
            End::Site { peer, .. } => peer,
            End::Hand => panic!("no node sits at end {end}"),
        }
    }
}

impl Way {
    fn new() -> Self {
        Self {
            mode: Mode::Deliver,
            delay: Duration::ZERO,
            intake: Intake::Open,
            outbox: [const { VecDeque::new() }; 2],
            accepted: Accepted::default(),
            held: VecDeque::new(),
            unread: VecDeque::new(),
            last_arrival: None,
            closing: None,
            finished: false,
        }
    }
}

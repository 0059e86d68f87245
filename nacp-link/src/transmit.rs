use nacp_proto::Encoded;

use crate::PeerId;

/// What the driver has to do to a peer, from [`Node::poll_transmit`](crate::Node::poll_transmit), in this order.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Transmit {
    /// Send a message. Count it in its lane: [`Node::handle_accepted`](crate::Node::handle_accepted)
    /// takes how many of each lane the provider has accepted.
    Send {
        /// The peer.
        peer: PeerId,
        /// Which messages may be overtaken by this one.
        lane: Lane,
        /// Its bytes.
        encoded: Encoded,
    },
    /// The peer's app has registered: lift the limits for strangers.
    Registered {
        /// The peer.
        peer: PeerId,
        /// Whether it speaks our dialect, and so takes chunks of 256 KiB.
        native: bool,
    },
    /// Stop reading from the peer until further notice.
    Pause {
        /// The peer.
        peer: PeerId,
    },
    /// Read on.
    Resume {
        /// The peer.
        peer: PeerId,
    },
    /// Close the connection; nothing else follows for this peer.
    Close {
        /// The peer.
        peer: PeerId,
        /// In what manner.
        how: Close,
    },
}

/// The two lanes of a peer (specification, section 7).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(clippy::exhaustive_enums, reason = "the specification has these two")]
pub enum Lane {
    /// Overtakes the other, also between the frames of a larger message.
    Control,
    /// Everything that is queued, replayed or counted.
    Bulk,
}

/// How to close a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Close {
    /// Write what was given, then shut down.
    Flush,
    /// Write what was given, shut down writing, discard what comes until the other side closes or
    /// one second has passed.
    Refuse,
    /// Reset: what lies in the kernel is not delivered any more.
    Abort,
}

/// How many messages of each lane a provider has accepted since the peer connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Accepted {
    /// Of the control lane.
    pub control: u64,
    /// Of the bulk lane.
    pub bulk: u64,
}

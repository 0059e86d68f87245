//! What can be seen of a connection from outside of the node: how it was made, and its first
//! messages.

mod frames;
mod handshake;
mod stranger;
mod tap;
mod transport;

use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use nacp::Report;
use nacp::link::PeerId;
use tokio::sync::Notify;

pub(crate) use handshake::{Answer, Fault, Handshake};
pub(crate) use stranger::stranger;
pub(crate) use transport::TracedTransport;

use crate::failure::Failure;

/// What was seen of the last connection that a node dialled. Clones look at the same.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Seen>,
    changed: Notify,
}

/// One connection, as far as it came.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) began: Option<Instant>,
    pub(crate) resolved: Option<Resolved>,
    pub(crate) connected: Option<Connected>,
    /// Why it could not be made.
    pub(crate) unreachable: Option<Failure>,
    /// When the first bytes were handed to the operating system.
    pub(crate) sent: Option<Instant>,
    pub(crate) handshake: Handshake,
    /// The node's number for it.
    peer: Option<PeerId>,
    /// Whether the node has seen it end, and has judged all that came before.
    pub(crate) has_ended: bool,
    /// The fault of the other side for which the node closed the connection.
    pub(crate) violation: Option<&'static str>,
    /// The socket, to cut the connection under the node.
    socket: Option<TcpStream>,
}

#[derive(Debug, Clone)]
pub(crate) struct Resolved {
    pub(crate) at: Instant,
    pub(crate) addrs: Vec<SocketAddr>,
}

#[derive(Debug, Clone)]
pub(crate) struct Connected {
    pub(crate) at: Instant,
    pub(crate) remote: SocketAddr,
    pub(crate) local: Option<SocketAddr>,
    /// Addresses that were tried before and failed.
    pub(crate) failed: usize,
}

impl Trace {
    /// What has been seen; not to be held over an await.
    pub(crate) fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Completes when there is something new since it last did.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses nothing.
    pub(crate) async fn changed(&self) {
        self.0.changed.notified().await;
    }

    /// Notes what the node reports of its connections. An old one may end after the next has begun.
    pub(crate) fn reported(&self, report: &Report) {
        if let Report::PeerConnect { peer } = report {
            self.update(|seen| seen.peer = Some(*peer));
        } else if let Report::PeerDisconnect { peer } = report {
            self.update_of(*peer, |seen| seen.has_ended = true);
        } else if let Report::PeerError { peer, reason } = report
            && *reason != "transport-error"
        {
            self.update_of(*peer, |seen| seen.violation = Some(reason));
        }
    }

    /// Cuts the connection, so that neither side gets a word of farewell.
    pub(crate) fn cut(&self) -> bool {
        let socket = self.seen().socket.take();
        socket.is_some_and(|socket| socket.shutdown(Shutdown::Both).is_ok())
    }

    fn update_of(&self, peer: PeerId, change: impl FnOnce(&mut Seen)) {
        self.update(|seen| {
            if seen.peer == Some(peer) {
                change(seen);
            }
        });
    }

    fn update(&self, change: impl FnOnce(&mut Seen)) {
        change(&mut self.seen());
        self.0.changed.notify_one();
    }
}

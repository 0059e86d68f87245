use std::error::Error;
use std::fmt;
use std::io;
use std::net::SocketAddr;

use async_trait::async_trait;
use nacp_link::Trust;
use nacp_transport_tcp::{AddressError, Connection, Options};
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncWrite};

/// Makes connections for a node. [`TcpTransport`](crate::TcpTransport) is the usual one,
/// [`MemoryTransport`](crate::MemoryTransport) serves tests; bring another to run NACP over any
/// ordered stream of bytes.
#[async_trait]
pub trait Transport: fmt::Debug + Send + Sync + 'static {
    /// Makes a connection to an address.
    ///
    /// The node drops the future when it ends or gives the attempt up, so dropping it must leave
    /// nothing behind. A limit on the time is the transport's own affair.
    ///
    /// # Errors
    ///
    /// Why there is no connection.
    async fn dial(&self, address: &str) -> Result<Channel, TransportError>;

    /// Listens on an address.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError>;
}

/// Accepts connections.
#[async_trait]
pub trait Listener: fmt::Debug + Send + Sync + 'static {
    /// Waits for the next connection. What goes wrong with one is no concern of the others.
    ///
    /// Dropping the future loses no connection. `None` ends the listener.
    async fn accept(&mut self) -> Option<Channel>;

    /// Where it listens, in the form that can be dialled.
    fn local_address(&self) -> String;

    /// Where it listens, if that is an address of the internet.
    fn local_addr(&self) -> Option<SocketAddr> {
        None
    }
}

/// A connection with what is known of its other end.
#[derive(Debug)]
pub struct Channel {
    pub(crate) connection: Connection,
    pub(crate) trust: Trust,
    pub(crate) remote: Option<String>,
}

impl Channel {
    /// NACT over a stream of bytes. It is unproven until [`trust`](Self::trust) says otherwise.
    ///
    /// Of the options, those of sockets do not apply.
    pub fn from_io(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: &Options,
    ) -> Self {
        Self {
            connection: Connection::from_io(io, options),
            trust: Trust::Unproven,
            remote: None,
        }
    }

    /// Says whether the other end is proven: it is on this machine, or has shown a certificate.
    #[must_use]
    pub const fn trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Says where the other end is, for policies and logs.
    #[must_use]
    pub fn remote(mut self, address: impl Into<String>) -> Self {
        self.remote = Some(address.into());
        self
    }
}

impl From<Connection> for Channel {
    /// A TCP connection; proven if it comes from this machine.
    fn from(connection: Connection) -> Self {
        let remote = connection.peer_addr();
        let is_loopback = remote.is_some_and(|addr| addr.ip().to_canonical().is_loopback());
        Self {
            connection,
            trust: if is_loopback {
                Trust::Proven
            } else {
                Trust::Unproven
            },
            remote: remote.map(|addr| addr.to_string()),
        }
    }
}

/// Why a transport has no connection, or cannot listen.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TransportError {
    /// The text is no address of this transport.
    #[error("`{address}` is no address: {source}")]
    Address {
        /// The text.
        address: String,
        /// What is wrong with it.
        source: AddressError,
    },
    /// The name could not be resolved, or no address of it could be connected to.
    #[error(transparent)]
    Connect(#[from] nacp_transport_tcp::ConnectError),
    /// The operating system refused.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// Something of a transport that is not ours.
    #[error("{0}")]
    Other(Box<dyn Error + Send + Sync>),
}

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use crate::io::Io;
use crate::shared::Shared;
use crate::{Options, Receiver, Sender, WriterTask, socket};

/// A connection to a peer, made by [`connect`](crate::connect()), by
/// [`Listener::accept`](crate::Listener::accept), or over a stream of your own.
pub struct Connection {
    io: Io,
    peer_addr: Option<SocketAddr>,
    local_addr: Option<SocketAddr>,
    options: Options,
}

impl Connection {
    /// NACT over any stream of bytes: in memory, or through TLS.
    ///
    /// Options of the socket do not apply. [`Close::Abort`](crate::Close::Abort) drops the stream.
    pub fn from_io(
        io: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        options: &Options,
    ) -> Self {
        Self {
            io: Io::Other(Box::new(io)),
            peer_addr: None,
            local_addr: None,
            options: options.clone(),
        }
    }

    /// NACT over a TCP stream, which gets the socket options.
    ///
    /// # Errors
    ///
    /// What the operating system says to a socket option; the stream is dropped.
    pub fn from_tcp(stream: TcpStream, options: &Options) -> io::Result<Self> {
        socket::tune(&stream, options)?;
        Ok(Self {
            peer_addr: stream.peer_addr().ok(),
            local_addr: stream.local_addr().ok(),
            io: Io::Tcp(stream),
            options: options.clone(),
        })
    }

    /// The peer's address; `None` if it has none.
    pub const fn peer_addr(&self) -> Option<SocketAddr> {
        self.peer_addr
    }

    /// Our own address; `None` if there is none.
    pub const fn local_addr(&self) -> Option<SocketAddr> {
        self.local_addr
    }

    /// Takes the connection apart: messages go out by the first, come in by the second, and the
    /// third is to be spawned as a task.
    pub fn split(self) -> (Sender, Receiver, WriterTask) {
        let shared = Arc::new(Shared::new(self.io, &self.options));
        (
            Sender::new(Arc::clone(&shared)),
            Receiver::new(Arc::clone(&shared), &self.options),
            WriterTask::new(shared, &self.options),
        )
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("peer_addr", &self.peer_addr)
            .finish_non_exhaustive()
    }
}

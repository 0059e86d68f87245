use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::net::{TcpListener, lookup_host};
use tokio::time::sleep;
use tracing::{debug, warn};

use crate::{Address, Connection, Options};

/// Accepts connections.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    local_addr: SocketAddr,
    options: Options,
}

/// How long to wait before accepting again when the operating system lacks descriptors or memory;
/// doubled each time up to [`LONGEST_PAUSE`].
const SHORTEST_PAUSE: Duration = Duration::from_millis(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Listener {
    /// Listens on an address; port 0 is a free one. A name is resolved, and the first of its
    /// addresses that can be listened on is taken. `[::]` takes IPv4 connections too where the
    /// operating system allows it.
    ///
    /// # Errors
    ///
    /// What the operating system said of the last address: in use, not of this machine, not
    /// allowed.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn bind(address: &Address, options: Options) -> io::Result<Self> {
        let listener = match address.ip() {
            Some(addr) => TcpListener::bind(addr).await?,
            None => {
                let host = address.host();
                let addrs: Vec<_> = lookup_host((host.as_str(), address.port()))
                    .await?
                    .collect();
                TcpListener::bind(&addrs[..]).await?
            }
        };
        let local_addr = listener.local_addr()?;
        Ok(Self {
            listener,
            local_addr,
            options,
        })
    }

    /// Where it listens, with the real port. What it prints can be dialled.
    pub const fn local_addr(&self) -> SocketAddr {
        self.local_addr
    }

    /// Waits for the next connection.
    ///
    /// What goes wrong with one connection does not concern the next. When the operating system has
    /// no descriptor or memory left, it waits up to a second between two tries, and warns.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future loses no connection.
    pub async fn accept(&self) -> Connection {
        let mut pause = SHORTEST_PAUSE;
        loop {
            let error = match self.listener.accept().await {
                Ok((stream, _)) => match Connection::from_tcp(stream, &self.options) {
                    Ok(connection) => return connection,
                    Err(error) => error,
                },
                Err(error) => error,
            };
            if is_of_one_connection(&error) {
                debug!(%error, "connection ended before it was accepted");
                continue;
            }
            warn!(%error, ?pause, local_addr = %self.local_addr, "cannot accept connections");
            sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }
}

/// Whether an error says something of a connection that was to be accepted, not of the listener.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::ConnectionAborted
            | Kind::ConnectionReset
            | Kind::ConnectionRefused
            | Kind::NotConnected
            | Kind::InvalidInput
            | Kind::BrokenPipe
            | Kind::Interrupted
    )
}

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use nacp::link::Trust;
use nacp::transport::{Address, Attempt, ConnectError, Options, resolve};
use nacp::{Channel, Listener, TcpTransport, Transport, TransportError};
use socket2::{Domain, Protocol, Socket, Type};
use tokio::net::TcpStream;
use tokio::time::{timeout, timeout_at};

use super::tap::Tap;
use super::{Connected, Resolved, Seen, Trace};
use crate::dial::diagnosis;

/// TCP that leaves a [`Trace`] of each connection dialled.
#[derive(Debug, Clone)]
pub(crate) struct TracedTransport {
    trace: Trace,
    connect_timeout: Duration,
}

impl TracedTransport {
    /// Resolving a name and connecting to one of its addresses take no longer than the limit,
    /// together.
    pub(crate) const fn new(trace: Trace, connect_timeout: Duration) -> Self {
        Self {
            trace,
            connect_timeout,
        }
    }

    async fn connect(&self, address: &Address) -> Result<(TcpStream, SocketAddr), ConnectError> {
        let deadline = tokio::time::Instant::now() + self.connect_timeout;
        let addrs = timeout_at(deadline, resolve(address))
            .await
            .unwrap_or_else(|_| {
                Err(ConnectError::ResolveTimeout {
                    host: address.to_string().into(),
                })
            })?;
        let at = Instant::now();
        let resolved = Resolved {
            at,
            addrs: addrs.clone(),
        };
        self.trace.update(|seen| seen.resolved = Some(resolved));
        let mut attempts = Vec::new();
        for (index, addr) in addrs.iter().enumerate() {
            let left = deadline.saturating_duration_since(tokio::time::Instant::now());
            let share = left / u32::try_from(addrs.len() - index).unwrap_or(u32::MAX);
            match connect_within(*addr, share).await {
                Ok(stream) => {
                    let connected = Connected {
                        at: Instant::now(),
                        remote: *addr,
                        local: stream.local_addr().ok(),
                        failed: attempts.len(),
                    };
                    self.trace.update(|seen| seen.connected = Some(connected));
                    return Ok((stream, *addr));
                }
                Err(error) => attempts.push(Attempt { addr: *addr, error }),
            }
        }
        Err(ConnectError::Unreachable { attempts })
    }
}

async fn connect_within(addr: SocketAddr, limit: Duration) -> io::Result<TcpStream> {
    let stream = timeout(limit, connect(addr)).await??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

/// As [`TcpStream::connect`], but that a connection which was made and has been reset since is one:
/// what came before the reset is still to be read.
async fn connect(addr: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(addr), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    match socket.connect(&addr.into()) {
        Err(error) if !is_under_way(&error) => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let stream = TcpStream::from_std(socket.into())?;
    stream.writable().await?;
    match stream.take_error()? {
        Some(error) if error.kind() != io::ErrorKind::ConnectionReset => Err(error),
        Some(_) | None => Ok(stream),
    }
}

#[cfg(unix)]
fn is_under_way(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::INPROGRESS.raw_os_error())
}

#[cfg(not(unix))]
fn is_under_way(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

#[async_trait]
impl Transport for TracedTransport {
    async fn dial(&self, address: &str) -> Result<Channel, TransportError> {
        let address: Address = address.parse().map_err(|source| TransportError::Address {
            address: address.to_owned(),
            source,
        })?;
        *self.trace.seen() = Seen {
            began: Some(Instant::now()),
            ..Seen::default()
        };
        let connected = self.connect(&address).await;
        let (stream, remote) = connected.inspect_err(|error| {
            let failure = diagnosis::unreachable(error, self.connect_timeout);
            self.trace.update(|seen| seen.unreachable = Some(failure));
        })?;
        let stream = stream.into_std()?;
        self.trace.seen().socket = stream.try_clone().ok();
        let tap = Tap::new(TcpStream::from_std(stream)?, self.trace.clone());
        Ok(Channel::from_io(tap, &Options::default())
            .trust(trust(remote.ip()))
            .remote(remote.to_string()))
    }

    async fn listen(&self, address: &str) -> Result<Box<dyn Listener>, TransportError> {
        TcpTransport::default().listen(address).await
    }
}

fn trust(ip: IpAddr) -> Trust {
    if ip.to_canonical().is_loopback() {
        Trust::Proven
    } else {
        Trust::Unproven
    }
}

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use thiserror::Error;
use tokio::net::{TcpSocket, lookup_host};
use tokio::time::{Instant, timeout, timeout_at};

use crate::{Address, Connection, Options, socket};

/// Why there is no connection.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// Port 0 cannot be dialled.
    #[error("port 0 cannot be dialled")]
    PortZero,
    /// The host name could not be resolved.
    #[error("cannot resolve `{host}`")]
    Resolve {
        /// The name.
        host: Box<str>,
        /// What the resolver said.
        source: io::Error,
    },
    /// The resolver did not answer in time.
    #[error("cannot resolve `{host}` in time")]
    ResolveTimeout {
        /// The name.
        host: Box<str>,
    },
    /// None of the host's addresses could be connected to.
    #[error("cannot connect to {}", Listed(.attempts))]
    Unreachable {
        /// All that were tried, in this order; at least one.
        attempts: Vec<Attempt>,
    },
}

/// An address that could not be connected to.
#[derive(Debug)]
pub struct Attempt {
    /// The address.
    pub addr: SocketAddr,
    /// What happened; of kind [`TimedOut`](io::ErrorKind::TimedOut) if time ran out.
    pub error: io::Error,
}

impl ConnectError {
    /// Whether it failed for want of time: the resolver or the last address did not answer.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::ResolveTimeout { .. } => true,
            Self::Unreachable { attempts } => attempts
                .last()
                .is_some_and(|last| last.error.kind() == io::ErrorKind::TimedOut),
            Self::PortZero | Self::Resolve { .. } => false,
        }
    }
}

struct Listed<'a>(&'a [Attempt]);

impl fmt::Display for Listed<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Attempt { addr, error }) in self.0.iter().enumerate() {
            let separator = if index == 0 { "" } else { ", " };
            write!(f, "{separator}{addr} ({error})")?;
        }
        Ok(())
    }
}

/// Connects to the first address of a host that answers.
///
/// Resolves the name anew, then tries its addresses one after another. All of it takes no longer
/// than the [`connect_timeout`](Options::connect_timeout); each address gets an equal share of what
/// is left.
///
/// # Errors
///
/// [`ConnectError`], with every address that was tried.
///
/// # Cancel safety
///
/// Dropping the future gives the attempt up; nothing is left behind.
pub async fn connect(address: &Address, options: &Options) -> Result<Connection, ConnectError> {
    let deadline = Instant::now().checked_add(options.connect_timeout);
    let resolving = resolve(address);
    let addrs = match deadline {
        Some(deadline) => timeout_at(deadline, resolving).await.unwrap_or_else(|_| {
            Err(ConnectError::ResolveTimeout {
                host: address.host().into(),
            })
        })?,
        None => resolving.await?,
    };
    let mut attempts = Vec::new();
    for (index, &addr) in addrs.iter().enumerate() {
        let share = share_of(deadline, addrs.len() - index);
        match connect_within(addr, options, share).await {
            Ok(connection) => return Ok(connection),
            Err(error) => attempts.push(Attempt { addr, error }),
        }
    }
    Err(ConnectError::Unreachable { attempts })
}

/// The addresses of a host, in the resolver's order, no longer than the resolver takes; at least
/// one.
///
/// # Errors
///
/// [`ConnectError::PortZero`] and [`ConnectError::Resolve`].
///
/// # Cancel safety
///
/// Dropping the future gives the question up; the resolver may go on for a while on a thread of its
/// own.
pub async fn resolve(address: &Address) -> Result<Vec<SocketAddr>, ConnectError> {
    if address.port() == 0 {
        return Err(ConnectError::PortZero);
    }
    if let Some(addr) = address.ip() {
        return Ok(vec![addr]);
    }
    let host = address.host();
    let failed = |source| ConnectError::Resolve {
        host: host.as_str().into(),
        source,
    };
    let mut addrs = Vec::new();
    for addr in lookup_host((host.as_str(), address.port()))
        .await
        .map_err(failed)?
    {
        if !addrs.contains(&addr) {
            addrs.push(addr);
        }
    }
    if addrs.is_empty() {
        return Err(failed(io::Error::new(
            io::ErrorKind::NotFound,
            "no addresses",
        )));
    }
    Ok(addrs)
}

/// Connects to one address, within the [`connect_timeout`](Options::connect_timeout).
///
/// The unspecified address, which listeners show that listen on all, means this machine.
///
/// # Errors
///
/// What the operating system says; [`TimedOut`](io::ErrorKind::TimedOut) if time ran out.
///
/// # Cancel safety
///
/// Dropping the future gives the attempt up; nothing is left behind.
pub async fn connect_to(addr: SocketAddr, options: &Options) -> io::Result<Connection> {
    connect_within(addr, options, options.connect_timeout).await
}

async fn connect_within(
    addr: SocketAddr,
    options: &Options,
    limit: Duration,
) -> io::Result<Connection> {
    let socket = if addr.is_ipv4() {
        TcpSocket::new_v4()
    } else {
        TcpSocket::new_v6()
    }?;
    socket::prepare(&socket, options)?;
    let stream = timeout(limit, socket.connect(dialable(addr))).await??;
    Connection::from_tcp(stream, options)
}

fn share_of(deadline: Option<Instant>, addresses: usize) -> Duration {
    let Some(deadline) = deadline else {
        return Duration::MAX;
    };
    let left = deadline.saturating_duration_since(Instant::now());
    left / u32::try_from(addresses).unwrap_or(u32::MAX)
}

fn dialable(mut addr: SocketAddr) -> SocketAddr {
    if addr.ip().is_unspecified() {
        addr.set_ip(match addr {
            SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        });
    }
    addr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn addresses_share_the_time_that_is_left() {
        let second = Duration::from_secs(1);
        let deadline = Some(Instant::now() + 10 * second);
        assert_eq!(share_of(deadline, 4), 10 * second / 4);
        tokio::time::advance(4 * second).await;
        assert_eq!(share_of(deadline, 3), 2 * second);
        assert_eq!(share_of(deadline, 1), 6 * second);
        tokio::time::advance(7 * second).await;
        assert_eq!(share_of(deadline, 1), Duration::ZERO);
        assert_eq!(share_of(None, 2), Duration::MAX);
    }
}

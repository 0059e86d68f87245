use std::io;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};
use tokio::net::{TcpSocket, TcpStream};
use tracing::debug;

use crate::Options;

/// How long the operating system waits between two questions whether a silent peer lives.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(10);

/// Sets what must be set before a socket is connected.
pub(crate) fn prepare(socket: &TcpSocket, options: &Options) -> io::Result<()> {
    match options.send_buffer {
        Some(bytes) => socket.set_send_buffer_size(bytes),
        None => Ok(()),
    }
}

/// Sets what a connected socket needs.
pub(crate) fn tune(stream: &TcpStream, options: &Options) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    if let Some(bytes) = options.send_buffer {
        socket.set_send_buffer_size(bytes as usize)?;
    }
    if let Some(after) = options.keepalive {
        let keepalive = TcpKeepalive::new()
            .with_time(after)
            .with_interval(KEEPALIVE_INTERVAL);
        socket.set_tcp_keepalive(&keepalive)?;
    }
    if let Some(Err(error)) = options
        .unsent_bytes
        .map(|bytes| limit_unsent(&socket, bytes))
    {
        // Old kernels do not know it, and everything works without.
        debug!(%error, "cannot limit the unsent bytes of a connection");
    }
    Ok(())
}

#[cfg(any(target_os = "linux", target_os = "android", target_vendor = "apple"))]
fn limit_unsent(socket: &SockRef<'_>, bytes: u32) -> io::Result<()> {
    socket.set_tcp_notsent_lowat(bytes)
}

#[cfg(not(any(target_os = "linux", target_os = "android", target_vendor = "apple")))]
fn limit_unsent(_: &SockRef<'_>, _: u32) -> io::Result<()> {
    Ok(())
}

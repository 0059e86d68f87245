use std::io::{self, IoSlice};
use std::net::Shutdown;
use std::pin::{Pin, pin};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use bytes::buf::Limit;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::net::TcpStream;

use crate::lock::lock;

/// Anything that bytes go in and out of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The stream under a connection; clones are the same stream.
///
/// TCP is read and written at the same time; any other stream by one side at a time.
#[derive(Clone)]
pub(crate) enum Io {
    Tcp(Arc<TcpStream>),
    Other(Arc<Mutex<Box<dyn Stream>>>),
}

impl Io {
    pub(crate) fn other(stream: impl Stream + 'static) -> Self {
        Self::Other(Arc::new(Mutex::new(Box::new(stream))))
    }

    /// Reads into `room`, which is made only when TCP has something.
    pub(crate) fn poll_read<'b>(
        &self,
        cx: &mut Context<'_>,
        room: impl FnOnce() -> Limit<&'b mut BytesMut>,
    ) -> Poll<io::Result<usize>> {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Other(stream) => return pin!(lock(stream).read_buf(&mut room())).poll(cx),
        };
        ready!(stream.poll_read_ready(cx))?;
        let mut room = room();
        loop {
            match stream.try_read_buf(&mut room) {
                Err(error) if is_transient(&error) => ready!(stream.poll_read_ready(cx))?,
                result => return Poll::Ready(result),
            }
        }
    }

    /// Writes what the stream takes now, without waking anyone later.
    pub(crate) fn try_write(&self, bufs: &[IoSlice<'_>]) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => match stream.try_write_vectored(bufs) {
                Err(error) if is_transient(&error) => Poll::Pending,
                result => Poll::Ready(result),
            },
            Self::Other(_) => self.poll_write(&mut Context::from_waker(Waker::noop()), bufs),
        }
    }

    pub(crate) fn poll_write(
        &self,
        cx: &mut Context<'_>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = match self {
            Self::Tcp(stream) => stream,
            Self::Other(stream) => {
                return Pin::new(&mut **lock(stream)).poll_write_vectored(cx, bufs);
            }
        };
        loop {
            ready!(stream.poll_write_ready(cx))?;
            match stream.try_write_vectored(bufs) {
                Err(error) if is_transient(&error) => {}
                result => return Poll::Ready(result),
            }
        }
    }

    /// Hands on what the stream itself holds back. TCP holds nothing back.
    pub(crate) fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) => Poll::Ready(Ok(())),
            Self::Other(stream) => Pin::new(&mut **lock(stream)).poll_flush(cx),
        }
    }

    pub(crate) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Poll::Ready(SockRef::from(&**stream).shutdown(Shutdown::Write)),
            Self::Other(stream) => Pin::new(&mut **lock(stream)).poll_shutdown(cx),
        }
    }

    /// Makes the end of the stream a reset, where there is such a thing.
    pub(crate) fn reset_on_drop(&self) {
        if let Self::Tcp(stream) = self {
            // It fails on a socket that is gone already, which needs no reset.
            let _ = stream.set_zero_linger();
        }
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted
    )
}

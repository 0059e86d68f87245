use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker, ready};

use bytes::BytesMut;
use bytes::buf::Limit;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadHalf, WriteHalf, split};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// Anything that bytes go in and out of.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// The stream under a connection.
pub(crate) enum Io {
    Tcp(TcpStream),
    Other(Box<dyn Stream>),
}

/// Where bytes come from. TCP is read and written at the same time; any other stream by one side
/// at a time.
pub(crate) enum Source {
    Tcp(OwnedReadHalf),
    Other(ReadHalf<Box<dyn Stream>>),
}

/// Where bytes go.
pub(crate) enum Sink {
    Tcp(OwnedWriteHalf),
    Other(WriteHalf<Box<dyn Stream>>),
}

impl Io {
    pub(crate) fn into_split(self) -> (Source, Sink) {
        match self {
            Self::Tcp(stream) => {
                let (source, sink) = stream.into_split();
                (Source::Tcp(source), Sink::Tcp(sink))
            }
            Self::Other(stream) => {
                let (source, sink) = split(stream);
                (Source::Other(source), Sink::Other(sink))
            }
        }
    }
}

impl Source {
    /// Reads into `room`, which is made only when TCP has something.
    pub(crate) fn poll_read<'b>(
        &mut self,
        cx: &mut Context<'_>,
        room: impl FnOnce() -> Limit<&'b mut BytesMut>,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::Tcp(stream) => {
                ready!(stream.as_ref().poll_read_ready(cx))?;
                pin!(stream.read_buf(&mut room())).poll(cx)
            }
            Self::Other(stream) => pin!(stream.read_buf(&mut room())).poll(cx),
        }
    }
}

impl Sink {
    /// Writes what the stream takes. With a context, its task is woken when a blocked stream takes
    /// more; without, nobody is.
    pub(crate) fn poll_write(
        &mut self,
        cx: Option<&mut Context<'_>>,
        bufs: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match (self, cx) {
            (Self::Tcp(stream), None) => match stream.try_write_vectored(bufs) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => Poll::Pending,
                result => Poll::Ready(result),
            },
            (Self::Tcp(stream), Some(cx)) => Pin::new(stream).poll_write_vectored(cx, bufs),
            (Self::Other(stream), cx) => {
                with_context(cx, |cx| Pin::new(stream).poll_write_vectored(cx, bufs))
            }
        }
    }

    /// Hands on what the stream itself holds back. TCP holds nothing back.
    pub(crate) fn poll_flush(&mut self, cx: Option<&mut Context<'_>>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(_) => Poll::Ready(Ok(())),
            Self::Other(stream) => with_context(cx, |cx| Pin::new(stream).poll_flush(cx)),
        }
    }

    pub(crate) fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
            Self::Other(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }

    /// Whether what is written is in the operating system's hands at once.
    pub(crate) const fn is_direct(&self) -> bool {
        matches!(self, Self::Tcp(_))
    }

    /// Ends the stream, with a reset where there is such a thing. It is over when the source is
    /// dropped too.
    pub(crate) fn reset(self) {
        if let Self::Tcp(stream) = self {
            // It fails on a socket that is gone already, which needs no reset.
            let _ = stream.as_ref().set_zero_linger();
            stream.forget();
        }
    }
}

fn with_context<R>(cx: Option<&mut Context<'_>>, poll: impl FnOnce(&mut Context<'_>) -> R) -> R {
    match cx {
        Some(cx) => poll(cx),
        None => poll(&mut Context::from_waker(Waker::noop())),
    }
}

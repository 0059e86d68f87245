use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Trace;
use super::frames::Frames;

/// A TCP stream whose first bytes are looked at on their way.
pub(super) struct Tap {
    stream: TcpStream,
    trace: Trace,
    /// Nothing more to look for in what comes.
    is_done: bool,
    has_sent: bool,
    inbound: Option<Frames>,
    outbound: Option<Frames>,
}

impl Tap {
    pub(super) fn new(stream: TcpStream, trace: Trace) -> Self {
        Self {
            stream,
            trace,
            is_done: false,
            has_sent: false,
            inbound: Frames::new("in"),
            outbound: Frames::new("out"),
        }
    }

    fn look(&mut self, read: &[u8]) {
        if let Some(frames) = &mut self.inbound {
            frames.pass(read);
        }
        if self.is_done || read.is_empty() {
            return;
        }
        let now = Instant::now();
        self.trace.update(|seen| {
            seen.handshake.read(now, read);
            self.is_done = seen.handshake.is_over();
        });
    }

    fn note_sent(&mut self, pieces: &[io::IoSlice<'_>], written: &io::Result<usize>) {
        if let (Some(frames), Ok(written)) = (&mut self.outbound, written) {
            let mut left = *written;
            for piece in pieces {
                let (sent, _) = piece.split_at(left.min(piece.len()));
                left -= sent.len();
                frames.pass(sent);
            }
        }
        if written.is_ok() && !self.has_sent {
            self.has_sent = true;
            self.trace.update(|seen| seen.sent = Some(Instant::now()));
        }
    }
}

impl AsyncRead for Tap {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let result = ready!(Pin::new(&mut self.stream).poll_read(cx, buf));
        self.look(buf.filled().get(before..).unwrap_or_default());
        Poll::Ready(result)
    }
}

impl AsyncWrite for Tap {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write(cx, bytes));
        self.note_sent(&[io::IoSlice::new(bytes)], &written);
        Poll::Ready(written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = ready!(Pin::new(&mut self.stream).poll_write_vectored(cx, pieces));
        self.note_sent(pieces, &written);
        Poll::Ready(written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

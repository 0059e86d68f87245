use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};

/// What the two ends of a connection in memory share.
#[derive(Debug, Default)]
pub(super) struct Line {
    is_cut: AtomicBool,
    /// Who waits for bytes or for room, by end and direction.
    waiting: Mutex<[Option<Waker>; 4]>,
}

/// One end of a connection in memory.
#[derive(Debug)]
pub(super) struct LineEnd {
    stream: DuplexStream,
    line: Arc<Line>,
    /// 0 or 1.
    end: usize,
}

pub(super) fn line(capacity: usize) -> (LineEnd, LineEnd, Weak<Line>) {
    let line = Arc::new(Line::default());
    let weak = Arc::downgrade(&line);
    let (one, two) = duplex(capacity);
    let one = LineEnd {
        stream: one,
        line: Arc::clone(&line),
        end: 0,
    };
    let two = LineEnd {
        stream: two,
        line,
        end: 1,
    };
    (one, two, weak)
}

impl Line {
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = std::mem::take(&mut *waiting);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }

    /// Whether it is cut; if not, whoever asks is woken when it is.
    fn is_cut(&self, place: usize, cx: &Context<'_>) -> bool {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = waiting.get_mut(place) {
            *place = Some(cx.waker().clone());
        }
        drop(waiting);
        self.is_cut.load(Ordering::SeqCst)
    }
}

impl LineEnd {
    fn is_cut(&self, writing: usize, cx: &Context<'_>) -> bool {
        self.line.is_cut(self.end * 2 + writing, cx)
    }
}

impl AsyncRead for LineEnd {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.is_cut(0, cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for LineEnd {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_cut(1, cx) {
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

//! A connection that can be reset from within.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::Notify;

/// What the requests on a connection know of it.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) number: usize,
    cut: Notify,
    /// The client gets a reset when the socket is dropped, and no orderly end.
    reset: AtomicBool,
    killed: AtomicBool,
}

impl Line {
    pub(super) fn new(number: usize) -> Arc<Self> {
        Arc::new(Self {
            number,
            cut: Notify::new(),
            reset: AtomicBool::new(false),
            killed: AtomicBool::new(false),
        })
    }

    /// Resets the connection, with all that is under way on it.
    pub(super) fn cut(&self) {
        self.reset.store(true, SeqCst);
        self.cut.notify_one();
    }

    pub(super) async fn is_cut(&self) {
        self.cut.notified().await;
    }

    /// Marks the connection as one of a provider that was killed.
    pub(super) fn kill(&self) {
        self.killed.store(true, SeqCst);
        self.reset.store(true, SeqCst);
    }

    pub(super) fn was_killed(&self) -> bool {
        self.killed.load(SeqCst)
    }
}

/// A socket that ends as its line says.
#[derive(Debug)]
pub(super) struct Socket {
    stream: TcpStream,
    line: Arc<Line>,
}

impl Socket {
    pub(super) fn new(stream: TcpStream, line: Arc<Line>) -> Self {
        Self { stream, line }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        if self.line.reset.load(SeqCst) {
            // Where that fails the connection is gone already.
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, data)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, data)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

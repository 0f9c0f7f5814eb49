//! Time limits that hyper does not have: for the first bytes of a connection, which distinguish
//! HTTP/1 from HTTP/2, and for a client that does not read its answer.

use std::future::Future;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::activity::Activity;

/// Time limit of the first bytes, and of reading [`MIN_READ_BYTES`] bytes of an answer.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// hyper-util decides by the connection preface of HTTP/2, which has this many bytes (RFC 9113
/// section 3.4).
const PREFACE: usize = 24;
/// Less than this within the time is next to nothing.
const MIN_READ_BYTES: usize = 16 << 10;

/// Ends a connection with an error if the peer is too slow.
pub(crate) struct IdleTimeout<S> {
    inner: S,
    /// Timer that runs until enough was read.
    opening: Option<Pin<Box<Sleep>>>,
    read: usize,
    /// While a write waits, and what was taken since.
    stalled: Option<(Pin<Box<Sleep>>, usize)>,
    activity: Activity,
}

impl<S> IdleTimeout<S> {
    pub(crate) fn new(inner: S, activity: Activity) -> Self {
        Self {
            inner,
            activity,
            opening: None,
            read: 0,
            stalled: None,
        }
    }

    fn waits<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let (timer, _) = self
            .stalled
            .get_or_insert_with(|| (Box::pin(sleep(READ_TIMEOUT)), 0));
        timer
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn took(&mut self, count: usize) {
        self.activity.wrote(count);
        if let Some((_, taken)) = &mut self.stalled {
            *taken += count;
            if *taken >= MIN_READ_BYTES {
                self.stalled = None;
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(context, buffer);
        if self.read >= PREFACE {
            return polled;
        }
        if polled.is_ready() {
            self.read += buffer.filled().len() - before;
            if self.read >= PREFACE {
                self.opening = None;
            }
            return polled;
        }
        let timer = self
            .opening
            .get_or_insert_with(|| Box::pin(sleep(READ_TIMEOUT)));
        timer
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write(context, buffer) {
            Poll::Pending => self.waits(context),
            ready @ Poll::Ready(_) => {
                if let Poll::Ready(Ok(count)) = ready {
                    self.took(count);
                }
                ready
            }
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match Pin::new(&mut self.inner).poll_write_vectored(context, buffers) {
            Poll::Pending => self.waits(context),
            ready @ Poll::Ready(_) => {
                if let Poll::Ready(Ok(count)) = ready {
                    self.took(count);
                }
                ready
            }
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_flush(context) {
            Poll::Pending => self.waits(context),
            ready @ Poll::Ready(_) => {
                // Everything was taken.
                self.stalled = None;
                ready
            }
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match Pin::new(&mut self.inner).poll_shutdown(context) {
            Poll::Pending => self.waits(context),
            ready @ Poll::Ready(_) => ready,
        }
    }
}

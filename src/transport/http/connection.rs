//! One connection of a client: how hyper serves it, and when it is ended although it is open.
//!
//! It ends if nothing moves: no request comes whole, or an answer is never taken. hyper would limit
//! only the time for headers of HTTP/1; a connection of HTTP/2 that answers pings would stay for as
//! long as its client likes. hyper has no time limits for the first bytes of a connection, which
//! distinguish HTTP/1 from HTTP/2, and for a client that does not read its answer.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderMap, HeaderValue, Version, header};
use hyper::body::{Frame, Incoming, SizeHint};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::front::Front;
use crate::caller::Peer;

/// Settings with which every connection is served.
#[derive(Clone)]
pub(super) struct Connections {
    front: Arc<Front>,
    builder: Arc<Builder<TokioExecutor>>,
    /// Answers ask clients to connect anew, elsewhere if a balancer decides so.
    draining: CancellationToken,
    /// Connections end after the answers that are on their way.
    closing: CancellationToken,
    /// The tasks that serve connections.
    pub(super) tasks: TaskTracker,
}

impl Connections {
    /// Makes it with the front that answers requests. Once `draining` is cancelled, each connection
    /// ends with its next answer.
    pub(super) fn new(front: Front, draining: CancellationToken) -> Self {
        Self {
            front: Arc::new(front),
            builder: Arc::new(connection_builder()),
            draining,
            closing: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Ends every connection after the answers that are on their way, and waits for all of them.
    pub(super) async fn close(self) {
        self.closing.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// Serves one connection to its end.
    pub(super) async fn serve(
        self,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        peer: Peer,
    ) {
        let activity = Activity::new();
        // HTTP/2 has no `Connection` header (RFC 9113 section 8.2.2); there GOAWAY ends the whole
        // connection.
        let leaving = self.closing.child_token();
        let requests = Arc::new(ConnectionRequests {
            front: self.front,
            draining: self.draining,
            leave: leaving.clone(),
            activity: activity.clone(),
        });
        let app = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let working = requests.activity.working();
            let requests = Arc::clone(&requests);
            async move { requests.answer(request, working).await }
        });
        let stream = IdleTimeout {
            inner: stream,
            stalled: None,
            activity: activity.clone(),
        };
        let connection = self.builder.serve_connection(TokioIo::new(stream), app);
        let mut connection = pin!(connection.into_owned());
        let mut stalled = pin!(activity.stalled());
        let mut is_leaving = false;
        // The connection itself comes first: the others have something to say once in its life.
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => {
                    if let Err(error) = ended {
                        tracing::debug!("a connection ended early: {error}");
                    }
                    return;
                }
                () = leaving.cancelled(), if !is_leaving => {
                    is_leaving = true;
                    connection.as_mut().graceful_shutdown();
                }
                () = &mut stalled => {
                    tracing::debug!("nothing moves on a connection any more; it is ended");
                    return;
                }
            }
        }
    }
}

/// State of all requests of a connection.
struct ConnectionRequests {
    front: Arc<Front>,
    draining: CancellationToken,
    /// Ends this connection after its answers.
    leave: CancellationToken,
    activity: Activity,
}

impl ConnectionRequests {
    async fn answer(
        &self,
        request: hyper::Request<Incoming>,
        working: Working,
    ) -> Result<hyper::Response<Body>, Infallible> {
        let is_odd = has_odd_coding(request.headers());
        let is_multiplexed = request.version() == Version::HTTP_2;
        let mut response = self.front.answer(request).await?;
        let is_draining = self.draining.is_cancelled();
        if is_draining && is_multiplexed {
            self.leave.cancel();
        } else if is_odd || is_draining {
            response
                .headers_mut()
                .insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        let response = response.map(|body| self.activity.watch(body));
        drop(working);
        Ok(response)
    }
}

/// Returns true if a proxy before this server may have seen another end of the body than hyper;
/// then the bytes after it must not be read as a request (RFC 9112 section 6.1). hyper itself
/// closes the connection if there is a length beside the coding.
fn has_odd_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    codings.next().is_some_and(|coding| {
        codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked")
    })
}

/// Bytes of bodies that a client may send over HTTP/2 before anybody reads them (RFC 9113 section
/// 6.9.2): its token may still be checked.
const HTTP2_WINDOW: u32 = 65_535;

fn connection_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    // [`Activity::stalled`] ends a connection whose client takes too long for headers, without a
    // timer for each request.
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(None)
        // The largest head, as over HTTP/2, and what a connection holds of a body.
        .max_buf_size(64 << 10);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(64 << 10)
        .initial_connection_window_size(HTTP2_WINDOW)
        .initial_stream_window_size(HTTP2_WINDOW)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

/// Time for which a connection may be without a request with complete headers.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for which an answer may make no progress. Streams that wait for changes send a comment
/// every 15 s.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(1);

/// The bytes from which writes are a part of an answer, and not frames that HTTP/2 sends by itself.
const MIN_PROGRESS_BYTES: usize = 4 << 10;

/// Activity of a connection.
#[derive(Clone)]
struct Activity(Arc<Mutex<ActivityState>>);

struct ActivityState {
    /// Requests that are being worked on: their own limits of time hold.
    working: usize,
    /// Answers that are on their way.
    answering: usize,
    moved: Instant,
    /// Bytes since then.
    written: usize,
}

impl Activity {
    fn new() -> Self {
        Self(Arc::new(Mutex::new(ActivityState {
            working: 0,
            answering: 0,
            moved: Instant::now(),
            written: 0,
        })))
    }

    fn change(&self, change: impl FnOnce(&mut ActivityState)) {
        let mut state = self.0.lock();
        state.moved = Instant::now();
        state.written = 0;
        change(&mut state);
    }

    /// The client has taken some bytes: what hyper holds of an answer is on its way after the
    /// answer's end as well.
    fn wrote(&self, count: usize) {
        let mut state = self.0.lock();
        state.written += count;
        if state.written >= MIN_PROGRESS_BYTES {
            state.moved = Instant::now();
            state.written = 0;
        }
    }

    /// A request has come; it is worked on until the value is dropped.
    fn working(&self) -> Working {
        self.change(|state| state.working += 1);
        Working(self.clone())
    }

    /// The body of an answer, watched on its way.
    fn watch(&self, body: Body) -> Body {
        self.change(|state| state.answering += 1);
        Body::new(Watched {
            body,
            activity: self.clone(),
        })
    }

    /// Waits until there was no progress for too long.
    async fn stalled(&self) {
        loop {
            let end = {
                let state = self.0.lock();
                let timeout = if state.answering > 0 {
                    ANSWER_TIMEOUT
                } else {
                    IDLE_TIMEOUT
                };
                (state.working == 0).then(|| state.moved + timeout)
            };
            match end {
                Some(end) if end <= Instant::now() => return,
                Some(end) => sleep_until(end).await,
                // Work in progress ends by itself; the end need not be noticed at once.
                None => sleep_until(Instant::now() + IDLE_TIMEOUT).await,
            }
        }
    }
}

/// A request that is being worked on.
struct Working(Activity);

impl Drop for Working {
    fn drop(&mut self) {
        self.0.change(|state| state.working -= 1);
    }
}

struct Watched {
    body: Body,
    activity: Activity,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if polled.is_ready() {
            self.activity.change(|_| {});
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.activity.change(|state| state.answering -= 1);
    }
}

/// Time within which a client must take [`MIN_READ_BYTES`] bytes of what waits for it.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// Less than this within the time is next to nothing.
const MIN_READ_BYTES: usize = 16 << 10;

/// Ends a connection with an error if the peer takes nothing of what is written.
struct IdleTimeout<S> {
    inner: S,
    /// While a write waits, and what was taken since.
    stalled: Option<(Pin<Box<Sleep>>, usize)>,
    activity: Activity,
}

impl<S> IdleTimeout<S> {
    fn waits<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let (timer, _) = self
            .stalled
            .get_or_insert_with(|| (Box::pin(sleep(READ_TIMEOUT)), 0));
        timer
            .as_mut()
            .poll(context)
            .map(|()| Err(io::ErrorKind::TimedOut.into()))
    }

    fn wrote(
        &mut self,
        written: Poll<io::Result<usize>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(Ok(count)) = written else {
            return if written.is_pending() {
                self.waits(context)
            } else {
                written
            };
        };
        self.activity.wrote(count);
        if let Some((_, taken)) = &mut self.stalled {
            *taken += count;
            if *taken >= MIN_READ_BYTES {
                self.stalled = None;
            }
        }
        written
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write(context, buffer);
        self.wrote(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.inner).poll_write_vectored(context, buffers);
        self.wrote(written, context)
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

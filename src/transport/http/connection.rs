//! One connection of a client: how hyper serves it, and when it is ended although it is open.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Version, header};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::activity::{Activity, Working};
use super::front::Front;
use super::idle_timeout::IdleTimeout;
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
        let Self {
            front,
            builder,
            draining,
            closing,
            tasks: _,
        } = self;
        let activity = Activity::new();
        // HTTP/2 has no `Connection` header (RFC 9113 section 8.2.2); there GOAWAY ends the whole
        // connection.
        let leaving = closing.child_token();
        let requests = Arc::new(ConnectionRequests {
            front,
            draining,
            leave: leaving.clone(),
            activity: activity.clone(),
        });
        let app = service_fn(move |mut request: hyper::Request<Incoming>| {
            request.extensions_mut().insert(peer);
            let working = requests.activity.working();
            let requests = Arc::clone(&requests);
            async move { requests.answer(request, working).await }
        });
        let connection = builder
            .serve_connection(
                TokioIo::new(IdleTimeout::new(stream, activity.clone())),
                app,
            )
            .into_owned();
        let mut connection = pin!(connection);
        let mut is_leaving = false;
        // The connection itself comes first: the others have something to say once in its life.
        let ended = async {
            loop {
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => return ended,
                    () = leaving.cancelled(), if !is_leaving => {
                        is_leaving = true;
                        connection.as_mut().graceful_shutdown();
                    }
                }
            }
        };
        tokio::select! {
            biased;
            ended = ended => if let Err(error) = ended {
                tracing::debug!("a connection ended early: {error}");
            },
            () = activity.stalled() => tracing::debug!("nothing moves on a connection any more; it is ended"),
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

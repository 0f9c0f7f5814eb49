//! One connection of a client: how hyper serves it, and when it is ended although it is open.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::{HeaderMap, HeaderValue, header};
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::Watcher;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};

use super::activity::Activity;
use super::idle_timeout::IdleTimeout;
use super::limits::Peer;

/// How long a client may take to send the headers of a request, idle time on a kept connection included.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);

/// What every connection is served with.
#[derive(Clone)]
pub(super) struct Connections {
    app: TowerToHyperService<Router>,
    builder: Arc<Builder<TokioExecutor>>,
    /// Whether anybody asks where a request came from.
    knows_peers: bool,
}

impl Connections {
    /// With a router.
    pub(super) fn new(router: Router, knows_peers: bool) -> Self {
        Self {
            app: TowerToHyperService::new(router),
            builder: Arc::new(connection_builder()),
            knows_peers,
        }
    }

    /// Serves one connection to its end.
    pub(super) async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer, watcher: Watcher) {
        let Self { app, builder, knows_peers } = self;
        let activity = Activity::new();
        let seen = activity.clone();
        let app = service_fn(move |mut request: hyper::Request<Incoming>| {
            if knows_peers {
                request.extensions_mut().insert(peer);
            }
            let is_last = has_odd_coding(request.headers());
            let (seen, working) = (seen.clone(), seen.working());
            let answered = app.call(request);
            async move {
                let mut response = answered.await?;
                if is_last {
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                }
                let response = response.map(|body| seen.watch(body));
                drop(working);
                Ok::<_, std::convert::Infallible>(response)
            }
        });
        let connection = builder
            .serve_connection(TokioIo::new(IdleTimeout::new(stream, activity.clone())), app)
            .into_owned();
        tokio::select! {
            ended = watcher.watch(connection) => if let Err(error) = ended {
                tracing::debug!("a connection ended early: {error}");
            },
            () = activity.stalled() => tracing::debug!("nothing moves on a connection any more; it is ended"),
        }
    }
}

/// Whether something before us may have seen another end of the body than hyper: then nothing behind it must be taken for a
/// request (RFC 9112 section 6.1). hyper itself closes the connection where there is a length beside the coding.
fn has_odd_coding(headers: &HeaderMap) -> bool {
    let mut codings = headers.get_all(header::TRANSFER_ENCODING).iter();
    codings
        .next()
        .is_some_and(|coding| codings.next().is_some() || !coding.as_bytes().eq_ignore_ascii_case(b"chunked"))
}

fn connection_builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(64 << 10)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    builder
}

//! MCP over streamable HTTP at `/mcp`, with `/healthz` beside it.
//!
//! Without sessions and with JSON answers: any replica can answer any request, nothing is kept between two of them, and
//! an answer is one write. Only where a person is asked before calls do older clients get a session, because the question
//! has to find its way back to them. hyper is driven here rather than by `axum::serve`, which sets no timer, so that its time limit
//! on headers would never strike.

pub(crate) mod activity;
pub(crate) mod host;
pub(crate) mod idle_timeout;
pub(crate) mod limits;
pub(crate) mod sessions;
pub(crate) mod tls;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::TryStreamExt;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use url::Url;

use self::activity::Activity;
pub(crate) use self::host::Allowed;
use self::idle_timeout::IdleTimeout;
pub(crate) use self::limits::Limits;
use self::limits::Peer;
use self::sessions::Sessions;
pub(crate) use self::tls::Tls;
pub(crate) use super::auth::AccessOptions;
pub(crate) use super::auth::jwt::OauthOptions;
pub(crate) use super::auth::static_token::StaticToken;
use super::auth::{self, Authenticate, jwt};
use super::state::ServerState;
use super::{McpServer, jsonrpc, tool_list};
use crate::json;
use crate::spec::media_type::essence;

/// How long a client may take to send the headers of a request, idle time on a kept connection included.
const HEADER_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a TLS handshake may take.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(15);
/// The largest request: 4 MiB.
const MAX_REQUEST_BYTES: usize = 4 << 20;
/// How long calls in flight are waited for at the end.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(35);

/// How long nothing is accepted when no file is left.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(50);
/// How long the last answers may take to be written.
const LAST_WRITE_TIMEOUT: Duration = Duration::from_millis(500);

/// What an operator sets about clients.
#[derive(Debug, Clone, Default)]
pub struct HttpOptions {
    /// Who may ask besides loopback.
    pub allowed: Allowed,
    /// How they prove who they are.
    pub access: AccessOptions,
    /// How much they may ask for.
    pub limits: Limits,
    /// TLS, unless something before us does it.
    pub tls: Option<Tls>,
}

impl HttpOptions {
    /// `https` where there is TLS.
    #[must_use]
    pub fn scheme(&self) -> &'static str {
        if self.tls.is_some() { "https" } else { "http" }
    }
}

/// Serves on a listener until `stop` is cancelled; then takes no new request and answers those in flight. `client` asks an
/// OAuth issuer for its keys.
///
/// # Errors
/// Where the listener breaks.
pub async fn serve(
    listener: TcpListener,
    server: McpServer,
    options: &HttpOptions,
    client: Option<reqwest::Client>,
    stop: CancellationToken,
) -> io::Result<()> {
    let streams = CancellationToken::new();
    let calls: TaskTracker = server.calls().clone();
    let ending = server.live.ending.clone();
    let scheme = options.scheme();
    let own = Url::parse(&format!("{scheme}://{}/mcp", listener.local_addr()?)).ok();
    let resource = options.access.public_url.clone().or(own);
    let gate = Authenticate::new(&options.access, options.limits.rate, resource, client, &stop);
    let tls = options.tls.as_ref().map(|tls| tls.watch(&stop));
    let connections = Connections {
        knows_peers: gate.is_some(),
        app: TowerToHyperService::new(router(server, options.allowed.clone(), gate, streams.clone())),
        builder: Arc::new(builder()),
    };
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(options.limits.connections));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.map_err(io::Error::other)?,
        };
        let (stream, peer) = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => (stream, Peer(peer.ip())),
                Err(error) if is_transient(&error) => {
                    // Without a file for it, the connection stays where it is: asking again at once would only burn time.
                    if is_exhausted(&error) {
                        tokio::time::sleep(EXHAUSTED_PAUSE).await;
                    }
                    continue;
                }
                Err(error) => return Err(error),
            },
        };
        // Without it every answer that takes two writes waits for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let connections = connections.clone();
        let acceptor = tls.as_ref().map(|tls| TlsAcceptor::from(Arc::clone(&tls.borrow())));
        let watcher = graceful.watcher();
        tokio::spawn(async move {
            match acceptor {
                None => connections.serve(stream, peer, watcher).await,
                Some(acceptor) => match tokio::time::timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
                    Ok(Ok(stream)) => connections.serve(stream, peer, watcher).await,
                    Ok(Err(error)) => tracing::debug!("a TLS handshake failed: {error}"),
                    Err(_) => tracing::debug!("a TLS handshake took too long"),
                },
            }
            drop(place);
        });
    }
    drop(listener);
    ending.cancel();
    drain_connections(graceful, &calls, &streams).await;
    Ok(())
}

/// What every connection is served with.
#[derive(Clone)]
struct Connections {
    app: TowerToHyperService<Router>,
    builder: Arc<Builder<TokioExecutor>>,
    /// Whether anybody asks where a request came from.
    knows_peers: bool,
}

impl Connections {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static, peer: Peer, watcher: Watcher) {
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

fn builder() -> Builder<TokioExecutor> {
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

/// Lets every connection finish its answer. Streams that only wait for changes would never end by themselves: once no call
/// is in flight any more, and its answer had time to leave, they are ended.
async fn drain_connections(graceful: GracefulShutdown, calls: &TaskTracker, streams: &CancellationToken) {
    calls.close();
    let finished = graceful.shutdown();
    tokio::pin!(finished);
    let answered = async {
        if tokio::time::timeout(DRAIN_TIMEOUT, calls.wait()).await.is_err() {
            tracing::warn!("calls were still in flight after {} s and are given up", DRAIN_TIMEOUT.as_secs());
        }
        tokio::time::sleep(LAST_WRITE_TIMEOUT).await;
    };
    tokio::select! {
        () = &mut finished => return,
        () = answered => streams.cancel(),
    }
    let _ = tokio::time::timeout(LAST_WRITE_TIMEOUT, finished).await;
}

/// Binds the address.
///
/// # Errors
/// A port that is taken, an address that is not ours.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Errors of `accept` that concern one connection, or pass when others end.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock
    ) || is_exhausted(error)
}

/// ENFILE and EMFILE: no file is left, in the system or in the process.
fn is_exhausted(error: &io::Error) -> bool {
    cfg!(unix) && matches!(error.raw_os_error(), Some(23 | 24))
}

fn router(server: McpServer, allowed: Allowed, gate: Option<Arc<Authenticate>>, streams: CancellationToken) -> Router {
    let with_sessions = server.confirmation.is_some();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(with_sessions)
        .with_json_response(true)
        .with_cancellation_token(streams)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        // `guard` has judged Host and Origin already, and more strictly.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let (ready, known) = (server.clone(), server.clone());
    let live = Arc::clone(&server.live);
    let router = if with_sessions {
        let sessions = Arc::<Sessions>::default();
        let mcp = StreamableHttpService::new(move || Ok(server.of_session()), Arc::clone(&sessions.manager), config);
        Router::new()
            .route_service("/mcp", mcp)
            .layer(middleware::from_fn_with_state(sessions, sessions::limit))
    } else {
        Router::new().route_service(
            "/mcp",
            StreamableHttpService::new(move || Ok(server.clone()), Arc::new(NeverSessionManager::default()), config),
        )
    };
    let mut router = router.layer(middleware::from_fn_with_state(live, splice_list));
    if let Some(gate) = gate.as_ref().filter(|gate| gate.depends_on_tool()) {
        router = router.layer(middleware::from_fn_with_state((Arc::clone(gate), known), auth::demand_scope));
    }
    router = router.layer(middleware::from_fn(read_body));
    if let Some(gate) = gate {
        let metadata = get(auth::metadata).with_state(Arc::clone(&gate));
        router = router
            .layer(middleware::from_fn_with_state(gate, auth::authenticate))
            .route(jwt::WELL_KNOWN, metadata.clone())
            .route(&format!("{}/{{*path}}", jwt::WELL_KNOWN), metadata);
    }
    router
        .layer(middleware::from_fn_with_state(Arc::new(allowed), guard))
        // Outside of the guard: a probe asks by address, and learns nothing but that we are alive.
        .route(
            "/healthz",
            get(move || async move {
                if ready.is_ready() {
                    (StatusCode::OK, "ok\n")
                } else {
                    (StatusCode::SERVICE_UNAVAILABLE, "loading\n")
                }
            }),
        )
}

async fn guard(State(allowed): State<Arc<Allowed>>, request: Request, next: Next) -> Response {
    if let Err(why) = allowed.check(request.headers(), request.uri()) {
        tracing::warn!("refused: {why}");
        return (StatusCode::FORBIDDEN, format!("Forbidden: {why}\n")).into_response();
    }
    let origin = request
        .headers()
        .get(header::ORIGIN)
        .filter(|origin| origin.to_str().is_ok_and(|origin| allowed.names_origin(origin)))
        .cloned();
    let Some(origin) = origin else { return next.run(request).await };
    // Pages that were allowed by name may ask first, and may read the answer (Fetch standard, CORS protocol).
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        next.run(request).await
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, GET, DELETE"));
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("www-authenticate, mcp-session-id, retry-after"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Reads a body within limits of size and time, and answers what is no message as JSON-RPC asks, which rmcp would call an
/// unsupported media type.
async fn read_body(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let declared = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > MAX_REQUEST_BYTES) {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let bytes = match tokio::time::timeout(BODY_TIMEOUT, to_bytes(body, MAX_REQUEST_BYTES)).await {
        Err(_) => return StatusCode::REQUEST_TIMEOUT.into_response(),
        Ok(Err(_)) => return StatusCode::PAYLOAD_TOO_LARGE.into_response(),
        Ok(Ok(bytes)) => bytes,
    };
    if parts.method == Method::POST {
        let content_type = parts
            .headers
            .get(header::CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default();
        // Compared as a whole: a web form must not be able to call, and `application/jsonx` is something else.
        if essence(content_type) != "application/json" {
            return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json\n").into_response();
        }
        if !is_message(&bytes) || !json::is_plain(&bytes) {
            return unreadable(&bytes);
        }
        parts
            .headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    // The type was right, so it is the message that rmcp cannot read.
    if response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        return unreadable(&bytes);
    }
    response
}

fn unreadable(bytes: &Bytes) -> Response {
    let answer = jsonrpc::answer_unreadable(bytes);
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Puts the list of tools into an answer that has room for it: one JSON body of a known length, or, in a session, an event
/// of a stream, which is one piece of its body.
async fn splice_list(State(live): State<Arc<ServerState>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let is = |wanted: &[u8]| content_type.as_ref().is_some_and(|value| value.as_bytes().starts_with(wanted));
    if is(b"text/event-stream") {
        return response.map(|body| {
            let spliced = move |bytes: Bytes| tool_list::splice(&bytes, &live).map_or(bytes, Bytes::from);
            Body::from_stream(body.into_data_stream().map_ok(spliced))
        });
    }
    if !is(b"application/json") {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    match tool_list::pieces(&bytes, &live) {
        None => Response::from_parts(parts, Body::from(bytes)),
        Some((length, pieces)) => {
            parts.headers.insert(header::CONTENT_LENGTH, length.into());
            let pieces = pieces.map(Ok::<_, std::convert::Infallible>);
            Response::from_parts(parts, Body::from_stream(futures_util::stream::iter(pieces)))
        }
    }
}

/// One JSON object: batches left the protocol with 2025-06-18.
fn is_message(bytes: &Bytes) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

//! MCP over streamable HTTP at `/mcp`, with `/healthz` beside it.
//!
//! Without sessions and with JSON answers: any replica can answer any request, nothing is kept between two of them, and
//! an answer is one write. Only where a person is asked before calls do older clients get a session, because the question
//! has to find its way back to them. hyper is driven here rather than by `axum::serve`, which sets no timer, so that its time limit
//! on headers would never strike.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use futures_util::TryStreamExt;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::Value;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use super::guard::Allowed;
use super::{McpServer, splice};

/// How long a client may take to send the headers of a request, idle time on a kept connection included.
const HEADER_PATIENCE: Duration = Duration::from_secs(30);
/// How long a client may take to send a body.
const BODY_PATIENCE: Duration = Duration::from_secs(15);
/// The largest request: 4 MiB.
const LARGEST_REQUEST: usize = 4 << 20;
/// Connections at the same time; more wait to be accepted.
const MOST_CONNECTIONS: usize = 1024;
/// Sessions at the same time, where there are any.
const MOST_SESSIONS: usize = 1000;
/// How long calls in flight are waited for at the end.
const DRAIN_PATIENCE: Duration = Duration::from_secs(35);

/// How long the last answers may take to be written.
const LAST_WRITE_PATIENCE: Duration = Duration::from_millis(500);

/// Serves on a listener until `stop` is cancelled; then takes no new request and answers those in flight.
///
/// # Errors
/// Where the listener breaks.
pub async fn serve(listener: TcpListener, server: McpServer, allowed: Allowed, stop: CancellationToken) -> io::Result<()> {
    let streams = CancellationToken::new();
    let calls: TaskTracker = server.calls().clone();
    let app = TowerToHyperService::new(router(server, allowed, streams.clone()));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_PATIENCE);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(100)
        .max_header_list_size(64 << 10)
        .keep_alive_interval(Some(Duration::from_secs(30)));
    let builder = Arc::new(builder);
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let place = tokio::select! {
            () = stop.cancelled() => break,
            place = Arc::clone(&places).acquire_owned() => place.map_err(io::Error::other)?,
        };
        let stream = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                Err(error) if is_passing(&error) => continue,
                Err(error) => return Err(error),
            },
        };
        // Without it every answer that takes two writes waits for the client's delayed acknowledgement.
        let _ = stream.set_nodelay(true);
        let (builder, app, watcher) = (Arc::clone(&builder), app.clone(), graceful.watcher());
        tokio::spawn(async move {
            let connection = builder.serve_connection(TokioIo::<TcpStream>::new(stream), app).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!("a connection ended early: {error}");
            }
            drop(place);
        });
    }
    drop(listener);
    drain(graceful, &calls, &streams).await;
    Ok(())
}

/// Lets every connection finish its answer. Streams that only wait for changes would never end by themselves: once no call
/// is in flight any more, and its answer had time to leave, they are ended.
async fn drain(graceful: GracefulShutdown, calls: &TaskTracker, streams: &CancellationToken) {
    calls.close();
    let finished = graceful.shutdown();
    tokio::pin!(finished);
    let answered = async {
        if tokio::time::timeout(DRAIN_PATIENCE, calls.wait()).await.is_err() {
            tracing::warn!("calls were still in flight after {} s and are given up", DRAIN_PATIENCE.as_secs());
        }
        tokio::time::sleep(LAST_WRITE_PATIENCE).await;
    };
    tokio::select! {
        () = &mut finished => return,
        () = answered => streams.cancel(),
    }
    let _ = tokio::time::timeout(LAST_WRITE_PATIENCE, finished).await;
}

/// Binds the address.
///
/// # Errors
/// A port that is taken, an address that is not ours.
pub async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    TcpListener::bind(address).await
}

/// Errors of `accept` that concern one connection, or pass when others end.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted, WouldBlock};
    matches!(
        error.kind(),
        ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted | WouldBlock
    ) || matches!(error.raw_os_error(), Some(23 | 24))
}

fn router(server: McpServer, allowed: Allowed, streams: CancellationToken) -> Router {
    let with_sessions = server.confirmation.is_some();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(with_sessions)
        .with_json_response(true)
        .with_cancellation_token(streams)
        .with_max_request_body_bytes(LARGEST_REQUEST)
        // `guard` has judged Host and Origin already, and more strictly.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    let ready = server.clone();
    let list = server.list.clone();
    let serve = move || Ok(server.clone());
    let router = if with_sessions {
        let sessions = Arc::new(LocalSessionManager::default());
        let mcp = StreamableHttpService::new(serve, Arc::clone(&sessions), config);
        Router::new()
            .route_service("/mcp", mcp)
            .layer(middleware::from_fn_with_state(sessions, limit_sessions))
    } else {
        Router::new().route_service(
            "/mcp",
            StreamableHttpService::new(serve, Arc::new(NeverSessionManager::default()), config),
        )
    };
    router
        .layer(middleware::from_fn_with_state(list, splice_list))
        .layer(middleware::from_fn(read_body))
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

/// Sessions cost memory for as long as they are not closed: beyond a number, new ones have to wait.
async fn limit_sessions(State(sessions): State<Arc<LocalSessionManager>>, request: Request, next: Next) -> Response {
    if request.headers().contains_key("mcp-session-id") || sessions.sessions.read().await.len() < MOST_SESSIONS {
        return next.run(request).await;
    }
    let (parts, body) = request.into_parts();
    // It was read and checked before; what it says decides, and no header that the client may add.
    let Ok(bytes) = to_bytes(body, LARGEST_REQUEST).await else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let message = serde_json::from_slice::<Value>(&bytes).unwrap_or_default();
    if message.get("method").and_then(Value::as_str) == Some("initialize") {
        return (
            StatusCode::SERVICE_UNAVAILABLE,
            [(header::RETRY_AFTER, "30")],
            "too many sessions; end one, or try again later\n",
        )
            .into_response();
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
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
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static("content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id"),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

/// Reads a body within limits of size and time, and answers what is no JSON as JSON-RPC asks (-32700), which rmcp would
/// call an unsupported media type.
async fn read_body(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let declared = parts
        .headers
        .get(header::CONTENT_LENGTH)
        .and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if declared.is_some_and(|length| length > LARGEST_REQUEST) {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    }
    let bytes = match tokio::time::timeout(BODY_PATIENCE, to_bytes(body, LARGEST_REQUEST)).await {
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
        if !content_type
            .split(';')
            .next()
            .unwrap_or_default()
            .trim()
            .eq_ignore_ascii_case("application/json")
        {
            return (StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json\n").into_response();
        }
        if !is_message(&bytes) {
            let body =
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error: the body is not one JSON-RPC message"}}"#;
            return (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], body).into_response();
        }
        parts
            .headers
            .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    next.run(Request::from_parts(parts, Body::from(bytes))).await
}

/// Puts the list of tools into an answer that has room for it: one JSON body of a known length, or, in a session, an event
/// of a stream, which is one piece of its body.
async fn splice_list(State(list): State<splice::List>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let is = |wanted: &[u8]| content_type.as_ref().is_some_and(|value| value.as_bytes().starts_with(wanted));
    if is(b"text/event-stream") {
        return response.map(|body| {
            let spliced = move |bytes: Bytes| splice::splice(&bytes, &list).map_or(bytes, Bytes::from);
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
    match splice::splice(&bytes, &list) {
        None => Response::from_parts(parts, Body::from(bytes)),
        Some(spliced) => {
            parts.headers.remove(header::CONTENT_LENGTH);
            Response::from_parts(parts, Body::from(spliced))
        }
    }
}

/// One JSON object: batches left the protocol with 2025-06-18.
fn is_message(bytes: &Bytes) -> bool {
    bytes.trim_ascii_start().first() == Some(&b'{') && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
}

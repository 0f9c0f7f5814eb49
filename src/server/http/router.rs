//! The routes, and the layers that a request passes before rmcp reads it.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};
use futures_util::TryStreamExt;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use super::body::{MAX_REQUEST_BYTES, receive_body};
use super::cors::guard;
use super::front::Front;
use super::health::Health;
use super::host::Allowed;
use super::page::{ServedPage, serve_page};
use super::refused_calls::observe_refused_calls;
use super::sessions::{self, Sessions};
use crate::json;
use crate::observe;
use crate::proxy::caller::AuthenticatedClient;
use crate::server::auth::{self, ClientAdmission, jwt};
use crate::server::{McpServer, jsonrpc, tool_list};
use crate::spec::media_type::essence;

/// Everything that answers requests to a server; `streams` ends what only waits for changes.
pub(super) fn front(
    server: McpServer,
    allowed: Allowed,
    admission: Option<Arc<ClientAdmission>>,
    page: Option<Arc<ServedPage>>,
    streams: CancellationToken,
) -> Front {
    let allowed = Arc::new(allowed);
    let behind_body = behind_body(&server, admission.as_ref(), streams);
    let router = router(&server, Arc::clone(&allowed), admission.clone(), page, behind_body.clone());
    Front::new(server, allowed, admission, router, behind_body)
}

/// The endpoint, for requests that were let in, with their bodies in memory.
fn behind_body(server: &McpServer, admission: Option<&Arc<ClientAdmission>>, streams: CancellationToken) -> Router {
    let with_sessions = server.asks_before_calls();
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(with_sessions)
        .with_json_response(true)
        .with_cancellation_token(streams)
        .with_max_request_body_bytes(MAX_REQUEST_BYTES)
        // `guard` has judged Host and Origin already, and more strictly.
        .disable_allowed_hosts()
        .disable_allowed_origins();
    // A fallback of our own is under the layers, as the default one is not: who may not ask learns of no path.
    let mut router = Router::new().fallback(|| async { StatusCode::NOT_FOUND });
    let sessions = Arc::<Sessions>::default();
    for endpoint in server.apis().endpoints().iter() {
        let (own, config) = (server.at(endpoint), config.clone());
        router = if with_sessions {
            let mcp = StreamableHttpService::new(move || Ok(own.of_session()), Arc::clone(&sessions.manager), config);
            router.route_service(&endpoint.view.path, mcp)
        } else {
            let mcp = StreamableHttpService::new(move || Ok(own.clone()), Arc::new(NeverSessionManager::default()), config);
            router.route_service(&endpoint.view.path, mcp)
        };
    }
    if with_sessions {
        router = router.layer(middleware::from_fn_with_state(sessions, sessions::limit_sessions));
    }
    router = router.layer(middleware::from_fn_with_state(server.clone(), splice_list));
    if let Some(admission) = admission.filter(|admission| admission.depends_on_tool()) {
        let judges = (Arc::clone(admission), Arc::clone(server.apis()));
        router = router.layer(middleware::from_fn_with_state(judges, auth::scope_check::demand_scope));
    }
    router = router.layer(middleware::from_fn(check_message));
    if observe::is_on() {
        router = router.layer(middleware::from_fn(observe_refused_calls));
    }
    router
}

/// All routes, with all that a request passes before.
fn router(
    server: &McpServer,
    allowed: Arc<Allowed>,
    admission: Option<Arc<ClientAdmission>>,
    page: Option<Arc<ServedPage>>,
    behind_body: Router,
) -> Router {
    let health = Health::new(server.clone());
    let mut router = behind_body
        .layer(middleware::from_fn(read_body))
        .layer(middleware::from_fn_with_state(server.clone(), refuse_unknown_path));
    if let Some(admission) = admission {
        let metadata = get(auth::metadata).with_state(Arc::clone(&admission));
        router = router
            .layer(middleware::from_fn_with_state(admission, auth::authenticate))
            .route(jwt::WELL_KNOWN, metadata.clone())
            .route(&format!("{}/{{*path}}", jwt::WELL_KNOWN), metadata);
    }
    if let Some(page) = page {
        // Before authentication: a browser cannot send a token by an address. Behind the guard, because a rebound name could read it.
        router = router
            .route("/", any(|| async { StatusCode::NOT_FOUND }))
            .layer(middleware::from_fn_with_state(page, serve_page));
    }
    router
        .layer(middleware::from_fn_with_state(allowed, guard))
        // Outside of the guard: a probe asks by address, and learns nothing but whether to send requests.
        .merge(health.routes())
}

/// Answers a path at which nothing is, before the body is read.
async fn refuse_unknown_path(State(server): State<McpServer>, request: Request, next: Next) -> Response {
    match server.apis().endpoints().at(request.uri().path()) {
        Some(_) => next.run(request).await,
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Reads a body within limits of size and time.
async fn read_body(request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    match receive_body(&parts.headers, body).await {
        Ok(bytes) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(status) => status.into_response(),
    }
}

/// Answers a body that is not a message as JSON-RPC asks, which rmcp would call an unsupported media type. The body has been read.
async fn check_message(request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
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
        if let Some(answer) = jsonrpc::answer_repeated_member(&bytes) {
            return malformed(answer);
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
    malformed(jsonrpc::answer_unreadable(bytes))
}

fn malformed(answer: String) -> Response {
    (StatusCode::BAD_REQUEST, [(header::CONTENT_TYPE, "application/json")], answer).into_response()
}

/// Puts the list of tools into an answer that has room for it: one JSON body of a known length, or, in a session, an event
/// of a stream, which is one piece of its body.
async fn splice_list(State(server): State<McpServer>, request: Request, next: Next) -> Response {
    let endpoint = server.apis().endpoints().at(request.uri().path());
    let state = endpoint.map_or(&server.state, |endpoint| &endpoint.state);
    let scopes = request
        .extensions()
        .get::<AuthenticatedClient>()
        .map(|client| client.scopes.clone());
    let response = next.run(request).await;
    let content_type = response.headers().get(header::CONTENT_TYPE).cloned();
    let is = |wanted: &[u8]| content_type.as_ref().is_some_and(|value| value.as_bytes().starts_with(wanted));
    if is(b"text/event-stream") {
        let state = Arc::clone(state);
        return response.map(|body| {
            let spliced = move |bytes: Bytes| {
                let answer = tool_list::splice(&bytes, &state, scopes.as_ref()).or_else(|| tool_list::refuse_unspliced(&bytes));
                answer.map_or(bytes, Bytes::from)
            };
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
    match tool_list::pieces(&bytes, state, scopes.as_ref()) {
        None => {
            let refused = tool_list::refuse_unspliced(&bytes);
            if let Some(refused) = &refused {
                parts.headers.insert(header::CONTENT_LENGTH, refused.len().into());
            }
            Response::from_parts(parts, refused.map_or(Body::from(bytes), Body::from))
        }
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

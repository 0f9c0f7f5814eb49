//! What a request meets first. A call in plain form is answered here, in the task of its connection; everything else goes to the
//! router, and comes to rmcp there.
//!
//! A call passes the same checks on both ways, in the same order: Host and Origin, authentication and rate, the body's size and
//! time, the headers that MCP defines, scopes. What fails one of them, or is unusual in any other way, takes the long way, which
//! says what is wrong. That is decided before anything is counted or begun.

use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version, header};
use axum::response::IntoResponse;
use futures_util::FutureExt;
use http::request::Parts;
use hyper::body::Incoming;
use hyper::service::Service as _;
use hyper_util::service::TowerToHyperService;

use super::body::receive_body;
use super::host::Allowed;
use crate::server::McpServer;
use crate::server::auth::Authenticate;
use crate::server::calls::message::{CallMessage, LEGACY_VERSIONS, MODERN_VERSION};
use crate::server::calls::{caller_of, write_answer};
use crate::server::catalog::ResolvedCall;
use crate::spec::media_type::essence;

/// The path of the endpoint.
pub(super) const MCP_PATH: &str = "/mcp";
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const MCP_METHOD: HeaderName = HeaderName::from_static("mcp-method");
const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
/// How the headers begin that repeat arguments of a call.
const PARAMETER_PREFIX: &str = "mcp-param-";
/// How a header's value begins that is encoded.
const ENCODED_PREFIX: &[u8] = b"=?";

/// The two ways of a request.
#[derive(Clone)]
pub(super) struct Front {
    /// All routes, with everything that a request passes.
    router: TowerToHyperService<Router>,
    /// `None` where there is no endpoint of MCP.
    plain: Option<PlainWay>,
}

/// The short way of calls in plain form.
#[derive(Clone)]
struct PlainWay {
    server: McpServer,
    allowed: Arc<Allowed>,
    gate: Option<Arc<Authenticate>>,
    /// What comes behind the body: for requests that were let in already.
    behind_body: TowerToHyperService<Router>,
}

impl Front {
    /// Routes without an endpoint of MCP.
    pub(super) fn without_calls(router: Router) -> Self {
        Self {
            router: TowerToHyperService::new(router),
            plain: None,
        }
    }

    /// All routes; `behind_body` is what requests come to that were let in, with their bodies in memory.
    pub(super) fn new(
        server: McpServer,
        allowed: Arc<Allowed>,
        gate: Option<Arc<Authenticate>>,
        router: Router,
        behind_body: Router,
    ) -> Self {
        Self {
            router: TowerToHyperService::new(router),
            plain: Some(PlainWay {
                server,
                allowed,
                gate,
                behind_body: TowerToHyperService::new(behind_body),
            }),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let Some(plain) = self.plain.as_ref().filter(|plain| plain.may_be_plain_call(&request)) else {
            return self.router.call(request).await;
        };
        // A panic is a bug of ours; over HTTP/2 it must not end the requests of the same connection.
        let answered = AssertUnwindSafe(plain.answer_post(request)).catch_unwind().await;
        answered.unwrap_or_else(|_| {
            tracing::error!("a request ended in a panic; please report this");
            Ok(StatusCode::INTERNAL_SERVER_ERROR.into_response())
        })
    }
}

impl PlainWay {
    /// Whether the head of a request is that of a call in plain form, from a host that is allowed.
    fn may_be_plain_call(&self, request: &Request<Incoming>) -> bool {
        let (uri, headers) = (request.uri(), request.headers());
        request.method() == Method::POST
            && matches!(request.version(), Version::HTTP_11 | Version::HTTP_2)
            && uri.path() == MCP_PATH
            && uri.query().is_none()
            && has_plain_headers(headers)
            && self.allowed.check(headers, uri).is_ok()
    }

    async fn answer_post(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        // An end waits for it from here on.
        let in_flight = self.server.calls().token();
        let (mut parts, body) = request.into_parts();
        if let Some(gate) = &self.gate
            && let Err(refusal) = gate.admit(&mut parts).await
        {
            return Ok(*refusal);
        }
        let bytes = match receive_body(&parts.headers, body).await {
            Ok(bytes) => bytes,
            Err(status) => return Ok(status.into_response()),
        };
        if let Some((id, call, is_modern)) = self.plain_call(&parts, &bytes) {
            return Ok(answer_plain_call(id, call, is_modern, &parts).await);
        }
        drop(in_flight);
        self.behind_body.call(Request::from_parts(parts, Body::from(bytes))).await
    }

    /// The call of a message in plain form, where nothing stands in its way.
    fn plain_call<'b>(&self, parts: &Parts, bytes: &'b Bytes) -> Option<(&'b str, ResolvedCall, bool)> {
        let CallMessage {
            id,
            name,
            arguments,
            is_modern,
        } = CallMessage::read(bytes)?;
        let fits = if is_modern {
            names_call(&parts.headers, name)
        } else {
            // Where there are sessions, a client of the handshake era has one.
            !self.server.asks_before_calls() && names_legacy_version(&parts.headers)
        };
        if !fits {
            return None;
        }
        let call = self.server.plain_call(name, arguments)?;
        let is_allowed = |gate: &Arc<Authenticate>| gate.allows(&parts.extensions, &call);
        self.gate.as_ref().is_none_or(is_allowed).then_some((id, call, is_modern))
    }
}

async fn answer_plain_call(id: &str, call: ResolvedCall, is_modern: bool, parts: &Parts) -> Response<Body> {
    let result = call.call(caller_of(Some(parts))).await;
    match write_answer(&result, id, is_modern) {
        Ok(answer) => {
            let mut response = Response::new(Body::from(answer));
            response
                .headers_mut()
                .insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
            response
        }
        Err(error) => {
            tracing::error!("an answer cannot be written: {error}");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}

/// Whether the headers are those of a client that sends one JSON message and takes both kinds of answers, outside of a session.
/// A page of another origin may have to be told that it may read the answer.
fn has_plain_headers(headers: &HeaderMap) -> bool {
    let is_unusual = |name: &HeaderName| {
        *name == header::ORIGIN || *name == SESSION_ID || *name == LAST_EVENT_ID || name.as_str().starts_with(PARAMETER_PREFIX)
    };
    let text = |name: HeaderName| sole(headers, name).and_then(|value| value.to_str().ok());
    !headers.keys().any(is_unusual)
        && text(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json" || essence(kind) == "application/json")
        && text(header::ACCEPT).is_some_and(|accept| accept.contains("application/json") && accept.contains("text/event-stream"))
}

/// The value of a header that is there once.
fn sole(headers: &HeaderMap, name: HeaderName) -> Option<&HeaderValue> {
    let mut values = headers.get_all(name).iter();
    values.next().filter(|_| values.next().is_none())
}

/// Whether the headers say what a message of 2026-07-28 says: its version, its method and its tool.
fn names_call(headers: &HeaderMap, tool: &str) -> bool {
    let is = |name, value: &str| sole(headers, name).is_some_and(|header| header.as_bytes() == value.as_bytes());
    is(PROTOCOL_VERSION, MODERN_VERSION)
        && is(MCP_METHOD, "tools/call")
        && is(MCP_NAME, tool)
        && !tool.as_bytes().starts_with(ENCODED_PREFIX)
}

/// Whether the headers name no version, or one of the handshake era.
fn names_legacy_version(headers: &HeaderMap) -> bool {
    !headers.contains_key(PROTOCOL_VERSION)
        || sole(headers, PROTOCOL_VERSION).is_some_and(|version| LEGACY_VERSIONS.iter().any(|known| version == known))
}

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
use crate::observe;
use crate::server::McpServer;
use crate::server::auth::{self, ClientAdmission};
use crate::server::calls::message::{CallMessage, LEGACY_VERSIONS, MODERN_VERSION};
use crate::server::calls::{caller_of, write_answer};
use crate::server::catalog::ResolvedCall;
use crate::server::endpoints::paths::MCP_PATH;
use crate::server::observed;
use crate::server::state::EndpointState;
use crate::spec::media_type::essence;

const MCP_NAME: HeaderName = HeaderName::from_static("mcp-name");
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
    admission: Option<Arc<ClientAdmission>>,
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
        admission: Option<Arc<ClientAdmission>>,
        router: Router,
        behind_body: Router,
    ) -> Self {
        Self {
            router: TowerToHyperService::new(router),
            plain: Some(PlainWay {
                server,
                allowed,
                admission,
                behind_body: TowerToHyperService::new(behind_body),
            }),
        }
    }

    /// Answers a request.
    pub(super) async fn answer(&self, request: Request<Incoming>) -> Result<Response<Body>, Infallible> {
        let plain = self.plain.as_ref().and_then(|plain| Some((plain, plain.plain_head(&request)?)));
        let Some((plain, head)) = plain else {
            return self.router.call(request).await;
        };
        // A panic is a bug of ours; over HTTP/2 it must not end the requests of the same connection.
        let answered = AssertUnwindSafe(plain.answer_post(request, head)).catch_unwind().await;
        answered.unwrap_or_else(|_| {
            tracing::error!("a request ended in a panic; please report this");
            Ok(StatusCode::INTERNAL_SERVER_ERROR.into_response())
        })
    }
}

impl PlainWay {
    /// The head of a request that may be a call in plain form, from a host that is allowed.
    fn plain_head(&self, request: &Request<Incoming>) -> Option<PlainHead> {
        let (uri, headers) = (request.uri(), request.headers());
        let is_call = request.method() == Method::POST
            && matches!(request.version(), Version::HTTP_11 | Version::HTTP_2)
            && uri.query().is_none()
            && self.state_at(uri.path()).is_some();
        let head = is_call.then(|| PlainHead::read(headers)).flatten()?;
        self.allowed.check(headers, uri).is_ok().then_some(head)
    }

    /// What is served at a path, where that is an endpoint.
    fn state_at(&self, path: &str) -> Option<&EndpointState> {
        if path == MCP_PATH {
            return Some(self.server.state());
        }
        let endpoint = self.server.apis().endpoints().at(path)?;
        Some(&endpoint.state)
    }

    async fn answer_post(&self, request: Request<Incoming>, head: PlainHead) -> Result<Response<Body>, Infallible> {
        // An end waits for it from here on.
        let in_flight = self.server.calls().token();
        let (mut parts, body) = request.into_parts();
        if let Some(admission) = &self.admission
            && let Err(refusal) = admission.admit(&mut parts).await
        {
            return Ok(*refusal);
        }
        let bytes = match receive_body(&parts.headers, body).await {
            Ok(bytes) => bytes,
            Err(status) => return Ok(status.into_response()),
        };
        if let Some((id, call, is_modern)) = self.plain_call(head, &parts, &bytes) {
            return Ok(answer_plain_call(id, call, is_modern, &parts).await);
        }
        drop(in_flight);
        self.behind_body.call(Request::from_parts(parts, Body::from(bytes))).await
    }

    /// The call of a message in plain form, where nothing stands in its way.
    fn plain_call<'b>(&self, head: PlainHead, parts: &Parts, bytes: &'b Bytes) -> Option<(&'b str, ResolvedCall, bool)> {
        // The audit log and traces tell more of a client than a plain call is read for.
        if observe::names_traces() {
            return None;
        }
        let CallMessage {
            id,
            name,
            arguments,
            is_modern,
        } = CallMessage::read(bytes)?;
        let fits = if is_modern {
            head == PlainHead::ModernCall && names_tool(&parts.headers, name)
        } else {
            // Where there are sessions, a client of the handshake era has one.
            !self.server.asks_before_calls() && head == PlainHead::Legacy
        };
        if !fits {
            return None;
        }
        let call = self
            .server
            .plain_call(self.state_at(parts.uri.path())?, name, arguments, auth::scopes_of(Some(parts)))?;
        let is_allowed = |admission: &Arc<ClientAdmission>| admission.allows(&parts.extensions, &call);
        self.admission.as_ref().is_none_or(is_allowed).then_some((id, call, is_modern))
    }
}

async fn answer_plain_call(id: &str, call: ResolvedCall, is_modern: bool, parts: &Parts) -> Response<Body> {
    let caller = caller_of(Some(parts));
    let result = observed::observe_plain_call(call, caller, || observed::plain_arrival(parts, is_modern)).await;
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

/// What the headers of a call in plain form say of its message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PlainHead {
    /// No version, or one of the handshake era.
    Legacy,
    /// The version 2026-07-28, and the method `tools/call`.
    ModernCall,
}

impl PlainHead {
    /// Reads the headers of a client that sends one JSON message and takes both kinds of answers, outside of a session. `None` where
    /// they are others: a page of another origin may have to be told that it may read the answer.
    fn read(headers: &HeaderMap) -> Option<Self> {
        let (mut kind, mut accept, mut version, mut method) = (None, None, None, None);
        for (name, value) in headers {
            let known = match name.as_str() {
                "content-type" => &mut kind,
                "accept" => &mut accept,
                "mcp-protocol-version" => &mut version,
                "mcp-method" => &mut method,
                "origin" | "mcp-session-id" | "last-event-id" => return None,
                other if other.starts_with(PARAMETER_PREFIX) => return None,
                _ => continue,
            };
            if known.replace(value).is_some() {
                return None;
            }
        }
        let (kind, accept) = (kind?.to_str().ok()?, accept?.to_str().ok()?);
        let is_usual = essence(kind) == "application/json" && accept.contains("application/json") && accept.contains("text/event-stream");
        let Some(version) = version else {
            return is_usual.then_some(Self::Legacy);
        };
        if LEGACY_VERSIONS.iter().any(|known| version == known) {
            return is_usual.then_some(Self::Legacy);
        }
        let is_call = version == MODERN_VERSION && method.is_some_and(|method| method == "tools/call");
        (is_usual && is_call).then_some(Self::ModernCall)
    }
}

/// Whether `Mcp-Name` is there once, and names the tool.
fn names_tool(headers: &HeaderMap, tool: &str) -> bool {
    let mut values = headers.get_all(MCP_NAME).iter();
    let is_named = values.next().is_some_and(|value| value.as_bytes() == tool.as_bytes());
    is_named && values.next().is_none() && !tool.as_bytes().starts_with(ENCODED_PREFIX)
}

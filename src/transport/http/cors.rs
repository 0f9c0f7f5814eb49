//! Admission of web pages: checks `Host` and `Origin`, and lets pages that are allowed by name read
//! the answer (Fetch standard, CORS protocol).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::host::Allowed;
use crate::observe;

/// The layer that applies [`guard`].
pub(super) async fn guard_routes(
    State(allowed): State<Arc<Allowed>>,
    request: Request,
    next: Next,
) -> Response {
    guard(&allowed, request, |request| next.run(request)).await
}

/// Refuses other hosts and origins, and answers a preflight request; all other requests are
/// answered by `answer`.
pub(super) async fn guard<B, F>(
    allowed: &Allowed,
    request: http::Request<B>,
    answer: impl FnOnce(http::Request<B>) -> F,
) -> Response
where
    F: Future<Output = Response>,
{
    let origin = match judge_origin(allowed, request.headers(), request.uri()) {
        Ok(origin) => origin,
        Err(refusal) => return *refusal,
    };
    let Some(origin) = origin else {
        return answer(request).await;
    };
    let mut response = if request.method() == Method::OPTIONS {
        StatusCode::NO_CONTENT.into_response()
    } else {
        answer(request).await
    };
    allow_reading(origin, response.headers_mut());
    response
}

/// Checks the `Origin` of a request, and returns it if it was allowed by name.
///
/// # Errors
/// The refusal of another host or origin.
fn judge_origin(
    allowed: &Allowed,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<Option<HeaderValue>, Box<Response>> {
    refuse_foreign(allowed, headers, uri)?;
    let origin = headers.get(header::ORIGIN);
    let is_named = |origin: &&HeaderValue| {
        origin
            .to_str()
            .is_ok_and(|origin| allowed.names_origin(origin))
    };
    Ok(origin.filter(is_named).cloned())
}

/// Refuses a request of another host or origin.
pub(super) fn refuse_foreign(
    allowed: &Allowed,
    headers: &HeaderMap,
    uri: &Uri,
) -> Result<(), Box<Response>> {
    allowed.check(headers, uri).map_err(|why| {
        tracing::warn!("refused: {why}");
        observe::refused_request("host_or_origin");
        Box::new((StatusCode::FORBIDDEN, format!("Forbidden: {why}\n")).into_response())
    })
}

/// Lets pages of an origin read a response.
fn allow_reading(origin: HeaderValue, headers: &mut HeaderMap) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(header::VARY, HeaderValue::from_static("origin"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_METHODS,
        HeaderValue::from_static("POST, GET, DELETE"),
    );
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("www-authenticate, mcp-session-id, retry-after"),
    );
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, traceparent, tracestate",
        ),
    );
    headers.insert(
        header::ACCESS_CONTROL_MAX_AGE,
        HeaderValue::from_static("600"),
    );
}

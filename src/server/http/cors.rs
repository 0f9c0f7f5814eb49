//! Which pages may ask: `Host` and `Origin` are judged, and pages that are allowed by name may read the answer (Fetch standard,
//! CORS protocol).

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::host::Allowed;
use crate::observe;

/// The layer: refuses other hosts and origins, and answers a preflight request.
pub(super) async fn guard(State(allowed): State<Arc<Allowed>>, request: Request, next: Next) -> Response {
    if let Err(why) = allowed.check(request.headers(), request.uri()) {
        tracing::warn!("refused: {why}");
        observe::refused_request("host_or_origin");
        return (StatusCode::FORBIDDEN, format!("Forbidden: {why}\n")).into_response();
    }
    let origin = request
        .headers()
        .get(header::ORIGIN)
        .filter(|origin| origin.to_str().is_ok_and(|origin| allowed.names_origin(origin)))
        .cloned();
    let Some(origin) = origin else { return next.run(request).await };
    // A preflight request is answered here.
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
        HeaderValue::from_static(
            "content-type, accept, authorization, mcp-protocol-version, mcp-method, mcp-name, mcp-session-id, traceparent, tracestate",
        ),
    );
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

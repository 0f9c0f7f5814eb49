//! Calls that are refused because of their headers, their metadata or their form, before they come to the handler. Each is told to
//! those who observe calls, as every other call is.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::body::MAX_REQUEST_BYTES;
use crate::server::jsonrpc;
use crate::server::observed::{self, HandledCall};

/// The layer in front of all that reads messages, where somebody is told of calls. The body is in memory already.
pub(super) async fn observe_refused_calls(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (mut parts, body) = request.into_parts();
    let Ok(bytes) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let arrival = observed::early_arrival(&parts);
    let handled = HandledCall::default();
    parts.extensions.insert(handled.clone());
    let response = next.run(Request::from_parts(parts, Body::from(bytes.clone()))).await;
    if response.status().is_client_error() && !handled.is_handled() && jsonrpc::names_call(&bytes) {
        observed::observe_unreadable_call(|| arrival);
    }
    response
}

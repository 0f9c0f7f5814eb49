//! Calls that rmcp refuses because of their headers or their metadata, before they come to its handler. Each is told to those who
//! observe calls, as every other call is.

use axum::body::{Body, to_bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::body::MAX_REQUEST_BYTES;
use crate::observe::call::CallObservation;
use crate::observe::outcome::CallOutcome;
use crate::server::jsonrpc::CalledMessage;
use crate::server::observed::{self, HandledCall};

/// The layer in front of rmcp, where somebody is told of calls. The body is in memory already.
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
    if response.status().is_client_error() && !handled.is_handled() && is_call(&bytes) {
        CallObservation::begin(|| arrival).end(CallOutcome::InvalidMessage, |_| {});
    }
    response
}

/// Whether it is a call as far as its text goes.
fn is_call(message: &[u8]) -> bool {
    let message = serde_json::from_slice::<CalledMessage<'_>>(message);
    message.is_ok_and(|message| message.is_call() && message.parameters().is_some())
}

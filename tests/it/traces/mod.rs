//! Traces of OpenTelemetry: the spans of calls, their parents, and collectors that do not take
//! them.

mod collectors;
mod contexts;
mod propagation;
mod settings;
mod spans;

use serde_json::{Value, json};

use crate::support::{SpecFile, Upstream, reply};

/// A trace and a span of a client.
pub const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
pub const SPAN: &str = "00f067aa0ba902b7";

/// `traceparent` of that span, recorded.
pub fn traceparent() -> String {
    format!("00-{TRACE}-{SPAN}-01")
}

pub fn document() -> SpecFile {
    SpecFile::with_paths(&json!({
        "/things/{id}": {"get": {"operationId": "getThing", "parameters": [
            {"name": "id", "in": "path", "required": true, "schema": {"type": "string"}},
            {"name": "traceparent", "in": "header", "schema": {"type": "string"}},
            {"name": "q", "in": "query", "schema": {"type": "string"}},
        ]}},
        "/broken": {"get": {"operationId": "breakIt"}},
        "/slow": {"delete": {"operationId": "slow"}},
    }))
}

/// An API that fails at `/broken` and never answers `/slow`.
pub fn api() -> Upstream {
    Upstream::start(Box::new(|request| {
        if request.line.contains("/slow") {
            let (_never, wait) = std::sync::mpsc::channel::<()>();
            let _ = wait.recv_timeout(crate::support::TIMEOUT);
        }
        let status = if request.line.contains("/broken") {
            503
        } else {
            200
        };
        reply(
            status,
            &["Content-Type: application/json"],
            br#"{"secret":"the-reply-itself"}"#,
        )
    }))
}

/// The parameters of a call with this `_meta`.
pub fn call_with_meta(tool: &str, arguments: &Value, meta: &Value) -> Value {
    json!({"name": tool, "arguments": arguments, "_meta": meta})
}

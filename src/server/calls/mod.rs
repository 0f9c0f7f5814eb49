//! What calls have in common, in whichever way they came: through rmcp, or in plain form past it.

pub(crate) mod message;
#[cfg(test)]
mod proptests;

use std::sync::LazyLock;

use http::request::Parts;
use serde_json::json;

use crate::api::Caller;
use crate::proxy::ToolResult;
use crate::proxy::caller::client_key::Peer;

/// Who calls: the client of an HTTP request, or the only one of a transport without requests of its own.
pub(crate) fn caller_of(parts: Option<&Parts>) -> Caller {
    let Some(parts) = parts else { return Caller::default() };
    Caller {
        client: parts.extensions.get().cloned(),
        address: parts.extensions.get::<Peer>().map(|Peer(address)| *address),
        headers: parts.headers.clone(),
        progress: None,
    }
}

pub(crate) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// How a result names the server.
pub(crate) fn server_info() -> serde_json::Value {
    json!({ "name": "openapi-mcp", "version": env!("CARGO_PKG_VERSION") })
}

/// The answer to a request, whose id is given as JSON.
pub(crate) fn write_answer(result: &ToolResult, id: &str, is_modern: bool) -> serde_json::Result<Vec<u8>> {
    /// The envelope, and the names of members.
    const FRAMING_BYTES: usize = 256;
    let mut out = Vec::with_capacity(FRAMING_BYTES + result.estimated_bytes());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":");
    // 2026-07-28: results SHOULD name the server in `_meta`. Older clients do not know the key.
    result.write_json(is_modern, is_modern.then(|| SERVER_META.as_str()), &mut out)?;
    out.push(b'}');
    Ok(out)
}

/// The member of `_meta` that names the server.
static SERVER_META: LazyLock<String> = LazyLock::new(|| format!("\"{SERVER_INFO_KEY}\":{}", server_info()));

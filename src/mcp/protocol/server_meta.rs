//! The server in the `_meta` of results (2026-07-28: results SHOULD name it). Older clients do not
//! know the key.

use rmcp::model::Implementation;
use serde_json::{Value, json};

pub(crate) const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";

/// Returns the name and version of the server for results, which need no icon.
pub(crate) fn short_info(info: &Implementation) -> Value {
    json!({ "name": info.name, "version": info.version })
}

/// The member of `_meta` that names the server, as text.
pub(crate) fn server_meta(info: &Implementation) -> String {
    format!("\"{SERVER_INFO_KEY}\":{}", short_info(info))
}

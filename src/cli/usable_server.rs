//! Whether `serve` would know where to send requests, asked by commands that only look at a document.

use crate::api::Api;
use crate::config::ApiConfig;
use crate::error::Failure;
use crate::spec::operation::server::{self, ServerError};

/// Why operations have no server that requests can be sent to; nothing where all have one, or where the settings name it.
pub(crate) fn missing_server(config: &ApiConfig, api: &Api) -> Option<ServerError> {
    if config.base_url.is_some() || config.tenants.is_some() || config.mock {
        return None;
    }
    let document = api.document();
    let root = server::root_url(&server::declared_servers(document), document.url.as_ref(), &config.server);
    root.err()
        .filter(|_| api.iter().any(|offered| offered.operation.servers.is_empty()))
}

/// Refuses a document of which `serve` could call no operation. What some operations miss is returned.
///
/// # Errors
/// [`Failure::Server`], as from `serve`.
pub(crate) fn require_server(config: &ApiConfig, api: &Api) -> Result<Option<ServerError>, Failure> {
    match missing_server(config, api) {
        Some(error) if api.iter().all(|offered| offered.operation.servers.is_empty()) => Err(Failure::Server(error)),
        found => Ok(found),
    }
}

//! The endpoints as protected resources (RFC 9728): each has a URL, metadata and an audience of its
//! own.

use std::collections::HashMap;

use url::Url;

use super::jwt::{OauthOptions, ProtectedResource, WELL_KNOWN};
use crate::mcp::endpoints::served_apis::{MCP_PATH, McpEndpoint, ServedApis};

/// The endpoints as protected resources, by their paths.
#[derive(Default)]
pub(super) struct Resources {
    pub(super) by_path: HashMap<String, ProtectedResource>,
}

impl Resources {
    /// Makes the resources of a server whose endpoint with all APIs has the URL `whole`. The URL of
    /// each other endpoint is that one with the rest of its path behind it, also if a proxy adds a
    /// prefix to the path.
    pub(super) fn new(whole: &Url, options: &OauthOptions, apis: &ServedApis) -> Self {
        let resource = |endpoint: &McpEndpoint| {
            let mut url = whole.clone();
            let rest = endpoint.view.path.strip_prefix(MCP_PATH);
            if let Some(rest) = rest.filter(|rest| !rest.is_empty()) {
                url.set_path(&format!("{}{rest}", whole.path().trim_end_matches('/')));
            }
            let about = apis.about(endpoint);
            let mut resource = ProtectedResource {
                reads_only: endpoint.view.reads_only,
                serves_one_api: endpoint.api.is_some(),
                name: about.title.clone(),
                documentation: about.website.clone(),
                ..ProtectedResource::new(url, options)
            };
            for (index, slot) in apis.slots.iter().enumerate() {
                if endpoint.api.is_none_or(|api| api == index) {
                    let own = &mut resource.tool_scopes;
                    own.read.extend(slot.scopes.read.iter().cloned());
                    own.write.extend(slot.scopes.write.iter().cloned());
                    let rules = slot.access_scopes.iter().cloned();
                    resource.rule_scopes.extend(rules);
                }
            }
            (endpoint.view.path.to_string(), resource)
        };
        let endpoints = apis.endpoints.iter();
        Self {
            by_path: endpoints.map(|endpoint| resource(endpoint)).collect(),
        }
    }

    /// The endpoint at a path. What asks for a path that is none is judged like a request for the
    /// whole.
    pub(super) fn at(&self, path: &str) -> Option<&ProtectedResource> {
        let own = self.by_path.get(path);
        own.or_else(|| self.by_path.get(MCP_PATH))
    }

    /// The endpoint whose metadata are at a path: at the well-known path with that of the endpoint
    /// behind it (RFC 9728 section 3.1), as clients see it, and as this server sees it. The
    /// well-known path alone is that of the whole.
    pub(super) fn with_metadata_at(&self, path: &str) -> Option<&ProtectedResource> {
        let rest = path.strip_prefix(WELL_KNOWN)?;
        if rest.is_empty() {
            return self.by_path.get(MCP_PATH);
        }
        let mut all = self.by_path.values();
        let as_seen_by_clients = all.find(|resource| resource.metadata_path() == path);
        as_seen_by_clients.or_else(|| self.by_path.get(rest))
    }
}

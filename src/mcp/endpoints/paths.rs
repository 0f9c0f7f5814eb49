//! The endpoints, and their paths.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use crate::api::about::ApiName;
use crate::mcp::endpoint_state::EndpointState;
use crate::mcp::visible::View;

/// The path of the endpoint with all APIs; those of single APIs are below it.
pub(crate) const MCP_PATH: &str = "/mcp";

/// One endpoint.
pub(crate) struct McpEndpoint {
    pub(crate) view: View,
    /// The API that it serves, by its place; all without one.
    pub(crate) api: Option<usize>,
    pub(crate) state: Arc<EndpointState>,
    /// True if the endpoint is served in search mode, once that is decided.
    pub(crate) searches: OnceLock<bool>,
}

/// All endpoints of a server.
pub(crate) struct Endpoints {
    all: Vec<Arc<McpEndpoint>>,
    by_path: HashMap<Arc<str>, usize>,
}

impl Endpoints {
    /// Those for APIs of these names; `state` makes the state of each, by the index of its API.
    pub(crate) fn new(
        names: &[Option<ApiName>],
        state: impl Fn(Option<usize>) -> EndpointState,
    ) -> Self {
        let is_single = matches!(names, [None]);
        let mut all = Vec::new();
        let mut add = |path: String, api: Option<usize>, names_apis: bool| {
            for (path, reads_only) in [(path.clone(), false), (format!("{path}/readonly"), true)] {
                let view = View {
                    path: path.into(),
                    names_apis,
                    reads_only,
                };
                let state = Arc::new(state(api));
                let searches = OnceLock::new();
                all.push(Arc::new(McpEndpoint {
                    view,
                    api,
                    state,
                    searches,
                }));
            }
        };
        add(MCP_PATH.into(), is_single.then_some(0), !is_single);
        for (index, name) in names.iter().enumerate() {
            if let Some(name) = name {
                add(format!("{MCP_PATH}/{name}"), Some(index), false);
            }
        }
        let paths = all.iter().enumerate();
        let by_path = paths
            .map(|(index, endpoint)| (Arc::clone(&endpoint.view.path), index))
            .collect();
        Self { all, by_path }
    }

    /// The endpoint at a path, compared byte for byte: a proxy in front may guard by path, and must
    /// not be got round by another spelling.
    pub(crate) fn at(&self, path: &str) -> Option<&Arc<McpEndpoint>> {
        self.by_path
            .get(path)
            .and_then(|index| self.all.get(*index))
    }

    /// All, the one with all APIs first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<McpEndpoint>> {
        self.all.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_byte_for_byte() {
        let names = ["pets", "bills"].map(|name| ApiName::parse(name).ok());
        let endpoints = Endpoints::new(&names, |_| EndpointState::pending(None));
        for path in [
            "/mcp",
            "/mcp/readonly",
            "/mcp/pets",
            "/mcp/pets/readonly",
            "/mcp/bills",
            "/mcp/bills/readonly",
        ] {
            assert_eq!(
                endpoints
                    .at(path)
                    .map(|endpoint| endpoint.view.path.as_ref()),
                Some(path)
            );
        }
        for path in [
            "/mcp/",
            "/mcp/%70ets",
            "/mcp/pets/",
            "/MCP/pets",
            "//mcp",
            "/mcp//pets",
            "/mcp/Pets",
            "/mcp/readonly/pets",
            "/mcp/./pets",
            "mcp",
            "",
        ] {
            assert!(endpoints.at(path).is_none(), "{path}");
        }
        assert_eq!(
            Endpoints::new(&[None], |_| EndpointState::pending(None))
                .iter()
                .count(),
            2
        );
    }
}

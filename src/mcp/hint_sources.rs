//! Sources of the hints of a tool, which the web page requests for each selected tool. The method is not one of MCP, so `tools/list` does
//! not get longer for clients.

use rmcp::model::{CustomResult, ErrorData};
use serde_json::{Value, json};

use super::catalog::Catalog;
use crate::annotate::Hint;
use crate::proxy::caller::client_grant::ClientGrant;

/// The method; its only parameter is `tool`, the name of a tool.
pub(super) const METHOD: &str = "openapi-mcp/hint_sources";

/// Returns the source of each hint of a tool that the client may list.
///
/// # Errors
/// An error if there is no such tool.
pub(super) fn answer_hint_sources(catalog: &Catalog, parameters: Option<&Value>, granted: &ClientGrant) -> Result<CustomResult, ErrorData> {
    let name = parameters.and_then(|parameters| parameters.get("tool")?.as_str());
    let rights = catalog.rights(granted);
    let seen = catalog.visible(&rights);
    let found = name.and_then(|name| {
        let (api, tool) = seen.find(name)?;
        api.shows(tool).then(|| api.api.offered(tool).hints)
    });
    let hints = found.ok_or_else(|| ErrorData::invalid_params("`tool` must be the name of a tool that is listed", None))?;
    let sources: Value = Hint::ALL
        .into_iter()
        .map(|hint| (hint.word().to_owned(), Value::from(hints.source(hint))))
        .collect();
    Ok(CustomResult::new(json!({ "sources": sources })))
}

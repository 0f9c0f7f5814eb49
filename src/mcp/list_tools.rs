//! `tools/list`: the list of tools in one page, because several clients read only the first.

use std::time::Duration;

use rmcp::model::{CacheScope, ErrorData, ListToolsResult, Tool};
use serde_json::Value;

use super::McpServer;
use super::connections::request_origin::RequestOrigin;
use super::protocol::answer::{McpRefusal, ToolList, invalid_parameters};
use super::protocol::message::RequestParameters;
use super::tool_list_stream::ListPieces;

/// The longest time for which clients may cache the list.
const LIST_TTL: Duration = Duration::from_mins(5);

impl McpServer {
    /// Lists the tools that the client may call.
    pub(super) async fn list_tools_of(
        &self,
        parameters: &RequestParameters,
        origin: &RequestOrigin,
    ) -> Result<ToolList, McpRefusal> {
        match parameters.rest.get("cursor") {
            None | Some(Value::Null) => {}
            Some(Value::String(_)) => {
                return Err(ErrorData::invalid_params(
                    "unknown cursor: the list has one page",
                    None,
                )
                .into());
            }
            _ => return Err(invalid_parameters("tools/list").into()),
        }
        let catalog = self.state.catalog_to_list().await?;
        let ttl = match self.state.reload {
            // What is missing may come at any time.
            _ if !catalog.is_decided() => Duration::ZERO,
            Some(reload) => reload.min(LIST_TTL),
            None => LIST_TTL,
        };
        let cache_scope = if catalog.depends_on_caller() {
            CacheScope::Private
        } else {
            CacheScope::Public
        };
        Ok(ToolList {
            tools: ListPieces::new(catalog, origin.caller.granted()),
            ttl,
            cache_scope,
        })
    }
}

impl ToolList {
    /// The list as rmcp has it: each tool as a tree.
    ///
    /// # Errors
    /// rmcp cannot read a tool.
    pub(super) fn into_result(self) -> Result<ListToolsResult, ErrorData> {
        let mut text = b"[".to_vec();
        self.tools.for_each(|piece| text.extend_from_slice(&piece));
        text.push(b']');
        let tools: Vec<Tool> = serde_json::from_slice(&text).map_err(|error| {
            ErrorData::internal_error(format!("the list of tools cannot be read: {error}"), None)
        })?;
        Ok(ListToolsResult::with_all_items(tools)
            .with_ttl_ms(u64::try_from(self.ttl.as_millis()).unwrap_or(u64::MAX))
            .with_cache_scope(self.cache_scope))
    }
}

//! What one endpoint serves: tools, under the names by which clients call them.

use std::sync::Arc;

use bytes::Bytes;
use rmcp::model::{CallToolResult, JsonObject, ServerConfig};

use crate::api::{Api, Caller, OfferedTool, OnMissingCredential, ToolIndex};
use crate::proxy::{Request, ToolResult};

/// The tools of an endpoint, and how its server introduces itself. It never changes: a changed document makes another one.
pub(crate) struct Catalog {
    api: Arc<Api>,
    config: ServerConfig,
}

/// A call of one operation. The tool's name and the arguments of a message are read once, into this value; the scope check, the
/// confirmation, the limits and the request all use it, so that no two of them can judge different calls.
#[derive(Clone)]
pub(crate) struct ResolvedCall {
    api: Arc<Api>,
    tool: ToolIndex,
    arguments: Option<JsonObject>,
}

impl Catalog {
    /// The tools of one API, under their own names.
    pub(crate) fn new(api: Arc<Api>, config: ServerConfig) -> Self {
        Self { api, config }
    }

    /// How the server introduces itself.
    pub(crate) fn config(&self) -> &ServerConfig {
        &self.config
    }

    /// All tools in the order in which they are listed, each as JSON.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.api.texts()
    }

    /// How many tools there are.
    pub(crate) fn tool_count(&self) -> usize {
        self.api.tools().len()
    }

    /// All tools as one text, separated by commas. It is shared: a client that reads slowly holds no list of its own.
    pub(crate) fn list(&self) -> Bytes {
        self.api.list().clone()
    }

    /// Whether there is no tool.
    pub(crate) fn is_empty(&self) -> bool {
        self.api.tools().is_empty()
    }

    /// The call that a message asks for; `None` where no tool has that name.
    pub(crate) fn resolve(&self, name: &str, arguments: Option<JsonObject>) -> Option<ResolvedCall> {
        Some(ResolvedCall {
            tool: self.api.find(name)?,
            api: Arc::clone(&self.api),
            arguments,
        })
    }

    /// The name nearest to one that no tool has.
    pub(crate) fn nearest(&self, name: &str) -> Option<&str> {
        self.api.nearest(name)
    }
}

impl ResolvedCall {
    /// The tool.
    pub(crate) fn offered(&self) -> OfferedTool<'_> {
        self.api.offered(self.tool)
    }

    /// The title of the API's document.
    pub(crate) fn api_title(&self) -> &str {
        self.api.document().title()
    }

    /// The arguments as the client gave them.
    pub(crate) fn arguments(&self) -> Option<&JsonObject> {
        self.arguments.as_ref()
    }

    /// The request that the call would make, without credentials, or the result that it would end in before anything is sent.
    pub(crate) fn prepare(&self, on_missing: OnMissingCredential) -> Result<Request, Box<CallToolResult>> {
        self.api.prepare_at(self.tool, self.arguments.clone(), on_missing)
    }

    /// Makes the call. Dropping the future ends the request.
    pub(crate) async fn call(self, caller: Caller<'_>) -> ToolResult {
        self.api.call_at(self.tool, self.arguments, caller).await
    }
}

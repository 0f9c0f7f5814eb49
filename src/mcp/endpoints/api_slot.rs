//! The facts about an API that are known before its document is read.

use std::sync::Arc;

use crate::annotate::TokenShare;
use crate::api::about::About;
use crate::api::name::ApiName;
use crate::caller::client_grant::ToolScopes;
use crate::mcp::meta_tools::ListOptions;

/// Facts about an API that are known before its document is read.
#[derive(Clone, Default)]
pub(crate) struct ApiSlot {
    /// Its name, if there are several.
    pub(crate) name: Option<ApiName>,
    /// What the operator says of it.
    pub(crate) about: About,
    /// True if its calls are answered from the examples of the document.
    pub(crate) is_mock: bool,
    /// Prefix of its tool names.
    pub(crate) prefix: String,
    /// Options of its list of tools.
    pub(crate) list: ListOptions,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) scopes: Arc<ToolScopes>,
    /// Scopes that some of its operations need by rules of `access`.
    pub(crate) access_scopes: Vec<String>,
    /// Shares of the tools that tokens with a name may call.
    pub(crate) shares: Arc<[TokenShare]>,
}

//! What is known of an API before its document is read.

use std::sync::Arc;

use crate::api::name::ApiName;
use crate::mcp::gates::ListOptions;
use crate::proxy::caller::scopes::ToolScopes;

/// What is known of an API before its document is read.
#[derive(Debug, Clone, Default)]
pub(crate) struct ApiSlot {
    /// Its name, where there are several.
    pub(crate) name: Option<ApiName>,
    /// What its tool names begin with.
    pub(crate) prefix: String,
    /// How its list of tools is made.
    pub(crate) list: ListOptions,
    /// Scopes that its calls need besides those of the whole server.
    pub(crate) scopes: Arc<ToolScopes>,
}

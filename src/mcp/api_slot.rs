//! The facts about an API that are known before its document is read: what the operator says of it,
//! who may call it, and `--tools`, the choice of its list.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::annotate::options::MAX_LIST_BYTES;
use crate::annotate::{Pattern, TokenShare};
use crate::api::about::{About, ApiName};
use crate::caller::client_grant::ToolScopes;
use crate::text::TYPICAL_BYTES_PER_TOKEN;

/// Facts about an API that are known before its document is read.
#[derive(Default)]
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
    pub(crate) scopes: ToolScopes,
    /// Scopes that some of its operations need by rules of `access`.
    pub(crate) access_scopes: Vec<String>,
    /// Shares of the tools that tokens with a name may call.
    pub(crate) shares: Arc<[TokenShare]>,
}

/// The operator's choice of a list.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListMode {
    /// No choice: every operation is a tool, unless the list is longer than any client takes
    #[default]
    #[value(skip)]
    #[serde(skip)]
    Unset,
    /// Every operation as a tool
    All,
    /// A few tools that search, describe and call the operations
    Search,
    /// search if the list would be longer than `max_list_tokens`, or than the client takes
    Auto,
}

/// Number of tokens above which `auto` means search.
const MAX_LIST_TOKENS: usize = 20_000;

/// Options of the list of tools.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// Choice of the list.
    pub(crate) mode: ListMode,
    /// Number of tokens above which `auto` means search.
    pub(crate) max_tokens: usize,
    /// Number of tools that the client takes.
    pub(crate) max_tools: Option<usize>,
    /// Operations that are listed in search mode as well.
    pub(crate) pins: Vec<Pattern>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            mode: ListMode::default(),
            max_tokens: MAX_LIST_TOKENS,
            max_tools: None,
            pins: Vec::new(),
        }
    }
}

impl ListOptions {
    /// Returns the longest list in which every operation is a tool, in bytes; `None` if there is no
    /// limit.
    pub(super) fn longest_list(&self) -> Option<usize> {
        match self.mode {
            ListMode::All => None,
            ListMode::Search => Some(0),
            ListMode::Auto => Some(self.max_tokens.saturating_mul(TYPICAL_BYTES_PER_TOKEN)),
            ListMode::Unset => Some(MAX_LIST_BYTES),
        }
    }
}

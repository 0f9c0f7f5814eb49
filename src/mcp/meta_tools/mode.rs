//! `--tools`: the choice between a list of all operations and a few meta-tools for them.

use serde::{Deserialize, Serialize};

use super::listing::listed_kinds;
use crate::annotate::Pattern;
use crate::annotate::options::MAX_LIST_BYTES;
use crate::mcp::visible::VisibleApis;
use crate::text::TYPICAL_BYTES_PER_TOKEN;

/// The operator's choice of a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
    /// Prefix of every name.
    pub(crate) prefix: String,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            mode: ListMode::default(),
            max_tokens: MAX_LIST_TOKENS,
            max_tools: None,
            pins: Vec::new(),
            prefix: String::new(),
        }
    }
}

impl ListOptions {
    /// Returns the longest list in which every operation is a tool, in bytes; `None` if there is no
    /// limit.
    fn longest_list(&self) -> Option<usize> {
        match self.mode {
            ListMode::All => None,
            ListMode::Search => Some(0),
            ListMode::Auto => Some(self.max_tokens.saturating_mul(TYPICAL_BYTES_PER_TOKEN)),
            ListMode::Unset => Some(MAX_LIST_BYTES),
        }
    }
}

/// Returns true if an endpoint is served in search mode, by the choice for each of its APIs: if one
/// is, all are. The list is only counted until it is too long.
pub(crate) fn decide(options: &[&ListOptions], all: &VisibleApis<'_>) -> bool {
    let max_bytes = options
        .iter()
        .filter_map(|options| options.longest_list())
        .min();
    // An API whose list was found to be too long has no input schemas to list.
    if max_bytes == Some(0) || all.apis.iter().any(|api| api.api.is_finished_on_use()) {
        return true;
    }
    let mut bytes = 0;
    let is_long = max_bytes.is_some_and(|max_bytes| {
        all.operations().any(|(_, _, offered)| {
            bytes += offered.json().len() + 1;
            bytes > max_bytes
        })
    });
    let auto = options
        .iter()
        .filter(|options| options.mode == ListMode::Auto);
    let max_tools = auto.filter_map(|options| options.max_tools).min();
    is_long
        || max_tools.is_some_and(|tools| {
            all.operations().count() + listed_kinds(all, false).count() > tools
        })
}

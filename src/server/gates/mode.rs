//! `--tools`: whether every operation is listed as a tool, or a few gates stand for all of them.

use crate::annotate::Pattern;
use crate::server::visible::VisibleApis;
use crate::text::TYPICAL_BYTES_PER_TOKEN;

/// What the operator says about the list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum ListMode {
    /// Every operation is a tool.
    #[default]
    All,
    /// A few tools search, describe and call the operations.
    Search,
    /// The one or the other, by the length of the list.
    Auto,
}

/// How the list of tools is made.
#[derive(Debug, Clone, Default)]
pub(crate) struct ListOptions {
    /// Whether every operation is listed.
    pub(crate) mode: ListMode,
    /// From how many tokens on `auto` means search.
    pub(crate) max_tokens: usize,
    /// How many tools the client takes.
    pub(crate) max_tools: Option<usize>,
    /// Operations that are listed in search mode as well.
    pub(crate) pins: Vec<Pattern>,
    /// What stands before every name.
    pub(crate) prefix: String,
}

/// Whether an endpoint is served in search mode, by what is said of each of its APIs: where one says so, all are. Under `auto`, the
/// list is only counted until it is too long.
#[must_use]
pub(crate) fn decide(options: &[&ListOptions], all: &VisibleApis<'_>) -> bool {
    if options.iter().any(|options| options.mode == ListMode::Search) {
        return true;
    }
    let auto = || options.iter().filter(|options| options.mode == ListMode::Auto);
    let Some(max_tokens) = auto().map(|options| options.max_tokens).min() else {
        return false;
    };
    let max_bytes = max_tokens.saturating_mul(TYPICAL_BYTES_PER_TOKEN);
    let mut bytes = 0;
    let is_long = all.operations().any(|(_, _, offered)| {
        bytes += offered.text.len() + 1;
        bytes > max_bytes
    });
    let max_tools = auto().filter_map(|options| options.max_tools).min();
    is_long || max_tools.is_some_and(|tools| all.operations().count() > tools)
}

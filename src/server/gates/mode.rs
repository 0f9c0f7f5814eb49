//! `--tools`: whether every operation is listed as a tool, or a few gates stand for all of them.

use crate::annotate::Pattern;
use crate::api::Api;
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
    pub(crate) most_tools: Option<usize>,
    /// Operations that are listed in search mode as well.
    pub(crate) pins: Vec<Pattern>,
    /// What stands before every name.
    pub(crate) prefix: String,
}

/// Whether the API is served in search mode. Under `auto`, the list is only counted until it is too long.
#[must_use]
pub(crate) fn decide(options: &ListOptions, api: &Api) -> bool {
    match options.mode {
        ListMode::All => false,
        ListMode::Search => true,
        ListMode::Auto => {
            let most = options.max_tokens.saturating_mul(TYPICAL_BYTES_PER_TOKEN);
            let mut bytes = 0;
            let is_long = api.texts().any(|text| {
                bytes += text.len() + 1;
                bytes > most
            });
            is_long || options.most_tools.is_some_and(|tools| api.tools().len() > tools)
        }
    }
}

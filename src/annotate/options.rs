//! The operator's settings for tools.

use std::sync::Arc;

use super::annotations::Hints;
use super::descriptions::DescriptionDetail;
use super::files::Files;
use super::layers::{AccessRule, Layers, Policy};
use super::names::NameOptions;
use super::output::OutputSchemas;
use super::selection::{Pattern, Selection, TokenShare};
use crate::spec::Operation;
use crate::spec::schema::SchemaOptions;

/// The operator's settings for tools.
#[derive(Debug, Clone, Default)]
pub struct AnnotateOptions {
    /// Names of tools.
    pub names: NameOptions,
    /// The operations that become tools.
    pub selection: Selection,
    /// The calls that a person must confirm.
    pub confirm: Confirm,
    /// The sources of hints and texts.
    pub layers: Layers,
    /// Rules of what callers of operations need.
    pub(crate) access: Vec<AccessRule>,
    /// Shares of the tools that tokens with a name may call.
    pub(crate) shares: Arc<[TokenShare]>,
    /// True if tools have an argument that filters their replies.
    pub filter: bool,
    /// Number of pages that a call may collect, unless a rule says otherwise; 0 offers no argument
    /// for it.
    pub collect_pages: usize,
    /// Detail of descriptions.
    pub describe: DescriptionDetail,
    /// Form of input schemas, and the limit of each.
    pub schemas: SchemaOptions,
    /// Forms in which files may be given.
    pub files: Files,
    /// The output schemas that are offered.
    pub output: OutputSchemas,
    /// Number of characters that a result may have, if tools declare it.
    pub(crate) max_result_chars: Option<usize>,
    /// The tools that are listed. The input schemas of the others are made on first use, once those
    /// made at the start take [`OUTPUT_BUDGET`].
    pub(crate) extent: ListExtent,
}

/// Size of the list in bytes up to which `auto` offers output schemas.
pub(crate) const OUTPUT_BUDGET: usize = 1 << 20;

/// The longest list of tools if the operator chose none: about 1.5 million tokens, more than any
/// client takes.
pub(crate) const MAX_LIST_BYTES: usize = 6 << 20;

/// The tools that are listed, as far as that is known before they are made.
#[derive(Debug, Clone, Default)]
pub(crate) enum ListExtent {
    /// All of them.
    #[default]
    All,
    /// Tools that match, and meta-tools that find and call the others.
    Pinned(Vec<Pattern>),
    /// All of them if the list takes at most [`MAX_LIST_BYTES`], else those that match.
    AllOrPinned(Vec<Pattern>),
}

impl AnnotateOptions {
    /// The policy of hints: the one that the operator names, else `strict` if destructive tools are
    /// left out or asked about, else `careful`.
    #[must_use]
    pub fn policy(&self) -> Policy {
        let by_settings = if self.holds_back_destructive() {
            Policy::Strict
        } else {
            Policy::Careful
        };
        self.layers.policy.unwrap_or(by_settings)
    }

    /// Returns true if destructive tools are left out or asked about.
    pub(crate) fn holds_back_destructive(&self) -> bool {
        self.selection.no_destructive || self.confirm.level == ConfirmLevel::Destructive
    }
}

/// The calls that a person must confirm: by the hints of the tool, and by patterns.
#[derive(Debug, Clone, Default)]
pub struct Confirm {
    /// Level by hints.
    pub level: ConfirmLevel,
    /// Tools that match one of these as well.
    pub patterns: Vec<Pattern>,
}

/// The tools whose calls a person must confirm, independent of their names.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfirmLevel {
    /// None.
    #[default]
    None,
    /// Tools that may change or remove what exists.
    Destructive,
    /// All that are not read-only.
    Write,
}

impl Confirm {
    /// The same for one of several APIs: a pattern may match nothing there.
    pub(crate) fn of_one_of_several(&self) -> Self {
        let patterns = self.patterns.iter().cloned();
        Self {
            level: self.level,
            patterns: patterns.map(Pattern::into_optional).collect(),
        }
    }

    /// Returns true if any call must be confirmed.
    pub(crate) fn is_on(&self) -> bool {
        self.level != ConfirmLevel::None || !self.patterns.is_empty()
    }

    /// Returns true if a person must confirm calls of the operation, under one of its tool names.
    pub(crate) fn asks(&self, names: [&str; 2], operation: &Operation, hints: &Hints) -> bool {
        let by_level = match self.level {
            ConfirmLevel::None => false,
            ConfirmLevel::Destructive => hints.is_destructive(),
            ConfirmLevel::Write => !hints.is_read_only(),
        };
        by_level
            || self
                .patterns
                .iter()
                .any(|pattern| pattern.matches(names, operation))
    }
}

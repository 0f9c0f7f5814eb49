//! `--confirm`: which calls a person is asked about before they are made.

use super::annotations::Hints;
use super::selection::Pattern;
use crate::spec::Operation;

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
    #[must_use]
    pub(crate) fn of_one_of_several(&self) -> Self {
        let patterns = self.patterns.iter().cloned();
        Self {
            level: self.level,
            patterns: patterns.map(Pattern::into_optional).collect(),
        }
    }

    /// Returns true if any call must be confirmed.
    #[must_use]
    pub(crate) fn is_on(&self) -> bool {
        self.level != ConfirmLevel::None || !self.patterns.is_empty()
    }

    /// Returns true if a person must confirm calls of the operation, under one of its tool names.
    #[must_use]
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

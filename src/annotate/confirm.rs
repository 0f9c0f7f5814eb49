//! `--confirm`: which calls a person is asked about before they are made.

use super::enforcement::Enforcement;
use super::selection::Pattern;
use crate::spec::Operation;
use crate::text;

/// Which calls a person is asked about before they are made: by what is enforced of a tool, and by patterns.
#[derive(Debug, Clone, Default)]
pub struct Confirm {
    /// By what is enforced.
    pub level: ConfirmLevel,
    /// Tools that match one of these as well.
    pub patterns: Vec<ConfirmPattern>,
}

/// Which tools a person is asked about, whatever they are called.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ConfirmLevel {
    /// None.
    #[default]
    None,
    /// Those that may change or remove what exists.
    Destructive,
    /// All that are not read-only.
    Write,
}

/// A pattern of tools that a person is asked about.
#[derive(Debug, Clone)]
pub struct ConfirmPattern {
    /// The pattern.
    pub pattern: Pattern,
    /// Whether the document may have no operation that matches: `?place_order`.
    pub is_optional: bool,
}

impl Confirm {
    /// Whether a person is asked about any call at all.
    #[must_use]
    pub(crate) fn is_on(&self) -> bool {
        self.level != ConfirmLevel::None || !self.patterns.is_empty()
    }

    /// Whether a person is asked before calls of the operation, under one of its tool names.
    #[must_use]
    pub(crate) fn asks(&self, names: [&str; 2], operation: &Operation, enforcement: &Enforcement) -> bool {
        let by_level = match self.level {
            ConfirmLevel::None => false,
            ConfirmLevel::Destructive => enforcement.is_destructive(),
            ConfirmLevel::Write => !enforcement.is_read_only(),
        };
        by_level || self.patterns.iter().any(|wanted| wanted.pattern.matches(names, operation))
    }

    /// A sentence for each pattern that has to match an operation, and matches none: its author would wait for a question
    /// that never comes.
    #[must_use]
    pub(crate) fn unmatched(&self, own: &[String], given: &[String], operations: &[Box<Operation>]) -> Vec<String> {
        let matches = |pattern: &Pattern| {
            let mut all = own.iter().zip(given).zip(operations);
            all.any(|((own, given), operation)| pattern.matches([own, given], operation))
        };
        let required = self.patterns.iter().filter(|wanted| !wanted.is_optional);
        let unmatched = required.filter(|wanted| !matches(&wanted.pattern));
        unmatched
            .map(|ConfirmPattern { pattern, .. }| {
                let text = pattern.to_string();
                let hint = text::nearest(&text, ["none", "destructive", "write"], 0.75)
                    .map(|nearest| format!("; did you mean `{nearest}`?"))
                    .unwrap_or_default();
                format!("--confirm: `{text}` matches no operation of the document{hint}; write `?{text}` if that is right")
            })
            .collect()
    }
}

//! Diagnostics: problems at one place of a document, collected for the operator.

use std::fmt;

use serde::Serialize;

use super::node::Span;

/// Severity of a diagnostic.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// Information; nothing is lost, and nothing is read differently.
    Note,
    /// Part of the document was read differently from how it is written; every operation is still
    /// there.
    Warning,
    /// An operation is not served.
    Error,
}

/// One finding: the problem, its place, and its consequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Severity.
    pub severity: Severity,
    /// Location as a JSON Pointer fragment (`#/paths/~1pets/get`).
    pub pointer: String,
    /// Span of the value itself, if it is known; [`super::Document::locate`] returns its line and
    /// column.
    pub span: Option<Span>,
    /// The fault and its effect; lower case, no final period.
    pub message: String,
}

impl Diagnostic {
    fn new(severity: Severity, pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity,
            pointer: pointer.into(),
            span: None,
            message: message.into(),
        }
    }

    /// A diagnostic of an operation that is not served.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, pointer, message)
    }

    /// A diagnostic for information.
    pub fn note(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Note, pointer, message)
    }

    /// A diagnostic of something that was read differently from how it is written.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, pointer, message)
    }

    /// The same, of a value at that span.
    pub(crate) fn at(self, span: Span) -> Self {
        Self {
            span: Some(span),
            ..self
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

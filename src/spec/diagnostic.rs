//! What is wrong with one place of a document, as a value: counted at start, listed for the operator, never a panic.

use std::fmt;

use super::span::Span;

/// How much a diagnostic costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Nothing is lost or read differently; something is worth knowing.
    Note,
    /// Something was read differently from how it is written; every operation is still there.
    Warning,
    /// An operation is not served.
    Error,
}

/// One finding: what, where, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Whether an operation was lost.
    pub severity: Severity,
    /// Where, as a JSON Pointer fragment (`#/paths/~1pets/get`).
    pub pointer: String,
    /// The value itself, where it is known; [`super::Document::locate`] tells its line and column.
    pub span: Option<Span>,
    /// What is wrong and what happens because of it; lower case, no final period.
    pub message: String,
}

impl Diagnostic {
    /// A diagnostic that costs the operation it points to.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            pointer: pointer.into(),
            span: None,
            message: message.into(),
        }
    }

    /// A diagnostic that costs nothing.
    pub fn note(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            pointer: pointer.into(),
            span: None,
            message: message.into(),
        }
    }

    /// A diagnostic that costs no operation.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            pointer: pointer.into(),
            span: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.pointer, self.message)
    }
}

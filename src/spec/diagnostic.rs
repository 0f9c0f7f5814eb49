//! What is wrong with one place of a document, as a value: counted at start, listed for the operator, never a panic.

use std::fmt;

/// How much a diagnostic costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
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
    /// Line and column in the text of a JSON document, both from 1.
    pub position: Option<(usize, usize)>,
    /// What is wrong and what happens because of it; lower case, no final period.
    pub message: String,
}

impl Diagnostic {
    /// A diagnostic that costs the operation it points to.
    pub fn error(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            pointer: pointer.into(),
            position: None,
            message: message.into(),
        }
    }

    /// A diagnostic that costs no operation.
    pub fn warning(pointer: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            pointer: pointer.into(),
            position: None,
            message: message.into(),
        }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.pointer)?;
        if let Some((line, column)) = self.position {
            write!(f, " (line {line}, column {column})")?;
        }
        write!(f, ": {}", self.message)
    }
}

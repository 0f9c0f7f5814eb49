//! What an operator sets about the audit log.

use std::path::PathBuf;

/// Where lines go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditTarget {
    File(PathBuf),
    Stdout,
}

/// What an operator sets about the audit log.
#[derive(Debug, Clone)]
pub(crate) struct AuditOptions {
    pub(crate) target: AuditTarget,
    /// The key of hashes; without one, a random one that nobody else has.
    pub(crate) key: Option<secrecy::SecretString>,
    /// Whether a call waits for its line, and is refused without.
    pub(crate) required: bool,
}

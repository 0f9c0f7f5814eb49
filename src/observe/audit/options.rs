//! The operator's settings for the audit log.

use std::path::PathBuf;

/// Destination of lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AuditTarget {
    File(PathBuf),
    Stdout,
}

/// The operator's settings for the audit log.
#[derive(Debug, Clone)]
pub(crate) struct AuditOptions {
    pub(crate) target: AuditTarget,
    /// The key of hashes; without one, a random one of this process.
    pub(crate) key: Option<secrecy::SecretString>,
    /// True if a call waits for its line, and is refused without it.
    pub(crate) required: bool,
}

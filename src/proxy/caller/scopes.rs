//! Scopes of tokens, and scopes that calls need.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Scopes of a client.
#[derive(Debug, Clone)]
pub(crate) enum Scopes {
    /// All scopes: static tokens have none of their own.
    All,
    /// The scopes that the issuer granted.
    Granted(Arc<BTreeSet<String>>),
}

/// Scopes that calls need by what their tools do. Of several, one is enough: a broader one may
/// imply a narrower one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolScopes {
    /// Scopes of read-only tools.
    pub read: Vec<String>,
    /// Scopes of all other tools.
    pub write: Vec<String>,
}

impl ToolScopes {
    /// Returns true if no scope is needed.
    pub(crate) fn is_empty(&self) -> bool {
        self.read.is_empty() && self.write.is_empty()
    }

    /// Returns the scopes of which a call needs one.
    fn of(&self, is_read_only: bool) -> &[String] {
        if is_read_only {
            &self.read
        } else {
            &self.write
        }
    }

    /// Returns the scope to request if a call has none of those that it needs.
    pub(crate) fn lacking(&self, scopes: &Scopes, is_read_only: bool) -> Option<&str> {
        let Scopes::Granted(granted) = scopes else {
            return None;
        };
        let needed = self.of(is_read_only);
        let is_met = needed.is_empty() || needed.iter().any(|scope| granted.contains(scope));
        if is_met {
            None
        } else {
            needed.first().map(String::as_str)
        }
    }
}

//! Scopes of tokens, and scopes that calls need.

use std::collections::BTreeSet;
use std::sync::Arc;

/// Scopes of a client.
#[derive(Clone)]
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

/// Scopes that calls at an endpoint need of a token of the issuer.
#[derive(Clone, Default)]
pub(crate) struct ScopeDemand {
    /// Scopes of the whole server, by what its tools do.
    pub(crate) of_tools: ToolScopes,
    /// Scopes of every call, which a client asks for again with others.
    pub(crate) of_all: Vec<String>,
    /// All scopes that a client may ask for, in order; empty if there is nobody to ask.
    pub(crate) offered: Vec<String>,
}

impl ScopeDemand {
    /// Returns all scopes to request if a client lacks one: a new token replaces the old one, so
    /// those that it has are among them (MCP, "Scope Challenge Handling"). `of_api` are those that
    /// it lacks for the API.
    pub(crate) fn missing(
        &self,
        scopes: &Scopes,
        of_api: &[&str],
        is_read_only: bool,
    ) -> Vec<String> {
        let of_server = self.of_tools.lacking(scopes, is_read_only);
        let wanted: Vec<&str> = of_server
            .into_iter()
            .chain(of_api.iter().copied())
            .collect();
        if wanted.is_empty() || self.offered.is_empty() {
            return wanted.into_iter().map(str::to_owned).collect();
        }
        self.all_with(scopes, &wanted)
    }

    /// The scopes of every call, these, and those that the client has.
    pub(crate) fn all_with(&self, scopes: &Scopes, wanted: &[&str]) -> Vec<String> {
        let is_granted = |scope: &String| match scopes {
            Scopes::All => false,
            Scopes::Granted(granted) => granted.contains(scope),
        };
        let needed = |scope: &&String| {
            self.of_all.contains(scope) || wanted.contains(&scope.as_str()) || is_granted(scope)
        };
        self.offered.iter().filter(needed).cloned().collect()
    }
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

//! A Server Object: a URL with variables in it.

use std::collections::BTreeMap;

use thiserror::Error;

use crate::spec::node::Node;

/// A server, as the document writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerTemplate {
    /// `url` with its variables; `None` if the document has none. An empty one is the document's
    /// own location.
    pub url: Option<String>,
    /// `variables`.
    pub variables: BTreeMap<String, ServerVariable>,
}

/// A variable in the URL of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerVariable {
    /// `default`.
    pub default: Option<String>,
    /// `enum`; empty if any value is allowed.
    pub allowed: Vec<String>,
}

/// Reason for which there is no base URL, with what to do about it.
#[derive(Debug, Clone, Error, PartialEq, Eq)]
#[error("{text}")]
pub struct ServerError {
    text: String,
    /// True if a variable of the server's URL has no value, or one that is not allowed.
    pub(crate) is_of_variable: bool,
}

impl ServerError {
    pub(super) fn new(text: String) -> Self {
        Self {
            text,
            is_of_variable: false,
        }
    }

    pub(super) fn unusable(url: &str, reason: &str) -> Self {
        Self::new(format!("`{url}` is not a usable base URL: {reason}"))
    }
}

impl ServerTemplate {
    /// A server without variables.
    pub(crate) fn fixed(url: String) -> Self {
        Self {
            url: Some(url),
            ..Self::default()
        }
    }

    /// Reads a Server Object. Other scalars in it are read as text (`default: 8443`).
    pub(crate) fn read(node: Node<'_>) -> Self {
        let object = node.object().unwrap_or_default();
        let variable = |(name, node): (&str, Node<'_>)| {
            let object = node.object().unwrap_or_default();
            let allowed = object.array("enum").into_iter();
            let variable = ServerVariable {
                default: object.text("default"),
                allowed: allowed
                    .filter_map(|value| Some(value.scalar()?.into_owned()))
                    .collect(),
            };
            (name.to_owned(), variable)
        };
        Self {
            url: object.text("url"),
            variables: object.object("variables").iter().map(variable).collect(),
        }
    }

    /// The URL as messages show it.
    pub(crate) fn shown(&self) -> &str {
        self.url.as_deref().unwrap_or_default().trim()
    }

    /// The URL with the values in `given`, else with the defaults.
    ///
    /// # Errors
    /// The first variable without a value that is allowed.
    pub(crate) fn expand(&self, given: &BTreeMap<String, String>) -> Result<String, ServerError> {
        let mut text = String::new();
        let mut rest = self.shown();
        while let Some((before, tail)) = rest.split_once('{') {
            let Some((name, after)) = tail.split_once('}') else {
                break;
            };
            text.push_str(before);
            text.push_str(self.value(name, given)?);
            rest = after;
        }
        text.push_str(rest);
        Ok(text)
    }

    fn value<'v>(
        &'v self,
        name: &str,
        given: &'v BTreeMap<String, String>,
    ) -> Result<&'v str, ServerError> {
        let given = given.get(name);
        // OpenAPI requires that the document declares it, and the operator's value is enough
        // without that.
        let variable = self.variables.get(name);
        let value = given.or(variable.and_then(|variable| variable.default.as_ref()));
        let allowed = variable.map_or(&[][..], |variable| &variable.allowed);
        if let Some(value) = value.filter(|value| allowed.is_empty() || allowed.contains(value)) {
            return Ok(value);
        }
        let allowed = match (allowed.join(", "), given) {
            (one_of, _) if one_of.is_empty() => String::new(),
            (one_of, None) => format!(" (one of {one_of})"),
            (one_of, Some(value)) => format!(" (one of {one_of}, not `{value}`)"),
        };
        let url = self.shown();
        Err(ServerError {
            is_of_variable: true,
            ..ServerError::new(format!(
                "the server `{url}` needs a value for `{{{name}}}`{allowed}; add --server-var {name}=VALUE, or --base-url https://…"
            ))
        })
    }
}

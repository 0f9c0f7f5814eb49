//! Operations: one per method of every path.
//!
//! The arguments of parameters are defined here, because tools and calls must agree on them.

mod alternatives;
mod body;
pub(crate) mod examples;
pub(crate) mod parameter;
mod parameters;
pub(crate) mod reader;
pub(crate) mod request_body;
pub(crate) mod response;
pub(crate) mod response_rule;
pub(crate) mod rules;
pub(crate) mod security;
pub(crate) mod security_scheme;
pub(crate) mod server;
pub(crate) mod server_template;
mod special_bodies;
mod swagger2;
pub(crate) mod template;

use std::sync::Arc;

use http::Method;

use self::parameter::Parameter;
use self::request_body::RequestBody;
use self::rules::{OperationRules, WaitRule};
use self::server_template::ServerTemplate;
use self::template::PathTemplate;
use super::long_running::LongRunning;
use super::node::{Node, Span};

/// An operation, with everything a tool or a call needs; schemas stay in the document until they
/// are read.
#[derive(Debug, Clone)]
pub struct Operation {
    /// `operationId`.
    pub id: Option<String>,
    /// The HTTP method, upper case.
    pub method: Method,
    /// The path as the document writes it.
    pub path: String,
    /// The path as it is filled in, which the operations of a path share.
    pub template: Arc<PathTemplate>,
    /// `summary`, else the path item's.
    pub summary: Option<String>,
    /// `description`, else the path item's.
    pub description: Option<String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// `deprecated`.
    pub deprecated: bool,
    /// Parameters of the path item and of the operation, the latter overriding the former. Those
    /// that say the same in several operations are shared: a large API has a few hundred of them,
    /// tens of thousands of times.
    pub parameters: Vec<Arc<Parameter>>,
    /// The request body.
    pub body: Option<RequestBody>,
    /// `servers` of the operation, else of the path item; empty if the document's own apply.
    pub servers: Vec<ServerTemplate>,
    /// `security` of the operation; `None` if the document's own applies.
    pub security: Option<Span>,
    /// The Responses Object.
    pub responses: Option<Span>,
    /// `produces` of the operation in 2.0; empty in later versions.
    pub produces: Vec<String>,
    /// Extensions that speak of tools: the path item's, then the operation's own.
    pub extensions: Vec<(Box<str>, Span)>,
    /// Location of the operation in the document.
    pub pointer: String,
    /// Span of its text, which may be in another file.
    pub span: Option<Span>,
    /// What it says of being done later.
    pub long_running: LongRunning,
    /// The GET operations that its rule `wait` names, by their names there.
    pub waits_by: Vec<(String, Arc<Operation>)>,
    /// Settings of the operator for it, which no document contains.
    pub rules: Box<OperationRules>,
}

/// The extensions that speak of tools, the most specific one last.
pub(crate) const TOOL_EXTENSIONS: [&str; 7] = [
    "x-speakeasy-mcp",
    "x-mcp-hidden",
    "x-mcp-name",
    "x-mcp-title",
    "x-mcp-description",
    "x-mcp-annotations",
    "x-mcp",
];

/// Returns the members of an object that are extensions about tools, in the order of
/// [`TOOL_EXTENSIONS`]. Unknown ones (`x-mcp-color`) come first.
pub(crate) fn tool_extensions<'n, 'd>(
    members: impl Iterator<Item = (&'n str, Node<'d>)>,
) -> Vec<(Box<str>, Span)> {
    let is_known = |name: &str| TOOL_EXTENSIONS.contains(&name) || name.starts_with("x-mcp-");
    let mut found: Vec<(Box<str>, Span)> = members
        .filter(|(name, _)| name.starts_with("x-") && is_known(name))
        .map(|(name, node)| (name.into(), node.span()))
        .collect();
    found.sort_by_cached_key(|(name, _)| {
        let mut known = TOOL_EXTENSIONS.iter();
        (known.position(|known| **known == **name), name.clone())
    });
    found
}

impl Operation {
    /// Returns the argument that filters the reply, if the operator offers filters: a key that no
    /// parameter has.
    #[must_use]
    pub fn filter_key(&self) -> String {
        self.free_key("response_filter")
    }

    /// Returns the argument that says how many pages a call collects, if the operator offers it: a
    /// key that no parameter has.
    pub(crate) fn pages_key(&self) -> String {
        self.free_key("collect_pages")
    }

    fn free_key(&self, wanted: &str) -> String {
        let mut key = wanted.to_owned();
        while self.all_parameters().any(|parameter| parameter.key == key) {
            key.push('_');
        }
        key
    }

    /// All parameters, also those that no call gives.
    pub(crate) fn all_parameters(&self) -> impl Iterator<Item = &Parameter> {
        let fixed = self.rules.fixed.iter().map(|fixed| &fixed.parameter);
        self.parameters.iter().chain(fixed).map(Arc::as_ref)
    }

    /// Returns the operation that its rule `wait` names so.
    pub(crate) fn waits_by(&self, name: &str) -> Option<&Self> {
        let mut named = self.waits_by.iter();
        named.find_map(|(known, operation)| (known == name).then_some(operation.as_ref()))
    }

    /// Returns true if a call may be done only after its first reply: a rule, an extension or a
    /// declared status says so.
    #[must_use]
    pub fn may_wait(&self) -> bool {
        match &self.rules.wait {
            Some(WaitRule::Never) => false,
            Some(WaitRule::Wait(_)) => true,
            None => self.long_running.is_accepted || self.long_running.extension.is_some(),
        }
    }

    /// Returns true if a rule, an extension or a declared header says how a call waits.
    #[must_use]
    pub fn says_how_to_wait(&self) -> bool {
        self.may_wait()
            && (self.rules.wait.is_some()
                || self.long_running.extension.is_some()
                || self.long_running.names_status)
    }

    /// `GET /pets`, as people name an operation.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

//! Which paths a value with slashes must not reach: those of other operations, hidden ones above all.

use http::Method;

use super::bound_tool::BoundTool;
use crate::annotate::Layers;
use crate::proxy::PathPattern;
use crate::spec::{Operation, PathTemplate};

/// An operation of the document, whether or not there is a tool for it.
pub(crate) struct KnownPath {
    pointer: String,
    method: Method,
    template: PathTemplate,
    /// Whether it has servers of its own.
    has_own_base: bool,
}

/// All operations, before any is hidden; none where no rule lets values hold slashes.
pub(crate) fn known_paths(operations: &[Box<Operation>], layers: &Layers) -> Vec<KnownPath> {
    if layers.rules.iter().all(|rule| rule.says.slashes.is_empty()) {
        return Vec::new();
    }
    let known = |operation: &Operation| KnownPath {
        pointer: operation.pointer.clone(),
        method: operation.method.clone(),
        template: operation.template.clone(),
        has_own_base: !operation.servers.is_empty(),
    };
    operations.iter().map(Box::as_ref).map(known).collect()
}

/// Tells each tool whose values may hold slashes which paths are those of other operations of its method. Of an operation
/// without a tool nobody knows what its variables hold, so that each may span segments; those of a tool span one segment,
/// unless the operator says otherwise.
pub(crate) fn reserve_paths(tools: &mut [BoundTool], known: &[KnownPath]) {
    let offered: Vec<(String, Vec<String>)> = tools.iter().map(|tool| spanning(&tool.target.operation)).collect();
    for (tool, (own, spans)) in tools.iter_mut().zip(&offered) {
        let operation = &tool.target.operation;
        if spans.is_empty() {
            continue;
        }
        let others = known
            .iter()
            .filter(|other| is_same_to_servers(&other.method, &operation.method) && other.pointer != *own);
        let patterns = others.map(|other| {
            let shown = offered.iter().find(|(pointer, _)| *pointer == other.pointer);
            let pattern = PathPattern::of(&other.template, |name| {
                shown.is_none_or(|(_, spans)| spans.iter().any(|spanning| spanning == name))
            });
            if other.has_own_base { pattern.behind_any_base() } else { pattern }
        });
        let reserved = patterns.filter(|pattern| !pattern.covers(&operation.template)).collect();
        tool.target.reserved_paths = reserved;
    }
}

/// Many servers run what answers GET for HEAD as well (RFC 9110 section 9.3.2).
fn is_same_to_servers(one: &Method, other: &Method) -> bool {
    one == other || matches!((one, other), (&Method::GET, &Method::HEAD) | (&Method::HEAD, &Method::GET))
}

/// The operation's place, and which of its path parameters may hold slashes.
fn spanning(operation: &Operation) -> (String, Vec<String>) {
    let spanning = operation.parameters.iter().filter(|parameter| parameter.slashes);
    (
        operation.pointer.clone(),
        spanning.map(|parameter| parameter.name.clone()).collect(),
    )
}

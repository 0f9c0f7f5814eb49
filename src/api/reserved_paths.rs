//! Paths that a value with slashes must not reach: those of other operations, in particular hidden ones.

use std::collections::HashSet;

use http::Method;

use super::bound_tool::BoundTool;
use crate::annotate::Layers;
use crate::proxy::PathPattern;
use crate::spec::node::Node;
use crate::spec::{Document, Operation, PathTemplate, pointer};

/// An operation of the document, whether or not there is a tool for it.
pub(crate) struct KnownPath {
    pointer: String,
    method: Method,
    template: PathTemplate,
    /// True if the operation has servers of its own.
    has_own_base: bool,
}

/// The methods of operations in a path item (OpenAPI 3.2 section 4.9.1).
const METHODS: [&str; 9] = ["get", "put", "post", "delete", "options", "head", "patch", "trace", "query"];

/// Returns the paths of all operations of the document, before any is hidden, and those that could not be read; none if no rule lets values
/// hold slashes.
pub(crate) fn known_paths(document: &Document, operations: &[Box<Operation>], layers: &Layers) -> Vec<KnownPath> {
    if layers.rules.iter().all(|rule| rule.says.slashes.is_empty()) {
        return Vec::new();
    }
    let known = |operation: &Operation| KnownPath {
        pointer: operation.pointer.clone(),
        method: operation.method.clone(),
        template: PathTemplate::clone(&operation.template),
        has_own_base: !operation.servers.is_empty(),
    };
    let mut all: Vec<KnownPath> = operations.iter().map(Box::as_ref).map(known).collect();
    all.extend(unread_paths(document, operations));
    all
}

/// The operations that could not be read: the API serves them nevertheless.
fn unread_paths(document: &Document, operations: &[Box<Operation>]) -> Vec<KnownPath> {
    let read: HashSet<&str> = operations.iter().map(|operation| operation.pointer.as_str()).collect();
    let mut unread = Vec::new();
    let Some(paths) = document.member("paths").and_then(Node::object) else {
        return unread;
    };
    for (path, item) in paths.iter() {
        let (Ok(template), Some(item)) = (PathTemplate::parse(path), item.object()) else {
            continue;
        };
        for (key, operation) in item.iter().filter(|(key, _)| METHODS.contains(key)) {
            let pointer = pointer::fragment(["paths", path, key]);
            if let Ok(method) = Method::from_bytes(key.to_ascii_uppercase().as_bytes())
                && !read.contains(pointer.as_str())
            {
                unread.push(KnownPath {
                    pointer,
                    method,
                    template: template.clone(),
                    has_own_base: operation.object().is_some_and(|operation| operation.get("servers").is_some()),
                });
            }
        }
    }
    unread
}

/// Gives each tool whose values may hold slashes the paths of other operations of its method. The variables of an operation without a tool
/// may span segments, because their values are unknown; those of a tool span one segment, unless the operator says otherwise.
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

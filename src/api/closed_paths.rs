//! The paths of all operations of a document, those without a tool included: the API serves them
//! nevertheless.

use std::collections::HashSet;

use http::Method;

use super::bound_tool::BoundTool;
use crate::proxy::request::closed_paths::{ClosedPaths, DeclaredOperation, DeclaredTool};
use crate::spec::node::{Node, Object};
use crate::spec::{Document, PathTemplate, pointer};

/// The methods of operations in a path item (OpenAPI 3.2 section 4.9.1).
const METHODS: [&str; 9] = [
    "get", "put", "post", "delete", "options", "head", "patch", "trace", "query",
];

/// Reads the paths of all operations of the document. It opens each path item.
pub(super) fn closed_paths(document: &Document, tools: &[BoundTool]) -> ClosedPaths {
    let offered: HashSet<&str> = tools
        .iter()
        .map(|tool| tool.operation.pointer.as_str())
        .collect();
    let with_tool = tools.iter().enumerate().map(|(place, tool)| {
        let operation = &tool.operation;
        let spanning = operation
            .parameters
            .iter()
            .filter(|parameter| parameter.slashes);
        DeclaredOperation {
            method: operation.method.clone(),
            template: &operation.template,
            slashes: spanning.map(|parameter| parameter.name.as_str()).collect(),
            has_own_base: !operation.servers.is_empty(),
            tool: Some(DeclaredTool {
                place,
                is_read_only: tool.hints.is_read_only(),
                must_confirm: tool.must_confirm,
            }),
        }
    });
    let declared = declared_operations(document);
    let others = declared
        .iter()
        .filter(|(pointer, ..)| !offered.contains(pointer.as_str()));
    let without_tool = others.map(|(_, method, template, has_own_base)| DeclaredOperation {
        method: method.clone(),
        template,
        slashes: Vec::new(),
        has_own_base: *has_own_base,
        tool: None,
    });
    ClosedPaths::new(with_tool.chain(without_tool))
}

/// The operations of a document, whether or not they can be read: place, method, path, and true if
/// they have servers of their own.
fn declared_operations(document: &Document) -> Vec<(String, Method, PathTemplate, bool)> {
    let mut all = Vec::new();
    let paths = document
        .member("paths")
        .and_then(Node::object)
        .unwrap_or_default();
    for (path, item) in paths.iter() {
        let (Ok(template), Some(item)) = (PathTemplate::parse(path), item.object()) else {
            continue;
        };
        let referred = item.get("$ref").and_then(|reference| {
            let target = document
                .target(&reference.string()?, reference.span())
                .ok()?;
            document.resolve(target).ok()?.object()
        });
        let items = || [Some(&item), referred.as_ref()].into_iter().flatten();
        let item_has_servers = items().any(has_servers);
        for (key, node) in items().flat_map(Object::iter) {
            let more = match key {
                "additionalOperations" => node.object().unwrap_or_default(),
                _ => Object::default(),
            };
            let own = METHODS
                .contains(&key)
                .then(|| (vec![key], key.to_ascii_uppercase(), node));
            let more = more
                .iter()
                .map(|(method, node)| (vec![key, method], method.to_owned(), node));
            for (keys, method, node) in own.into_iter().chain(more) {
                if let Ok(method) = Method::from_bytes(method.as_bytes()) {
                    let pointer = pointer::fragment(["paths", path].into_iter().chain(keys));
                    let has_own_base =
                        item_has_servers || node.object().as_ref().is_some_and(has_servers);
                    all.push((pointer, method, template.clone(), has_own_base));
                }
            }
        }
    }
    all
}

fn has_servers(object: &Object<'_>) -> bool {
    object.get("servers").is_some()
}

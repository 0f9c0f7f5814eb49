//! What the schema of a form says of its properties.

use foldhash::HashSet;

use crate::spec::document::Document;
use crate::spec::node::Node;
use crate::spec::span::Span;

/// How deep lists of lists are followed to find bytes.
const MAX_DEPTH: usize = 8;

/// The properties of a schema and of all branches of its compositions. Each schema is looked into once.
pub(crate) fn properties<'a>(document: &'a Document, schema: Option<Node<'a>>, seen: &mut HashSet<Span>) -> Vec<(String, Node<'a>)> {
    const MAX_SCHEMAS: usize = 64;
    let Some(node) = schema.and_then(|node| document.resolve(node).ok()) else {
        return Vec::new();
    };
    if seen.len() >= MAX_SCHEMAS || !seen.insert(node.span()) {
        return Vec::new();
    }
    let Some(object) = node.object() else { return Vec::new() };
    let own = object.get("properties").and_then(Node::object).unwrap_or_default();
    let mut found: Vec<_> = own.iter().map(|(name, node)| (name.to_owned(), node)).collect();
    for combinator in ["allOf", "anyOf", "oneOf"] {
        for part in object.get(combinator).and_then(Node::array).unwrap_or_default() {
            found.extend(properties(document, Some(part), seen));
        }
    }
    found
}

/// Whether a schema stands for bytes, or for a list of byte strings (OAS 3.0 `format: binary`, 3.1 `contentEncoding`
/// and `contentMediaType`).
pub(crate) fn is_binary(document: &Document, schema: Node<'_>, depth: usize) -> bool {
    let Some(object) = document.resolve_object(schema).ok().flatten() else {
        return false;
    };
    if object.text("format").is_some_and(|format| format == "binary" || format == "byte")
        || object.get("contentEncoding").is_some()
        || object.get("contentMediaType").is_some()
    {
        return true;
    }
    if depth >= MAX_DEPTH {
        return false;
    }
    let branches = |key: &str| object.get(key).and_then(Node::array).unwrap_or_default();
    // Of alternatives each must be bytes: what may also be a text is a text.
    let of_alternatives = ["anyOf", "oneOf"].into_iter().any(|key| {
        let branches = branches(key);
        !branches.is_empty() && branches.into_iter().all(|branch| is_binary(document, branch, depth + 1))
    });
    let parts = branches("allOf").into_iter().chain(object.get("items"));
    of_alternatives || parts.into_iter().any(|inner| is_binary(document, inner, depth + 1))
}

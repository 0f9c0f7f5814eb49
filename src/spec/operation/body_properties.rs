//! Properties of a form as its schema describes them.

use foldhash::HashSet;

use crate::spec::document::Document;
use crate::spec::node::{Node, Object};
use crate::spec::span::Span;

/// Depth to which lists of lists are followed to find bytes.
const MAX_DEPTH: usize = 8;

/// The properties of a schema and of all branches of its compositions. Each schema is looked into
/// once.
pub(crate) fn properties<'a>(
    document: &'a Document,
    schema: Option<Node<'a>>,
    seen: &mut HashSet<Span>,
) -> Vec<(String, Node<'a>)> {
    const MAX_SCHEMAS: usize = 64;
    let Some(node) = schema.and_then(|node| document.resolve(node).ok()) else {
        return Vec::new();
    };
    if seen.len() >= MAX_SCHEMAS || !seen.insert(node.span()) {
        return Vec::new();
    }
    let Some(object) = node.object() else {
        return Vec::new();
    };
    let own = object.object("properties").unwrap_or_default();
    let mut found: Vec<_> = own
        .iter()
        .map(|(name, node)| (name.to_owned(), node))
        .collect();
    for combinator in ["allOf", "anyOf", "oneOf"] {
        for part in object.array(combinator).unwrap_or_default() {
            found.extend(properties(document, Some(part), seen));
        }
    }
    found
}

/// Returns true if a schema is that of a text.
pub(crate) fn is_text(document: &Document, schema: Node<'_>) -> bool {
    let schema = document.object(schema);
    schema.is_some_and(|schema| schema.text("type").as_deref() == Some("string"))
}

/// Returns true if a schema describes bytes, or a list of byte strings (OAS 3.0 `format: binary`,
/// 3.1 `contentEncoding` and `contentMediaType`).
pub(crate) fn is_binary(document: &Document, schema: Node<'_>) -> bool {
    let is_bytes = |object: &Object<'_>| {
        object
            .text("format")
            .is_some_and(|format| format == "binary" || format == "byte")
            || object.get("contentEncoding").is_some()
            || object.get("contentMediaType").is_some()
    };
    holds(document, schema, &is_bytes, 0)
}

/// Returns true if a schema does not constrain its value, or is a list whose items it does not
/// constrain: it has annotations only.
pub(crate) fn says_nothing(document: &Document, schema: Node<'_>) -> bool {
    let is_annotation = |key: &str| {
        matches!(
            key,
            "title"
                | "description"
                | "example"
                | "examples"
                | "default"
                | "deprecated"
                | "readOnly"
                | "writeOnly"
                | "$comment"
        ) || key.starts_with("x-")
    };
    let is_bare = |object: &Object<'_>| object.iter().all(|(key, _)| is_annotation(key));
    let Some(object) = document.object(schema) else {
        return false;
    };
    let items = object
        .get("items")
        .filter(|_| object.text("type").as_deref() == Some("array"));
    match items {
        Some(items) => document.object(items).is_some_and(|items| is_bare(&items)),
        None => is_bare(&object),
    }
}

/// Returns true if the bytes of a schema, or those of each item, are sent as base64 (JSON Schema
/// 2020-12 validation section 8.3).
pub(crate) fn is_base64(document: &Document, schema: Node<'_>) -> bool {
    let is_encoded = |object: &Object<'_>| {
        let encoding = object.text("contentEncoding");
        encoding.is_some_and(|encoding| encoding.eq_ignore_ascii_case("base64"))
    };
    holds(document, schema, &is_encoded, 0)
}

/// Returns true if the schema of a whole body says that the body is base64. In 3.0 that is
/// `format: base64`; documents use `format: byte` for bytes as they are as well, so it counts only
/// if the description mentions base64.
pub(crate) fn is_base64_body(document: &Document, schema: Node<'_>) -> bool {
    let is_encoded = |object: &Object<'_>| {
        let says_base64 = || {
            object
                .text("description")
                .is_some_and(|text| text.to_ascii_lowercase().contains("base64"))
        };
        match object.text("format").as_deref() {
            Some("base64") => true,
            Some("byte") => says_base64(),
            _ => false,
        }
    };
    is_base64(document, schema) || holds(document, schema, &is_encoded, 0)
}

/// Returns true if `says` is true of a schema, of its items, of a part of it, or of each
/// alternative.
fn holds(
    document: &Document,
    schema: Node<'_>,
    says: &dyn Fn(&Object<'_>) -> bool,
    depth: usize,
) -> bool {
    let Some(object) = document.object(schema) else {
        return false;
    };
    if says(&object) {
        return true;
    }
    if depth >= MAX_DEPTH {
        return false;
    }
    let branches = |key: &str| object.array(key).unwrap_or_default();
    // Of alternatives it must be true of each: what may also be a text is a text.
    let of_alternatives = ["anyOf", "oneOf"].into_iter().any(|key| {
        let branches = branches(key);
        !branches.is_empty()
            && branches
                .into_iter()
                .all(|branch| holds(document, branch, says, depth + 1))
    });
    let parts = branches("allOf").into_iter().chain(object.get("items"));
    of_alternatives
        || parts
            .into_iter()
            .any(|inner| holds(document, inner, says, depth + 1))
}

//! Responses: what an operation declares that it answers, the same for every version of OpenAPI.

use super::Operation;
use super::swagger2;
use crate::spec::document::{Document, Version};
use crate::spec::node::{Node, Object};

/// One declared response.
pub(crate) struct ResponseObject<'a> {
    /// The status as declared: `200`, `2XX`, `default`.
    pub status: String,
    /// Its media types, in document order; none where there is no body.
    pub media: Vec<Media<'a>>,
}

/// One media type of a response.
pub(crate) struct Media<'a> {
    /// As declared.
    pub name: String,
    /// The schema.
    pub schema: Option<Node<'a>>,
    /// The Media Type Object, for its examples; empty in 2.0.
    pub object: Object<'a>,
    /// The example of 2.0.
    pub example: Option<Node<'a>>,
}

impl ResponseObject<'_> {
    /// Whether this is what a success looks like. `default` counts too: the caller decides whether anything else is there.
    #[must_use]
    pub(crate) fn is_success(&self) -> bool {
        self.status.starts_with('2') || self.status == "default"
    }
}

/// All responses that an operation declares, in document order. A response that cannot be resolved is left out.
#[must_use]
pub(crate) fn responses<'a>(document: &'a Document, operation: &Operation) -> Vec<ResponseObject<'a>> {
    let declared = operation
        .responses
        .map(|span| document.node(span))
        .and_then(Node::object)
        .unwrap_or_default();
    let read = |(status, node): (&str, Node<'a>)| {
        let object = document.resolve_object(node).ok()??;
        let media = if document.version() == Version::V2_0 {
            swagger_media(&operation.produces, &object)
        } else {
            media(document, &object)
        };
        Some(ResponseObject {
            status: status.to_owned(),
            media,
        })
    };
    declared
        .iter()
        .filter(|(status, _)| !status.starts_with("x-"))
        .filter_map(read)
        .collect()
}

/// The successes, best first: 2xx codes in rising order, then `2XX`; `default` only where there is nothing else.
#[must_use]
pub(crate) fn successes<'a>(document: &'a Document, operation: &Operation) -> Vec<ResponseObject<'a>> {
    let mut found: Vec<ResponseObject<'a>> = responses(document, operation)
        .into_iter()
        .filter(ResponseObject::is_success)
        .collect();
    if found.iter().any(|response| response.status != "default") {
        found.retain(|response| response.status != "default");
    }
    found.sort_by_key(|response| response.status.to_ascii_lowercase());
    found
}

fn media<'a>(document: &'a Document, response: &Object<'a>) -> Vec<Media<'a>> {
    let content = response.get("content").and_then(Node::object).unwrap_or_default();
    let read = |(name, node): (&str, Node<'a>)| {
        let object = document.resolve(node).unwrap_or(node).object().unwrap_or_default();
        Media {
            name: name.to_owned(),
            schema: object.get("schema"),
            example: None,
            object,
        }
    };
    content.iter().map(read).collect()
}

fn swagger_media<'a>(produces: &[String], response: &Object<'a>) -> Vec<Media<'a>> {
    let (schema, examples) = swagger2::response_content(response);
    if schema.is_none() && examples.is_empty() {
        return Vec::new();
    }
    let names = swagger2::produced(produces).into_iter();
    names
        .map(|name| Media {
            schema,
            object: Object::default(),
            example: examples.get(&name),
            name,
        })
        .collect()
}

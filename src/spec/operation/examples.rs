//! Examples of the arguments of an operation that the document gives beside their schemas.

use serde_json::Value;

use super::Operation;
use super::parameter::{Location, Parameter};
use super::request_body::BODY;
use super::rules::ArgumentTarget;
use crate::json::JsonObject;
use crate::spec::document::Document;
use crate::spec::node::{Node, Object};
use crate::text::has_hidden_characters;

/// The longest example, in bytes of JSON.
const MAX_EXAMPLE_BYTES: usize = 8192;

/// Returns the example of each argument that has one: `example`, else the first of `examples`
/// (OpenAPI 3.1 section 4.8.12 and 4.8.14). Examples in schemas are not among them, because input
/// schemas have them.
pub(crate) fn argument_examples(document: &Document, operation: &Operation) -> JsonObject {
    let own = operation.span.and_then(|span| document.node(span).object());
    let shared = document
        .member("paths")
        .and_then(Node::object)
        .and_then(|paths| document.object(paths.get(&operation.path)?));
    let mut found = JsonObject::new();
    for object in shared.iter().chain(&own) {
        for node in object.array("parameters").unwrap_or_default() {
            let Some(declared) = document.object(node) else {
                continue;
            };
            let parameter = operation
                .parameters
                .iter()
                .find(|parameter| is_declared(parameter, &declared));
            if let Some((parameter, example)) = parameter.zip(example_of(document, &declared)) {
                found.insert(parameter.key.clone(), example);
            }
        }
    }
    let rules_on_body = operation
        .rules
        .arguments
        .iter()
        .any(|rule| matches!(rule.target, ArgumentTarget::Body(_)));
    // A rule may have renamed or hidden a property that the example shows.
    let body = operation
        .body
        .as_ref()
        .filter(|_| !rules_on_body)
        .and_then(|body| {
            let declared = document.object(own.as_ref()?.get("requestBody")?)?;
            let media_type = declared.object("content")?.get(&body.media_type.name)?;
            example_of(document, &document.object(media_type)?)
        });
    found.extend(body.map(|example| (BODY.to_owned(), example)));
    found
}

fn is_declared(parameter: &Parameter, declared: &Object<'_>) -> bool {
    let location = match declared.text("in").as_deref() {
        Some("path") => Location::Path,
        Some("query") => Location::Query,
        Some("header") => Location::Header,
        Some("cookie") => Location::Cookie,
        _ => return false,
    };
    declared
        .text("name")
        .is_some_and(|name| parameter.is(location, &name))
}

fn example_of(document: &Document, declared: &Object<'_>) -> Option<Value> {
    let listed = || {
        let examples = declared.object("examples")?;
        let (_, first) = examples.iter().next()?;
        document.object(first)?.get("value")
    };
    let example = declared.get("example").or_else(listed)?;
    let is_shown =
        example.text().len() <= MAX_EXAMPLE_BYTES && !has_hidden_characters(example.text());
    is_shown.then(|| example.value()).flatten()
}

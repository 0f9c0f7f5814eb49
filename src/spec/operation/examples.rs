//! Examples of the arguments of an operation that the document gives beside their schemas.

use serde_json::Value;

use super::Operation;
use super::parameter::Parameter;
use super::request_body::BODY;
use super::rules::ArgumentTarget;
use crate::json::JsonObject;
use crate::spec::document::Document;
use crate::spec::node::Object;
use crate::text::has_hidden_characters;

/// The longest example, in bytes of JSON.
const MAX_EXAMPLE_BYTES: usize = 8192;

/// Returns the example of each argument that has one: `example`, else the first of `examples`
/// (OpenAPI 3.1 section 4.8.12 and 4.8.14). Examples in schemas are not among them, because input
/// schemas have them.
pub(crate) fn argument_examples(document: &Document, operation: &Operation) -> JsonObject {
    let own = document.object_at(operation.span);
    let shared = document
        .member("paths")
        .and_then(|paths| document.object(paths.member(&operation.path)?));
    let mut found = JsonObject::new();
    for node in shared
        .iter()
        .chain([&own])
        .flat_map(|object| object.array("parameters"))
    {
        let declared = document.object(node).unwrap_or_default();
        let mut parameters = operation.parameters.iter();
        let parameter = parameters.find(|parameter| is_declared(parameter, &declared));
        if let Some((parameter, example)) = parameter.zip(example_of(document, &declared)) {
            found.insert(parameter.key.clone(), example);
        }
    }
    let mut rules = operation.rules.arguments.iter();
    let rules_on_body = rules.any(|rule| matches!(rule.target, ArgumentTarget::Body(_)));
    // A rule may have renamed or hidden a property that the example shows.
    let body = operation.body.as_ref().filter(|_| !rules_on_body);
    let body = body.and_then(|body| {
        let declared = document.object(own.get("requestBody")?)?;
        let media_type = declared.object("content").get(&body.media_type.name)?;
        example_of(document, &document.object(media_type)?)
    });
    found.extend(body.map(|example| (BODY.to_owned(), example)));
    found
}

fn is_declared(parameter: &Parameter, declared: &Object<'_>) -> bool {
    let name = declared.text("name").unwrap_or_default();
    declared.is("in", parameter.location.as_str()) && parameter.is(parameter.location, &name)
}

fn example_of(document: &Document, declared: &Object<'_>) -> Option<Value> {
    let listed = || {
        let (_, first) = declared.get("examples")?.members()?.next()?;
        document.object(first)?.get("value")
    };
    let example = declared.get("example").or_else(listed)?;
    let is_shown =
        example.text().len() <= MAX_EXAMPLE_BYTES && !has_hidden_characters(example.text());
    is_shown.then(|| example.value()).flatten()
}

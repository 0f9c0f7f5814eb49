//! Output schemas of tools whose replies a rule shapes: without the fields that no reply has.

use serde_json::Value;

use crate::annotate::output::ReplyDescriber;
use crate::json::JsonObject;
use crate::spec::operation::response_rule::{FieldPosition, ResponseRule};
use crate::spec::{Document, Operation};

/// Returns the schema of an operation's shaped replies; `None` if it cannot be known.
pub(crate) fn ruled_output(
    rule: &ResponseRule,
    document: &Document,
    operation: &Operation,
) -> Option<JsonObject> {
    if rule.jq.is_some() || rule.file == Some(true) {
        return None;
    }
    let mut schema = ReplyDescriber::new(document).lenient(operation)?;
    // A reply that is not an object is under `result`, and is described there.
    let wrapped = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| {
            properties.len() == 1
                && properties
                    .get("result")
                    .is_some_and(|result| result.get("items").is_some())
        });
    let described = if wrapped {
        schema
            .get_mut("properties")?
            .get_mut("result")?
            .as_object_mut()?
    } else {
        &mut schema
    };
    if !rule.drop.is_empty() {
        drop_described(described, &FieldPosition::root(&rule.drop));
    }
    if !rule.fields.is_empty() && !keep_described(described, &FieldPosition::root(&rule.fields)) {
        return None;
    }
    Some(schema)
}

fn drop_described(schema: &mut JsonObject, position: &FieldPosition<'_>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, property| {
            let (inner, is_named) = position.step(name);
            if let (false, Value::Object(property)) = (is_named, property) {
                drop_described(property, &inner);
            }
            !is_named
        });
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        drop_described(items, &position.item(0).0);
    }
}

/// Keeps what a pattern names; says whether anything is left.
fn keep_described(schema: &mut JsonObject, position: &FieldPosition<'_>) -> bool {
    let mut is_left = false;
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, property| {
            let (inner, is_named) = position.step(name);
            is_named
                || property
                    .as_object_mut()
                    .is_some_and(|property| keep_described(property, &inner))
        });
        is_left |= !properties.is_empty();
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        let (inner, is_named) = position.item(0);
        is_left |= is_named || keep_described(items, &inner);
    }
    is_left
}

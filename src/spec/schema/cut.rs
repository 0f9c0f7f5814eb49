//! The size of a schema, and cutting one that is too long: into one that accepts more, never less.

use foldhash::HashSet;
use serde_json::{Map, Value, json};

use super::keywords::{
    copy_member, each_mut, has_keyword, holds_schemas, keyword, keyword_mut, reference, references,
    remove_keyword,
};
use crate::json::JsonObject;
use crate::text;

/// Description of a schema that was left out.
const LEFT_OUT: &str =
    "(any JSON; its schema is left out because it is too long or repeats itself)";

/// References to definitions that are not there any more become schemas that accept anything.
pub(crate) fn drop_dangling(value: &mut Value, defs: &HashSet<String>) {
    let Value::Object(object) = value else { return };
    if reference(object).is_some_and(|name| !defs.contains(name)) {
        object.remove("$ref");
        *value = left_out(object);
        return;
    }
    each_mut(object, |inner| drop_dangling(inner, defs));
}

/// A copy of a schema that is cut at a depth: what would go deeper accepts anything there.
pub(crate) fn pruned_copy(value: &Value, depth: usize) -> Value {
    let Value::Object(object) = value else {
        return value.clone();
    };
    if depth == 0 && object.iter().any(|(key, value)| holds_schemas(key, value)) {
        return left_out(object);
    }
    let copy = |inner: &Value| pruned_copy(inner, depth.saturating_sub(1));
    let copies = object
        .iter()
        .map(|(key, value)| (key.clone(), copy_member(key, value, copy)));
    Value::Object(copies.collect())
}

/// The schema that accepts anything, in place of one that had to go; its description stays.
pub(crate) fn left_out(schema: &JsonObject) -> Value {
    let said = keyword(schema, "description")
        .and_then(Value::as_str)
        .map(|text| format!("{} ", text::truncate(text, 200)))
        .unwrap_or_default();
    json!({ "description": format!("{said}{LEFT_OUT}") })
}

/// Reduces each schema inside of `value` if they are too long together. Level 0 removes examples,
/// titles and defaults, and cuts descriptions; 1 leaves a few words and the type; 2 leaves the
/// type.
pub(crate) fn thin(value: &mut Value, level: usize) {
    let Value::Object(object) = value else { return };
    each_mut(object, |inner| {
        if let Value::Object(inner) = inner {
            match level {
                0 => {
                    inner
                        .retain(|key, _| !matches!(key.as_str(), "examples" | "title" | "default"));
                }
                _ => inner.retain(|key, _| {
                    matches!(
                        key.as_str(),
                        "type" | "description" | "properties" | "items" | "$ref"
                    )
                }),
            }
            let max_bytes = [96, 24].get(level);
            match (max_bytes, keyword_mut(inner, "description")) {
                (Some(max_bytes), Some(Value::String(said))) => {
                    *said = text::truncate(said, *max_bytes);
                }
                _ => {
                    remove_keyword(inner, "description");
                }
            }
        }
        thin(inner, level);
    });
}

/// Definitions that nothing refers to any more.
pub(crate) fn drop_unused(root: &mut Value) {
    let has_definitions = |root: &Value| {
        root.as_object()
            .is_some_and(|root| has_keyword(root, "$defs"))
    };
    while has_definitions(root) {
        let mut used = Vec::new();
        references(root, &mut used);
        let used: HashSet<String> = used.into_iter().collect();
        let Some(Value::Object(defs)) = root.get_mut("$defs") else {
            return;
        };
        let before = defs.len();
        defs.retain(|name, _| used.contains(name));
        if defs.len() == before {
            break;
        }
    }
    if let Value::Object(root) = root
        && keyword(root, "$defs")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
    {
        root.remove("$defs");
    }
}

/// Returns the size of an object as compact JSON in bytes, without escapes in strings.
pub(crate) fn object_size(object: &JsonObject) -> usize {
    (object
        .iter()
        .map(|(key, value)| key.len() + 4 + json_size(value))
        .sum::<usize>()
        + 1)
    .max(2)
}

/// Returns the size of a value as compact JSON in bytes, without escapes in strings.
pub(crate) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(value) => {
            if *value {
                4
            } else {
                5
            }
        }
        Value::Number(number) => number.as_str().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => {
            (items.iter().map(|item| json_size(item) + 1).sum::<usize>() + 1).max(2)
        }
        Value::Object(members) => object_size(members),
    }
}

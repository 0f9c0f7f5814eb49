//! The size of a schema, and cutting one that is too long: into one that accepts more, never less.

use foldhash::HashSet;
use serde_json::{Value, json};

use super::keywords::{
    copy_member, description, each_mut, holds_schemas, keyword_mut, reference, references,
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
    if depth == 0 && holds_schemas(object) {
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
    let said = description(schema).map(|text| text::truncate(text, 200) + " ");
    json!({ "description": said.unwrap_or_default() + LEFT_OUT })
}

/// Reduces each schema inside of `value` if they are too long together. Level 0 removes examples,
/// titles and defaults, and cuts descriptions; 1 leaves a few words and the type; 2 leaves the
/// type.
pub(crate) fn thin(value: &mut Value, level: usize) {
    let Value::Object(object) = value else { return };
    each_mut(object, |inner| {
        if let Value::Object(inner) = inner {
            inner.retain(|key, _| match key.as_str() {
                "examples" | "title" | "default" => false,
                "type" | "description" | "properties" | "items" | "$ref" => true,
                _ => level == 0,
            });
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
    while root.get("$defs").is_some() {
        let used: HashSet<String> = references(root).into_iter().collect();
        let Value::Object(members) = root else { return };
        let Some(Value::Object(defs)) = keyword_mut(members, "$defs") else {
            return;
        };
        let before = defs.len();
        defs.retain(|name, _| used.contains(name));
        if defs.is_empty() {
            members.remove("$defs");
        } else if defs.len() == before {
            return;
        }
    }
}

/// Returns the size of an object as compact JSON in bytes, without escapes in strings.
pub(crate) fn object_size(object: &JsonObject) -> usize {
    let members = object
        .iter()
        .map(|(key, value)| key.len() + 4 + json_size(value));
    (members.sum::<usize>() + 1).max(2)
}

/// Returns the size of a value as compact JSON in bytes, without escapes in strings.
pub(crate) fn json_size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(true) => 4,
        Value::Bool(false) => 5,
        Value::Number(number) => number.as_str().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(items) => {
            (items.iter().map(|item| json_size(item) + 1).sum::<usize>() + 1).max(2)
        }
        Value::Object(members) => object_size(members),
    }
}

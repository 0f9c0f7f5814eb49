//! Sizes of JSON.

use serde_json::Value;

use crate::json::JsonObject;

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

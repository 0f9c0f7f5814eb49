//! The keywords of one schema object. It has few of them, so that comparing each takes less time
//! than hashing the one that is looked for. Maps of properties, which may be large, are asked as
//! maps.

use serde_json::Value;

use crate::json::JsonObject;

/// The value of a keyword.
pub(crate) fn keyword<'s>(schema: &'s JsonObject, name: &str) -> Option<&'s Value> {
    schema
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Returns the value of a keyword like [`keyword`], mutable.
pub(crate) fn keyword_mut<'s>(schema: &'s mut JsonObject, name: &str) -> Option<&'s mut Value> {
    schema
        .iter_mut()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// Returns true if the schema has a keyword.
pub(crate) fn has_keyword(schema: &JsonObject, name: &str) -> bool {
    keyword(schema, name).is_some()
}

/// Removes a keyword, and gives its value; the last keyword takes its place.
pub(crate) fn remove_keyword(schema: &mut JsonObject, name: &str) -> Option<Value> {
    has_keyword(schema, name)
        .then(|| schema.remove(name))
        .flatten()
}

//! The keywords of one schema object, and the schemas directly inside of it. A property may be called
//! `enum` or `$ref`, so the meaning of a key depends on its position, which only this module knows.
//!
//! A schema has few keywords, so that comparing each takes less time than hashing the one that is
//! looked for. Maps of properties, which may be large, are asked as maps.

use serde_json::Value;

use crate::json::JsonObject;
use crate::text::is_word_of;

/// Form in which an applicator holds its schemas.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    /// An object of schemas under names of the author's choice.
    Named,
    /// A list of schemas.
    Listed,
    /// A schema.
    Single,
}

/// The form in which a keyword holds schemas, if it does.
pub(crate) fn held_by(keyword: &str) -> Option<Holds> {
    Some(match keyword {
        "properties" | "patternProperties" | "dependentSchemas" | "$defs" => Holds::Named,
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => Holds::Listed,
        "items" | "additionalProperties" | "contains" | "propertyNames" => Holds::Single,
        _ => return None,
    })
}

/// Calls `visit` with each schema directly inside of `schema`.
pub(crate) fn each<'v>(schema: &'v JsonObject, mut visit: impl FnMut(&'v Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) => match held_by(key) {
                Some(Holds::Named) => named.values().for_each(&mut visit),
                Some(Holds::Single) => visit(value),
                _ => {}
            },
            Value::Array(listed) if held_by(key) == Some(Holds::Listed) => {
                listed.iter().for_each(&mut visit);
            }
            _ => {}
        }
    }
}

/// Visits the schemas like [`each`], mutable.
pub(crate) fn each_mut(schema: &mut JsonObject, mut visit: impl FnMut(&mut Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) => match held_by(key) {
                Some(Holds::Named) => named.values_mut().for_each(&mut visit),
                Some(Holds::Single) => visit(value),
                _ => {}
            },
            Value::Array(listed) if held_by(key) == Some(Holds::Listed) => {
                listed.iter_mut().for_each(&mut visit);
            }
            _ => {}
        }
    }
}

/// Returns true if any schema is inside of `schema`.
pub(crate) fn holds_schemas(schema: &JsonObject) -> bool {
    let mut holds = false;
    each(schema, |_| holds = true);
    holds
}

/// A copy of a member of a schema, with what `copy` makes of each schema directly inside of it.
pub(crate) fn copy_member(
    key: &str,
    value: &Value,
    mut copy: impl FnMut(&Value) -> Value,
) -> Value {
    match (value, held_by(key)) {
        (Value::Object(named), Some(Holds::Named)) => {
            let copies = named
                .iter()
                .map(|(name, schema)| (name.clone(), copy(schema)));
            Value::Object(copies.collect())
        }
        (Value::Object(_), Some(Holds::Single)) => copy(value),
        (Value::Array(listed), Some(Holds::Listed)) => listed.iter().map(copy).collect(),
        _ => value.clone(),
    }
}

/// The `$defs` name that a schema refers to.
pub(crate) fn reference(schema: &JsonObject) -> Option<&str> {
    keyword(schema, "$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// A schema, or the one in `$defs` of `root` that it refers to.
pub(crate) fn resolve_reference<'s>(
    schema: &'s Value,
    root: &'s JsonObject,
) -> Option<&'s JsonObject> {
    let object = schema.as_object()?;
    match reference(object) {
        Some(name) => root.get("$defs")?.get(name)?.as_object(),
        None => Some(object),
    }
}

/// The `$defs` names a schema refers to, in order, with repetition.
pub(crate) fn references(value: &Value) -> Vec<String> {
    let mut found = Vec::new();
    add_references(value, &mut found);
    found
}

fn add_references(value: &Value, found: &mut Vec<String>) {
    let Value::Object(object) = value else { return };
    found.extend(reference(object).map(str::to_owned));
    each(object, |inner| add_references(inner, found));
}

/// Returns the number of levels of schemas inside of a schema: 0 if there is none.
pub(crate) fn levels(value: &Value) -> usize {
    let Value::Object(object) = value else {
        return 0;
    };
    let mut deepest = 0;
    each(object, |inner| deepest = deepest.max(1 + levels(inner)));
    deepest
}

/// The value of a keyword.
pub(crate) fn keyword<'s>(schema: &'s JsonObject, name: &str) -> Option<&'s Value> {
    schema
        .iter()
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value)
}

/// The text of `description`.
pub(crate) fn description(schema: &JsonObject) -> Option<&str> {
    keyword(schema, "description")?.as_str()
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

/// Returns true if the schema has one of some keywords, which are separated by spaces.
pub(crate) fn has_any(schema: &JsonObject, names: &str) -> bool {
    schema.keys().any(|key| is_word_of(names, key))
}

/// Removes a keyword, and gives its value; the last keyword takes its place.
pub(crate) fn remove_keyword(schema: &mut JsonObject, name: &str) -> Option<Value> {
    has_keyword(schema, name)
        .then(|| schema.remove(name))
        .flatten()
}

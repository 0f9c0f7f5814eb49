//! The schemas directly inside of a schema. A property may be called `enum` or `$ref`, so what a key means depends on
//! where it stands, and only here is that known.

use serde_json::{Map, Value};

/// Applicators whose value is an object of schemas under names of the author's choice.
const NAMED: [&str; 4] = ["properties", "patternProperties", "dependentSchemas", "$defs"];
/// Applicators whose value is a list of schemas.
const LISTED: [&str; 4] = ["allOf", "anyOf", "oneOf", "prefixItems"];
/// Applicators whose value is a schema by itself.
pub(crate) const SINGLE: [&str; 10] = [
    "items",
    "additionalProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Calls `visit` with each schema directly inside of `schema`.
pub(crate) fn each<'v>(schema: &'v Map<String, Value>, mut visit: impl FnMut(&'v Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => named.values().for_each(&mut visit),
            Value::Array(listed) if LISTED.contains(&key.as_str()) => listed.iter().for_each(&mut visit),
            Value::Object(_) if SINGLE.contains(&key.as_str()) => visit(value),
            _ => {}
        }
    }
}

/// As [`each`], to change them.
pub(crate) fn each_mut(schema: &mut Map<String, Value>, mut visit: impl FnMut(&mut Value)) {
    for (key, value) in schema {
        match value {
            Value::Object(named) if NAMED.contains(&key.as_str()) => named.values_mut().for_each(&mut visit),
            Value::Array(listed) if LISTED.contains(&key.as_str()) => listed.iter_mut().for_each(&mut visit),
            Value::Object(_) if SINGLE.contains(&key.as_str()) => visit(value),
            _ => {}
        }
    }
}

/// The `$defs` name that a schema refers to.
#[must_use]
pub(crate) fn reference(schema: &Map<String, Value>) -> Option<&str> {
    schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")
}

/// The `$defs` names a schema refers to, in order, with repetition.
pub(crate) fn references(value: &Value, found: &mut Vec<String>) {
    let Value::Object(object) = value else { return };
    found.extend(reference(object).map(str::to_owned));
    each(object, |inner| references(inner, found));
}

//! Schemas that describe the same value (2020-12 core section 10): applicators that stay at a
//! value, and those that go to its members and items.

use serde_json::{Map, Value};

use super::keywords::keyword;
use super::walk::reference;

/// The schemas that describe the same value as this one does: what it refers to, and branches.
pub(crate) fn schemas_of_same_value<'s>(
    schema: &'s Map<String, Value>,
    root: &'s Map<String, Value>,
) -> impl Iterator<Item = &'s Map<String, Value>> {
    let target = reference(schema).and_then(|name| keyword(root, "$defs")?.get(name));
    let listed = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| keyword(schema, key)?.as_array());
    let dependent = keyword(schema, "dependentSchemas")
        .and_then(Value::as_object)
        .into_iter();
    target
        .into_iter()
        .chain(listed.flatten())
        .chain(dependent.flat_map(Map::values))
        .filter_map(Value::as_object)
}

/// The schemas that describe the member of that name: its own, else those for members without one.
pub(crate) fn of_member<'s>(
    schema: &'s Map<String, Value>,
    name: &str,
) -> Vec<&'s Map<String, Value>> {
    let own = keyword(schema, "properties").and_then(|properties| properties.get(name));
    match own.and_then(Value::as_object) {
        Some(own) => vec![own],
        None => of_other_members(schema).collect(),
    }
}

/// The schemas that describe members without one of their own.
pub(crate) fn of_other_members(
    schema: &Map<String, Value>,
) -> impl Iterator<Item = &Map<String, Value>> {
    let patterns = keyword(schema, "patternProperties")
        .and_then(Value::as_object)
        .into_iter();
    patterns
        .flat_map(Map::values)
        .chain(keyword(schema, "additionalProperties"))
        .filter_map(Value::as_object)
}

/// The schemas that describe the item at that index.
pub(crate) fn of_item(
    schema: &Map<String, Value>,
    index: usize,
) -> impl Iterator<Item = &Map<String, Value>> {
    let listed = keyword(schema, "prefixItems")
        .and_then(Value::as_array)
        .and_then(|items| items.get(index));
    let others = ["items", "contains"];
    let others = others.into_iter().filter_map(|key| keyword(schema, key));
    listed
        .into_iter()
        .chain(others)
        .filter_map(Value::as_object)
}

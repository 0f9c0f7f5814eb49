//! Schemas that describe the same value (2020-12 core section 10): applicators that stay at a
//! value, and those that go to its members and items.

use serde_json::{Map, Value};

use super::keywords::{keyword, reference};
use crate::json::JsonObject;

/// Deeper than this no schema reaches.
const MAX_DEPTH: usize = 128;

/// The schemas that describe the same value as this one does: what it refers to, and branches.
fn schemas_of_same_value<'s>(
    schema: &'s JsonObject,
    root: &'s JsonObject,
) -> impl Iterator<Item = &'s JsonObject> {
    let target = reference(schema).and_then(|name| keyword(root, "$defs")?.get(name));
    let listed = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|key| keyword(schema, key)?.as_array());
    target
        .into_iter()
        .chain(listed.flatten())
        .chain(schemas_of_map(schema, "dependentSchemas"))
        .filter_map(Value::as_object)
}

/// The values of a keyword that is a map.
fn schemas_of_map<'s>(schema: &'s JsonObject, key: &str) -> impl Iterator<Item = &'s Value> {
    let map = keyword(schema, key).and_then(Value::as_object);
    map.into_iter().flat_map(Map::values)
}

/// The schemas that describe the member of that name: its own, else those for members without one.
pub(crate) fn of_member<'s>(schema: &'s JsonObject, name: &str) -> Vec<&'s JsonObject> {
    let own = keyword(schema, "properties").and_then(|properties| properties.get(name));
    match own.and_then(Value::as_object) {
        Some(own) => vec![own],
        None => of_other_members(schema).collect(),
    }
}

/// The schemas that describe members without one of their own.
fn of_other_members(schema: &JsonObject) -> impl Iterator<Item = &JsonObject> {
    schemas_of_map(schema, "patternProperties")
        .chain(keyword(schema, "additionalProperties"))
        .filter_map(Value::as_object)
}

/// The schemas that describe the item at that index.
pub(crate) fn of_item(schema: &JsonObject, index: usize) -> impl Iterator<Item = &JsonObject> {
    let listed = keyword(schema, "prefixItems").and_then(|items| items.get(index));
    let others = [keyword(schema, "items"), keyword(schema, "contains")];
    listed
        .into_iter()
        .chain(others.into_iter().flatten())
        .filter_map(Value::as_object)
}

/// The schemas of a value, and all that describe the same value: whichever of them declares a
/// property, its name is the same.
pub(crate) fn gather_schemas<'s>(
    schemas: impl IntoIterator<Item = &'s JsonObject>,
    root: &'s JsonObject,
) -> Vec<&'s JsonObject> {
    let mut all = Vec::new();
    schemas
        .into_iter()
        .for_each(|schema| add_schemas(schema, root, &mut all, 0));
    all
}

fn add_schemas<'s>(
    schema: &'s JsonObject,
    root: &'s JsonObject,
    all: &mut Vec<&'s JsonObject>,
    depth: usize,
) {
    const MAX_SCHEMAS: usize = 256;
    if depth > MAX_DEPTH
        || all.len() > MAX_SCHEMAS
        || all.iter().any(|known| std::ptr::eq(*known, schema))
    {
        return;
    }
    all.push(schema);
    schemas_of_same_value(schema, root).for_each(|other| add_schemas(other, root, all, depth + 1));
}

/// Gives the members of a value, at every depth, the names that `rename` returns. It gets the name
/// of a member, the schemas that describe the object, and the object. `schema`, which is in `root`,
/// describes the value.
pub(crate) fn rename_members(
    value: &mut Value,
    schema: &JsonObject,
    root: &JsonObject,
    mut rename: impl FnMut(&str, &[&JsonObject], &JsonObject) -> Option<String>,
) {
    rename_at(value, &[schema], root, 0, &mut rename);
}

fn rename_at(
    value: &mut Value,
    schemas: &[&JsonObject],
    root: &JsonObject,
    depth: usize,
    rename: &mut impl FnMut(&str, &[&JsonObject], &JsonObject) -> Option<String>,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let all = gather_schemas(schemas.iter().copied(), root);
    match value {
        Value::Object(members) => {
            let given = std::mem::take(members);
            let names = given.keys().map(|name| rename(name, &all, &given));
            let names: Vec<Option<String>> = names.collect();
            for ((name, mut member), new) in given.into_iter().zip(names) {
                // The schemas have one of both names.
                let new_is_declared = new.as_ref().filter(|new| {
                    let mut properties = all.iter().filter_map(|all| keyword(all, "properties"));
                    properties.any(|properties| properties.get(new.as_str()).is_some())
                });
                let declared = new_is_declared.unwrap_or(&name);
                let inner = all.iter().flat_map(|schema| of_member(schema, declared));
                let inner: Vec<&JsonObject> = inner.collect();
                rename_at(&mut member, &inner, root, depth + 1, rename);
                members.insert(new.unwrap_or(name), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner = all.iter().flat_map(|schema| of_item(schema, index));
                let inner: Vec<&JsonObject> = inner.collect();
                rename_at(item, &inner, root, depth + 1, rename);
            }
        }
        _ => {}
    }
}

//! Property names as they are on the wire, in place of the ones that model APIs accept.

use serde_json::{Map, Value};

use crate::spec::schema::wire_names;

/// Deeper than this no schema reaches.
const DEEPEST: usize = 128;

/// Gives the properties of `arguments` their names on the wire back. `wire` is the input schema with those names noted in
/// it; only what the schema describes at that place is renamed, so that free keys of the caller stay as they are.
pub fn restore(arguments: &mut Value, wire: &Map<String, Value>) {
    rename(arguments, &[wire], wire, 0);
}

fn rename(value: &mut Value, schemas: &[&Map<String, Value>], root: &Map<String, Value>, depth: usize) {
    if depth > DEEPEST {
        return;
    }
    let mut all = Vec::new();
    schemas.iter().for_each(|schema| gather(schema, root, &mut all, 0));
    match value {
        Value::Object(members) => {
            let renamed = std::mem::take(members);
            for (key, mut member) in renamed {
                let inner: Vec<_> = all.iter().filter_map(|schema| property(schema, &key)).collect();
                rename(&mut member, &inner, root, depth + 1);
                let name = all.iter().find_map(|schema| wire_names(schema)?.get(&key)?.as_str());
                members.insert(name.map_or(key, str::to_owned), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all.iter().filter_map(|schema| element(schema, index)).collect();
                rename(item, &inner, root, depth + 1);
            }
        }
        _ => {}
    }
}

/// The schema itself, what it refers to, and all branches of its compositions: whichever of them describes a property, its
/// name is the same.
fn gather<'s>(schema: &'s Map<String, Value>, root: &'s Map<String, Value>, all: &mut Vec<&'s Map<String, Value>>, depth: usize) {
    const MOST: usize = 256;
    if depth > DEEPEST || all.len() > MOST || all.iter().any(|known| std::ptr::eq(*known, schema)) {
        return;
    }
    all.push(schema);
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix("#/$defs/"));
    if let Some(Value::Object(target)) = target.and_then(|name| root.get("$defs")?.get(name)) {
        gather(target, root, all, depth + 1);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for branch in schema
            .get(key)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_object)
        {
            gather(branch, root, all, depth + 1);
        }
    }
    for key in ["if", "then", "else"] {
        if let Some(branch) = schema.get(key).and_then(Value::as_object) {
            gather(branch, root, all, depth + 1);
        }
    }
}

fn property<'s>(schema: &'s Map<String, Value>, key: &str) -> Option<&'s Map<String, Value>> {
    let declared = schema.get("properties").and_then(|properties| properties.get(key));
    declared.or_else(|| schema.get("additionalProperties"))?.as_object()
}

fn element(schema: &Map<String, Value>, index: usize) -> Option<&Map<String, Value>> {
    let listed = schema
        .get("prefixItems")
        .and_then(Value::as_array)
        .and_then(|items| items.get(index));
    listed.or_else(|| schema.get("items"))?.as_object()
}

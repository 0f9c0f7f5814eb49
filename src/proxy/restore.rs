//! Property names as they are on the wire, in place of the ones that model APIs accept.

use serde_json::{Map, Value};

use crate::spec::schema::{reference, wire_names};

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
                let inner: Vec<_> = all.iter().flat_map(|schema| property(schema, &key)).collect();
                rename(&mut member, &inner, root, depth + 1);
                let name = all.iter().find_map(|schema| wire_names(schema)?.get(&key)?.as_str());
                members.insert(name.map_or(key, str::to_owned), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all.iter().flat_map(|schema| element(schema, index)).collect();
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
    if let Some(Value::Object(target)) = reference(schema).and_then(|name| root.get("$defs")?.get(name)) {
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
    for branch in schema
        .get("dependentSchemas")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values)
        .filter_map(Value::as_object)
    {
        gather(branch, root, all, depth + 1);
    }
    for key in ["if", "then", "else"] {
        if let Some(branch) = schema.get(key).and_then(Value::as_object) {
            gather(branch, root, all, depth + 1);
        }
    }
}

/// The schemas that describe a member: its own, else those for members without one.
fn property<'s>(schema: &'s Map<String, Value>, key: &str) -> Vec<&'s Map<String, Value>> {
    if let Some(declared) = schema
        .get("properties")
        .and_then(|properties| properties.get(key))
        .and_then(Value::as_object)
    {
        return vec![declared];
    }
    let patterns = schema
        .get("patternProperties")
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(Map::values);
    let others = ["additionalProperties", "unevaluatedProperties"]
        .into_iter()
        .filter_map(|key| schema.get(key));
    patterns.chain(others).filter_map(Value::as_object).collect()
}

fn element(schema: &Map<String, Value>, index: usize) -> Vec<&Map<String, Value>> {
    let listed = schema
        .get("prefixItems")
        .and_then(Value::as_array)
        .and_then(|items| items.get(index));
    let others = ["items", "contains", "unevaluatedItems"]
        .into_iter()
        .filter_map(|key| schema.get(key));
    listed.into_iter().chain(others).filter_map(Value::as_object).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Document;
    use crate::spec::schema::{SchemaOptions, Schemas};
    use proptest::prelude::*;
    use serde_json::json;

    proptest! {
        #[test]
        fn every_name_comes_back_at_every_depth(names in proptest::collection::hash_set(".{1,80}", 1..12), depth in 0..4_usize) {
            let mut schema = json!({ "type": "string" });
            let mut value = json!("x");
            for _ in 0..=depth {
                let properties: Map<String, Value> = names.iter().map(|name| (name.clone(), schema.clone())).collect();
                let members: Map<String, Value> = names.iter().map(|name| (name.clone(), value.clone())).collect();
                schema = json!({ "type": "object", "properties": properties });
                value = Value::Object(members);
                if depth > 1 && names.len() > 3 {
                    break;
                }
            }
            let text = json!({ "openapi": "3.1.0", "paths": {}, "x": schema }).to_string();
            let document = Document::parse(text.into_bytes(), None).unwrap();
            let mut schemas = Schemas::new(&document);
            let span = document.span(document.member("x").unwrap());
            let root = Map::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span, &mut Vec::new()) }))]);
            let completed = schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false }, &mut Vec::new());
            // What a model would give: the value under the advertised names, told apart by what the wire schema notes.
            let mut given = json!({ "body": renamed(&value, &completed.schema["properties"]["body"], completed.wire.as_ref().map(|wire| &wire["properties"]["body"])) });
            if let Some(wire) = &completed.wire {
                restore(&mut given, wire);
            }
            prop_assert_eq!(&given["body"], &value);
        }
    }

    fn renamed(value: &Value, schema: &Value, wire: Option<&Value>) -> Value {
        let Value::Object(members) = value else { return value.clone() };
        let properties = schema["properties"].as_object().unwrap();
        let names = wire.and_then(|wire| wire_names(wire.as_object().unwrap()));
        let out = properties.iter().map(|(key, inner)| {
            let name = names.and_then(|names| names.get(key)).and_then(Value::as_str).unwrap_or(key);
            (
                key.clone(),
                renamed(&members[name], inner, wire.map(|wire| &wire["properties"][key])),
            )
        });
        Value::Object(out.collect())
    }
}

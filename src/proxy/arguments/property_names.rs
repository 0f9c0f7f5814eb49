//! Property names as they are on the wire, in place of the ones that model APIs accept.

use serde_json::{Map, Value};

use super::repair_notes::quote_name;
use crate::json::JsonObject;
use crate::proxy::CallError;
use crate::spec::argument_names::is_legal;
use crate::spec::schema::{WireSchema, of_item, of_member, schemas_of_same_value, wire_names};

/// Deeper than this no schema reaches.
const MAX_DEPTH: usize = 128;

/// Restores the names on the wire of the properties of `arguments`. `wire` is the input schema with
/// those names noted in it; only what the schema describes at that place is renamed, so that free
/// keys of the caller stay as they are.
pub fn restore_property_names(arguments: &mut Value, wire: &Map<String, Value>) {
    rename_value(arguments, &[wire], wire, 0);
}

/// Returns the arguments of a call with the names on the wire, if the input schema had to change
/// some.
#[must_use]
pub(crate) fn with_wire_names(arguments: JsonObject, wire: Option<&WireSchema>) -> JsonObject {
    let Some(wire) = wire else { return arguments };
    let mut value = Value::Object(arguments);
    restore_property_names(&mut value, wire.get());
    match value {
        Value::Object(arguments) => arguments,
        _ => JsonObject::new(),
    }
}

/// The arguments of a call with the names of the input schema for properties that were given under
/// their own, so that these are checked as well. `wire` is the input schema with those names noted
/// in it.
///
/// # Errors
/// A property that is given under both names.
pub(crate) fn with_schema_names(
    arguments: JsonObject,
    wire: Option<&WireSchema>,
) -> Result<JsonObject, CallError> {
    let mut value = Value::Object(arguments);
    if let Some(wire) = wire.filter(|_| has_odd_names(&value, 0)) {
        let wire = wire.get();
        name_by_schema(&mut value, &[wire], wire, 0)?;
    }
    match value {
        Value::Object(arguments) => Ok(arguments),
        _ => Ok(JsonObject::new()),
    }
}

/// Returns true if a value has a name that an input schema cannot have.
fn has_odd_names(value: &Value, depth: usize) -> bool {
    match value {
        _ if depth > MAX_DEPTH => false,
        Value::Object(members) => members
            .iter()
            .any(|(name, member)| !is_legal(name) || has_odd_names(member, depth + 1)),
        Value::Array(items) => items.iter().any(|item| has_odd_names(item, depth + 1)),
        _ => false,
    }
}

fn name_by_schema(
    value: &mut Value,
    schemas: &[&Map<String, Value>],
    root: &Map<String, Value>,
    depth: usize,
) -> Result<(), CallError> {
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let mut all = Vec::new();
    schemas
        .iter()
        .for_each(|schema| gather_schemas(schema, root, &mut all, 0));
    match value {
        Value::Object(members) => {
            let given = std::mem::take(members);
            let in_schema = |own: &String| {
                let names = all.iter().filter_map(|schema| wire_names(schema, root));
                let mut meant = names
                    .flatten()
                    .filter(|(_, wire)| *wire == own)
                    .map(|(name, _)| name);
                meant.next().filter(|_| !is_legal(own))
            };
            let names: Vec<String> = given
                .keys()
                .map(|own| in_schema(own).unwrap_or(own).clone())
                .collect();
            let mut pairs = given.keys().zip(&names);
            if let Some((own, name)) =
                pairs.find(|(own, name)| own != name && given.contains_key(*name))
            {
                let (own, name) = (quote_name(own), quote_name(name));
                let problem = format!(
                    "{own} and {name} are the same property; give it once; nothing was sent"
                );
                return Err(CallError::Arguments(problem));
            }
            for (name, (_, mut member)) in names.into_iter().zip(given) {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_member(schema, &name))
                    .collect();
                name_by_schema(&mut member, &inner, root, depth + 1)?;
                members.insert(name, member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_item(schema, index))
                    .collect();
                name_by_schema(item, &inner, root, depth + 1)?;
            }
        }
        _ => {}
    }
    Ok(())
}

fn rename_value(
    value: &mut Value,
    schemas: &[&Map<String, Value>],
    root: &Map<String, Value>,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let mut all = Vec::new();
    schemas
        .iter()
        .for_each(|schema| gather_schemas(schema, root, &mut all, 0));
    match value {
        Value::Object(members) => {
            let renamed = std::mem::take(members);
            for (key, mut member) in renamed {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_member(schema, &key))
                    .collect();
                rename_value(&mut member, &inner, root, depth + 1);
                let name = all
                    .iter()
                    .find_map(|schema| wire_names(schema, root)?.get(&key)?.as_str());
                members.insert(name.map_or(key, str::to_owned), member);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_item(schema, index))
                    .collect();
                rename_value(item, &inner, root, depth + 1);
            }
        }
        _ => {}
    }
}

/// The schema itself and all that describe the same value: whichever of them declares a property,
/// its name is the same.
pub(super) fn gather_schemas<'s>(
    schema: &'s Map<String, Value>,
    root: &'s Map<String, Value>,
    all: &mut Vec<&'s Map<String, Value>>,
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
    schemas_of_same_value(schema, root)
        .for_each(|other| gather_schemas(other, root, all, depth + 1));
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
            let span = document.member("x").unwrap().span();
            let root = Map::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span, &mut Vec::new()) }))]);
            let completed = schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false }, &mut Vec::new());
            // The value as a model would give it: under the advertised names, as the wire schema
            // notes them.
            let wire = completed.wire.clone().unwrap_or_default();
            let (mut given, _) = given(&json!({ "body": value }), &[&wire], &wire);
            if let Some(wire) = &completed.wire {
                restore_property_names(&mut given, wire);
            }
            prop_assert_eq!(&given["body"], &value);
        }
    }

    /// Names that would like to be called the same, and some that may keep theirs.
    const NAMES: [&str; 9] = [
        "@type",
        "type",
        "$type",
        "type_property",
        "a b",
        "a_b",
        "a-b",
        "[]",
        "x",
    ];

    fn name() -> impl Strategy<Value = String> + Clone {
        proptest::sample::select(NAMES.to_vec()).prop_map(str::to_owned)
    }

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![Just(json!("s")), Just(json!(1))];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                3 => proptest::collection::btree_map(name(), inner.clone(), 0..4).prop_map(|members| Value::Object(members.into_iter().collect())),
                1 => proptest::collection::vec(inner, 0..3).prop_map(Value::Array),
            ]
        })
    }

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!({})),
            Just(json!({"type": "string"})),
            Just(json!({"type": "integer"}))
        ];
        leaf.prop_recursive(4, 48, 4, |inner| {
            let named = proptest::collection::btree_map(name(), inner.clone(), 1..4).boxed();
            let names = proptest::collection::btree_set(name(), 1..3).boxed();
            let branches = proptest::collection::vec(inner.clone(), 1..3).boxed();
            let keyword = prop_oneof![
                8 => named.prop_map(|map| ("properties", json!(map))),
                3 => names.clone().prop_map(|names| ("required", json!(names))),
                2 => (name(), names.clone()).prop_map(|(name, names)| ("dependentRequired", json!({ name: names }))),
                2 => (name(), inner.clone()).prop_map(|(name, schema)| ("dependentSchemas", json!({ name: schema }))),
                1 => names.prop_map(|names| ("propertyNames", json!({"enum": names}))),
                1 => Just(("propertyNames", json!({"pattern": "^[@a-z]"}))),
                1 => inner.clone().prop_map(|schema| ("patternProperties", json!({"^[@t]": schema}))),
                1 => inner.clone().prop_map(|schema| ("additionalProperties", schema)),
                1 => Just(("additionalProperties", json!(false))),
                1 => any_value().prop_map(|value| ("const", value)),
                1 => proptest::collection::vec(any_value(), 1..3).prop_map(|values| ("enum", json!(values))),
                2 => branches.clone().prop_map(|schemas| ("allOf", json!(schemas))),
                2 => branches.clone().prop_map(|schemas| ("anyOf", json!(schemas))),
                1 => branches.prop_map(|schemas| ("prefixItems", json!(schemas))),
                1 => inner.clone().prop_map(|schema| ("items", schema)),
                1 => Just(("$ref", json!("#/components/schemas/A"))),
                1 => Just(("$ref", json!("#/components/schemas/B"))),
            ];
            proptest::collection::vec(keyword, 1..4).prop_map(|keywords| {
                let mut schema: Map<String, Value> = keywords.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                schema.shift_remove("type");
                Value::Object(schema)
            })
        })
    }

    /// Returns a value under the names that a model gives, and the part of it that can be given
    /// under them: not an undeclared member that has the new name of another one.
    fn given(
        value: &Value,
        schemas: &[&Map<String, Value>],
        root: &Map<String, Value>,
    ) -> (Value, Value) {
        let mut all = Vec::new();
        schemas
            .iter()
            .for_each(|schema| gather_schemas(schema, root, &mut all, 0));
        match value {
            Value::Object(members) => {
                let names: Vec<(&String, &str)> = all
                    .iter()
                    .filter_map(|schema| wire_names(schema, root))
                    .flatten()
                    .filter_map(|(key, wire)| Some((key, wire.as_str()?)))
                    .collect();
                let (mut renamed, mut kept) = (Map::new(), Map::new());
                for (name, member) in members {
                    let key = names
                        .iter()
                        .find(|(_, wire)| wire == name)
                        .map_or(name, |(key, _)| *key);
                    if key == name && names.iter().any(|(key, _)| *key == name) {
                        continue;
                    }
                    let inner: Vec<_> = all
                        .iter()
                        .flat_map(|schema| of_member(schema, key))
                        .collect();
                    let (member, own) = given(member, &inner, root);
                    assert!(
                        renamed.insert(key.clone(), member).is_none(),
                        "two members are called {key}"
                    );
                    kept.insert(name.clone(), own);
                }
                (Value::Object(renamed), Value::Object(kept))
            }
            Value::Array(items) => {
                let pairs = items.iter().enumerate().map(|(index, item)| {
                    let inner: Vec<_> = all
                        .iter()
                        .flat_map(|schema| of_item(schema, index))
                        .collect();
                    given(item, &inner, root)
                });
                let (renamed, kept): (Vec<_>, Vec<_>) = pairs.unzip();
                (Value::Array(renamed), Value::Array(kept))
            }
            other => (other.clone(), other.clone()),
        }
    }

    /// All property names of a schema, at every depth.
    fn all_legal(schema: &Value) -> bool {
        match schema {
            Value::Object(object) => {
                let own = object
                    .get("properties")
                    .and_then(Value::as_object)
                    .into_iter()
                    .flatten();
                own.into_iter().all(|(name, _)| {
                    crate::spec::argument_names::sanitize_argument_name(name) == *name
                }) && object.values().all(all_legal)
            }
            Value::Array(items) => items.iter().all(all_legal),
            _ => true,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        #[test]
        fn a_member_has_one_name_in_all_that_describes_it(
            schema in any_schema(), a in any_schema(), b in any_schema(), values in proptest::collection::vec(any_value(), 6), inlines: bool
        ) {
            let (mut a, b) = (a, b);
            if !inlines && let Value::Object(a) = &mut a {
                // What recurses stays a reference.
                a.insert("dependentSchemas".into(), json!({"none": {"properties": {"none": {"$ref": "#/components/schemas/A"}}}}));
            }
            let text = json!({"openapi": "3.1.0", "paths": {}, "x": schema, "components": {"schemas": {"A": a, "B": b}}}).to_string();
            let document = Document::parse(text.clone().into_bytes(), None).unwrap();
            let span = document.member("x").unwrap().span();
            let completed = |mut schemas: Schemas<'_>| {
                let root = Map::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span, &mut Vec::new()) }))]);
                schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false }, &mut Vec::new())
            };
            let (plain, advertised) = (completed(Schemas::for_output(&document)), completed(Schemas::new(&document)));
            let (plain, schema) = (Value::Object(plain.schema), Value::Object(advertised.schema.clone()));
            // A name that is never declared as a property may stay what it is.
            prop_assert!(all_legal(&schema["properties"]), "{schema}");
            let wire = advertised.wire.unwrap_or(advertised.schema);
            for value in values {
                let (given, kept) = given(&json!({ "body": value }), &[&wire], &wire);
                let mut restored = given.clone();
                restore_property_names(&mut restored, &wire);
                prop_assert_eq!(&restored, &kept, "{}", schema);
                let (before, after) = (jsonschema::is_valid(&plain, &kept), jsonschema::is_valid(&schema, &given));
                let exact = !text.contains("patternProperties") && !text.contains("pattern");
                prop_assert!(if exact { before == after } else { after || !before }, "{} {}\n{}\n{}", kept, given, plain, schema);
            }
        }
    }
}

//! Names of properties: as on the wire in place of those that model APIs accept, and names in other
//! letters, such as `pet_id` or `PetID` for `petId`. A name is read as another one only if exactly
//! one is meant.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::{Map, Value};

use super::repair::{RepairNotes, quote_name, walk};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::NewNames;

/// Returns the arguments of a call with the names on the wire. `schema` is the input schema, which
/// has `names`.
pub(crate) fn with_wire_names(
    arguments: JsonObject,
    names: Option<&NewNames>,
    schema: &JsonObject,
) -> JsonObject {
    let Some(names) = names else { return arguments };
    let mut value = Value::Object(arguments);
    names.restore(&mut value, schema);
    object(value)
}

/// The arguments of a call with the names of the input schema for properties that were given under
/// their own, so that these are checked as well.
///
/// # Errors
/// A property that is given under both names.
pub(crate) fn with_schema_names(
    arguments: JsonObject,
    names: Option<&NewNames>,
    schema: &JsonObject,
) -> Result<JsonObject, CallError> {
    let Some(names) = names else {
        return Ok(arguments);
    };
    let mut value = Value::Object(arguments);
    names.give_keys(&mut value, schema).map_err(|(own, name)| {
        let (own, name) = (quote_name(&own), quote_name(&name));
        CallError::Arguments(format!(
            "{own} and {name} are the same property; give it once; nothing was sent"
        ))
    })?;
    Ok(object(value))
}

pub(super) fn object(value: Value) -> JsonObject {
    match value {
        Value::Object(arguments) => arguments,
        _ => JsonObject::new(),
    }
}

/// The letters and digits of a name in lower case: names with the same letters are the same to a
/// model.
pub(crate) fn letters(name: &str) -> String {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The properties that the schemas of one value declare.
pub(crate) fn declared_properties<'s>(schemas: &[&'s JsonObject]) -> Vec<&'s str> {
    let properties = schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.as_object());
    let mut seen = HashSet::new();
    properties
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}

/// Gives the members of the objects in a body the names of declared properties, if only such a name
/// can be meant: the object declares no such member, takes no others or lacks the one that is meant,
/// and no two members or properties have the same letters. `schema` describes the body, and `root`
/// has its definitions.
pub(crate) fn respell(
    body: &mut Value,
    schema: &JsonObject,
    root: &JsonObject,
    notes: &mut RepairNotes,
) {
    let place = format!("/{BODY}");
    walk(
        body,
        &[schema],
        root,
        &place,
        16,
        &mut |value, schemas, place| {
            if let Value::Object(members) = value {
                rename_members(members, schemas, place, notes);
            }
            true
        },
    );
}

fn rename_members(
    members: &mut JsonObject,
    schemas: &[&JsonObject],
    place: &str,
    notes: &mut RepairNotes,
) {
    let declared = declared_properties(schemas);
    if members.keys().all(|name| declared.contains(&name.as_str())) {
        return;
    }
    let has = |is: &dyn Fn(&JsonObject) -> bool| schemas.iter().any(|schema| is(schema));
    if has(&|schema| schema.contains_key("patternProperties")) {
        return;
    }
    let is_closed = has(&|schema| schema.get("additionalProperties") == Some(&false.into()));
    let is_required = |name| {
        has(&|schema| {
            let required = schema.get("required").and_then(Value::as_array);
            required.is_some_and(|required| required.iter().any(|other| other == name))
        })
    };
    // The only property, and the only member, of these letters.
    let mut properties: HashMap<String, Option<&str>> = HashMap::new();
    for property in declared {
        let same = properties.entry(letters(property));
        same.and_modify(|only| *only = None)
            .or_insert(Some(property));
    }
    let mut given: HashMap<String, usize> = HashMap::new();
    for name in members.keys() {
        *given.entry(letters(name)).or_default() += 1;
    }
    // Parts of a body are sent in the order of its members.
    let renamed = std::mem::take(members).into_iter().map(|(name, member)| {
        let spelling = letters(&name);
        match properties.get(&spelling).copied().flatten() {
            Some(property)
                if !spelling.is_empty()
                    && name != property
                    && (is_closed || is_required(property))
                    && given.get(&spelling) == Some(&1) =>
            {
                notes.push(
                    &format!("{place}/{name}"),
                    &format!("was read as {}", quote_name(&format!("{place}/{property}"))),
                );
                (property.to_owned(), member)
            }
            _ => (name, member),
        }
    });
    *members = renamed.collect();
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::spec::Document;
    use crate::spec::schema::{SchemaOptions, Schemas};

    proptest! {
        #[test]
        fn every_name_comes_back_at_every_depth(names in proptest::collection::hash_set(".{1,80}", 1..12), depth in 0..4_usize) {
            let mut schema = json!({ "type": "string" });
            let mut value = json!("x");
            for _ in 0..=depth {
                let properties: JsonObject = names.iter().map(|name| (name.clone(), schema.clone())).collect();
                let members: JsonObject = names.iter().map(|name| (name.clone(), value.clone())).collect();
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
            let root = JsonObject::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span, &mut Vec::new()) }))]);
            let completed = schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false }, &mut Vec::new());
            // The value as a model would give it: under the advertised names.
            let names = completed.names.unwrap_or_default();
            let (mut given, _) = given(&json!({ "body": value }), &names, &completed.schema);
            names.restore(&mut given, &completed.schema);
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
                let mut schema: JsonObject = keywords.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
                schema.shift_remove("type");
                Value::Object(schema)
            })
        })
    }

    /// Returns a value under the names that a model gives, and the part of it that can be given
    /// under them: not a member that has the key of another one.
    fn given(value: &Value, names: &NewNames, root: &JsonObject) -> (Value, Value) {
        let (mut given, mut kept) = (value.clone(), value.clone());
        drop_members(&mut kept, &|name| names.is_key(name));
        given.clone_from(&kept);
        names.give_keys(&mut given, root).unwrap();
        (given, kept)
    }

    fn drop_members(value: &mut Value, is_dropped: &dyn Fn(&str) -> bool) {
        match value {
            Value::Object(members) => {
                members.retain(|name, _| !is_dropped(name));
                members
                    .values_mut()
                    .for_each(|member| drop_members(member, is_dropped));
            }
            Value::Array(items) => items
                .iter_mut()
                .for_each(|item| drop_members(item, is_dropped)),
            _ => {}
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
                let root = JsonObject::from_iter([("properties".to_owned(), json!({ "body": schemas.translate(span, &mut Vec::new()) }))]);
                schemas.complete(root, &SchemaOptions { budget: 1 << 30, inline_all: false }, &mut Vec::new())
            };
            let (plain, advertised) = (completed(Schemas::for_output(&document)), completed(Schemas::new(&document)));
            let names = advertised.names.unwrap_or_default();
            let root = advertised.schema;
            let (plain, schema) = (Value::Object(plain.schema), Value::Object(root.clone()));
            // A name that is never declared as a property may stay what it is.
            prop_assert!(all_legal(&schema["properties"]), "{schema}");
            for value in values {
                let (given, kept) = given(&json!({ "body": value }), &names, &root);
                let mut restored = given.clone();
                names.restore(&mut restored, &root);
                prop_assert_eq!(&restored, &kept, "{}", schema);
                let (before, after) = (jsonschema::is_valid(&plain, &kept), jsonschema::is_valid(&schema, &given));
                let exact = !["pattern", "const", "enum"].iter().any(|word| text.contains(word));
                prop_assert!(if exact { before == after } else { after || !before }, "{} {}\n{}\n{}", kept, given, plain, schema);
            }
        }
    }
}

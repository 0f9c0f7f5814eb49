//! The published schema of the configuration file, which says of each key whether it belongs under
//! an API or to the whole process.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::clients::ScopeSettings;
use super::clients::access_rules::AccessSchema;
use super::file::{FILE_ONLY, FileSettings, read_yaml};
use super::overrides::OverridesSchema;
use super::settings::CommonSettings;
use super::several::NamedSettings;
use super::tables::{RANGES, keys};

/// The key and the definition of one API.
fn apis() -> Value {
    let own: BTreeSet<String> = keys::<NamedSettings>()
        .into_iter()
        .chain(FILE_ONLY.map(str::to_owned))
        .collect();
    // Each means the same as at the top of a file for one API.
    let properties: Map<String, Value> = own
        .into_iter()
        .map(|key| {
            let reference = json!({ "$ref": format!("#/properties/{key}") });
            (key, reference)
        })
        .collect();
    json!({
        "properties": { "apis": {
            "description": "Several APIs in place of `spec`, each by its name, with its settings; there is no inheritance. What concerns the process stays at the top, and so do the settings that hold for all of them: mock, max_result_tokens, tools, client and max_list_tokens (docs/guides/several-apis.md). Only in the configuration file.",
            "examples": [{ "pets": { "spec": "petstore.yaml" }, "bills": { "spec": "bills.yaml", "tool_prefix": "b_" } }],
            "type": "object",
            "minProperties": 1,
            "propertyNames": { "pattern": "^[a-z][a-z0-9_-]{0,31}$", "not": { "const": "readonly" } },
            "additionalProperties": { "$ref": "#/$defs/Api" }
        }},
        "$defs": { "Api": {
            "description": "One API of several",
            "type": "object",
            "required": ["spec"],
            "properties": properties,
            "additionalProperties": false
        }}
    })
}

/// Returns the schema of the keys that must not be beside `apis`, because they apply to one API.
fn beside_apis(schema: &Value) -> Value {
    let of_one = schema["$defs"]["Api"]["properties"]
        .as_object()
        .unwrap()
        .keys();
    let (common, scopes) = (keys::<CommonSettings>(), keys::<ScopeSettings>());
    // Beside `apis`, `about` is that of the whole server.
    let refused =
        of_one.filter(|key| !common.contains(key) && !scopes.contains(key) && *key != "about");
    let refused: Map<String, Value> = refused.map(|key| (key.clone(), false.into())).collect();
    json!({ "apis": { "properties": refused } })
}

/// A setting that is left out has no key: a key without a value is an error.
fn remove_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(remove_null),
        Value::Object(members) => {
            members.values_mut().for_each(remove_null);
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|name| name != "null");
                if let [only] = types.as_slice() {
                    members["type"] = only.clone();
                }
            }
            if let Some(Value::Array(any)) = members.get_mut("anyOf") {
                any.retain(|one| one["type"] != "null");
                if let [Value::Object(only)] = any.as_slice() {
                    let only = only.clone();
                    members.remove("anyOf");
                    members.extend(only);
                }
            }
        }
        _ => {}
    }
}

fn remove_empty_defaults(schema: &mut Value) {
    let members = schema.as_object_mut().unwrap().values_mut();
    for member in members.filter_map(Value::as_object_mut) {
        if let Some(Value::Null | Value::Array(_)) = member.get("default") {
            member.remove("default");
        }
        if let Some(properties) = member.get_mut("properties") {
            remove_empty_defaults(properties);
        }
    }
}

/// Examples of structured values are declared as YAML.
fn read_examples(schema: &mut Value) {
    for property in schema.as_object_mut().unwrap().values_mut() {
        let is_text = property["type"] == "string";
        let examples = property.get_mut("examples").and_then(Value::as_array_mut);
        for example in examples.into_iter().flatten() {
            if let (Some(text), false) = (example.as_str(), is_text) {
                *example = read_yaml(text).unwrap();
            }
        }
    }
}

/// The schema of the configuration file, with what its declarations say of each key.
pub(crate) fn published_schema() -> Value {
    let mut schema = serde_json::to_value(schemars::schema_for!(FileSettings)).unwrap();
    let overrides = serde_json::to_value(schemars::schema_for!(OverridesSchema)).unwrap();
    let access = serde_json::to_value(schemars::schema_for!(AccessSchema)).unwrap();
    for more in [overrides, access, apis()] {
        for part in ["properties", "$defs"] {
            let more = more[part].as_object().cloned().unwrap_or_default();
            schema[part].as_object_mut().unwrap().extend(more);
        }
    }
    schema["dependentSchemas"] = beside_apis(&schema);
    schema["title"] = "openapi-mcp configuration".into();
    schema["additionalProperties"] = false.into();
    schema.as_object_mut().unwrap().remove("description");
    // What is not given has no value in a file.
    for part in ["properties", "$defs"] {
        remove_empty_defaults(&mut schema[part]);
    }
    remove_null(&mut schema);
    for range in &RANGES {
        let number = |value: f64| serde_json::from_str::<Value>(&value.to_string()).unwrap();
        let property = &mut schema["properties"][range.key];
        let min = if range.zero.is_some() { 0.0 } else { range.min };
        property["minimum"] = number(min);
        if range.max.is_finite() {
            property["maximum"] = number(range.max);
        }
    }
    read_examples(&mut schema["properties"]);
    schema
}

#[test]
fn the_published_schema_is_fresh() {
    let schema = published_schema();
    let text = serde_json::to_string_pretty(&schema).unwrap() + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/config/schema.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, &text).unwrap();
    }
    assert_eq!(
        std::fs::read_to_string(path).unwrap_or_default(),
        text,
        "run the tests once with UPDATE=1"
    );
}

//! The key `apis` in the published schema, which says of each key whether it belongs under an API or to the whole process.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::keys::{KEYS_OF_BOTH, PROCESS_KEYS};
use super::scopes::ScopeSettings;
use crate::config::forward::ForwardSettings;
use crate::config::layer::keys;

/// The key and the definition of one API; `api` and `overrides` are the schemas of the keys that may stand under its name.
pub(crate) fn apis(api: &Value, overrides: &Value) -> Value {
    let own = [api, overrides]
        .into_iter()
        .flat_map(|schema| schema["properties"].as_object().unwrap().keys().cloned());
    let own = own.chain(keys::<ForwardSettings>()).chain(keys::<ScopeSettings>());
    let own: BTreeSet<String> = own.filter(|key| !PROCESS_KEYS.contains(&key.as_str())).collect();
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
            "description": "Several APIs, each by its name. What concerns one of them stands under its name, and nothing is inherited. Only in the configuration file.",
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

/// What may not stand beside `apis`: what concerns one API.
pub(crate) fn beside_apis(schema: &Value) -> Value {
    let of_one = schema["$defs"]["Api"]["properties"].as_object().unwrap().keys();
    let scopes = keys::<ScopeSettings>();
    let refused = of_one.filter(|key| !KEYS_OF_BOTH.contains(&key.as_str()) && !scopes.contains(key));
    let refused: Map<String, Value> = refused.map(|key| (key.clone(), false.into())).collect();
    json!({ "apis": { "properties": refused } })
}

//! The key `apis` in the published schema, which says of each key whether it belongs under an API
//! or to the whole process.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::admission::FILE_ONLY;
use super::named::NamedSettings;
use crate::config::clients::scopes::ScopeSettings;
use crate::config::layer::keys;
use crate::config::settings::CommonSettings;

/// The key and the definition of one API.
pub(crate) fn apis() -> Value {
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
            "description": "Several APIs, each by its name. The settings of one of them are under its name; there is no inheritance. Only in the configuration file.",
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
pub(crate) fn beside_apis(schema: &Value) -> Value {
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

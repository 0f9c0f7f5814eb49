//! Repair of arguments that models often give in the wrong shape, guided by the schema and never against it.
//!
//! Only arguments that do not validate come here. An object or array given as a JSON string is parsed where the schema
//! takes no string; `"5"` becomes 5 and `"true"` becomes true where only that fits; null for an optional argument that
//! cannot be null is dropped; a lone value for a list becomes a list of one.

use serde_json::{Map, Value};

use crate::json;
use crate::spec::schema::reference;

/// Deeper than this nothing is repaired.
const MAX_DEPTH: usize = 16;

/// Repairs `arguments` in place, by the input schema `root`.
pub(crate) fn repair_arguments(arguments: &mut Value, root: &Map<String, Value>) {
    repair_object(arguments, root, root, 0);
}

fn repair_value(value: &mut Value, schema: &Value, root: &Map<String, Value>, depth: usize) {
    let Some(schema) = resolve_reference(schema, root) else { return };
    if depth > MAX_DEPTH {
        return;
    }
    if let Some(kinds) = kinds(schema, root, 0) {
        if let Value::String(text) = value
            && !kinds.contains(&"string")
            && let Some(parsed) = reread(text, &kinds)
        {
            *value = parsed;
        }
        if kinds == ["array"] && !value.is_array() && !value.is_null() {
            *value = Value::Array(vec![std::mem::take(value)]);
        }
    }
    match value {
        Value::Object(_) => repair_object(value, schema, root, depth),
        Value::Array(items) => {
            if let Some(inner) = schema.get("items") {
                items.iter_mut().for_each(|item| self::repair_value(item, inner, root, depth + 1));
            }
        }
        _ => {}
    }
}

fn repair_object(value: &mut Value, schema: &Map<String, Value>, root: &Map<String, Value>, depth: usize) {
    let (Value::Object(members), Some(Value::Object(properties))) = (value, schema.get("properties")) else {
        return;
    };
    let required = |name: &str| {
        schema
            .get("required")
            .and_then(Value::as_array)
            .is_some_and(|names| names.iter().any(|other| other == name))
    };
    // Only an argument can be absent in this way: in a body, null may well mean that something is to go (RFC 7396).
    members.retain(|name, member| {
        if depth > 0 {
            return true;
        }
        let Some(property) = properties.get(name) else { return true };
        !(member.is_null()
            && !required(name)
            && resolve_reference(property, root)
                .and_then(|schema| kinds(schema, root, 0))
                .is_some_and(|kinds| !kinds.contains(&"null")))
    });
    for (name, member) in members.iter_mut() {
        if let Some(property) = properties.get(name) {
            self::repair_value(member, property, root, depth + 1);
        }
    }
}

/// The text read as JSON, where that gives one of the kinds that fit.
fn reread(text: &str, fitting: &[&str]) -> Option<Value> {
    let parsed = json::parse_value(text.trim().as_bytes()).ok()?;
    let fits = match &parsed {
        Value::Null => fitting.contains(&"null"),
        Value::Bool(_) => fitting.contains(&"boolean"),
        Value::Number(number) => {
            fitting.contains(&"number") || (fitting.contains(&"integer") && !number.to_string().contains(['.', 'e', 'E']))
        }
        Value::String(_) => false,
        Value::Array(_) => fitting.contains(&"array"),
        Value::Object(_) => fitting.contains(&"object"),
    };
    fits.then_some(parsed)
}

fn resolve_reference<'s>(schema: &'s Value, root: &'s Map<String, Value>) -> Option<&'s Map<String, Value>> {
    let object = schema.as_object()?;
    match reference(object) {
        Some(name) => root.get("$defs")?.get(name)?.as_object(),
        None => Some(object),
    }
}

/// The types that a schema takes, where it says so: its `type`, or those of all branches of a choice, or of an enum.
fn kinds<'s>(schema: &'s Map<String, Value>, root: &'s Map<String, Value>, depth: usize) -> Option<Vec<&'s str>> {
    if depth > MAX_DEPTH {
        return None;
    }
    match schema.get("type") {
        Some(Value::String(kind)) => return Some(vec![kind]),
        Some(Value::Array(list)) => return Some(list.iter().filter_map(Value::as_str).collect()),
        _ => {}
    }
    for choice in ["anyOf", "oneOf"] {
        if let Some(branches) = schema.get(choice).and_then(Value::as_array) {
            let mut all = Vec::new();
            for branch in branches {
                all.extend(kinds(resolve_reference(branch, root)?, root, depth + 1)?);
            }
            return Some(all);
        }
    }
    if let Some(branches) = schema.get("allOf").and_then(Value::as_array) {
        return branches
            .iter()
            .find_map(|branch| kinds(resolve_reference(branch, root)?, root, depth + 1));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_models_mistype_is_put_right() {
        let root = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string"}, "any": {},
            "o": {"type": "object", "properties": {"n": {"type": "integer"}}}, "l": {"type": "array", "items": {"type": "integer"}},
            "u": {"type": ["string", "integer"]}, "tree": {"$ref": "#/$defs/T"}, "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        }, "$defs": {"T": {"type": "object", "properties": {"child": {"$ref": "#/$defs/T"}, "n": {"type": "integer"}}}}});
        let mut arguments = json!({"n": "5", "f": "1.50", "b": "true", "s": "5", "any": "5", "o": "{\"n\":\"7\"}", "l": "3", "u": "5", "tree": {"child": {"n": "1"}}, "c": "null"});
        repair_arguments(&mut arguments, root.as_object().unwrap());
        let expected: Value = serde_json::from_str(r#"{"n": 5, "f": 1.50, "b": true, "s": "5", "any": "5", "o": {"n": 7}, "l": [3], "u": "5", "tree": {"child": {"n": 1}}, "c": null}"#).unwrap();
        assert_eq!(arguments, expected);
    }

    #[test]
    fn null_for_an_optional_argument_is_no_argument() {
        let root =
            json!({"required": ["r"], "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "r": {"type": "string"}}});
        let mut arguments = json!({"a": null, "b": null, "r": null, "x": null});
        repair_arguments(&mut arguments, root.as_object().unwrap());
        assert_eq!(arguments, json!({"b": null, "r": null, "x": null}));
    }

    #[test]
    fn nothing_is_repaired_into_what_does_not_fit() {
        let root = json!({"properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}});
        let mut arguments = json!({"n": "1.5", "b": "yes"});
        repair_arguments(&mut arguments, root.as_object().unwrap());
        assert_eq!(arguments, json!({"n": "1.5", "b": "yes"}));
    }
}

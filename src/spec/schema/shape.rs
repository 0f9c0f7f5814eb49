//! Corrections of a schema once all of its keywords are translated: dialects, contradictions, and
//! requirements of clients.

use serde_json::{Map, Value, json};

use super::keywords::{has_any, has_keyword, keyword, keyword_mut, remove_keyword};
use crate::json::JsonObject;
use crate::spec::document::Version;

/// Documents give constants, defaults and examples that their own type refuses. A constant counts
/// more than the type; a default or an example that is refused only misleads.
pub(crate) fn drop_contradictions(out: &mut JsonObject) {
    let kinds = types_of(out).to_vec();
    if kinds.is_empty() {
        return;
    }
    let fits = |value: &Value| {
        let mut kinds = kinds.iter().filter_map(Value::as_str);
        kinds.any(|kind| is_kind(value, kind))
    };
    let requires = has_keyword(out, "required");
    let refused =
        |value: &Value| !fits(value) || (requires && value.as_object().is_some_and(Map::is_empty));
    let values = keyword(out, "enum").and_then(Value::as_array);
    if values.is_some_and(|values| !values.iter().any(fits)) {
        // The constants of a list are meant for its items.
        let wrong = if kinds == ["array"] { "enum" } else { "type" };
        remove_keyword(out, wrong);
    }
    if keyword(out, "default").is_some_and(refused) {
        remove_keyword(out, "default");
    }
    let values = keyword(out, "examples").and_then(Value::as_array);
    if values.is_some_and(|values| values.iter().any(refused)) {
        remove_keyword(out, "examples");
    }
}

/// The types that a schema names.
fn types_of(schema: &JsonObject) -> &[Value] {
    match keyword(schema, "type") {
        Some(Value::Array(kinds)) => kinds,
        kind => kind.map_or(&[], std::slice::from_ref),
    }
}

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "string" => value.is_string(),
        "integer" => {
            value.as_i64().is_some()
                || value.as_u64().is_some()
                || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

/// Draft-04 and OpenAPI 3.0 write `exclusiveMinimum: true` beside `minimum`.
pub(crate) fn exclusive_limits(out: &mut JsonObject) {
    for (exclusive, limit) in [
        ("exclusiveMinimum", "minimum"),
        ("exclusiveMaximum", "maximum"),
    ] {
        if let Some(&Value::Bool(is_exclusive)) = keyword(out, exclusive) {
            remove_keyword(out, exclusive);
            if is_exclusive && let Some(value) = remove_keyword(out, limit) {
                out.insert(exclusive.into(), value);
            }
        }
    }
}

/// Some clients refuse an array without `items` and an object without `properties`.
pub(crate) fn complete_containers(out: &mut JsonObject, infers: bool, version: Version) {
    let kinds = types_of(out);
    let [array, object] = ["array", "object"].map(|name| kinds.iter().any(|kind| kind == name));
    // Properties without a type are meant as an object's; without the word, models give objects as
    // text and nothing objects.
    if infers
        && has_keyword(out, "properties")
        && !has_any(out, "type $ref enum const allOf anyOf oneOf not")
    {
        // From 3.1 on, null and other values are valid there as well (2020-12 validation section
        // 6.1.1): null is meant now and then.
        let kinds = if version >= Version::V3_1 {
            json!(["object", "null"])
        } else {
            "object".into()
        };
        out.insert("type".into(), kinds);
    }
    if array && !has_keyword(out, "items") {
        out.insert("items".into(), json!({}));
    }
    if object && !has_keyword(out, "properties") {
        out.insert("properties".into(), json!({}));
    }
}

/// OpenAPI 3.0 `nullable: true`.
pub(crate) fn make_nullable(mut out: JsonObject) -> Value {
    let composed = has_any(&out, "$ref allOf anyOf oneOf not const");
    match keyword_mut(&mut out, "type") {
        Some(Value::String(kind)) if !composed => {
            let kind = std::mem::take(kind);
            out.insert("type".into(), json!([kind, "null"]));
        }
        Some(Value::Array(kinds)) if !composed => {
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push("null".into());
            }
        }
        None if !composed => {}
        _ => {
            let mut outer = JsonObject::new();
            for annotation in ["title", "description", "default", "deprecated", "examples"] {
                outer.extend(out.remove_entry(annotation));
            }
            outer.insert("anyOf".into(), json!([out, { "type": "null" }]));
            return Value::Object(outer);
        }
    }
    if let Some(Value::Array(values)) = keyword_mut(&mut out, "enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Value::Object(out)
}

/// `type` with the names that JSON Schema knows; documents also write `file`, `any` or `String`.
pub(crate) fn types(value: Value) -> Option<Value> {
    const KNOWN: [&str; 7] = [
        "string", "number", "integer", "boolean", "array", "object", "null",
    ];
    let known = |kind: &str| KNOWN.contains(&kind);
    match value {
        Value::String(kind) if known(&kind) => Some(Value::String(kind)),
        // Swagger's `file` is a string of bytes.
        Value::String(kind) if kind == "file" => Some("string".into()),
        Value::Array(kinds) => {
            let mut kept: Vec<Value> = Vec::new();
            for kind in kinds {
                if kind.as_str().is_some_and(known) && !kept.contains(&kind) {
                    kept.push(kind);
                }
            }
            match kept.len() {
                0 => None,
                1 => kept.pop(),
                _ => Some(Value::Array(kept)),
            }
        }
        _ => None,
    }
}

/// A count: documents also write `1.0`.
pub(crate) fn read_count(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a whole number below 2^53"
        )]
        (float >= 0.0 && float.fract() == 0.0 && float < 9_007_199_254_740_992.0)
            .then_some(float as u64)
    })
}

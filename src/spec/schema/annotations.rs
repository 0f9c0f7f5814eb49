//! Annotations of a schema: descriptions, examples, formats.

use serde_json::Value;

use super::keywords::{has_keyword, keyword};
use crate::json::JsonObject;
use crate::text;

/// Examples longer than this are not shown to the model.
const MAX_EXAMPLE_BYTES: usize = 200;

/// Keywords that only say something about a value (2020-12 validation sections 7 to 9).
pub(crate) fn annotation(key: &str, value: Value, out: &mut JsonObject) {
    match (key, value) {
        ("title", Value::String(text)) => {
            out.insert(
                key.into(),
                Value::String(text::truncate(&text::one_line(&text), 200)),
            );
        }
        ("description", Value::String(text)) if has_keyword(out, "description") => {
            let format = keyword(out, "description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let text = text::truncate(&text::clean(&text), text::MAX_DESCRIPTION_BYTES - 80);
            out.insert(
                "description".into(),
                Value::String(format!("{text} {format}")),
            );
        }
        ("description", Value::String(text)) => {
            let text = text::truncate(&text::clean(&text), text::MAX_DESCRIPTION_BYTES);
            if !text.is_empty() {
                out.insert(key.into(), Value::String(text));
            }
        }
        // An unknown format informs a reader, but makes validators complain.
        ("format", Value::String(text)) if !FORMATS.contains(&text.as_str()) => {
            let said = keyword(out, "description")
                .and_then(Value::as_str)
                .map(|said| format!("{said} "))
                .unwrap_or_default();
            out.insert(
                "description".into(),
                Value::String(format!(
                    "{said}(format: {})",
                    text::truncate(&text::one_line(&text), 60)
                )),
            );
        }
        ("format" | "contentEncoding" | "contentMediaType", Value::String(text)) => {
            out.insert(key.into(), Value::String(text::one_line(&text)));
        }
        ("default" | "example" | "examples", value) if has_hidden_text(&value) => {}
        ("default", value) if value.to_string().len() <= MAX_EXAMPLE_BYTES => {
            out.insert(key.into(), value);
        }
        ("deprecated", Value::Bool(true)) => {
            out.insert(key.into(), Value::Bool(true));
        }
        ("example", value) if value.to_string().len() <= MAX_EXAMPLE_BYTES => {
            out.insert("examples".into(), Value::Array(vec![value]));
        }
        ("examples", Value::Array(values)) => {
            if let Some(first) = values
                .into_iter()
                .find(|value| value.to_string().len() <= MAX_EXAMPLE_BYTES)
            {
                out.insert(key.into(), Value::Array(vec![first]));
            }
        }
        _ => {}
    }
}

/// Formats that validators know: those of JSON Schema and those of OpenAPI's registry that say
/// something about text.
const FORMATS: [&str; 26] = [
    "date-time",
    "date",
    "time",
    "duration",
    "email",
    "idn-email",
    "hostname",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uri-reference",
    "iri",
    "iri-reference",
    "uuid",
    "uri-template",
    "json-pointer",
    "relative-json-pointer",
    "regex",
    "int32",
    "int64",
    "float",
    "double",
    "byte",
    "binary",
    "password",
];

/// Describes a discriminator (OAS "Discriminator Object"). It asserts nothing; it maps values of a
/// property to forms.
pub(crate) fn describe_choice(discriminator: &JsonObject, out: &mut JsonObject) {
    let Some(property) = discriminator.get("propertyName").and_then(Value::as_str) else {
        return;
    };
    let short = |target: &str| target.rsplit('/').next().unwrap_or_default().to_owned();
    let mapping = discriminator
        .get("mapping")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let forms: Vec<String> = mapping
        .filter_map(|(value, target)| Some(format!("`{value}` for {}", short(target.as_str()?))))
        .collect();
    let which = if forms.is_empty() {
        String::new()
    } else {
        format!(": {}", forms.join(", "))
    };
    let said = keyword(out, "description")
        .and_then(Value::as_str)
        .map(|text| format!("{text}\n"))
        .unwrap_or_default();
    let text = text::clean(&format!(
        "{said}`{property}` tells which form is meant{which}"
    ));
    out.insert(
        "description".into(),
        Value::String(text::truncate(&text, text::MAX_DESCRIPTION_BYTES)),
    );
}

/// Returns true if any text in the value hides something from a reader.
pub(crate) fn has_hidden_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text::has_hidden_characters(text),
        Value::Array(items) => items.iter().any(has_hidden_text),
        Value::Object(members) => members
            .iter()
            .any(|(key, value)| text::has_hidden_characters(key) || has_hidden_text(value)),
        _ => false,
    }
}

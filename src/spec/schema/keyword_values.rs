//! The values of keywords: annotations (descriptions, examples, formats), and assertions that a value
//! must satisfy (2020-12 validation section 6).

use foldhash::HashSet;
use serde_json::{Number, Value};

use super::keywords::{has_keyword, keyword};
use super::shape::{read_count, types};
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

/// Returns the value of an assertion as 2020-12 defines it; `None` if the keyword is not an
/// assertion, or its value has no meaning. `pattern` is not read here.
pub(crate) fn read_assertion(key: &str, value: Value, warnings: &mut Vec<String>) -> Option<Value> {
    match (key, value) {
        ("type", value) => types(value),
        ("enum" | "const", value) if has_hidden_text(&value) => {
            warnings.push(
                "a constant holds hidden characters; that part of the schema accepts anything"
                    .into(),
            );
            None
        }
        ("enum", Value::Array(values)) => distinct_values(values),
        ("const", value) => Some(value),
        ("required", Value::Array(names)) => Some(distinct_names(names)),
        ("dependentRequired", Value::Object(map)) => map
            .values()
            .all(is_list_of_names)
            .then_some(Value::Object(map)),
        ("uniqueItems", Value::Bool(true)) => Some(Value::Bool(true)),
        ("exclusiveMaximum" | "exclusiveMinimum", Value::Bool(is_exclusive)) => {
            Some(Value::Bool(is_exclusive))
        }
        (key, Value::Number(number)) => read_limit(key, number),
        _ => None,
    }
}

fn read_limit(key: &str, number: Number) -> Option<Value> {
    match key {
        "multipleOf" => number
            .as_f64()
            .is_some_and(|step| step > 0.0)
            .then_some(Value::Number(number)),
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => {
            Some(Value::Number(number))
        }
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
        | "minContains" => read_count(&number).map(Value::from),
        _ => None,
    }
}

/// Returns the values of `enum`, each once; `None` if there is none.
fn distinct_values(values: Vec<Value>) -> Option<Value> {
    let mut seen = HashSet::default();
    let is_first: Vec<bool> = values.iter().map(|value| seen.insert(value)).collect();
    let unique: Vec<Value> = values
        .into_iter()
        .zip(is_first)
        .filter_map(|(value, is_first)| is_first.then_some(value))
        .collect();
    (!unique.is_empty()).then_some(Value::Array(unique))
}

/// The names of `required`, each once.
fn distinct_names(names: Vec<Value>) -> Value {
    let mut seen = HashSet::default();
    let names = names.into_iter();
    names
        .filter(|name| {
            name.as_str()
                .is_some_and(|name| seen.insert(name.to_owned()))
        })
        .collect()
}

/// Returns true if the value is a list of strings, each of them once.
fn is_list_of_names(value: &Value) -> bool {
    let mut seen = HashSet::default();
    let is_new = |name: &Value| {
        name.as_str()
            .is_some_and(|name| seen.insert(name.to_owned()))
    };
    value
        .as_array()
        .is_some_and(|names| names.iter().all(is_new))
}

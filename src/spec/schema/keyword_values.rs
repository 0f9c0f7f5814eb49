//! The values of keywords: annotations (descriptions, examples, formats), and assertions that a value
//! must satisfy (2020-12 validation section 6).

use foldhash::HashSet;
use serde_json::{Number, Value};

use super::keywords::description;
use super::shape::{read_count, types};
use crate::json::JsonObject;
use crate::text;

/// Examples longer than this are not shown to the model.
const MAX_EXAMPLE_BYTES: usize = 200;

/// Keywords that only say something about a value (2020-12 validation sections 7 to 9).
pub(crate) fn annotation(key: &str, value: Value, out: &mut JsonObject) {
    let is_short = |value: &Value| value.to_string().len() <= MAX_EXAMPLE_BYTES;
    match (key, value) {
        ("title", Value::String(text)) => {
            let text = text::truncate(&text::one_line(&text), 200);
            out.insert(key.into(), text.into());
        }
        ("description", Value::String(text)) => {
            let text = text::clean(&text);
            let text = match description(out) {
                Some(format) => {
                    let text = text::truncate(&text, text::MAX_DESCRIPTION_BYTES - 80);
                    format!("{text} {format}")
                }
                None => text::truncate(&text, text::MAX_DESCRIPTION_BYTES),
            };
            if !text.is_empty() {
                out.insert(key.into(), text.into());
            }
        }
        // An unknown format informs a reader, but makes validators complain.
        ("format", Value::String(text)) if !text::is_word_of(FORMATS, &text) => {
            let format = text::truncate(&text::one_line(&text), 60);
            let said = description(out).map(|said| format!("{said} "));
            let said = said.unwrap_or_default() + &format!("(format: {format})");
            out.insert("description".into(), said.into());
        }
        ("format" | "contentEncoding" | "contentMediaType", Value::String(text)) => {
            out.insert(key.into(), text::one_line(&text).into());
        }
        ("default" | "example" | "examples", value) if has_hidden_text(&value) => {}
        ("default", value) if is_short(&value) => {
            out.insert(key.into(), value);
        }
        ("deprecated", value @ Value::Bool(true)) => {
            out.insert(key.into(), value);
        }
        ("example", value) if is_short(&value) => {
            out.insert("examples".into(), Value::Array(vec![value]));
        }
        ("examples", Value::Array(values)) => {
            if let Some(first) = values.into_iter().find(is_short) {
                out.insert(key.into(), Value::Array(vec![first]));
            }
        }
        _ => {}
    }
}

/// Formats that validators know: those of JSON Schema and those of OpenAPI's registry that say
/// something about text.
const FORMATS: &str =
    "date-time uri int64 int32 uuid double float date email byte binary time duration idn-email
    hostname idn-hostname ipv4 ipv6 uri-reference iri iri-reference uri-template json-pointer
    relative-json-pointer regex password";

/// Describes a discriminator (OAS "Discriminator Object"). It asserts nothing; it maps values of a
/// property to forms.
pub(crate) fn describe_choice(discriminator: &JsonObject, out: &mut JsonObject) {
    let Some(property) = discriminator.get("propertyName").and_then(Value::as_str) else {
        return;
    };
    let form = |(value, target): (&String, &Value)| {
        let target = target.as_str()?.rsplit('/').next()?;
        Some(format!("`{value}` for {target}"))
    };
    let mapping = discriminator.get("mapping").and_then(Value::as_object);
    let forms: Vec<String> = mapping.into_iter().flatten().filter_map(form).collect();
    let mut text = format!("`{property}` tells which form is meant");
    if !forms.is_empty() {
        text = format!("{text}: {}", forms.join(", "));
    }
    if let Some(said) = description(out) {
        text = format!("{said}\n{text}");
    }
    let text = text::truncate(&text::clean(&text), text::MAX_DESCRIPTION_BYTES);
    out.insert("description".into(), text.into());
}

/// Returns true if any text in the value hides something from a reader.
fn has_hidden_text(value: &Value) -> bool {
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
        ("required", Value::Array(mut names)) => {
            names.retain(Value::is_string);
            Some(distinct_values(names).unwrap_or_else(|| Value::Array(Vec::new())))
        }
        ("dependentRequired", Value::Object(map)) => map
            .values()
            .all(is_list_of_names)
            .then_some(Value::Object(map)),
        ("uniqueItems", value @ Value::Bool(true))
        | ("exclusiveMaximum" | "exclusiveMinimum", value @ Value::Bool(_)) => Some(value),
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
fn distinct_values(mut values: Vec<Value>) -> Option<Value> {
    let mut seen = HashSet::default();
    let is_first: Vec<bool> = values.iter().map(|value| seen.insert(value)).collect();
    let mut is_first = is_first.into_iter();
    values.retain(|_| is_first.next() == Some(true));
    (!values.is_empty()).then_some(Value::Array(values))
}

/// Returns true if the value is a list of strings, each of them once.
fn is_list_of_names(value: &Value) -> bool {
    value.as_array().is_some_and(|names| {
        let mut seen = HashSet::default();
        names
            .iter()
            .all(|name| name.is_string() && seen.insert(name))
    })
}

//! Edits JSON, with comments if the client takes them.

use jsonc_parser::cst::{CstInputValue, CstObject, CstObjectProp, CstRootNode};
use jsonc_parser::errors::ParseError;
use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::Value;

use super::clients::FileFormat;

/// Reads the whole file; an empty one is `null`.
///
/// # Errors
/// A sentence about what cannot be read.
pub(super) fn read(text: &str, format: FileFormat) -> Result<Value, String> {
    let read: Value =
        parse_to_serde_value(text, &options(format)).map_err(|error| not_valid(&error))?;
    if read.is_object() || read.is_null() {
        Ok(read)
    } else {
        Err(NO_OBJECT.into())
    }
}

/// The text with the entry set, or without it, and with those questions of VS Code whose ids it
/// lacks.
///
/// # Errors
/// A sentence about what cannot be read.
pub(super) fn set(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
    value: Option<&Value>,
    inputs: &[Value],
) -> Result<String, String> {
    let root = CstRootNode::parse(text, &options(format)).map_err(|error| not_valid(&error))?;
    let whole = root.object_value_or_create().ok_or(NO_OBJECT)?;
    let mut object = whole.clone();
    for key in keys {
        object = match member(&object, key)? {
            Some(found) => found.object_value(),
            None => object.object_value_or_create(key),
        }
        .ok_or_else(|| format!("the value of `{key}` is not an object"))?;
    }
    match (member(&object, name)?, value) {
        (Some(found), Some(value)) => found.set_value(input(value)),
        (Some(found), None) => found.remove(),
        (None, Some(value)) => {
            object.append(name, input(value));
        }
        (None, None) => {}
    }
    if !inputs.is_empty() {
        member(&whole, "inputs")?;
        let known = whole.array_value_or_create("inputs");
        let known = known.ok_or("`inputs` is not an array")?;
        let ids = known.elements().into_iter().filter_map(|element| {
            let element = element.to_serde_value()?;
            element.get("id").cloned()
        });
        let ids: Vec<Value> = ids.collect();
        let lacks = |asked: &&Value| asked.get("id").is_none_or(|id| !ids.contains(id));
        for asked in inputs.iter().filter(lacks) {
            known.append(input(asked));
        }
    }
    Ok(root.to_string())
}

const NO_OBJECT: &str = "it does not hold an object";

fn options(format: FileFormat) -> ParseOptions {
    ParseOptions {
        allow_comments: format != FileFormat::Json,
        allow_trailing_commas: format == FileFormat::Jsonc,
        allow_loose_object_property_names: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn not_valid(error: &ParseError) -> String {
    format!("it is not valid JSON: {error}")
}

/// The member of that name. Of two with one name, clients read one, and it is unknown which.
fn member(object: &CstObject, key: &str) -> Result<Option<CstObjectProp>, String> {
    let properties = object.properties().into_iter();
    let mut named = properties.filter(|property| property.decoded_name().as_deref() == Some(key));
    let found = named.next();
    match named.next() {
        Some(_) => Err(format!("the key `{key}` is there twice")),
        None => Ok(found),
    }
}

fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members
                .iter()
                .map(|(key, value)| (key.clone(), input(value)));
            CstInputValue::Object(members.collect())
        }
    }
}

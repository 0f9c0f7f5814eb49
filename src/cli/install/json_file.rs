//! Edits JSON in place, with comments where the client takes them: everything else keeps its bytes.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::Value;

use super::place::FileFormat;

/// The value of the entry `name`; nothing where there is none.
///
/// # Errors
/// A sentence about what cannot be read.
pub(crate) fn find(text: &str, format: FileFormat, keys: &[&str], name: &str) -> Result<Option<Value>, String> {
    let root = parse(text, format)?;
    let Some(mut object) = root_object(&root)? else { return Ok(None) };
    for key in keys {
        match member(&object, key)? {
            None => return Ok(None),
            Some(next) => object = next,
        }
    }
    refuse_duplicates(&object, name)?;
    Ok(object.get(name).and_then(|property| property.to_serde_value()))
}

/// Whether an object stands under these keys.
pub(crate) fn has_object(text: &str, format: FileFormat, keys: &[&str]) -> bool {
    let Ok(Some(mut object)) = parse(text, format).and_then(|root| root_object(&root)) else {
        return false;
    };
    for key in keys {
        match member(&object, key) {
            Ok(Some(next)) => object = next,
            _ => return false,
        }
    }
    true
}

/// The text with the entry added or replaced, and with the `inputs` of VS Code, merged by their ids.
///
/// # Errors
/// As [`find`].
pub(crate) fn put(text: &str, format: FileFormat, keys: &[&str], name: &str, value: &Value, inputs: &[Value]) -> Result<String, String> {
    let root = parse(text, format)?;
    root_object(&root)?;
    let top = root.object_value_or_set();
    let mut object = top.clone();
    for key in keys {
        object = match member(&object, key)? {
            Some(next) => next,
            None => object.object_value_or_set(key),
        };
    }
    refuse_duplicates(&object, name)?;
    match object.get(name) {
        Some(property) => property.set_value(input_of(value)),
        None => drop(object.append(name, input_of(value))),
    }
    put_inputs(&top, inputs)?;
    let mut edited = root.to_string();
    if text.is_empty() {
        edited.push('\n');
    }
    Ok(edited)
}

fn put_inputs(top: &CstObject, inputs: &[Value]) -> Result<(), String> {
    if inputs.is_empty() {
        return Ok(());
    }
    refuse_duplicates(top, "inputs")?;
    if top.get("inputs").is_some_and(|property| property.array_value().is_none()) {
        return Err("`inputs` is not an array".into());
    }
    let array = top.array_value_or_set("inputs");
    for input in inputs {
        let id = input.get("id");
        let elements = array.elements();
        let same = elements
            .iter()
            .find(|element| element.to_serde_value().is_some_and(|value| value.get("id") == id));
        if same.is_none() {
            array.append(input_of(input));
        }
    }
    Ok(())
}

/// The text without the entry; of the `inputs` that are ours, those go that nothing else refers to. With `made_keys`, the keys that
/// led to the entry go where they are empty.
///
/// # Errors
/// As [`find`].
pub(crate) fn take_out(
    text: &str,
    format: FileFormat,
    keys: &[&str],
    name: &str,
    made_keys: bool,
    is_own_input: &dyn Fn(&Value) -> bool,
) -> Result<String, String> {
    let root = parse(text, format)?;
    let Some(top) = root_object(&root)? else {
        return Ok(text.to_owned());
    };
    let mut way = vec![top.clone()];
    for key in keys {
        let last = way.last().cloned().unwrap_or_else(|| top.clone());
        match member(&last, key)? {
            None => return Ok(text.to_owned()),
            Some(next) => way.push(next),
        }
    }
    let Some(object) = way.last() else { return Ok(text.to_owned()) };
    refuse_duplicates(object, name)?;
    let Some(property) = object.get(name) else {
        return Ok(text.to_owned());
    };
    let removed = property.to_serde_value().unwrap_or_default();
    property.remove();
    take_out_inputs(&root, &top, &removed, is_own_input);
    if made_keys {
        for (object, key) in way.iter().zip(keys).rev() {
            let is_empty = object.object_value(key).is_some_and(|inner| inner.properties().is_empty());
            if let (true, Some(property)) = (is_empty, object.get(key)) {
                property.remove();
            }
        }
    }
    Ok(root.to_string())
}

/// Takes out the questions that the removed entry asked and that nothing else refers to.
fn take_out_inputs(root: &CstRootNode, top: &CstObject, removed: &Value, is_own_input: &dyn Fn(&Value) -> bool) {
    let asked = removed.to_string();
    let mut is_changed = false;
    let Some(array) = top.array_value("inputs") else { return };
    for element in array.elements() {
        let own = element.to_serde_value().filter(|value: &Value| is_own_input(value));
        let id = own.and_then(|value| Some(value.get("id")?.as_str()?.to_owned()));
        let Some(reference) = id.map(|id| format!("${{input:{id}}}")) else {
            continue;
        };
        if asked.contains(&reference) && !root.to_string().contains(&reference) {
            element.remove();
            is_changed = true;
        }
    }
    if is_changed
        && array.elements().is_empty()
        && let Some(property) = top.get("inputs")
    {
        property.remove();
    }
}

fn parse(text: &str, format: FileFormat) -> Result<CstRootNode, String> {
    let options = ParseOptions {
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
    };
    let root = CstRootNode::parse(text, &options).map_err(|error| format!("it is not valid JSON: {error}"))?;
    // The parser keeps comments that stand beside values even where they are not allowed.
    if format == FileFormat::Json && !text.trim().is_empty() {
        serde_json::from_str::<serde::de::IgnoredAny>(text)
            .map_err(|error| format!("it is not valid JSON, in which this client takes no comments: {error}"))?;
    }
    Ok(root)
}

/// The object at the root; nothing where the file is empty.
fn root_object(root: &CstRootNode) -> Result<Option<CstObject>, String> {
    match root.value() {
        None => Ok(None),
        Some(value) => value.as_object().map(Some).ok_or_else(|| "it does not hold an object".to_owned()),
    }
}

/// The object under a key.
fn member(object: &CstObject, key: &str) -> Result<Option<CstObject>, String> {
    refuse_duplicates(object, key)?;
    match object.get(key) {
        None => Ok(None),
        Some(property) => property
            .object_value()
            .map(Some)
            .ok_or_else(|| format!("the value of `{key}` is not an object")),
    }
}

/// Of two members with one name, clients read one, and nobody knows which.
fn refuse_duplicates(object: &CstObject, key: &str) -> Result<(), String> {
    let named = |property: &&jsonc_parser::cst::CstObjectProp| property.decoded_name().is_some_and(|name| name == key);
    if object.properties().iter().filter(named).count() > 1 {
        return Err(format!("the key `{key}` is there twice"));
    }
    Ok(())
}

fn input_of(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input_of).collect()),
        Value::Object(members) => CstInputValue::Object(members.iter().map(|(key, value)| (key.clone(), input_of(value))).collect()),
    }
}

/// Whether a text holds nothing but an empty object.
pub(crate) fn is_empty_object(text: &str, format: FileFormat) -> bool {
    let Ok(root) = parse(text, format) else { return false };
    let has_comments = root.children().iter().any(CstNode::is_comment);
    !has_comments
        && root.object_value().is_some_and(|object| {
            object.children_exclude_trivia_and_tokens().is_empty() && !object.children().iter().any(CstNode::is_comment)
        })
}

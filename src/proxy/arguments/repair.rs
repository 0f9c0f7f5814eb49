//! Repair of values that models often give in the wrong type, guided by the schema and never
//! against it.
//!
//! Only arguments that do not validate come here. An object or array given as a JSON string is
//! parsed if the schema takes no string; `"5"` becomes 5 and `"true"` becomes true if only that
//! fits, and 5 becomes `"5"`; null for an optional argument that cannot be null is dropped, and so
//! is an empty text for an optional number; a lone value for a list becomes a list of one, and a
//! text of values of an enum with commas between them becomes the list of them.
//!
//! Integers with a zero fraction or an exponent, such as `2.0` and `1e2`, are written plainly: they
//! are integers in JSON Schema (2020-12 core section 4.2.3), but many servers parse only digits. A
//! note for the model describes each repair, so that its next call is right at once.

use serde_json::{Number, Value};

use super::validate::schema_of;
use crate::json::{JsonObject, plain_integer};
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::{gather_schemas, of_item, of_member, resolve_reference};
use crate::{json, text};

/// Deeper than this nothing is repaired.
pub(super) const MAX_DEPTH: usize = 16;
/// Deeper than this no integer is written plainly: no schema reaches it.
const MAX_INTEGER_DEPTH: usize = 128;

/// Repairs values one by one.
struct ValueRepair<'s, 'n> {
    root: &'s JsonObject,
    notes: &'n mut RepairNotes,
}

/// Treatment of an optional number that is given as an empty text, and of a missing body.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum EmptyArgument {
    /// The number counts as not given, and the body as an empty object.
    Dropped,
    /// Keeps them as they are, so they are refused: without the argument, the call could destroy
    /// more than was meant.
    Kept,
}

/// Repairs `arguments` in place, by the input schema `root`, and notes what was repaired.
pub(crate) fn repair_values(
    arguments: &mut JsonObject,
    root: &JsonObject,
    empty: EmptyArgument,
    notes: &mut RepairNotes,
) {
    let Some(Value::Object(properties)) = root.get("properties") else {
        return;
    };
    let mut repair = ValueRepair { root, notes };
    // Only an argument can be absent in this way: in a body, null may well mean that something is
    // to go (RFC 7396).
    arguments.retain(|name, value| match properties.get(name) {
        Some(property) if !is_required(root, name) => {
            !repair.means_absent(name, value, property, empty)
        }
        _ => true,
    });
    for (name, value) in arguments.iter_mut() {
        if let Some(property) = properties.get(name) {
            repair.repair_value(value, property, name, 0, false);
        }
    }
}

/// Repairs one value by its schema, whose definitions are those of `root`.
pub(crate) fn repair_value(value: &mut Value, schema: &Value, root: &JsonObject) {
    let notes = &mut RepairNotes::default();
    ValueRepair { root, notes }.repair_value(value, schema, "", 0, false);
}

impl ValueRepair<'_, '_> {
    /// Returns true if the value of an optional argument means that it is not given.
    fn means_absent(
        &mut self,
        name: &str,
        value: &Value,
        property: &Value,
        empty: EmptyArgument,
    ) -> bool {
        let kinds =
            resolve_reference(property, self.root).and_then(|schema| kinds(schema, self.root, 0));
        let Some(kinds) = kinds else { return false };
        let is_numeric = !kinds.is_empty() && are_only(&kinds, &["integer", "number"]);
        let why = match value {
            Value::Null if !kinds.contains(&"null") => "null",
            Value::String(text)
                if text.trim().is_empty() && is_numeric && empty == EmptyArgument::Dropped =>
            {
                "empty"
            }
            _ => return false,
        };
        self.notes
            .push(name, &format!("was left out, because it was {why}"));
        true
    }

    /// Repairs a value at a depth, which may be an item of a list.
    fn repair_value(
        &mut self,
        value: &mut Value,
        schema: &Value,
        place: &str,
        depth: usize,
        is_item: bool,
    ) {
        let Some(schema) = resolve_reference(schema, self.root) else {
            return;
        };
        if depth > MAX_DEPTH {
            return;
        }
        if let Some(kinds) = kinds(schema, self.root, 0) {
            self.repair_type(value, schema, &kinds, place);
            if are_only(&kinds, &["string", "null"]) && kinds.contains(&"string") {
                self.write_as_text(value, schema, place);
            }
            if kinds == ["array"]
                && !is_item
                && !self.has_lists(schema)
                && !value.is_array()
                && !value.is_null()
            {
                self.notes.push(place, "was read as a list of one value");
                *value = Value::Array(vec![std::mem::take(value)]);
            }
        }
        match value {
            Value::Object(members) => {
                for (name, member) in members.iter_mut() {
                    if let Some(property) = schema_of(schema, name) {
                        let place = inside(place, name);
                        self.repair_value(member, property, &place, depth + 1, false);
                    }
                }
            }
            Value::Array(items) => {
                if let Some(inner) = schema.get("items") {
                    for (index, item) in items.iter_mut().enumerate() {
                        let place = inside(place, &index.to_string());
                        self.repair_value(item, inner, &place, depth + 1, true);
                    }
                }
            }
            _ => {}
        }
    }

    fn repair_type(&mut self, value: &mut Value, schema: &JsonObject, kinds: &[&str], place: &str) {
        if let Value::String(text) = value
            && !kinds.contains(&"string")
        {
            if let Some(parsed) = reread(text, kinds) {
                self.notes
                    .push(place, &format!("was read as {}", name_type(&parsed)));
                *value = parsed;
            } else if kinds.contains(&"array")
                && are_only(kinds, &["array", "null"])
                && let Some(items) = self.split_list(text, schema)
            {
                self.notes.push(
                    place,
                    &format!("was read as a list of {} values", items.len()),
                );
                *value = Value::Array(items);
            }
        }
    }

    /// Writes a value as the text that the schema takes: a number in a parameter, if the two cannot
    /// be distinguished, or if the format of the text is that of a number; an object or a list if
    /// the text is described as JSON.
    fn write_as_text(&mut self, value: &mut Value, schema: &JsonObject, place: &str) {
        let said = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let is_numeric = || matches!(said("format"), "int32" | "int64" | "float" | "double");
        let is_json = || {
            said("contentMediaType") == "application/json" || said("description").contains("JSON")
        };
        let is_in_body = || place.trim_start_matches('/').split('/').next() == Some(BODY);
        let is_written = match value {
            Value::Number(_) => !is_in_body() || is_numeric(),
            Value::Object(_) | Value::Array(_) => is_json(),
            _ => false,
        };
        if is_written {
            self.notes.push(place, "was written as a text");
            *value = Value::String(value.to_string());
        }
    }

    /// Returns true if the items of a list may be lists: the level of a single value is then
    /// unknown.
    fn has_lists(&self, schema: &JsonObject) -> bool {
        let items = schema
            .get("items")
            .and_then(|items| resolve_reference(items, self.root));
        items.is_some_and(|items| {
            kinds(items, self.root, 0).is_some_and(|kinds| kinds.contains(&"array"))
        })
    }

    /// Returns the values of an enum that a text lists with commas between them. `None` if it is
    /// one value itself, or if a part is not exactly one.
    fn split_list(&self, text: &str, schema: &JsonObject) -> Option<Vec<Value>> {
        let options = resolve_reference(schema.get("items")?, self.root)?
            .get("enum")?
            .as_array()?;
        let option = |text: &str| {
            let mut same = options.iter().filter(|option| match option {
                Value::String(option) => option == text,
                Value::Number(number) => number.to_string() == text,
                _ => false,
            });
            same.next().filter(|_| same.next().is_none()).cloned()
        };
        if !text.contains(',') || options.iter().any(|option| option == text) {
            return None;
        }
        text.split(',').map(|part| option(part.trim())).collect()
    }
}

/// The name of an argument, or the JSON Pointer of what is inside one.
fn inside(place: &str, name: &str) -> String {
    let slash = if place.starts_with('/') { "" } else { "/" };
    format!("{slash}{place}/{name}")
}

fn are_only(kinds: &[&str], known: &[&str]) -> bool {
    kinds.iter().all(|kind| known.contains(kind))
}

fn name_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a text",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

pub(super) fn is_required(schema: &JsonObject, name: &str) -> bool {
    let names = schema.get("required").and_then(Value::as_array);
    names.is_some_and(|names| names.iter().any(|other| other == name))
}

/// Reads the text as JSON, if that gives one of the kinds that fit.
fn reread(text: &str, fitting: &[&str]) -> Option<Value> {
    let parsed = json::parse_text(text.trim()).ok()?;
    let fits = match &parsed {
        Value::Null => fitting.contains(&"null"),
        Value::Bool(_) => fitting.contains(&"boolean"),
        Value::Number(number) => {
            fitting.contains(&"number")
                || (fitting.contains(&"integer") && !number.to_string().contains(['.', 'e', 'E']))
        }
        Value::String(_) => false,
        Value::Array(_) => fitting.contains(&"array"),
        Value::Object(_) => fitting.contains(&"object"),
    };
    fits.then_some(parsed)
}

/// Returns the types that a schema takes, if it declares them: its `type`, or those of all branches
/// of a choice, or of an enum.
fn kinds<'s>(schema: &'s JsonObject, root: &'s JsonObject, depth: usize) -> Option<Vec<&'s str>> {
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

/// More repairs than this are only counted.
const MAX_SHOWN: usize = 5;
/// Longer names are cut.
const MAX_NAME_BYTES: usize = 64;

/// The repairs of one call.
#[derive(Default)]
pub(crate) struct RepairNotes {
    clauses: Vec<String>,
    /// Number of further repairs.
    more: usize,
}

impl RepairNotes {
    /// Notes a repair of the argument `name`, as in "`limit` was read as a number". Never holds a
    /// value.
    pub(crate) fn push(&mut self, name: &str, what: &str) {
        if self.clauses.len() < MAX_SHOWN {
            self.clauses.push(format!("{} {what}", quote_name(name)));
        } else {
            self.more += 1;
        }
    }

    /// Returns the sentence; `None` if nothing was repaired.
    pub(crate) fn sentence(&self) -> Option<String> {
        let mut shown = self.clauses.clone();
        if self.more > 0 {
            shown.push(format!("and {} more", self.more));
        }
        (!shown.is_empty()).then(|| {
            format!(
                "The arguments were repaired before the call: {}.",
                shown.join("; ")
            )
        })
    }
}

/// A name that a client wrote, in backticks.
pub(crate) fn quote_name(name: &str) -> String {
    format!(
        "`{}`",
        text::truncate(&text::one_line(name), MAX_NAME_BYTES)
    )
}

/// Writes the numbers of `arguments` that the input schema `root` declares as `type: integer` as
/// digits alone. All other numbers, and integers of more than 40 digits, stay as they were written.
pub(crate) fn write_integers_plainly(arguments: &mut JsonObject, root: &JsonObject) {
    // Other arguments need no look at the schema.
    let written = arguments.iter_mut();
    for (name, value) in written.filter(|(_, value)| holds_rewritable_number(value)) {
        let schemas = of_member(root, name);
        walk(
            value,
            &schemas,
            root,
            "",
            MAX_INTEGER_DEPTH,
            &mut |value, schemas, _| {
                if let Value::Number(number) = value
                    && is_integer_only(schemas)
                    && let Some(plain) = plain_integer(number.as_str())
                {
                    *number = Number::from_string_unchecked(plain);
                }
                holds_rewritable_number(value)
            },
        );
    }
}

fn holds_rewritable_number(value: &Value) -> bool {
    match value {
        Value::Number(number) => plain_integer(number.as_str()).is_some(),
        Value::Array(items) => items.iter().any(holds_rewritable_number),
        Value::Object(members) => members.values().any(holds_rewritable_number),
        _ => false,
    }
}

/// Visits a value and what is in it, down to a depth, each with all schemas that describe it and
/// its JSON Pointer. `visit` returns false if nothing inside is to be visited.
pub(super) fn walk(
    value: &mut Value,
    schemas: &[&JsonObject],
    root: &JsonObject,
    place: &str,
    depth: usize,
    visit: &mut dyn FnMut(&mut Value, &[&JsonObject], &str) -> bool,
) {
    let all = gather_schemas(schemas.iter().copied(), root);
    if !visit(value, &all, place) || depth == 0 {
        return;
    }
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                let inner = all.iter().flat_map(|schema| of_member(schema, name));
                let (inner, place) = (inner.collect::<Vec<_>>(), format!("{place}/{name}"));
                walk(member, &inner, root, &place, depth - 1, visit);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner = all.iter().flat_map(|schema| of_item(schema, index));
                let (inner, place) = (inner.collect::<Vec<_>>(), format!("{place}/{index}"));
                walk(item, &inner, root, &place, depth - 1, visit);
            }
        }
        _ => {}
    }
}

/// Returns true if a schema requires an integer, and none accepts any number.
fn is_integer_only(schemas: &[&JsonObject]) -> bool {
    let names = |kind: &str| {
        schemas.iter().any(|schema| match schema.get("type") {
            Some(Value::String(name)) => name == kind,
            Some(Value::Array(names)) => names.iter().any(|name| name == kind),
            _ => false,
        })
    };
    names("integer") && !names("number")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn repair(arguments: &mut Value, root: &Value) {
        let notes = &mut RepairNotes::default();
        repair_values(
            arguments.as_object_mut().unwrap(),
            root.as_object().unwrap(),
            EmptyArgument::Dropped,
            notes,
        );
    }

    #[test]
    fn what_models_mistype_is_put_right() {
        let root = json!({"type": "object", "properties": {
            "n": {"type": "integer"}, "f": {"type": "number"}, "b": {"type": "boolean"}, "s": {"type": "string"}, "any": {},
            "o": {"type": "object", "properties": {"n": {"type": "integer"}}}, "l": {"type": "array", "items": {"type": "integer"}},
            "u": {"type": ["string", "integer"]}, "tree": {"$ref": "#/$defs/T"}, "c": {"anyOf": [{"type": "integer"}, {"type": "null"}]}
        }, "$defs": {"T": {"type": "object", "properties": {"child": {"$ref": "#/$defs/T"}, "n": {"type": "integer"}}}}});
        let mut arguments = json!({"n": "5", "f": "1.50", "b": "true", "s": "5", "any": "5", "o": "{\"n\":\"7\"}", "l": "3", "u": "5", "tree": {"child": {"n": "1"}}, "c": "null"});
        repair(&mut arguments, &root);
        let expected: Value = serde_json::from_str(r#"{"n": 5, "f": 1.50, "b": true, "s": "5", "any": "5", "o": {"n": 7}, "l": [3], "u": "5", "tree": {"child": {"n": 1}}, "c": null}"#).unwrap();
        assert_eq!(arguments, expected);
    }

    #[test]
    fn null_for_an_optional_argument_is_no_argument() {
        let root = json!({"required": ["r"], "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}, "r": {"type": "string"}}});
        let mut arguments = json!({"a": null, "b": null, "r": null, "x": null});
        repair(&mut arguments, &root);
        assert_eq!(arguments, json!({"b": null, "r": null, "x": null}));
    }

    #[test]
    fn nothing_is_repaired_into_what_does_not_fit() {
        let root = json!({"properties": {"n": {"type": "integer"}, "b": {"type": "boolean"}}});
        let mut arguments = json!({"n": "1.5", "b": "yes"});
        repair(&mut arguments, &root);
        assert_eq!(arguments, json!({"n": "1.5", "b": "yes"}));
    }

    #[test]
    fn a_list_of_enum_values_may_be_one_text() {
        let status = json!({"type": "array", "items": {"enum": ["available", "sold", "a,b", "a", "b", 1, "1"]}});
        let root = json!({"properties": {"s": status, "free": {"type": "array", "items": {"type": "string"}}}});
        for (given, expected) in [
            (
                json!({"s": "available, sold"}),
                json!({"s": ["available", "sold"]}),
            ),
            (json!({"free": "a,b"}), json!({"free": ["a,b"]})),
            // One value itself, a part that is not one, and a part that is two.
            (json!({"s": "a,b"}), json!({"s": ["a,b"]})),
            (json!({"s": "sold,lost"}), json!({"s": ["sold,lost"]})),
            (json!({"s": "sold,1"}), json!({"s": ["sold,1"]})),
        ] {
            let mut arguments = given;
            repair(&mut arguments, &root);
            assert_eq!(arguments, expected);
        }
    }
}

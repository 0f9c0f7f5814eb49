//! What changed between two lists of tools, and what of it breaks a client.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::annotate::Hint;
use crate::api::Api;
use crate::text::one_line;

/// How a change matters to those who use the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Impact {
    /// A client that worked may fail.
    Breaking,
    /// A tool does more harm than its name or its hints said before.
    Risk,
    /// Anything else.
    Compatible,
}

/// One change of one tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ToolChange {
    pub impact: Impact,
    /// The tool's name, the new one where it has one.
    pub tool: String,
    /// What changed, in words.
    pub change: String,
}

/// What is compared of a tool.
#[derive(Debug, Clone)]
pub(crate) struct ToolFacts {
    name: String,
    /// Method and path, by which a tool is known under another name.
    operation: String,
    /// The hints that count: read-only, destructive, idempotent, open-world.
    hints: [bool; 4],
    input: Value,
    output: Option<Value>,
    description: Value,
}

const HINTS: [(Hint, &str); 4] = [
    (Hint::ReadOnly, "readOnly"),
    (Hint::Destructive, "destructive"),
    (Hint::Idempotent, "idempotent"),
    (Hint::OpenWorld, "openWorld"),
];

/// Whether a hint is the careful one where it is true.
const CAREFUL_WHEN_TRUE: [bool; 4] = [false, true, false, true];

/// The facts of all tools of an API.
pub(crate) fn facts_of(api: &Api) -> Vec<ToolFacts> {
    let facts = |offered: crate::api::OfferedTool<'_>| {
        let whole: Value = serde_json::from_str(offered.text).unwrap_or_default();
        ToolFacts {
            name: offered.tool.name.to_string(),
            operation: offered.operation.label(),
            hints: HINTS.map(|(hint, _)| offered.hints.effective(hint)),
            input: whole.get("inputSchema").cloned().unwrap_or_default(),
            output: whole.get("outputSchema").cloned(),
            description: whole.get("description").cloned().unwrap_or_default(),
        }
    };
    api.iter().map(facts).collect()
}

/// All changes, what breaks first.
pub(crate) fn compare(old: &[ToolFacts], new: &[ToolFacts]) -> Vec<ToolChange> {
    let mut changes = Vec::new();
    let by_operation = |tools: &[ToolFacts], wanted: &ToolFacts| tools.iter().find(|tool| tool.operation == wanted.operation).cloned();
    let by_name = |tools: &[ToolFacts], wanted: &ToolFacts| tools.iter().find(|tool| tool.name == wanted.name).cloned();
    for before in old {
        match (by_name(new, before), by_operation(new, before)) {
            (Some(after), _) => {
                if after.operation != before.operation {
                    let moved = format!("calls {} instead of {}", one_line(&after.operation), one_line(&before.operation));
                    push(&mut changes, Impact::Risk, &after.name, moved);
                }
                compare_tool(before, &after, &mut changes);
            }
            (None, Some(after)) => {
                push(&mut changes, Impact::Breaking, &after.name, format!("was called {}", before.name));
                compare_tool(before, &after, &mut changes);
            }
            (None, None) => push(
                &mut changes,
                Impact::Breaking,
                &before.name,
                format!("is gone ({})", one_line(&before.operation)),
            ),
        }
    }
    for after in new {
        if by_name(old, after).is_none() && by_operation(old, after).is_none() {
            let [read_only, ..] = after.hints;
            let impact = if read_only { Impact::Compatible } else { Impact::Risk };
            let kind = if read_only { "read-only" } else { "it writes" };
            push(
                &mut changes,
                impact,
                &after.name,
                format!("is new ({}; {kind})", one_line(&after.operation)),
            );
        }
    }
    changes.sort();
    changes.dedup();
    changes
}

fn push(changes: &mut Vec<ToolChange>, impact: Impact, tool: &str, change: String) {
    changes.push(ToolChange {
        impact,
        tool: tool.to_owned(),
        change,
    });
}

fn compare_tool(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    compare_hints(before, after, changes);
    let mut found = Vec::new();
    let mut input = SchemaPair {
        old_root: &before.input,
        new_root: &after.input,
        found: &mut found,
    };
    input.compare_input(&before.input, &after.input, "", 0);
    let is_silent = found.is_empty();
    for change in found {
        push(changes, Impact::Breaking, &after.name, change);
    }
    if is_silent && before.input != after.input {
        push(
            changes,
            Impact::Compatible,
            &after.name,
            "its arguments changed, and calls that were valid stay valid".into(),
        );
    }
    compare_output(before, after, changes);
    if before.description != after.description {
        push(changes, Impact::Compatible, &after.name, "its description changed".into());
    }
}

/// Clients have lists of tools that run without a question: a hint that became more careful takes a tool off such a list.
fn compare_hints(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    let pairs = before.hints.iter().zip(after.hints).zip(HINTS).zip(CAREFUL_WHEN_TRUE);
    for (((was, is), (hint, name)), careful) in pairs {
        if *was == is {
            continue;
        }
        let said = format!("{name} is {is} now");
        if is == careful {
            push(changes, Impact::Breaking, &after.name, said.clone());
            if hint == Hint::ReadOnly {
                push(changes, Impact::Risk, &after.name, "it writes now".into());
            }
        } else {
            push(changes, Impact::Risk, &after.name, format!("{said}, which is less careful"));
        }
    }
}

fn compare_output(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    let required = |schema: &Option<Value>| required_of(schema.as_ref().unwrap_or(&Value::Null));
    if before.output.is_some() && after.output.is_none() {
        push(
            changes,
            Impact::Compatible,
            &after.name,
            "its results are no longer described".into(),
        );
        return;
    }
    for name in required(&before.output).difference(&required(&after.output)) {
        push(
            changes,
            Impact::Breaking,
            &after.name,
            format!("its result no longer always has `{}`", one_line(name)),
        );
    }
}

fn required_of(schema: &Value) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Two input schemas, with the roots that their references start from.
struct SchemaPair<'s, 'f> {
    old_root: &'s Value,
    new_root: &'s Value,
    found: &'f mut Vec<String>,
}

/// Schemas that are nested more deeply are compared as a whole.
const MAX_DEPTH: usize = 16;

impl<'s> SchemaPair<'s, '_> {
    fn compare_input(&mut self, old: &'s Value, new: &'s Value, place: &str, depth: usize) {
        let (old, new) = (resolve(self.old_root, old), resolve(self.new_root, new));
        if old == new || depth > MAX_DEPTH {
            return;
        }
        let shown = if place.is_empty() {
            "the arguments".to_owned()
        } else {
            format!("`{place}`")
        };
        if let (Some(before), Some(after)) = (types_of(old), types_of(new)) {
            let accepted = |kind: &&String| after.contains(*kind) || (kind.as_str() == "integer" && after.contains("number"));
            if !before.iter().all(|kind| accepted(&kind)) {
                self.found.push(format!("{shown} takes fewer types"));
            }
        }
        match (values_of(old), values_of(new)) {
            (None, Some(_)) => self.found.push(format!("{shown} takes only some values now")),
            (Some(before), Some(after)) if !before.iter().all(|value| after.contains(value)) => {
                self.found.push(format!("{shown} takes fewer values"));
            }
            _ => {}
        }
        let empty = Map::new();
        let members = |schema: &'s Value| schema.get("properties").and_then(Value::as_object);
        let (before, after) = (members(old), members(new));
        let inside = |name: &str| {
            if place.is_empty() {
                name.to_owned()
            } else {
                format!("{place}/{name}")
            }
        };
        for name in required_of(new).difference(&required_of(old)) {
            self.found.push(format!("`{}` is required now", one_line(&inside(name))));
        }
        for (name, schema) in before.into_iter().flatten() {
            match after.unwrap_or(&empty).get(name) {
                None if after.is_some() => self.found.push(format!("`{}` is gone", one_line(&inside(name)))),
                None => {}
                Some(_) => {
                    // The borrow of `after` ends with the roots, not with this call.
                    if let Some(next) = after.and_then(|after| after.get(name)) {
                        self.compare_input(schema, next, &inside(name), depth + 1);
                    }
                }
            }
        }
        if let (Some(before), Some(after)) = (old.get("items"), new.get("items")) {
            self.compare_input(before, after, &inside("[]"), depth + 1);
        }
    }
}

fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// The types that a schema names; nothing where it takes any.
fn types_of(schema: &Value) -> Option<BTreeSet<String>> {
    match schema.get("type")? {
        Value::String(kind) => Some(BTreeSet::from([kind.clone()])),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}

/// The values that a schema names; nothing where it takes any.
fn values_of(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn tool(name: &str, input: Value) -> ToolFacts {
        ToolFacts {
            name: name.into(),
            operation: format!("GET /{name}"),
            hints: [true, false, true, true],
            input,
            output: None,
            description: Value::Null,
        }
    }

    fn said(old: Value, new: Value) -> Vec<String> {
        let changes = compare(&[tool("a", old)], &[tool("a", new)]);
        changes
            .into_iter()
            .map(|change| format!("{:?}: {}", change.impact, change.change))
            .collect()
    }

    #[test]
    fn what_breaks_a_call_is_told_from_what_does_not() {
        let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
        let one = |schema: Value| object(json!({ "x": schema }), json!([]));
        for (old, new, expected) in [
            (
                one(json!({"type": "string"})),
                object(json!({"x": {"type": "string"}}), json!(["x"])),
                "Breaking: `x` is required now",
            ),
            (one(json!({})), object(json!({}), json!([])), "Breaking: `x` is gone"),
            (
                one(json!({"type": "number"})),
                one(json!({"type": "integer"})),
                "Breaking: `x` takes fewer types",
            ),
            (
                one(json!({"type": "integer"})),
                one(json!({"type": "number"})),
                "Compatible: its arguments changed, and calls that were valid stay valid",
            ),
            (
                one(json!({"enum": ["a", "b"]})),
                one(json!({"enum": ["a"]})),
                "Breaking: `x` takes fewer values",
            ),
            (
                one(json!({"enum": ["a"]})),
                one(json!({"enum": ["a", "b"]})),
                "Compatible: its arguments changed, and calls that were valid stay valid",
            ),
            (
                one(json!({"type": "string"})),
                one(json!({"type": "string", "enum": ["a"]})),
                "Breaking: `x` takes only some values now",
            ),
            (
                one(json!({"type": "array", "items": {"type": ["string", "null"]}})),
                one(json!({"type": "array", "items": {"type": "string"}})),
                "Breaking: `x/[]` takes fewer types",
            ),
            (
                json!({"type": "object", "properties": {"x": {"$ref": "#/$defs/X"}}, "$defs": {"X": {"type": "object", "properties": {"y": {}}}}}),
                json!({"type": "object", "properties": {"x": {"type": "object", "properties": {"y": {}}, "required": ["y"]}}}),
                "Breaking: `x/y` is required now",
            ),
        ] {
            assert_eq!(said(old, new), [expected]);
        }
    }

    #[test]
    fn names_and_hints_that_change_are_told() {
        let before = tool("a", json!({}));
        let renamed = ToolFacts {
            name: "b".into(),
            ..before.clone()
        };
        let [change] = compare(std::slice::from_ref(&before), &[renamed]).try_into().unwrap();
        assert_eq!((change.impact, change.change.as_str()), (Impact::Breaking, "was called a"));
        let writing = ToolFacts {
            hints: [false, true, true, true],
            ..before.clone()
        };
        let impacts: Vec<Impact> = compare(std::slice::from_ref(&before), std::slice::from_ref(&writing))
            .iter()
            .map(|change| change.impact)
            .collect();
        assert_eq!(impacts, [Impact::Breaking, Impact::Breaking, Impact::Risk]);
        let impacts: Vec<Impact> = compare(&[writing], std::slice::from_ref(&before))
            .iter()
            .map(|change| change.impact)
            .collect();
        assert_eq!(impacts, [Impact::Risk, Impact::Risk]);
        let gone = compare(std::slice::from_ref(&before), &[]);
        assert_eq!(gone.len(), 1);
        assert_eq!(
            compare(&[], &[before]).first().map(|change| change.impact),
            Some(Impact::Compatible)
        );
    }
}

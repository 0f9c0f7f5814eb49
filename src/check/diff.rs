//! Changes between two lists of tools, and those that break a client. Of input schemas, these are
//! arguments that an old version of a tool accepted and a new one does not: those that are gone,
//! required now, or take fewer types or listed values. Other keywords are not compared.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use crate::annotate::Hint;
use crate::api::{Api, BoundTool};
use crate::text::one_line;

/// Impact of a change on clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Impact {
    /// A client that worked may fail.
    Breaking,
    /// A tool does more harm than its name or its hints said before.
    Risk,
    /// Other changes.
    Compatible,
}

/// One change of one tool.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ToolChange {
    pub(crate) impact: Impact,
    /// The tool's name, the new one if it has one.
    pub(crate) tool: String,
    /// Description of the change.
    pub(crate) change: String,
}

/// Facts about a tool that are compared.
#[derive(Clone)]
pub(crate) struct ToolFacts {
    name: String,
    /// Method and path, by which a tool is known under another name.
    operation: String,
    /// The values of all hints, in the order of `Hint::ALL`.
    hints: [bool; Hint::ALL.len()],
    input: Value,
    description: Value,
}

/// The facts of all tools of an API.
pub(crate) fn facts_of(api: &Api) -> Vec<ToolFacts> {
    let facts = |offered: &BoundTool| {
        let mut whole: Value = serde_json::from_str(offered.text()).unwrap_or_default();
        let mut member = |name| whole.get_mut(name).map(Value::take).unwrap_or_default();
        ToolFacts {
            name: offered.name.to_string(),
            operation: offered.operation.label(),
            hints: Hint::ALL.map(|hint| offered.hints.effective(hint)),
            input: member("inputSchema"),
            description: member("description"),
        }
    };
    api.tools().iter().map(facts).collect()
}

/// All changes, what breaks first.
pub(crate) fn compare(old: &[ToolFacts], new: &[ToolFacts]) -> Vec<ToolChange> {
    let mut changes = Vec::new();
    for before in old {
        let Some(after) = before.twin(new) else {
            let gone = format!("is gone ({})", one_line(&before.operation));
            changes.push(before.change(Impact::Breaking, gone));
            continue;
        };
        if after.name != before.name {
            let renamed = format!("was called {}", before.name);
            changes.push(after.change(Impact::Breaking, renamed));
        } else if after.operation != before.operation {
            let [to, from] = [after, before].map(|facts| one_line(&facts.operation));
            changes.push(after.change(Impact::Risk, format!("calls {to} instead of {from}")));
        }
        compare_tool(before, after, &mut changes);
    }
    for after in new {
        if after.twin(old).is_none() {
            let (impact, kind) = match after.hints {
                [true, ..] => (Impact::Compatible, "read-only"),
                _ => (Impact::Risk, "it writes"),
            };
            let added = format!("is new ({}; {kind})", one_line(&after.operation));
            changes.push(after.change(impact, added));
        }
    }
    changes.sort();
    changes.dedup();
    changes
}

impl ToolFacts {
    /// The tool of the same name in another list, else that of the same operation.
    fn twin<'t>(&self, tools: &'t [Self]) -> Option<&'t Self> {
        let named = tools.iter().find(|tool| tool.name == self.name);
        named.or_else(|| tools.iter().find(|tool| tool.operation == self.operation))
    }

    fn change(&self, impact: Impact, change: String) -> ToolChange {
        let tool = self.name.clone();
        ToolChange {
            impact,
            tool,
            change,
        }
    }
}

/// Clients have lists of tools that run without a question: a hint that became more careful takes a
/// tool off such a list.
fn compare_tool(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    let mut add = |impact, change: String| changes.push(after.change(impact, change));
    for ((was, is), hint) in before.hints.into_iter().zip(after.hints).zip(Hint::ALL) {
        if was == is {
            continue;
        }
        let said = format!("{} is {is} now", hint.word());
        if is == hint.default_value() {
            add(Impact::Breaking, said);
            if hint == Hint::ReadOnly {
                add(Impact::Risk, "it writes now".into());
            }
        } else {
            add(Impact::Risk, format!("{said}, which is less careful"));
        }
    }
    if before.input != after.input {
        let narrowed = narrowed_arguments(&before.input, &after.input);
        if narrowed.is_empty() {
            let change = "its arguments changed in other ways";
            add(Impact::Compatible, change.into());
        }
        for change in narrowed {
            add(Impact::Breaking, change);
        }
    }
    if before.description != after.description {
        add(Impact::Compatible, "its description changed".into());
    }
}

/// Schemas that are nested more deeply are not compared.
const MAX_DEPTH: usize = 16;

/// Compares two versions of one schema.
struct SchemaComparison<'s> {
    roots: (&'s Value, &'s Value),
    /// Each pair is compared once, so that schemas that refer to themselves come to an end.
    compared: BTreeSet<(*const Value, *const Value)>,
    narrowed: Vec<String>,
}

/// Describes values that are no longer accepted.
fn narrowed_arguments(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = SchemaComparison {
        roots: (old, new),
        compared: BTreeSet::new(),
        narrowed: Vec::new(),
    };
    comparison.compare(old, new, "", 0);
    comparison.narrowed
}

impl<'s> SchemaComparison<'s> {
    fn compare(&mut self, old: &'s Value, new: &'s Value, path: &str, depth: usize) {
        let (old, new) = (resolve(self.roots.0, old), resolve(self.roots.1, new));
        let is_new = self
            .compared
            .insert((std::ptr::from_ref(old), std::ptr::from_ref(new)));
        if !is_new || old == new || depth > MAX_DEPTH {
            return;
        }
        let is_accepted = |kind: &&str| {
            types_of(new).is_none_or(|after| {
                after.contains(kind) || (*kind == "integer" && after.contains(&"number"))
            })
        };
        if types_of(old).is_some_and(|before| !before.iter().all(is_accepted)) {
            self.note(path, "takes fewer types");
        }
        let is_listed = |after: &[Value]| {
            values_of(old).is_some_and(|before| before.iter().all(|value| after.contains(value)))
        };
        if values_of(new).is_some_and(|after| !is_listed(after)) {
            self.note(path, "takes fewer values");
        }
        for name in required_of(new).difference(&required_of(old)) {
            self.note(&inside(path, name), "is required now");
        }
        let members = |schema: &'s Value| schema.get("properties").and_then(Value::as_object);
        for (name, before) in members(old).into_iter().flatten() {
            let inner = inside(path, name);
            match members(new).and_then(|after| after.get(name)) {
                Some(after) => self.compare(before, after, &inner, depth + 1),
                // Arguments that the tool does not name are refused; other objects without
                // properties take any.
                None if path.is_empty() || members(new).is_some() => self.note(&inner, "is gone"),
                None => {}
            }
        }
        if let (Some(before), Some(after)) = (old.get("items"), new.get("items")) {
            self.compare(before, after, &inside(path, "[]"), depth + 1);
        }
        for (before, after) in list_of(old, "allOf").zip(list_of(new, "allOf")) {
            self.compare(before, after, path, depth + 1);
        }
    }

    fn note(&mut self, path: &str, what: &str) {
        self.narrowed.push(format!("`{}` {what}", one_line(path)));
    }
}

/// The path of a member, as it is shown.
fn inside(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}

fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// The items of a list of a schema.
fn list_of<'s>(schema: &'s Value, key: &str) -> impl Iterator<Item = &'s Value> {
    let list = schema.get(key).and_then(Value::as_array);
    list.into_iter().flatten()
}

/// The properties that a schema requires.
fn required_of(schema: &Value) -> BTreeSet<&str> {
    list_of(schema, "required")
        .filter_map(Value::as_str)
        .collect()
}

/// The types that a schema names; `None` if it takes any.
fn types_of(schema: &Value) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        kind => Some(BTreeSet::from([kind.as_str()?])),
    }
}

/// The values that a schema lists; `None` if it takes any.
fn values_of(schema: &Value) -> Option<&[Value]> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(std::slice::from_ref(value)),
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
            description: Value::Null,
        }
    }

    #[test]
    fn names_and_hints_that_change_are_told() {
        let before = tool("a", json!({}));
        let renamed = ToolFacts {
            name: "b".into(),
            ..before.clone()
        };
        let [change] = compare(std::slice::from_ref(&before), &[renamed])
            .try_into()
            .unwrap();
        assert_eq!(
            (change.impact, change.change.as_str()),
            (Impact::Breaking, "was called a")
        );
        let writing = ToolFacts {
            hints: [false, true, true, true],
            ..before.clone()
        };
        let impacts: Vec<Impact> = compare(
            std::slice::from_ref(&before),
            std::slice::from_ref(&writing),
        )
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

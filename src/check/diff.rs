//! Changes between two lists of tools, and those that break a client.

use serde::Serialize;
use serde_json::Value;

use super::schema_changes::narrowed_arguments;
use crate::annotate::Hint;
use crate::api::Api;
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
    pub impact: Impact,
    /// The tool's name, the new one if it has one.
    pub tool: String,
    /// Description of the change.
    pub change: String,
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
    let facts = |offered: &crate::api::BoundTool| {
        let whole: Value = serde_json::from_str(offered.text()).unwrap_or_default();
        ToolFacts {
            name: offered.name.to_string(),
            operation: offered.operation.label(),
            hints: Hint::ALL.map(|hint| offered.hints.effective(hint)),
            input: whole.get("inputSchema").cloned().unwrap_or_default(),
            description: whole.get("description").cloned().unwrap_or_default(),
        }
    };
    api.tools().iter().map(facts).collect()
}

/// All changes, what breaks first.
pub(crate) fn compare(old: &[ToolFacts], new: &[ToolFacts]) -> Vec<ToolChange> {
    let mut changes = Vec::new();
    let by_operation = |tools: &[ToolFacts], wanted: &ToolFacts| {
        tools
            .iter()
            .find(|tool| tool.operation == wanted.operation)
            .cloned()
    };
    let by_name = |tools: &[ToolFacts], wanted: &ToolFacts| {
        tools.iter().find(|tool| tool.name == wanted.name).cloned()
    };
    for before in old {
        match (by_name(new, before), by_operation(new, before)) {
            (Some(after), _) => {
                if after.operation != before.operation {
                    let moved = format!(
                        "calls {} instead of {}",
                        one_line(&after.operation),
                        one_line(&before.operation)
                    );
                    push(&mut changes, Impact::Risk, &after.name, moved);
                }
                compare_tool(before, &after, &mut changes);
            }
            (None, Some(after)) => {
                push(
                    &mut changes,
                    Impact::Breaking,
                    &after.name,
                    format!("was called {}", before.name),
                );
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
            let impact = if read_only {
                Impact::Compatible
            } else {
                Impact::Risk
            };
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
    compare_input(before, after, changes);
    if before.description != after.description {
        push(
            changes,
            Impact::Compatible,
            &after.name,
            "its description changed".into(),
        );
    }
}

fn compare_input(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    if before.input == after.input {
        return;
    }
    let narrowed = narrowed_arguments(&before.input, &after.input);
    if narrowed.is_empty() {
        push(
            changes,
            Impact::Compatible,
            &after.name,
            "its arguments changed in other ways".into(),
        );
    }
    for change in narrowed {
        push(changes, Impact::Breaking, &after.name, change);
    }
}

/// Clients have lists of tools that run without a question: a hint that became more careful takes a
/// tool off such a list.
fn compare_hints(before: &ToolFacts, after: &ToolFacts, changes: &mut Vec<ToolChange>) {
    for ((was, is), hint) in before.hints.into_iter().zip(after.hints).zip(Hint::ALL) {
        if was == is {
            continue;
        }
        let said = format!("{} is {is} now", hint.word());
        if is == hint.default_value() {
            push(changes, Impact::Breaking, &after.name, said.clone());
            if hint == Hint::ReadOnly {
                push(changes, Impact::Risk, &after.name, "it writes now".into());
            }
        } else {
            push(
                changes,
                Impact::Risk,
                &after.name,
                format!("{said}, which is less careful"),
            );
        }
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

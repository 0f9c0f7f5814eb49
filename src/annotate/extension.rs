//! Extensions of the document that describe tools: `x-mcp`, and others that real documents use.
//!
//! # Adding an extension about tools
//!
//! - Its name in `TOOL_EXTENSIONS` in `spec/operation/mod.rs`, at its place in the order of
//!   precedence.
//! - `read_extensions` in `annotate/extension.rs` makes an `Override` of it, which is defined in
//!   `annotate/overrides/mod.rs`.
//! - An extension of a parameter is read by `read_common` in `spec/operation/parameter.rs` and
//!   used in `annotate/wording/evidence.rs`.

use super::overrides::{ExpectedType, Override, OverrideProblem};
use crate::spec::operation::{TOOL_EXTENSIONS, tool_extensions};
use crate::spec::{Diagnostic, Document, Operation, Span, pointer};

/// Settings of an extension of the document for a tool.
pub(crate) struct Authored {
    /// The extension's name.
    pub(crate) extension: &'static str,
    /// Its settings.
    pub(crate) said: Override,
}

/// The extensions of the document's root, which are the weakest.
pub(crate) fn of_root(document: &Document, diagnostics: &mut Vec<Diagnostic>) -> Vec<Authored> {
    let root = document.root().object().unwrap_or_default();
    let root = tool_extensions(root.iter());
    let mut authored = read_extensions(document, &root, "#", diagnostics);
    for Authored { extension, said } in &mut authored {
        if said.name.take().is_some() {
            let what = format!("`{extension}` gives all tools the same name; the name is ignored");
            diagnostics.push(Diagnostic::warning("#", what));
        }
    }
    authored
}

/// The extensions of an operation: its path item's, then its own.
pub(crate) fn of_operation(
    document: &Document,
    operation: &Operation,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Authored> {
    let Operation {
        extensions,
        pointer,
        ..
    } = operation;
    read_extensions(document, extensions, pointer, diagnostics)
}

fn read_extensions(
    document: &Document,
    extensions: &[(Box<str>, Span)],
    place: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Authored> {
    let mut authored = Vec::new();
    for (name, span) in extensions {
        let mut known = TOOL_EXTENSIONS.into_iter();
        let Some(extension) = known.find(|known| **known == **name) else {
            let what = format!("the extension `{name}` is unknown and has no effect");
            diagnostics.push(Diagnostic::note(place, what));
            continue;
        };
        let Some(value) = document.node(*span).value() else {
            continue;
        };
        let mut problems: Vec<OverrideProblem> = Vec::new();
        // The key is a part of the extension's name if it is not written out.
        let key = extension
            .strip_prefix("x-mcp-")
            .filter(|key| ["name", "title", "description"].contains(key));
        let mut said = Override::default();
        match (extension, value.as_bool()) {
            ("x-mcp", Some(enabled)) => said.enabled = Some(enabled),
            ("x-mcp-hidden", Some(hidden)) => said.enabled = Some(!hidden),
            ("x-mcp-hidden", None) => {
                problems.push(OverrideProblem::of_type(
                    None,
                    &value,
                    ExpectedType::Boolean,
                ));
            }
            ("x-mcp-annotations", _) => said.read_annotations(&value, &mut problems),
            _ => {
                let value = match key {
                    Some(key) => serde_json::json!({ key: value }),
                    None if extension == "x-speakeasy-mcp" => speakeasy(value),
                    None => value,
                };
                said = Override::read(&value, &mut problems);
            }
        }
        for problem in problems {
            let mut place = place.to_owned();
            pointer::push(&mut place, extension);
            for step in problem.path.iter().filter(|_| key.is_none()) {
                pointer::push(&mut place, step);
            }
            diagnostics.push(Diagnostic::warning(place, problem.of_document()).at(*span));
        }
        authored.push(Authored { extension, said });
    }
    authored
}

/// `x-speakeasy-mcp` in the form of `x-mcp`: it has `disabled` instead of `enabled`, hints beside
/// the other members, and `scopes`, which do not concern a tool.
fn speakeasy(value: serde_json::Value) -> serde_json::Value {
    let serde_json::Value::Object(mut members) = value else {
        return value;
    };
    members.remove("scopes");
    if let Some(disabled) = members.remove("disabled") {
        let enabled = disabled
            .as_bool()
            .map_or(disabled, |disabled| (!disabled).into());
        members.insert("enabled".into(), enabled);
    }
    let hints = super::annotations::Hint::ALL.into_iter();
    let hints = hints.filter_map(|hint| members.remove_entry(hint.key()));
    let hints: serde_json::Map<_, _> = hints.collect();
    if !hints.is_empty() && !members.contains_key("annotations") {
        members.insert("annotations".into(), hints.into());
    }
    members.into()
}

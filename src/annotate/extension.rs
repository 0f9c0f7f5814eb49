//! Extensions of the document that describe tools: `x-mcp`, and others that real documents use.
//!
//! # Adding an extension about tools
//!
//! - Its name in `TOOL_EXTENSIONS` in `spec/operation/mod.rs`, at its place in the order of
//!   precedence.
//! - `read_extensions` in `annotate/extension.rs` makes an `Override` of it, which is defined in
//!   `annotate/overrides/mod.rs`.
//! - An extension of a parameter is read by `ParameterHead` in `spec/operation/parameter.rs` and
//!   used in `annotate/wording/evidence.rs`.

use super::overrides::{ExpectedType, Override, OverrideProblem, OverrideProblemKind};
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
            diagnostics.push(Diagnostic::warning(
                "#",
                format!("`{extension}` gives all tools the same name; the name is ignored"),
            ));
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
    if operation.extensions.is_empty() {
        return Vec::new();
    }
    read_extensions(
        document,
        &operation.extensions,
        &operation.pointer,
        diagnostics,
    )
}

fn read_extensions(
    document: &Document,
    extensions: &[(Box<str>, Span)],
    place: &str,
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<Authored> {
    let mut authored = Vec::new();
    for (name, span) in extensions {
        let Some(extension) = TOOL_EXTENSIONS
            .into_iter()
            .find(|known| *known == name.as_ref())
        else {
            diagnostics.push(Diagnostic::note(
                place,
                format!("the extension `{name}` is unknown and has no effect"),
            ));
            continue;
        };
        let Some(value) = document.node(*span).value() else {
            continue;
        };
        let mut problems: Vec<OverrideProblem> = Vec::new();
        let field = |key: &str, value| serde_json::json!({ key: value });
        let said = match (extension, value.as_bool()) {
            ("x-mcp", Some(enabled)) => Override {
                enabled: Some(enabled),
                ..Override::default()
            },
            ("x-mcp-hidden", Some(hidden)) => Override {
                enabled: Some(!hidden),
                ..Override::default()
            },
            ("x-mcp-hidden", None) => {
                problems.push(OverrideProblem {
                    path: Vec::new(),
                    kind: OverrideProblemKind::WrongType {
                        found: value,
                        expected: ExpectedType::Boolean,
                    },
                });
                Override::default()
            }
            ("x-mcp-annotations", _) => {
                let mut said = Override::default();
                said.read_annotations(&value, &mut problems);
                said
            }
            ("x-mcp-name" | "x-mcp-title" | "x-mcp-description", _) => Override::read(
                &field(extension.trim_start_matches("x-mcp-"), value),
                &mut problems,
            ),
            ("x-speakeasy-mcp", _) => Override::read(&speakeasy(value), &mut problems),
            _ => Override::read(&value, &mut problems),
        };
        // The key is a part of the extension's name if it is not written out.
        let is_named = matches!(
            extension,
            "x-mcp-name" | "x-mcp-title" | "x-mcp-description"
        );
        for problem in problems {
            let mut place = place.to_owned();
            pointer::push(&mut place, extension);
            let keys = problem.path.iter().filter(|_| !is_named);
            keys.for_each(|key| pointer::push(&mut place, key));
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
    let mut hints = serde_json::Map::new();
    for hint in super::annotations::Hint::ALL {
        if let Some(value) = members.remove(hint.key()) {
            hints.insert(hint.key().into(), value);
        }
    }
    if !hints.is_empty() && !members.contains_key("annotations") {
        members.insert("annotations".into(), hints.into());
    }
    members.into()
}

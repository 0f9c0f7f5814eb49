//! Titles and descriptions: what a person, and a model, reads about a tool, in the detail that the
//! operator chose.

use heck::ToTitleCase as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::ReplyDescriber;
use crate::json::JsonObject;
use crate::spec::{Document, Operation, Parameter, argument_names};
use crate::text::{MAX_DESCRIPTION_BYTES, clean, one_line, spelled, truncate};

/// Longer summaries are sentences, not titles.
pub(crate) const MAX_TITLE_BYTES: usize = 100;

/// A human title: the summary, else the operationId or the path spelled as words ("List Pets").
pub(crate) fn title(operation: &Operation) -> String {
    let summary = one_line(operation.summary.as_deref().unwrap_or_default());
    let mut title = summary.trim_end_matches('.').to_owned();
    if title.trim().is_empty() {
        title = one_line(&operation.id.as_deref().unwrap_or_default().to_title_case());
    }
    if title.is_empty() {
        let method = operation.method.as_str().to_ascii_lowercase();
        title = one_line(&format!("{method} {}", operation.path).to_title_case());
    }
    truncate(&title, MAX_TITLE_BYTES)
}

/// Describes the tool, never empty: summary and description if they differ, and a note if it is
/// deprecated.
pub(crate) fn description(operation: &Operation, title: &str) -> String {
    let [summary, description] = [&operation.summary, &operation.description]
        .map(|text| text.as_deref().map(clean).unwrap_or_default());
    let mut text = match (summary.is_empty(), description.is_empty()) {
        (true, true) => format!("{title} ({})", one_line(&operation.label())),
        (false, true) => summary,
        (true, false) => description,
        (false, false) if description.starts_with(summary.trim_end_matches('.')) => description,
        (false, false) => format!("{summary}\n\n{description}"),
    };
    if operation.deprecated {
        text.insert_str(0, "Deprecated. ");
    }
    truncate(&text, MAX_DESCRIPTION_BYTES)
}

/// The first sentence of the description, else the summary.
pub(crate) fn sentence(operation: &Operation, title: &str) -> String {
    let mut words = [&operation.description, &operation.summary]
        .into_iter()
        .flatten()
        .map(|text| one_line(text.trim_start().split("\n\n").next().unwrap_or_default()))
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| format!("{title} ({})", one_line(&operation.label())));
    let end = words.find(". ").map_or(words.len(), |dot| dot + 1);
    words.truncate(end);
    if operation.deprecated {
        words.insert_str(0, "Deprecated. ");
    }
    truncate(&words, MAX_DESCRIPTION_BYTES)
}

/// Describes a parameter: its own description, else the schema's (`None` here: the schema has it
/// already), else a sentence made from name, location and type. If the argument's name does not
/// show the name on the wire, that is added.
pub(crate) fn parameter_description(parameter: &Parameter, schema: &JsonObject) -> Option<String> {
    let schema_says = schema.get("description").and_then(Value::as_str);
    let Parameter { name, location, .. } = parameter;
    let own = parameter.description.as_deref().map(clean);
    let own = own.filter(|text| !text.is_empty());
    let schema_says = schema_says.filter(|text| !text.is_empty());
    let shows_name = !argument_names::loses_information(name, &parameter.key);
    let text = match (own, schema_says) {
        (Some(own), _) => own,
        (None, Some(_)) if shows_name => return None,
        (None, Some(text)) => clean(text),
        (None, None) => {
            let kind = schema.get("type").and_then(Value::as_str);
            let kind = kind.map(|kind| format!(", {kind}")).unwrap_or_default();
            format!("{} ({} parameter{kind})", spelled(name), location.as_str())
        }
    };
    if shows_name {
        return Some(truncate(&text, MAX_DESCRIPTION_BYTES));
    }
    let note = format!("Sent as `{}`.", truncate(&one_line(name), MAX_TITLE_BYTES));
    let text = truncate(&text, MAX_DESCRIPTION_BYTES - note.len() - 2);
    let is_ended = text.ends_with(['.', '!', '?']);
    Some(format!("{text}{} {note}", if is_ended { "" } else { "." }))
}

/// Detail of a description.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum DescriptionDetail {
    /// The document's own words
    #[default]
    Plain,
    /// Also the fields of replies, and the replacement of a deprecated operation
    Brief,
    /// The first sentence of the document's own words
    Title,
}

/// More fields of a reply are only counted.
const MAX_FIELDS: usize = 12;

/// The description of a tool: what a person or the document says, with the name of what takes the
/// place of the operation, and the fields of replies, for which it gives way.
pub(crate) fn describe(
    document: &Document,
    operation: &Operation,
    said: Option<&str>,
    title: &str,
    replacement: Option<&str>,
    detail: DescriptionDetail,
) -> String {
    const MAX_ADDITIONS_BYTES: usize = MAX_DESCRIPTION_BYTES / 2;
    let mut description = match said {
        Some(said) => truncate(said, MAX_DESCRIPTION_BYTES),
        None if detail == DescriptionDetail::Title => sentence(operation, title),
        None => description(operation, title),
    };
    if let (Some(name), Some(rest)) = (replacement, description.strip_prefix("Deprecated. ")) {
        description = format!("Deprecated; use `{name}` instead. {rest}");
    }
    if detail == DescriptionDetail::Brief
        && let Some(fields) = returns(operation, &mut ReplyDescriber::new(document))
    {
        let fields = truncate(&fields, MAX_ADDITIONS_BYTES);
        let room = MAX_DESCRIPTION_BYTES - fields.len() - 1;
        return format!("{}\n{fields}", truncate(&description, room));
    }
    truncate(&description, MAX_DESCRIPTION_BYTES)
}

/// The name of the tool that takes the place of a deprecated operation: the only other one that its
/// words name. `others` are the operations and the names of their tools.
pub(crate) fn replacement<'n>(
    operation: &Operation,
    others: impl Iterator<Item = (&'n Operation, &'n str)>,
) -> Option<&'n str> {
    let said = operation
        .description
        .as_ref()
        .filter(|_| operation.deprecated)?;
    let is_part = |character: char| character.is_alphanumeric() || character == '_';
    let is_word = |id: &str| {
        said.match_indices(id).any(|(at, id)| {
            let (before, rest) = said.split_at_checked(at).unwrap_or_default();
            let after = rest.strip_prefix(id).unwrap_or_default();
            !before.ends_with(is_part) && !after.starts_with(is_part)
        })
    };
    let is_named = |other: &Operation| {
        let id = other.id.as_deref().filter(|id| id.len() > 3);
        id.is_some_and(is_word) || is_word(&other.label())
    };
    let mut named =
        others.filter(|(other, _)| other.pointer != operation.pointer && is_named(other));
    let (_, name) = named.next()?;
    named.next().is_none().then_some(name)
}

/// Describes the fields of replies, without those that a rule drops.
pub(crate) fn returns(operation: &Operation, replies: &mut ReplyDescriber<'_>) -> Option<String> {
    let schema = replies.lenient(operation)?;
    let properties = schema.get("properties")?.as_object()?;
    let names = |properties: &JsonObject| {
        let shown: Vec<&str> = properties
            .keys()
            .take(MAX_FIELDS)
            .map(String::as_str)
            .collect();
        let more = match properties.len().saturating_sub(MAX_FIELDS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        one_line(&(shown.join(", ") + &more))
    };
    let result = properties.get("result").filter(|_| properties.len() == 1);
    let Some(items) = result.and_then(|result| result.get("items")) else {
        return Some(format!("Returns an object with {}.", names(properties)));
    };
    let fields = items.get("properties").and_then(Value::as_object);
    Some(match fields.filter(|fields| !fields.is_empty()) {
        Some(fields) => format!("Returns a list of objects with {}.", names(fields)),
        None => "Returns a list.".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::{Document, operations};

    fn operation(json: &str) -> Box<Operation> {
        let text =
            format!(r#"{{"openapi":"3.1.0","paths":{{"/pets/{{petId}}":{{"get":{json}}}}}}}"#);
        operations(&Document::parse(text.into_bytes(), None).unwrap())
            .0
            .remove(0)
    }

    #[test]
    fn titles_are_for_people() {
        for (json, expected) in [
            (
                r#"{"summary":"Find a pet.","operationId":"x"}"#,
                "Find a pet",
            ),
            (
                r#"{"operationId":"nc_notes_create_note"}"#,
                "Nc Notes Create Note",
            ),
            (
                r#"{"operationId":"repos/listForOrg"}"#,
                "Repos List For Org",
            ),
            (r#"{"summary":"  "}"#, "Get Pets Pet Id"),
            (r#"{"summary":" . "}"#, "Get Pets Pet Id"),
        ] {
            assert_eq!(title(&operation(json)), expected);
        }
    }

    #[test]
    fn a_description_is_never_empty_and_never_says_it_twice() {
        for (json, expected) in [
            (
                r#"{"summary":"Find a pet","description":"Find a pet by its id."}"#,
                "Find a pet by its id.",
            ),
            (
                r#"{"summary":"Find a pet","description":"By its id."}"#,
                "Find a pet\n\nBy its id.",
            ),
            (
                r#"{"operationId":"findPet","deprecated":true}"#,
                "Deprecated. Find Pet (GET /pets/{petId})",
            ),
        ] {
            let operation = operation(json);
            assert_eq!(description(&operation, &title(&operation)), expected);
        }
    }
}

//! Titles and descriptions: what a person, and a model, reads about a tool, in the detail that the
//! operator chose.

use heck::ToTitleCase as _;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output::ReplyDescriber;
use super::overrides::ruled_schema::ruled_output;
use crate::json::JsonObject;
use crate::spec::{Document, Operation, Parameter, argument_names};
use crate::text::{MAX_DESCRIPTION_BYTES, clean, one_line, spelled, truncate};

/// Longer summaries are sentences, not titles.
pub(crate) const MAX_TITLE_BYTES: usize = 100;

/// A human title: the summary, else the operationId or the path spelled as words ("List Pets").
pub(crate) fn title(operation: &Operation) -> String {
    let summary = operation
        .summary
        .as_deref()
        .map(one_line)
        .unwrap_or_default();
    let summary = summary.trim_end_matches('.');
    if !summary.trim().is_empty() {
        return truncate(summary, MAX_TITLE_BYTES);
    }
    let spelled = operation
        .id
        .as_deref()
        .map(|id| one_line(&id.to_title_case()))
        .filter(|words| !words.is_empty());
    let spelled = spelled.unwrap_or_else(|| {
        one_line(
            &format!(
                "{} {}",
                operation.method.as_str().to_ascii_lowercase(),
                operation.path
            )
            .to_title_case(),
        )
    });
    truncate(&spelled, MAX_TITLE_BYTES)
}

/// Describes the tool, never empty: summary and description if they differ, and a note if it is
/// deprecated.
pub(crate) fn description(operation: &Operation, title: &str) -> String {
    let summary = operation.summary.as_deref().map(clean).unwrap_or_default();
    let description = operation
        .description
        .as_deref()
        .map(clean)
        .unwrap_or_default();
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
    let words = [&operation.description, &operation.summary]
        .into_iter()
        .flatten()
        .map(|text| one_line(text.trim_start().split("\n\n").next().unwrap_or_default()))
        .find(|text| !text.is_empty())
        .unwrap_or_else(|| format!("{title} ({})", one_line(&operation.label())));
    let end = words.find(". ").map_or(words.len(), |dot| dot + 1);
    let deprecated = if operation.deprecated {
        "Deprecated. "
    } else {
        ""
    };
    let sentence = words.get(..end).unwrap_or_default();
    truncate(&format!("{deprecated}{sentence}"), MAX_DESCRIPTION_BYTES)
}

/// Describes a parameter: its own description, else the schema's (`None` here: the schema has it
/// already), else a sentence made from name, location and type. If the argument's name does not
/// show the name on the wire, that is added.
pub(crate) fn parameter_description(
    parameter: &Parameter,
    schema_says: Option<&str>,
    kind: &str,
) -> Option<String> {
    let own = parameter
        .description
        .as_deref()
        .map(clean)
        .filter(|text| !text.is_empty());
    let schema_says = schema_says.filter(|text| !text.is_empty());
    let on_the_wire =
        argument_names::loses_information(&parameter.name, &parameter.key).then(|| {
            format!(
                "Sent as `{}`.",
                truncate(&one_line(&parameter.name), MAX_TITLE_BYTES)
            )
        });
    let text = match (own, schema_says, &on_the_wire) {
        (Some(own), ..) => own,
        (None, Some(_), None) => return None,
        (None, Some(text), Some(_)) => clean(text),
        (None, None, _) => format!(
            "{} ({} parameter{kind})",
            spelled(&parameter.name),
            parameter.location.as_str()
        ),
    };
    Some(match on_the_wire {
        None => truncate(&text, MAX_DESCRIPTION_BYTES),
        Some(note) => {
            let text = truncate(&text, MAX_DESCRIPTION_BYTES - note.len() - 2);
            let end = if text.ends_with(['.', '!', '?']) {
                ""
            } else {
                "."
            };
            format!("{text}{end} {note}")
        }
    })
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

/// The description of a tool: what a person or the document says, and what is added to it.
pub(crate) fn describe(
    document: &Document,
    operation: &Operation,
    said: Option<&str>,
    title: &str,
    replacement: Option<&str>,
    detail: DescriptionDetail,
) -> String {
    let description = match said {
        Some(said) => truncate(said, MAX_DESCRIPTION_BYTES),
        None if detail == DescriptionDetail::Title => sentence(operation, title),
        None => description(operation, title),
    };
    let additions = (detail == DescriptionDetail::Brief)
        .then(|| returns(document, operation, &mut ReplyDescriber::new(document)));
    enrich(
        description,
        replacement,
        &additions.flatten().unwrap_or_default(),
    )
}

/// A description with what is said besides: a word on what takes the operation's place, and the
/// additions, for which it gives way.
fn enrich(mut description: String, replacement: Option<&str>, additions: &str) -> String {
    const MAX_ADDITIONS_BYTES: usize = MAX_DESCRIPTION_BYTES / 2;
    if let (Some(name), Some(rest)) = (replacement, description.strip_prefix("Deprecated. ")) {
        description = format!("Deprecated; use `{name}` instead. {rest}");
    }
    if additions.is_empty() {
        return truncate(&description, MAX_DESCRIPTION_BYTES);
    }
    let additions = truncate(additions, MAX_ADDITIONS_BYTES);
    let room = MAX_DESCRIPTION_BYTES - additions.len() - 1;
    format!("{}\n{additions}", truncate(&description, room))
}

/// The name of the tool that takes the place of a deprecated operation: the only other one that its
/// words name. `others` are the operations and the names of their tools.
pub(crate) fn replacement<'n>(
    operation: &Operation,
    others: impl Iterator<Item = (&'n Operation, &'n str)>,
) -> Option<&'n str> {
    let said = operation
        .description
        .as_deref()
        .filter(|_| operation.deprecated)?;
    let is_word = |id: &str| {
        said.match_indices(id).any(|(at, _)| {
            let is_part = |character: Option<char>| {
                character.is_some_and(|character| character.is_alphanumeric() || character == '_')
            };
            let (before, after) = (
                said.get(..at).unwrap_or_default(),
                said.get(at + id.len()..).unwrap_or_default(),
            );
            !is_part(before.chars().next_back()) && !is_part(after.chars().next())
        })
    };
    let is_named = |other: &Operation| {
        other
            .id
            .as_deref()
            .is_some_and(|id| id.len() > 3 && is_word(id))
            || is_word(&other.label())
    };
    let mut named =
        others.filter(|(other, _)| other.pointer != operation.pointer && is_named(other));
    named
        .next()
        .filter(|_| named.next().is_none())
        .map(|(_, name)| name)
}

/// Describes the fields of replies, without those that a rule drops.
pub(crate) fn returns<'d>(
    document: &'d Document,
    operation: &Operation,
    replies: &mut ReplyDescriber<'d>,
) -> Option<String> {
    let schema = match &operation.rules.response {
        Some(rule) => ruled_output(rule, document, operation)?,
        None => replies.lenient(operation)?,
    };
    let properties = schema.get("properties")?.as_object()?;
    let names = |properties: &JsonObject| {
        let shown: Vec<&str> = properties
            .keys()
            .take(MAX_FIELDS)
            .map(String::as_str)
            .collect();
        let more = properties.len().saturating_sub(MAX_FIELDS);
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        one_line(&format!("{}{more}", shown.join(", ")))
    };
    let items = properties
        .get("result")
        .filter(|_| properties.len() == 1)
        .and_then(|result| result.get("items"));
    match items.map(|items| items.get("properties").and_then(Value::as_object)) {
        Some(Some(fields)) if !fields.is_empty() => {
            Some(format!("Returns a list of objects with {}.", names(fields)))
        }
        Some(_) => Some("Returns a list.".to_owned()),
        None => Some(format!("Returns an object with {}.", names(properties))),
    }
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

//! Titles and descriptions: what a person, and a model, reads about a tool.

use heck::ToTitleCase as _;

use crate::spec::{Operation, Parameter, argument_names};
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

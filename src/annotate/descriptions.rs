//! Titles and descriptions: what a person, and a model, reads about a tool.

use std::collections::HashSet;

use heck::ToTitleCase as _;

use super::wording::lexicon::is_verb;
use crate::spec::{Operation, Parameter, argument_names};
use crate::text::{MAX_DESCRIPTION_BYTES, clean, one_line, spelled, truncate};

/// Longer summaries are sentences, not titles.
pub(crate) const MAX_TITLE_BYTES: usize = 100;

/// A human title: the summary, else the operationId or the path spelled as words ("List Pets").
#[must_use]
fn title(operation: &Operation) -> String {
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

/// A human title for each operation. Words that all titles from operationIds begin with ("Nc Notes
/// Create Note") are left out, unless they are a verb, or fewer than two words or two equal titles
/// would remain.
#[must_use]
pub(crate) fn titles(operations: &[Box<Operation>]) -> Vec<String> {
    let full: Vec<String> = operations
        .iter()
        .map(|operation| title(operation))
        .collect();
    let is_spelled = |operation: &Operation| {
        let has_words = |text: &Option<String>| {
            text.as_deref()
                .is_some_and(|text| !one_line(text).is_empty())
        };
        !has_words(&operation.summary) && has_words(&operation.id)
    };
    let spelled: Vec<bool> = operations
        .iter()
        .map(|operation| is_spelled(operation))
        .collect();
    let mut from_ids = full
        .iter()
        .zip(&spelled)
        .filter(|(_, spelled)| **spelled)
        .map(|(title, _)| title);
    let Some(first) = from_ids.next() else {
        return full;
    };
    let words: Vec<&str> = first.split(' ').collect();
    let is_verb = |word: &&&str| is_verb(&word.to_lowercase());
    let mut shared = words.iter().take_while(|word| !is_verb(word)).count();
    let mut others = 0;
    for title in from_ids {
        let common = words
            .iter()
            .zip(title.split(' '))
            .take_while(|(word, other)| *word == other)
            .count();
        shared = shared
            .min(common)
            .min((title.split(' ').count()).saturating_sub(2));
        others += 1;
    }
    shared = shared.min(words.len().saturating_sub(2));
    if shared == 0 || others == 0 {
        return full;
    }
    let shorten =
        |(title, spelled): (&String, &bool)| match title.splitn(shared + 1, ' ').nth(shared) {
            Some(rest) if *spelled => rest.to_owned(),
            _ => title.clone(),
        };
    let short: Vec<String> = full.iter().zip(&spelled).map(shorten).collect();
    let distinct = |titles: &[String]| titles.iter().collect::<HashSet<_>>().len();
    if distinct(&short) < distinct(&full) {
        full
    } else {
        short
    }
}

/// Describes the tool, never empty: summary and description if they differ, and a note if it is
/// deprecated.
#[must_use]
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
#[must_use]
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
    fn a_prefix_of_all_titles_is_left_out_where_they_stay_titles() {
        let titles = |ids: &[&str]| {
            let operations: Vec<_> = ids
                .iter()
                .map(|id| match id.strip_prefix("summary:") {
                    Some(summary) => {
                        operation(&format!(r#"{{"summary":"{summary}","operationId":"x"}}"#))
                    }
                    None => operation(&format!(r#"{{"operationId":"{id}"}}"#)),
                })
                .collect();
            super::titles(&operations)
        };
        for (ids, expected) in [
            (
                &[
                    "nc_notes_create_note",
                    "nc_notes_get_note",
                    "nc_notes_append_content",
                ][..],
                &["Create Note", "Get Note", "Append Content"][..],
            ),
            (
                &[
                    "nc_notes_create_note",
                    "summary:Find a note",
                    "nc_notes_get_note",
                ],
                &["Create Note", "Find a note", "Get Note"],
            ),
            // What remains is too short, is not unique, or lacks its verb.
            (
                &["nc_notes_create", "nc_notes_get_note"],
                &["Notes Create", "Notes Get Note"],
            ),
            (&["pets_list", "pets_create"], &["Pets List", "Pets Create"]),
            (
                &["summary:Create note", "nc_create_note", "nc_get_note"],
                &["Create note", "Create Note", "Get Note"],
            ),
            (
                &["summary:Create Note", "nc_create_note", "nc_get_note"],
                &["Create Note", "Nc Create Note", "Nc Get Note"],
            ),
            (
                &["get_all_pets", "get_all_users"],
                &["Get All Pets", "Get All Users"],
            ),
            (&["nc_notes_create_note"], &["Nc Notes Create Note"]),
        ] {
            assert_eq!(titles(ids), expected, "{ids:?}");
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

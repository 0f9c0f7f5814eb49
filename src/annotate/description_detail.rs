//! The detail of descriptions: one sentence, the document's own words, or also the fields of
//! replies and the replacement of a deprecated operation.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::descriptions;
use super::output::ReplyDescriber;
use super::overrides::ruled_output::ruled_output;
use crate::json::JsonObject;
use crate::spec::{Document, Operation};
use crate::text::{MAX_DESCRIPTION_BYTES, one_line, truncate};

/// Detail of a description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
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
        None if detail == DescriptionDetail::Title => descriptions::sentence(operation, title),
        None => descriptions::description(operation, title),
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

//! Additions to descriptions beyond the document's own words: the fields of replies, the
//! replacement of a deprecated operation, defaults, the meanings of constants, and one example of
//! the arguments.

use std::borrow::Cow;

use foldhash::HashSet;
use serde_json::{Map, Value};

use super::descriptions;
use super::output::ReplyDescriber;
use super::overrides::ruled_output::ruled_output;
use crate::spec::node::{Node, Object};
use crate::spec::operation::body_properties::properties;
use crate::spec::operation::request_body::{BODY, BodySchema};
use crate::spec::operation::rules::ArgumentTarget;
use crate::spec::{Document, MediaKind, Operation};
use crate::text::{MAX_DESCRIPTION_BYTES, clean, one_line, truncate};

/// Detail of a description.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DescriptionDetail {
    /// The document's own words.
    #[default]
    Plain,
    /// Also the fields of replies, and the replacement of a deprecated operation.
    Brief,
    /// Also defaults, the meanings of constants, and one example of the arguments.
    Full,
}

/// More fields of a reply are only counted.
const MAX_FIELDS: usize = 12;
/// More parameters are not spoken of.
const MAX_PARAMETERS: usize = 8;
/// A longer example helps no model.
const MAX_EXAMPLE_BYTES: usize = 400;
/// Deeper than this no example is made.
const MAX_EXAMPLE_DEPTH: usize = 4;
/// Number of bytes of the meaning of one constant.
const MAX_MEANING_BYTES: usize = 60;

/// The description of a tool: what a person or the document says, and what is added to it.
#[must_use]
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
        None => descriptions::description(operation, title),
    };
    enrich(
        description,
        replacement,
        &additions(document, operation, detail),
    )
}

/// Returns the additions to the document's own words, a line each; empty if there is nothing.
pub(crate) fn additions(
    document: &Document,
    operation: &Operation,
    detail: DescriptionDetail,
) -> String {
    if detail == DescriptionDetail::Plain {
        return String::new();
    }
    let mut lines: Vec<String> = returns(document, operation, &mut ReplyDescriber::new(document))
        .into_iter()
        .collect();
    if detail == DescriptionDetail::Full {
        lines.extend(further_lines(document, operation));
    }
    lines.join("\n")
}

/// Returns the numbers of bytes that [`DescriptionDetail::Brief`] and [`DescriptionDetail::Full`]
/// add.
pub(crate) fn addition_lengths<'d>(
    document: &'d Document,
    operation: &Operation,
    replies: &mut ReplyDescriber<'d>,
) -> [usize; 2] {
    let mut lines: Vec<String> = returns(document, operation, replies).into_iter().collect();
    let brief = lines.join("\n").len();
    lines.extend(further_lines(document, operation));
    [brief, lines.join("\n").len()]
}

/// Returns the lines that only [`DescriptionDetail::Full`] adds.
fn further_lines(document: &Document, operation: &Operation) -> impl Iterator<Item = String> {
    let arguments: Vec<_> = arguments(document, operation).collect();
    let lines = [
        defaults(&arguments),
        meanings(&arguments),
        example(document, operation),
    ];
    lines.into_iter().flatten()
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
#[must_use]
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
fn returns<'d>(
    document: &'d Document,
    operation: &Operation,
    replies: &mut ReplyDescriber<'d>,
) -> Option<String> {
    let schema = match &operation.rules.response {
        Some(rule) => ruled_output(rule, document, operation)?,
        None => replies.lenient(operation)?,
    };
    let properties = schema.get("properties")?.as_object()?;
    let names = |properties: &Map<String, Value>| {
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

/// The schema of each parameter that a call may give, with its argument, and then those of the
/// properties of its body, each with its JSON Pointer.
fn arguments<'d>(
    document: &'d Document,
    operation: &'d Operation,
) -> impl Iterator<Item = (Cow<'d, str>, Object<'d>)> {
    let parameters = operation
        .parameters
        .iter()
        .take(64)
        .filter_map(|parameter| {
            let schema = document
                .resolve_object(document.node(parameter.schema?))
                .ok()??;
            Some((Cow::from(parameter.key.as_str()), schema))
        });
    parameters.chain(body_properties(document, operation))
}

/// The properties of the body that a call may give, but for those that rules describe anew.
fn body_properties<'d>(
    document: &'d Document,
    operation: &'d Operation,
) -> Vec<(Cow<'d, str>, Object<'d>)> {
    let body = operation.body.as_ref().map(|body| &body.media_type);
    let schema = body.and_then(|media_type| match media_type.schema {
        BodySchema::At(span) => Some(document.node(span)),
        _ => None,
    });
    let is_ruled = |name: &str| {
        let mut targets = operation.rules.arguments.iter().map(|rule| &rule.target);
        targets.any(|target| matches!(target, ArgumentTarget::Body(steps) if steps.first().is_some_and(|step| step == name)))
    };
    let of_schema = properties(document, schema, &mut HashSet::default())
        .into_iter()
        .take(64);
    let given = of_schema.filter_map(|(name, node)| {
        let property = document.resolve_object(node).ok()??;
        let is_given = property.boolean("readOnly") != Some(true) && !is_ruled(&name);
        is_given.then(|| (Cow::from(format!("/{BODY}/{}", one_line(&name))), property))
    });
    given.collect()
}

fn defaults(arguments: &[(Cow<'_, str>, Object<'_>)]) -> Option<String> {
    let said = arguments.iter().filter_map(|(key, schema)| {
        let default = schema.get("default")?.scalar()?;
        Some(format!(
            "`{key}` {}",
            truncate(&one_line(&default), MAX_MEANING_BYTES)
        ))
    });
    let said: Vec<String> = said.take(MAX_PARAMETERS).collect();
    (!said.is_empty()).then(|| format!("Defaults: {}.", said.join("; ")))
}

fn meanings(arguments: &[(Cow<'_, str>, Object<'_>)]) -> Option<String> {
    let said = arguments
        .iter()
        .filter_map(|(key, schema)| Some(format!("`{key}`: {}", meanings_of(schema)?)));
    let said: Vec<String> = said.take(MAX_PARAMETERS).collect();
    (!said.is_empty()).then(|| format!("Values: {}.", said.join("; ")))
}

/// The meanings of constants, which documents write in extensions: as a list beside the constants,
/// or by constant.
fn meanings_of(schema: &Object<'_>) -> Option<String> {
    let constants: Vec<String> = schema
        .get("enum")?
        .array()?
        .into_iter()
        .filter_map(|node| Some(node.scalar()?.into_owned()))
        .collect();
    let keys = [
        "x-enum-descriptions",
        "x-enumDescriptions",
        "x-enum-varnames",
        "x-enumNames",
    ];
    let extension = keys.into_iter().find_map(|key| schema.get(key))?;
    let of_list = extension.array();
    let of_map = extension.object();
    let meaning = |index: usize, constant: &String| {
        let node = match (&of_list, &of_map) {
            (Some(list), _) => list.get(index).copied(),
            (None, Some(map)) => map.get(constant),
            (None, None) => None,
        };
        let said = clean(&node?.scalar()?);
        Some(format!(
            "{} = {}",
            one_line(constant),
            truncate(&one_line(&said), MAX_MEANING_BYTES)
        ))
    };
    let said: Vec<String> = constants
        .iter()
        .enumerate()
        .filter_map(|(index, constant)| meaning(index, constant))
        .collect();
    (!said.is_empty()).then(|| said.join(", "))
}

/// Returns one call with the required arguments, if the document has an example of all of it.
fn example(document: &Document, operation: &Operation) -> Option<String> {
    let rules_on_body = operation
        .rules
        .arguments
        .iter()
        .any(|rule| matches!(rule.target, ArgumentTarget::Body(_)));
    let mut arguments = Map::new();
    for parameter in operation
        .parameters
        .iter()
        .filter(|parameter| parameter.required && parameter.default.is_none())
    {
        let value = example_of(document, document.node(parameter.schema?), 0)?;
        arguments.insert(parameter.key.clone(), value);
    }
    if let Some(body) = operation.body.as_ref().filter(|body| body.required) {
        let BodySchema::At(span) = body.media_type.schema else {
            return None;
        };
        if rules_on_body || body.media_type.kind != MediaKind::Json {
            return None;
        }
        arguments.insert(
            BODY.to_owned(),
            example_of(document, document.node(span), 0)?,
        );
    }
    let text = Value::Object(arguments.clone()).to_string();
    let is_shown = !arguments.is_empty()
        && text.len() <= MAX_EXAMPLE_BYTES
        && !crate::text::has_hidden_characters(&text);
    is_shown.then(|| format!("Example: {text}"))
}

fn example_of(document: &Document, schema: Node<'_>, depth: usize) -> Option<Value> {
    if depth > MAX_EXAMPLE_DEPTH {
        return None;
    }
    let object = document.resolve_object(schema).ok()??;
    let listed = || object.get("examples")?.array()?.first().copied();
    let constant = || {
        object
            .get("const")
            .or_else(|| object.get("enum")?.array()?.first().copied())
    };
    if let Some(given) = object
        .get("example")
        .or_else(listed)
        .or_else(|| object.get("default"))
        .or_else(constant)
    {
        return crate::json::parse_text(given.text()).ok();
    }
    let properties = object.get("properties")?.object()?;
    let required = object.get("required")?.strings();
    let members = required.into_iter().filter_map(|name| {
        let property = properties.get(&name)?;
        // What only replies hold is not given.
        let is_read_only = document
            .resolve_object(property)
            .ok()
            .flatten()
            .is_some_and(|property| property.boolean("readOnly") == Some(true));
        (!is_read_only).then(|| Some((name, example_of(document, property, depth + 1)?)))
    });
    members
        .collect::<Option<Map<String, Value>>>()
        .map(Value::Object)
}

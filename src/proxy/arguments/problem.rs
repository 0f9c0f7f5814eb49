//! A problem of an argument, and its text: the fault, its location, and the value to give instead.

use std::io;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::property_names::declared_properties;
use crate::json::JsonObject;
use crate::spec::operation::request_body::BODY;
use crate::spec::schema::gather_schemas;
use crate::text;

/// Problem of the arguments.
pub(super) struct Problem {
    /// A clause for the model, with the place that it is about.
    pub(super) text: String,
    pub(super) kind: ProblemKind,
    /// The JSON Pointer of its place.
    pub(super) pointer: String,
    /// Number of levels of its place below the arguments.
    pub(super) level: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProblemKind {
    /// The value is of another type. Whether the schema accepts only null.
    Type {
        accepts_only_null: bool,
    },
    /// The value is not the one, or one of those, that the schema lists.
    Constant,
    /// The text does not match its `format`.
    Format,
    Other,
}

impl Problem {
    pub(super) fn is_about_format(&self) -> bool {
        self.kind == ProblemKind::Format
    }
}

impl ProblemKind {
    pub(super) fn of(error: &ValidationError<'_>) -> Self {
        match error.kind() {
            ValidationErrorKind::Type { kind } => Self::Type {
                accepts_only_null: matches!(kind, TypeKind::Single(JsonType::Null)),
            },
            ValidationErrorKind::Enum { .. } | ValidationErrorKind::Constant { .. } => {
                Self::Constant
            }
            ValidationErrorKind::Format { .. } => Self::Format,
            _ => Self::Other,
        }
    }
}

/// The branch that is meant, of those that refuse a value.
pub(super) enum BranchChoice {
    /// The only one that it can be.
    Meant(Vec<Problem>),
    /// The one with the fewest problems.
    Nearest(Vec<Problem>),
}

/// The problems of the branch that is meant by a value at that level: of the only one that accepts
/// its type, or else of the only one that is not null, as in `anyOf: [X, {type: null}]`; of the
/// only one whose constants it has.
pub(super) fn meant_branch(mut refused: Vec<Vec<Problem>>, level: usize) -> BranchChoice {
    let refuses = |problems: &Vec<Problem>, by: &dyn Fn(&Problem) -> bool| problems.iter().any(by);
    let by_type = |problem: &Problem| {
        problem.level == level && matches!(problem.kind, ProblemKind::Type { .. })
    };
    let by_null = |problem: &Problem| {
        let only_null = ProblemKind::Type {
            accepts_only_null: true,
        };
        problem.level == level && problem.kind == only_null
    };
    let by_constant =
        |problem: &Problem| problem.level <= level + 1 && problem.kind == ProblemKind::Constant;
    for by in [
        &by_type as &dyn Fn(&Problem) -> bool,
        &by_null,
        &by_constant,
    ] {
        let left = refused
            .iter()
            .filter(|problems| !refuses(problems, by))
            .count();
        if left > 0 {
            refused.retain(|problems| !refuses(problems, by));
        }
        if let [_] = refused.as_slice() {
            return BranchChoice::Meant(refused.pop().unwrap_or_default());
        }
    }
    // A text that does not match its format is sent all the same.
    if let Some(only_formats) = refused
        .iter()
        .position(|problems| problems.iter().all(Problem::is_about_format))
    {
        return BranchChoice::Meant(refused.swap_remove(only_formats));
    }
    BranchChoice::Nearest(refused.into_iter().min_by_key(Vec::len).unwrap_or_default())
}

/// Values longer than this are not repeated in a message.
const MAX_SHOWN_VALUE: usize = 80;
/// Longer names are cut.
const MAX_SHOWN_NAME: usize = 128;
/// Longer JSON Pointers are cut.
const MAX_SHOWN_POINTER: usize = 256;
/// Number of arguments that are listed if none is similar to the given one.
const MAX_LISTED_ARGUMENTS: usize = 50;

/// Number of required members that are listed.
const MAX_LISTED_MEMBERS: usize = 10;

/// Describes the error of the value at a JSON Pointer of the arguments of `tool`, in at most `max`
/// clauses; `schema` is the whole input schema.
pub(super) fn describe_problem(
    pointer: &str,
    error: &ValidationError<'_>,
    tool: &str,
    schema: &JsonObject,
    max: usize,
) -> Vec<String> {
    let instance = error.instance();
    let place = describe_place(pointer);
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
            .take(max)
            .map(|name| describe_unknown_property(&place, name, pointer.is_empty(), tool, schema))
            .collect(),
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            vec![if pointer.is_empty() {
                format!("`{name}` is missing{}", meaning(schema, name))
            } else {
                format!("{place}`{name}` is missing")
            }]
        }
        ValidationErrorKind::Enum { options } => vec![format!(
            "{place}{} is not one of {}",
            quote_value(instance),
            shown_list(options)
        )],
        ValidationErrorKind::Constant { expected_value } => {
            vec![format!(
                "{place}{} must be {}",
                quote_value(instance),
                quote_value(expected_value)
            )]
        }
        ValidationErrorKind::AnyOf { .. } | ValidationErrorKind::OneOfNotValid { .. } => {
            vec![describe_no_form(pointer, instance)]
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => vec![format!(
            "{place}{} fits more than one of the forms of which exactly one is meant",
            quote_value(instance)
        )],
        ValidationErrorKind::Type { kind } => {
            let allowed = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => kinds
                    .iter()
                    .map(|kind| kind.to_string())
                    .collect::<Vec<_>>()
                    .join(" or "),
            };
            let broken = instance.as_str().and_then(json_error);
            let broken = broken
                .map(|error| format!("; the text is not valid JSON: {error}"))
                .unwrap_or_default();
            vec![format!(
                "{place}{} is not of type {allowed}{broken}",
                quote_value(instance)
            )]
        }
        ValidationErrorKind::Pattern { pattern } => vec![format!(
            "{place}{} does not match {}",
            quote_value(instance),
            quote_value(&Value::String(pattern.clone()))
        )],
        ValidationErrorKind::Minimum { limit } => vec![format!(
            "{place}{} is less than {limit}",
            quote_value(instance)
        )],
        ValidationErrorKind::Maximum { limit } => vec![format!(
            "{place}{} is more than {limit}",
            quote_value(instance)
        )],
        ValidationErrorKind::ExclusiveMinimum { limit } => vec![format!(
            "{place}{} must be more than {limit}",
            quote_value(instance)
        )],
        ValidationErrorKind::ExclusiveMaximum { limit } => vec![format!(
            "{place}{} must be less than {limit}",
            quote_value(instance)
        )],
        ValidationErrorKind::MinLength { limit } => vec![format!(
            "{place}{} is shorter than {limit} characters",
            quote_value(instance)
        )],
        ValidationErrorKind::MaxLength { limit } => vec![format!(
            "{place}{} is longer than {limit} characters",
            quote_value(instance)
        )],
        ValidationErrorKind::MinItems { limit } => {
            vec![format!("{place}has fewer than {limit} items")]
        }
        ValidationErrorKind::MaxItems { limit } => {
            vec![format!("{place}has more than {limit} items")]
        }
        ValidationErrorKind::MinProperties { limit } => {
            vec![format!("{place}has fewer than {limit} members")]
        }
        ValidationErrorKind::MaxProperties { limit } => {
            vec![format!("{place}has more than {limit} members")]
        }
        ValidationErrorKind::Format { format } => {
            let argument = pointer
                .strip_prefix('/')
                .filter(|name| !name.contains('/'))
                .unwrap_or(pointer);
            vec![format!("`{argument}` does not match the format `{format}`")]
        }
        ValidationErrorKind::UniqueItems => vec![format!("{place}has an item twice")],
        other => vec![format!(
            "{place}{} does not satisfy `{}`",
            quote_value(instance),
            other.keyword()
        )],
    }
}

/// Returns the beginning of a clause about the value at a JSON Pointer.
pub(super) fn describe_place(pointer: &str) -> String {
    if pointer.is_empty() {
        return String::new();
    }
    format!("`{}`: ", text::truncate(pointer, MAX_SHOWN_POINTER))
}

/// Describes a value that no branch of a choice accepts.
pub(super) fn describe_no_form(pointer: &str, value: &Value) -> String {
    let place = describe_place(pointer);
    format!(
        "{place}{} fits none of the forms that are allowed here",
        quote_value(value)
    )
}

/// Writes `` `limt` is not an argument of list_pets; did you mean `limit`? ``, or the place where
/// it belongs.
fn describe_unknown_property(
    place: &str,
    name: &str,
    at_root: bool,
    tool: &str,
    schema: &JsonObject,
) -> String {
    let shown = text::truncate(&text::one_line(name), MAX_SHOWN_NAME);
    if !at_root {
        return format!("{place}`{shown}` is not known here");
    }
    let known: Vec<&str> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let in_body = properties_of_body(schema);
    let nearest =
        |names: &[&str]| text::nearest(name, names.iter().copied(), 0.75).map(str::to_owned);
    let setting = match name {
        "collect_pages" => Some("`collect_pages: N`"),
        "response_filter" => Some("`response_filter: jq`"),
        _ => None,
    };
    let advice = if let Some(setting) = setting {
        format!("the setting {setting} gives it to tools that can use it")
    } else if in_body.contains(&name) {
        format!("it is a member of `{BODY}`")
    } else if let Some(key) = nearest(&known) {
        format!("did you mean `{key}`?")
    } else if let Some(key) = nearest(&in_body) {
        format!("did you mean `{key}` in `{BODY}`?")
    } else if known.is_empty() {
        "it takes none".to_owned()
    } else {
        let more = known.len().saturating_sub(MAX_LISTED_ARGUMENTS);
        let listed = known
            .get(..MAX_LISTED_ARGUMENTS)
            .unwrap_or(&known)
            .join("`, `");
        let more = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        format!("it takes `{listed}`{more}")
    };
    format!("{place}`{shown}` is not an argument of {tool}; {advice}")
}

/// The properties that the argument for the body declares.
fn properties_of_body(schema: &JsonObject) -> Vec<&str> {
    let body = schema
        .get("properties")
        .and_then(|properties| properties.get(BODY)?.as_object());
    declared_properties(&gather_schemas(body, schema))
}

/// Returns the error of a text that looks like a JSON object or array and is not one.
fn json_error(text: &str) -> Option<serde_json::Error> {
    text.trim_start().starts_with(['{', '[']).then_some(())?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).err()
}

/// Describes a missing argument by its schema, and a missing body by the members that it needs.
fn meaning(schema: &JsonObject, name: &str) -> String {
    let description = schema
        .get("properties")
        .and_then(|properties| properties.get(name))
        .and_then(|property| property.get("description"))
        .and_then(Value::as_str);
    description
        .and_then(|text| text.lines().next())
        .map(|line| format!(": {}", text::truncate(line, 160)))
        .unwrap_or_default()
        + &required_members(schema, name)
}

/// Returns `; it needs …` for an argument that is an object with required members.
fn required_members(schema: &JsonObject, name: &str) -> String {
    let property = schema
        .get("properties")
        .and_then(|properties| properties.get(name)?.as_object());
    let schemas = gather_schemas(property, schema);
    let only = match schemas.as_slice() {
        // Of several forms, each may need others.
        [first] => first.get("required"),
        [first, target] if first.contains_key("$ref") => target.get("required"),
        _ => None,
    };
    let names: Vec<&str> = only
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    if names.is_empty() {
        return String::new();
    }
    let shown = names.get(..MAX_LISTED_MEMBERS).unwrap_or(&names);
    let more = names.len() - shown.len();
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!(
        "; it needs `{}`{more}",
        shown
            .iter()
            .map(|name| text::truncate(&text::one_line(name), MAX_SHOWN_NAME))
            .collect::<Vec<_>>()
            .join("`, `")
    )
}

/// The beginning of a value as JSON.
pub(super) fn quote_value(value: &Value) -> String {
    let mut written = LimitedText(Vec::new());
    // It ends with an error if the value is longer.
    let _ = serde_json::to_writer(&mut written, value);
    text::truncate(&String::from_utf8_lossy(&written.0), MAX_SHOWN_VALUE)
}

/// The beginning of what is written: more than is shown, and not much more.
struct LimitedText(Vec<u8>);

impl io::Write for LimitedText {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = (2 * MAX_SHOWN_VALUE).saturating_sub(self.0.len());
        self.0.extend(bytes.iter().take(room));
        if room < bytes.len() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn shown_list(options: &Value) -> String {
    let options = options
        .as_array()
        .map(|options| {
            options
                .iter()
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join(", ")
        })
        .unwrap_or_default();
    text::truncate(&options, 600)
}

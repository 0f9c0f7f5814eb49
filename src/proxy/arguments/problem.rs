//! A problem of an argument, and its text: the fault, its location, and the value to give instead.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{JsonType, ValidationError};
use serde_json::Value;

use super::placement::declared_properties;
use super::validate::schema_of;
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

/// The problems of the branch that is meant by the value at a JSON Pointer: of the only one that
/// accepts its type, or else of the only one that is not null, as in `anyOf: [X, {type: null}]`; of
/// the only one whose constants it has.
pub(super) fn meant_branch(mut refused: Vec<Vec<Problem>>, place: &str) -> BranchChoice {
    let by_type = |problem: &Problem| {
        problem.pointer == place && matches!(problem.kind, ProblemKind::Type { .. })
    };
    let by_null = |problem: &Problem| {
        let only_null = ProblemKind::Type {
            accepts_only_null: true,
        };
        problem.pointer == place && problem.kind == only_null
    };
    let level = |pointer: &str| pointer.matches('/').count();
    let by_constant = |problem: &Problem| {
        problem.kind == ProblemKind::Constant && level(&problem.pointer) <= level(place) + 1
    };
    let ways: [&dyn Fn(&Problem) -> bool; 3] = [&by_type, &by_null, &by_constant];
    for by in ways {
        let accepts = |problems: &Vec<Problem>| !problems.iter().any(by);
        if refused.iter().any(accepts) {
            refused.retain(accepts);
        }
        if let [_] = refused.as_slice() {
            return BranchChoice::Meant(refused.pop().unwrap_or_default());
        }
    }
    // A text that does not match its format is sent all the same.
    if let Some(only_formats) = refused
        .iter()
        .position(|problems| problems.iter().all(|one| one.kind == ProblemKind::Format))
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
    use ValidationErrorKind as Kind;

    let instance = error.instance();
    let (place, value) = (describe_place(pointer), quote_value(instance));
    let clause = match error.kind() {
        Kind::AdditionalProperties { unexpected } => {
            return unexpected
                .iter()
                .take(max)
                .map(|name| match pointer {
                    "" => describe_unknown_argument(name, tool, schema),
                    _ => format!("{place}`{}` is not known here", shown_name(name)),
                })
                .collect();
        }
        Kind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            let is_argument = pointer.is_empty();
            let meaning = is_argument.then(|| meaning(schema, name));
            format!("`{name}` is missing{}", meaning.unwrap_or_default())
        }
        Kind::Enum { options } => format!("{value} is not one of {}", shown_list(options)),
        Kind::Constant { expected_value } => {
            format!("{value} must be {}", quote_value(expected_value))
        }
        Kind::AnyOf { .. } | Kind::OneOfNotValid { .. } => {
            return vec![describe_no_form(pointer, instance)];
        }
        Kind::OneOfMultipleValid { .. } => {
            format!("{value} fits more than one of the forms of which exactly one is meant")
        }
        Kind::Type { kind } => {
            let allowed = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => {
                    let kinds: Vec<String> = kinds.iter().map(|kind| kind.to_string()).collect();
                    kinds.join(" or ")
                }
            };
            let broken = instance.as_str().and_then(json_error);
            let broken = broken
                .map(|error| format!("; the text is not valid JSON: {error}"))
                .unwrap_or_default();
            format!("{value} is not of type {allowed}{broken}")
        }
        Kind::Pattern { pattern } => {
            let pattern = Value::String(pattern.clone());
            format!("{value} does not match {}", quote_value(&pattern))
        }
        Kind::Minimum { limit } => format!("{value} is less than {limit}"),
        Kind::Maximum { limit } => format!("{value} is more than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("{value} must be more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("{value} must be less than {limit}"),
        Kind::MinLength { limit } => format!("{value} is shorter than {limit} characters"),
        Kind::MaxLength { limit } => format!("{value} is longer than {limit} characters"),
        Kind::MinItems { limit } => format!("has fewer than {limit} items"),
        Kind::MaxItems { limit } => format!("has more than {limit} items"),
        Kind::MinProperties { limit } => format!("has fewer than {limit} members"),
        Kind::MaxProperties { limit } => format!("has more than {limit} members"),
        Kind::Format { format } => {
            let argument = pointer.strip_prefix('/');
            let argument = argument.filter(|name| !name.contains('/'));
            let argument = argument.unwrap_or(pointer);
            return vec![format!("`{argument}` does not match the format `{format}`")];
        }
        Kind::UniqueItems => "has an item twice".to_owned(),
        other => format!("{value} does not satisfy `{}`", other.keyword()),
    };
    vec![format!("{place}{clause}")]
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
fn describe_unknown_argument(name: &str, tool: &str, schema: &JsonObject) -> String {
    let known = declared_properties(&[schema]);
    let body = schema_of(schema, BODY).and_then(Value::as_object);
    let in_body = declared_properties(&gather_schemas(body, schema));
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
        format!("it takes {}", list_names(&known, MAX_LISTED_ARGUMENTS))
    };
    format!(
        "`{}` is not an argument of {tool}; {advice}",
        shown_name(name)
    )
}

/// The first names in backticks, and the number of the others.
fn list_names(names: &[&str], most: usize) -> String {
    let shown = names.iter().take(most);
    let shown: Vec<_> = shown
        .map(|name| format!("`{}`", shown_name(name)))
        .collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

fn shown_name(name: &str) -> String {
    text::truncate(&text::one_line(name), MAX_SHOWN_NAME)
}

/// Returns the error of a text that looks like a JSON object or array and is not one.
fn json_error(text: &str) -> Option<serde_json::Error> {
    text.trim_start().starts_with(['{', '[']).then_some(())?;
    serde_json::from_str::<serde::de::IgnoredAny>(text).err()
}

/// Describes a missing argument by its schema, and a missing body by the members that it needs.
fn meaning(schema: &JsonObject, name: &str) -> String {
    let description =
        schema_of(schema, name).and_then(|property| property.get("description")?.as_str());
    description
        .and_then(|text| text.lines().next())
        .map(|line| format!(": {}", text::truncate(line, 160)))
        .unwrap_or_default()
        + &required_members(schema, name)
}

/// Returns `; it needs …` for an argument that is an object with required members.
fn required_members(schema: &JsonObject, name: &str) -> String {
    let property = schema_of(schema, name).and_then(Value::as_object);
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
    format!("; it needs {}", list_names(&names, MAX_LISTED_MEMBERS))
}

/// The beginning of a value as JSON.
pub(super) fn quote_value(value: &Value) -> String {
    // More than is shown, and not much more.
    let mut written = [0; 2 * MAX_SHOWN_VALUE];
    let mut room = written.as_mut_slice();
    // It ends with an error if the value is longer.
    let _ = serde_json::to_writer(&mut room, value);
    let length = 2 * MAX_SHOWN_VALUE - room.len();
    let text = String::from_utf8_lossy(written.get(..length).unwrap_or_default());
    text::truncate(&text, MAX_SHOWN_VALUE)
}

fn shown_list(options: &Value) -> String {
    let options = options.as_array().into_iter().flatten();
    let options: Vec<String> = options.map(Value::to_string).collect();
    text::truncate(&options.join(", "), 600)
}

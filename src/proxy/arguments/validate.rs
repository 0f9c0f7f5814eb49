//! Arguments against the advertised schema: all problems at once, in words a model can act on.

use std::borrow::Cow;

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::{Draft, JsonType, PatternOptions, ValidationError};
use serde_json::{Map, Value};

use super::property_names::gather_schemas;
use super::spelling::declared_properties;
use crate::spec::operation::request_body::BODY;
use crate::text;

/// More problems than this do not help anybody.
const MAX_PROBLEMS: usize = 20;
/// Values longer than this are not repeated in a message.
const MAX_SHOWN_VALUE: usize = 80;
/// Lookaround cannot be matched in linear time; this bounds what one match may cost.
const BACKTRACK_LIMIT: usize = 10_000;

/// A compiled input schema.
pub(crate) struct Validator {
    /// With `format` as an assertion: what satisfies it needs no second look.
    with_formats: jsonschema::Validator,
    /// With `format` as an annotation (2020-12 validation section 7.2.1), which decides what is sent.
    inner: jsonschema::Validator,
}

/// What a [`Validator`] says of arguments.
pub(crate) enum ArgumentVerdict {
    /// They are valid. The text names those that do not match their `format`.
    Valid {
        /// A sentence for the model, where there are such arguments.
        format_mismatch: Option<String>,
    },
    /// They are not.
    Invalid,
}

impl Validator {
    /// Compiles an input schema (JSON Schema 2020-12). Patterns run on an engine that is linear in time; only where one
    /// needs lookaround, on a backtracking engine with a limit.
    ///
    /// # Errors
    /// A sentence where the schema cannot be compiled.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        // A pattern that neither engine takes must not switch off the rest.
        let (inner, schema) = if let Ok(inner) = build(schema, false) {
            (inner, Cow::Borrowed(schema))
        } else {
            let mut without = schema.clone();
            let compiles = |pattern: &str| build(&serde_json::json!({ "pattern": pattern }), false).is_ok();
            drop_patterns(&mut without, &compiles);
            (build(&without, false).map_err(|error| error.to_string())?, Cow::Owned(without))
        };
        Ok(Self {
            with_formats: build(&schema, true).map_err(|error| error.to_string())?,
            inner,
        })
    }

    /// Whether the arguments are valid. `format` refuses nothing: the API is the judge of it.
    #[must_use]
    pub(crate) fn judge(&self, arguments: &Value) -> ArgumentVerdict {
        if self.with_formats.is_valid(arguments) {
            return ArgumentVerdict::Valid { format_mismatch: None };
        }
        if !self.inner.is_valid(arguments) {
            return ArgumentVerdict::Invalid;
        }
        ArgumentVerdict::Valid {
            format_mismatch: self.describe_format_mismatch(arguments),
        }
    }

    fn describe_format_mismatch(&self, arguments: &Value) -> Option<String> {
        const MAX_SHOWN: usize = 3;
        let mut clauses: Vec<String> = Vec::new();
        for error in self.with_formats.iter_errors(arguments) {
            collect_format_mismatches(&error, &mut clauses);
        }
        clauses.truncate(MAX_SHOWN);
        (!clauses.is_empty()).then(|| format!("{}.", clauses.join("; ")))
    }

    /// What is wrong with the arguments of `tool`, one line a problem; `schema` is the one this was compiled from.
    #[must_use]
    pub(crate) fn explain(&self, tool: &str, schema: &Map<String, Value>, arguments: &Value) -> String {
        let mut errors: Vec<_> = self
            .inner
            .iter_errors(arguments)
            .map(|error| (error.instance_path().to_string(), error))
            .collect();
        // From the root inwards: a name that is wrong explains what seems to be missing.
        errors.sort_by(|a, b| a.0.cmp(&b.0));
        let mut problems: Vec<String> = Vec::new();
        for (pointer, error) in errors {
            problems.extend(
                describe_problem(&pointer, &error, tool, schema)
                    .into_iter()
                    .filter(|text| !text.is_empty()),
            );
        }
        problems.dedup();
        let more = problems.len().saturating_sub(MAX_PROBLEMS);
        problems.truncate(MAX_PROBLEMS);
        let mut text = format!("The arguments of {tool} are not valid; nothing was sent.");
        for problem in &problems {
            text.push_str("\n- ");
            text.push_str(problem);
        }
        if more > 0 {
            text.push_str(&format!("\n- and {more} more"));
        }
        text
    }
}

fn build(schema: &Value, asserts_formats: bool) -> Result<jsonschema::Validator, ValidationError<'static>> {
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(asserts_formats)
        .should_ignore_unknown_formats(true);
    let linear = options.clone().with_pattern_options(PatternOptions::regex()).build(schema);
    linear.or_else(|_| {
        options
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
            .build(schema)
    })
}

/// The formats that are not matched, also where they are those of a branch.
fn collect_format_mismatches(error: &ValidationError<'_>, clauses: &mut Vec<String>) {
    match error.kind() {
        ValidationErrorKind::Format { format } => {
            let pointer = error.instance_path().to_string();
            let argument = pointer.strip_prefix('/').filter(|name| !name.contains('/')).unwrap_or(&pointer);
            let clause = format!("`{argument}` does not match the format `{format}`");
            if !clauses.contains(&clause) {
                clauses.push(clause);
            }
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            for error in context.iter().flatten() {
                collect_format_mismatches(error, clauses);
            }
        }
        _ => {}
    }
}

/// Takes out the patterns that do not compile. A property called `pattern` is an object, and stays.
fn drop_patterns(schema: &mut Value, compiles: &dyn Fn(&str) -> bool) {
    match schema {
        Value::Object(object) => {
            if object
                .get("pattern")
                .and_then(Value::as_str)
                .is_some_and(|pattern| !compiles(pattern))
            {
                object.remove("pattern");
            }
            if let Some(Value::Object(patterns)) = object.get_mut("patternProperties") {
                patterns.retain(|pattern, _| compiles(pattern));
            }
            object.values_mut().for_each(|value| drop_patterns(value, compiles));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| drop_patterns(item, compiles)),
        _ => {}
    }
}

fn describe_problem(pointer: &str, error: &ValidationError<'_>, tool: &str, schema: &Map<String, Value>) -> Vec<String> {
    let instance = error.instance();
    let place = if pointer.is_empty() {
        String::new()
    } else {
        format!("`{pointer}`: ")
    };
    match error.kind() {
        ValidationErrorKind::AdditionalProperties { unexpected } => unexpected
            .iter()
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
        ValidationErrorKind::Enum { options } => vec![format!("{place}{} is not one of {}", quote_value(instance), shown_list(options))],
        ValidationErrorKind::Constant { expected_value } => {
            vec![format!("{place}{} must be {}", quote_value(instance), quote_value(expected_value))]
        }
        ValidationErrorKind::AnyOf { context } | ValidationErrorKind::OneOfNotValid { context } => {
            if let Some(errors) = only_fitting_branch(context, pointer) {
                let describe = |error: &ValidationError<'_>| describe_problem(&error.instance_path().to_string(), error, tool, schema);
                return errors.iter().flat_map(describe).collect();
            }
            vec![format!(
                "{place}{} fits none of the forms that are allowed here",
                quote_value(instance)
            )]
        }
        ValidationErrorKind::OneOfMultipleValid { .. } => vec![format!(
            "{place}{} fits more than one of the forms of which exactly one is meant",
            quote_value(instance)
        )],
        ValidationErrorKind::Type { kind } => {
            let allowed = match kind {
                TypeKind::Single(kind) => kind.to_string(),
                TypeKind::Multiple(kinds) => kinds.iter().map(|kind| kind.to_string()).collect::<Vec<_>>().join(" or "),
            };
            vec![format!("{place}{} is not of type {allowed}", quote_value(instance))]
        }
        ValidationErrorKind::Pattern { pattern } => vec![format!(
            "{place}{} does not match {}",
            quote_value(instance),
            quote_value(&Value::String(pattern.clone()))
        )],
        ValidationErrorKind::Minimum { limit } => vec![format!("{place}{} is less than {limit}", quote_value(instance))],
        ValidationErrorKind::Maximum { limit } => vec![format!("{place}{} is more than {limit}", quote_value(instance))],
        ValidationErrorKind::ExclusiveMinimum { limit } => vec![format!("{place}{} must be more than {limit}", quote_value(instance))],
        ValidationErrorKind::ExclusiveMaximum { limit } => vec![format!("{place}{} must be less than {limit}", quote_value(instance))],
        ValidationErrorKind::MinLength { limit } => vec![format!("{place}{} is shorter than {limit} characters", quote_value(instance))],
        ValidationErrorKind::MaxLength { limit } => vec![format!("{place}{} is longer than {limit} characters", quote_value(instance))],
        ValidationErrorKind::MinItems { limit } => vec![format!("{place}has fewer than {limit} items")],
        ValidationErrorKind::MaxItems { limit } => vec![format!("{place}has more than {limit} items")],
        ValidationErrorKind::MinProperties { limit } => vec![format!("{place}has fewer than {limit} members")],
        ValidationErrorKind::MaxProperties { limit } => vec![format!("{place}has more than {limit} members")],
        ValidationErrorKind::UniqueItems => vec![format!("{place}has an item twice")],
        other => vec![format!("{place}{} does not satisfy `{}`", quote_value(instance), other.keyword())],
    }
}

/// The errors of the only branch that takes a value of that type, or else of the only one that is not null, as in
/// `anyOf: [X, {type: null}]`: what is wrong there is what the caller can correct.
fn only_fitting_branch<'e, 'i>(context: &'e [Vec<ValidationError<'i>>], pointer: &str) -> Option<&'e [ValidationError<'i>]> {
    let refuses_type = |errors: &[ValidationError<'_>], accepts: &dyn Fn(&TypeKind) -> bool| {
        errors.iter().any(|error| {
            matches!(error.kind(), ValidationErrorKind::Type { kind } if accepts(kind)) && error.instance_path().to_string() == pointer
        })
    };
    let only = |accepts: &dyn Fn(&TypeKind) -> bool| {
        let mut left = context.iter().filter(|errors| !refuses_type(errors, accepts));
        left.next().filter(|_| left.next().is_none()).map(Vec::as_slice)
    };
    let is_null = |kind: &TypeKind| matches!(kind, TypeKind::Single(JsonType::Null));
    only(&|_| true).or_else(|| only(&is_null))
}

/// `` `limt` is not an argument of list_pets; did you mean `limit`? ``, or where it belongs.
fn describe_unknown_property(place: &str, name: &str, at_root: bool, tool: &str, schema: &Map<String, Value>) -> String {
    if !at_root {
        return format!("{place}`{name}` is not known here");
    }
    let known: Vec<&str> = schema
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, _)| key.as_str())
        .collect();
    let in_body = properties_of_body(schema);
    let nearest = |names: &[&str]| text::nearest(name, names.iter().copied(), 0.75).map(str::to_owned);
    let advice = if in_body.contains(&name) {
        format!("it is a member of `{BODY}`")
    } else if let Some(key) = nearest(&known) {
        format!("did you mean `{key}`?")
    } else if let Some(key) = nearest(&in_body) {
        format!("did you mean `{key}` in `{BODY}`?")
    } else if known.is_empty() {
        "it takes none".to_owned()
    } else {
        format!("it takes `{}`", known.join("`, `"))
    };
    format!("{place}`{name}` is not an argument of {tool}; {advice}")
}

/// The properties that the argument for the body declares.
fn properties_of_body(schema: &Map<String, Value>) -> Vec<&str> {
    let mut schemas = Vec::new();
    if let Some(body) = schema.get("properties").and_then(|properties| properties.get(BODY)?.as_object()) {
        gather_schemas(body, schema, &mut schemas, 0);
    }
    declared_properties(&schemas)
}

/// What the schema says about a missing argument.
fn meaning(schema: &Map<String, Value>, name: &str) -> String {
    let description = schema
        .get("properties")
        .and_then(|properties| properties.get(name))
        .and_then(|property| property.get("description"))
        .and_then(Value::as_str);
    description
        .and_then(|text| text.lines().next())
        .map(|line| format!(": {}", text::truncate(line, 160)))
        .unwrap_or_default()
}

fn quote_value(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_SHOWN_VALUE {
        text
    } else {
        text::truncate(&text, MAX_SHOWN_VALUE)
    }
}

fn shown_list(options: &Value) -> String {
    let options = options
        .as_array()
        .map(|options| options.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
        .unwrap_or_default();
    text::truncate(&options, 600)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    impl Validator {
        fn accepts(&self, arguments: &Value) -> bool {
            matches!(self.judge(arguments), ArgumentVerdict::Valid { .. })
        }
    }

    fn explain(schema: &Value, arguments: &Value) -> String {
        let validator = Validator::compile(schema).unwrap();
        assert!(!validator.accepts(arguments));
        validator.explain("list_pets", schema.as_object().unwrap(), arguments)
    }

    #[test]
    fn all_problems_are_told_at_once_and_the_nearest_name_with_them() {
        let schema = json!({"type": "object", "additionalProperties": false, "required": ["status"],
            "properties": {"limit": {"type": "integer", "maximum": 100}, "status": {"enum": ["sold", "available"], "description": "What state.\nMore."}}});
        let text = explain(&schema, &json!({"limt": 1, "limit": 500}));
        for expected in [
            "`limt` is not an argument of list_pets; did you mean `limit`?",
            "`/limit`: 500 is more than 100",
            "`status` is missing: What state.",
        ] {
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn catastrophic_patterns_do_not_run_away() {
        let validator =
            Validator::compile(&json!({"properties": {"a": {"pattern": "^(a+)+$"}, "b": {"pattern": "^(?=(a+)+$)x"}}})).unwrap();
        let started = std::time::Instant::now();
        let _ = validator.accepts(&json!({"a": format!("{}!", "a".repeat(50_000)), "b": format!("{}!", "a".repeat(5_000))}));
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
    }

    #[test]
    fn a_pattern_that_no_engine_takes_switches_nothing_else_off() {
        let schema = json!({"properties": {"name": {"pattern": "^[\\s\\S]{1,65536}$"}, "n": {"type": "integer"}}});
        let validator = Validator::compile(&schema).unwrap();
        assert!(validator.accepts(&json!({"name": "x", "n": 1})) && !validator.accepts(&json!({"n": "x"})));
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let validator =
            Validator::compile(&json!({"properties": {"a": {"type": "integer", "maximum": 9_007_199_254_740_993_u64}}})).unwrap();
        let with = |number: &str| serde_json::from_str::<Value>(&format!(r#"{{"a":{number}}}"#)).unwrap();
        assert!(validator.accepts(&with("9007199254740993")) && !validator.accepts(&with("9007199254740994")));
    }
}

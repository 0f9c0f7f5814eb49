//! Arguments against the advertised schema, and the properties that are sent although they do not
//! fit it, because a rule says `validate: lenient` of them.

use jsonschema::{Draft, PatternOptions, ValidationError};
use serde_json::Value;

use crate::json::{JsonObject, unescaped_token};
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::rules::PropertyStep;

/// Lookaround cannot be matched in linear time; this bounds what one match may cost.
const BACKTRACK_LIMIT: usize = 10_000;

/// A compiled schema, in which `format` is no assertion.
pub(super) type SchemaValidator = jsonschema::Validator;

/// A compiled input schema.
pub(crate) struct Validator {
    /// Validator with `format` as an assertion: arguments that satisfy it need no second check.
    with_formats: jsonschema::Validator,
    /// Validator with `format` as an annotation (2020-12 validation section 7.2.1), which decides
    /// about sending.
    inner: SchemaValidator,
}

/// Verdict of a [`Validator`] about arguments.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ArgumentVerdict {
    /// Valid, and every `format` matches.
    Valid,
    /// Valid, but a text does not match its `format`.
    OtherFormat,
    /// Not valid.
    Invalid,
}

impl Validator {
    /// Compiles an input schema (JSON Schema 2020-12). Patterns run on an engine that is linear in
    /// time; only if one needs lookaround, on a backtracking engine with a limit.
    ///
    /// # Errors
    /// A sentence if the schema cannot be compiled.
    pub(crate) fn compile(schema: &Value) -> Result<Self, String> {
        Ok(Self {
            with_formats: compile_schema(schema, true)?,
            inner: compile_schema(schema, false)?,
        })
    }

    /// Validates the arguments. `format` does not refuse any: the API decides about it.
    pub(crate) fn judge(&self, arguments: &Value) -> ArgumentVerdict {
        if self.with_formats.is_valid(arguments) {
            return ArgumentVerdict::Valid;
        }
        if self.inner.is_valid(arguments) {
            return ArgumentVerdict::OtherFormat;
        }
        ArgumentVerdict::Invalid
    }
}

/// Compiles the schema of one value, whose definitions are those of `root`.
///
/// # Errors
/// A sentence if the schema cannot be compiled.
pub(super) fn compile_alone(schema: &Value, root: &JsonObject) -> Result<SchemaValidator, String> {
    let alone = JsonObject::from_iter([("allOf".to_owned(), vec![schema.clone()].into())]);
    compile_schema(&with_definitions(alone, root), false)
}

/// A schema with the definitions of `root`.
pub(super) fn with_definitions(mut schema: JsonObject, root: &JsonObject) -> Value {
    schema.extend(
        root.get("$defs")
            .map(|definitions| ("$defs".to_owned(), definitions.clone())),
    );
    schema.into()
}

/// The schema of an argument in an input schema.
pub(super) fn schema_of<'s>(root: &'s JsonObject, argument: &str) -> Option<&'s Value> {
    root.get("properties")?.get(argument)
}

/// Lets the body be any value in an input schema.
pub(super) fn open_body(schema: &mut JsonObject) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties")
        && let Some(body) = properties.get_mut(BODY)
    {
        *body = Value::Bool(true);
    }
}

/// Compiles a schema (JSON Schema 2020-12). A pattern that no engine takes is left out, and does
/// not switch off the rest.
///
/// # Errors
/// A sentence if the schema cannot be compiled.
pub(super) fn compile_schema(
    schema: &Value,
    asserts_formats: bool,
) -> Result<jsonschema::Validator, String> {
    build(schema, asserts_formats).or_else(|_| {
        let mut without = schema.clone();
        let compiles =
            |pattern: &str| build(&serde_json::json!({ "pattern": pattern }), false).is_ok();
        drop_patterns(&mut without, &compiles);
        build(&without, asserts_formats).map_err(|error| error.to_string())
    })
}

fn build(
    schema: &Value,
    asserts_formats: bool,
) -> Result<jsonschema::Validator, ValidationError<'static>> {
    let options = jsonschema::options()
        .with_draft(Draft::Draft202012)
        .offline()
        .should_validate_formats(asserts_formats)
        .should_ignore_unknown_formats(true);
    let linear = options
        .clone()
        .with_pattern_options(PatternOptions::regex())
        .build(schema);
    linear.or_else(|_| {
        options
            .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACK_LIMIT))
            .build(schema)
    })
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
            object
                .values_mut()
                .for_each(|value| drop_patterns(value, compiles));
        }
        Value::Array(items) => items
            .iter_mut()
            .for_each(|item| drop_patterns(item, compiles)),
        _ => {}
    }
}

/// The places of such properties.
#[derive(Default)]
pub(crate) struct LenientPlaces(pub(super) Vec<Vec<PropertyStep>>);

impl LenientPlaces {
    /// Returns true if a JSON Pointer into the arguments leads to one of them or into it.
    pub(super) fn contain(&self, pointer: &str) -> bool {
        let mut steps = pointer.split('/').skip(1);
        if steps.next() != Some(BODY) {
            return false;
        }
        let steps: Vec<String> = steps.map(unescaped_token).collect();
        let leads_there = |path: &Vec<PropertyStep>| {
            let is_step = |(step, taken): (&PropertyStep, &String)| match step {
                PropertyStep::Member(name) => name == taken,
                PropertyStep::EachItem => taken.bytes().all(|byte| byte.is_ascii_digit()),
            };
            path.len() <= steps.len() && path.iter().zip(&steps).all(is_step)
        };
        self.0.iter().any(leads_there)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn catastrophic_patterns_do_not_run_away() {
        let validator = compile_schema(
            &json!({"properties": {"a": {"pattern": "^(a+)+$"}, "b": {"pattern": "^(?=(a+)+$)x"}}}),
            false,
        )
        .unwrap();
        let started = std::time::Instant::now();
        let _ = validator.is_valid(&json!({"a": format!("{}!", "a".repeat(50_000)), "b": format!("{}!", "a".repeat(5_000))}));
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
    }

    #[test]
    fn a_pattern_that_no_engine_takes_switches_nothing_else_off() {
        let schema = json!({"properties": {"name": {"pattern": "^[\\s\\S]{1,65536}$"}, "n": {"type": "integer"}}});
        let validator = compile_schema(&schema, false).unwrap();
        assert!(
            validator.is_valid(&json!({"name": "x", "n": 1}))
                && !validator.is_valid(&json!({"n": "x"}))
        );
    }

    #[test]
    fn large_integers_are_compared_exactly() {
        let validator =
            compile_schema(&json!({"properties": {"a": {"type": "integer", "maximum": 9_007_199_254_740_993_u64}}}), false).unwrap();
        let with =
            |number: &str| serde_json::from_str::<Value>(&format!(r#"{{"a":{number}}}"#)).unwrap();
        assert!(
            validator.is_valid(&with("9007199254740993"))
                && !validator.is_valid(&with("9007199254740994"))
        );
    }
}

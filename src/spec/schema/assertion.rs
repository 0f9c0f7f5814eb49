//! The keywords that a value must satisfy (2020-12 validation section 6).

use foldhash::HashSet;
use serde_json::{Number, Value};

use super::annotations::has_hidden_text;
use super::shape::{read_count, types};

/// Returns the value of an assertion as 2020-12 defines it; `None` if the keyword is not an
/// assertion, or its value has no meaning. `pattern` is not read here.
pub(crate) fn read_assertion(key: &str, value: Value, warnings: &mut Vec<String>) -> Option<Value> {
    match (key, value) {
        ("type", value) => types(value),
        ("enum" | "const", value) if has_hidden_text(&value) => {
            warnings.push(
                "a constant holds hidden characters; that part of the schema accepts anything"
                    .into(),
            );
            None
        }
        ("enum", Value::Array(values)) => distinct_values(values),
        ("const", value) => Some(value),
        ("required", Value::Array(names)) => Some(distinct_names(names)),
        ("dependentRequired", Value::Object(map)) => map
            .values()
            .all(is_list_of_names)
            .then_some(Value::Object(map)),
        ("uniqueItems", Value::Bool(true)) => Some(Value::Bool(true)),
        ("exclusiveMaximum" | "exclusiveMinimum", Value::Bool(is_exclusive)) => {
            Some(Value::Bool(is_exclusive))
        }
        (key, Value::Number(number)) => read_limit(key, number),
        _ => None,
    }
}

fn read_limit(key: &str, number: Number) -> Option<Value> {
    match key {
        "multipleOf" => number
            .as_f64()
            .is_some_and(|step| step > 0.0)
            .then_some(Value::Number(number)),
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => {
            Some(Value::Number(number))
        }
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties"
        | "minContains" => read_count(&number).map(Value::from),
        _ => None,
    }
}

/// Returns the values of `enum`, each once; `None` if there is none.
fn distinct_values(values: Vec<Value>) -> Option<Value> {
    let mut seen = HashSet::default();
    let is_first: Vec<bool> = values.iter().map(|value| seen.insert(value)).collect();
    let unique: Vec<Value> = values
        .into_iter()
        .zip(is_first)
        .filter_map(|(value, is_first)| is_first.then_some(value))
        .collect();
    (!unique.is_empty()).then_some(Value::Array(unique))
}

/// The names of `required`, each once.
fn distinct_names(names: Vec<Value>) -> Value {
    let mut seen = HashSet::default();
    let names = names.into_iter();
    names
        .filter(|name| {
            name.as_str()
                .is_some_and(|name| seen.insert(name.to_owned()))
        })
        .collect()
}

/// Returns true if the value is a list of strings, each of them once.
fn is_list_of_names(value: &Value) -> bool {
    let mut seen = HashSet::default();
    let is_new = |name: &Value| {
        name.as_str()
            .is_some_and(|name| seen.insert(name.to_owned()))
    };
    value
        .as_array()
        .is_some_and(|names| names.iter().all(is_new))
}

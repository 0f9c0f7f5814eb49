//! The keywords that a value must satisfy (2020-12 validation section 6).

use foldhash::HashSet;
use serde_json::{Number, Value};

use super::annotations::has_hidden_text;
use super::shape::{read_count, types};

/// The value of an assertion as 2020-12 has it; `None` where the keyword is not one, or its value has no meaning. `pattern` is
/// not read here.
pub(crate) fn read_assertion(key: &str, value: Value, warnings: &mut Vec<String>) -> Option<Value> {
    match (key, value) {
        ("type", value) => types(value),
        ("enum" | "const", value) if has_hidden_text(&value) => {
            warnings.push("a constant holds hidden characters; that part of the schema accepts anything".into());
            None
        }
        ("enum", Value::Array(values)) => distinct_values(values),
        ("const", value) => Some(value),
        ("required", Value::Array(names)) => Some(distinct_names(names)),
        ("dependentRequired", Value::Object(map)) => map.values().all(is_list_of_names).then_some(Value::Object(map)),
        ("uniqueItems", Value::Bool(true)) => Some(Value::Bool(true)),
        ("exclusiveMaximum" | "exclusiveMinimum", Value::Bool(is_exclusive)) => Some(Value::Bool(is_exclusive)),
        (key, Value::Number(number)) => read_limit(key, number),
        _ => None,
    }
}

fn read_limit(key: &str, number: Number) -> Option<Value> {
    match key {
        "multipleOf" => number.as_f64().is_some_and(|step| step > 0.0).then_some(Value::Number(number)),
        "maximum" | "minimum" | "exclusiveMaximum" | "exclusiveMinimum" => Some(Value::Number(number)),
        "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" | "minContains" | "maxContains" => {
            read_count(&number).map(Value::from)
        }
        _ => None,
    }
}

/// The values of `enum`, each once; `None` where there is none.
fn distinct_values(values: Vec<Value>) -> Option<Value> {
    let mut unique: Vec<Value> = Vec::with_capacity(values.len());
    values.into_iter().for_each(|value| {
        if !unique.contains(&value) {
            unique.push(value);
        }
    });
    (!unique.is_empty()).then_some(Value::Array(unique))
}

/// The names of `required`, each once.
fn distinct_names(names: Vec<Value>) -> Value {
    let mut seen = HashSet::default();
    let names = names.into_iter();
    names
        .filter(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())))
        .collect()
}

/// Whether the value is a list of strings, each of them once.
fn is_list_of_names(value: &Value) -> bool {
    let Some(names) = value.as_array() else { return false };
    let is_repeated = |(index, name): (usize, &Value)| names.iter().take(index).any(|other| other == name);
    names.iter().all(Value::is_string) && !names.iter().enumerate().any(is_repeated)
}

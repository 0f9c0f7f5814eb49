//! A value that fits a schema, as plain as it can be.

use serde_json::{Map, Value, json};

use crate::spec::Document;
use crate::spec::node::{Node, Object};

/// Deeper than this only what is required is filled in; twice as deep, nothing.
const MAX_DEPTH: usize = 5;
/// More values than this are not made: a schema that branches into itself would never end.
const MAX_VALUES: usize = 2000;
/// Length of the longest lists and texts that are made, in spite of the schema.
const MAX_STRING_LEN: usize = 1000;

/// Formats of texts, each with an example.
const EXAMPLES: &str = "date-time 2024-01-31T12:00:00Z
date 2024-01-31
time 12:00:00Z
duration P1D
uuid 123e4567-e89b-12d3-a456-426614174000
email someone@example.com
uri https://example.com/
url https://example.com/
uri-reference https://example.com/
hostname example.com
ipv4 192.0.2.1
ipv6 2001:db8::1
byte Ynl0ZXM=
binary Ynl0ZXM=";

/// An example of the schema, its default, or a value made from its keywords.
pub(crate) fn generate(document: &Document, schema: Node<'_>) -> Value {
    Generator {
        document,
        left: MAX_VALUES,
    }
    .value(schema, 0)
}

struct Generator<'d> {
    document: &'d Document,
    left: usize,
}

impl Generator<'_> {
    fn value(&mut self, schema: Node<'_>, depth: usize) -> Value {
        let Some(object) = self.document.object(schema) else {
            return Value::Null;
        };
        if depth > MAX_DEPTH * 2 || self.left == 0 {
            return Value::Null;
        }
        self.left -= 1;
        if let Some(value) = given(&object) {
            return value;
        }
        let mut parts: Vec<Node<'_>> = object.array("allOf");
        parts.extend(
            ["oneOf", "anyOf"]
                .into_iter()
                .filter_map(|key| object.array(key).into_iter().next()),
        );
        // Keywords beside a composition apply as well.
        let mut merged = self.own(&object, depth);
        for part in parts {
            let value = self.value(part, depth + 1);
            merge_values(&mut merged, value);
        }
        merged
    }

    /// The value that the object's own keywords ask for.
    fn own(&mut self, object: &Object<'_>, depth: usize) -> Value {
        match schema_type(object).as_str() {
            "object" => Value::Object(self.members(object, depth)),
            "array" => self.items(object, depth),
            "integer" => generate_number(object, true),
            "number" => generate_number(object, false),
            "boolean" => json!(true),
            "string" => Value::String(string(object)),
            _ => Value::Null,
        }
    }

    fn members(&mut self, object: &Object<'_>, depth: usize) -> Map<String, Value> {
        let required = object.strings("required");
        let mut members = Map::new();
        for (name, schema) in object.object("properties").iter() {
            let is_required = required.iter().any(|other| other == name);
            let described = self.document.object(schema).unwrap_or_default();
            if is_required || (!described.is_true("writeOnly") && depth < MAX_DEPTH) {
                let value = self.value(schema, depth + 1);
                members.insert(name.to_owned(), value);
            }
        }
        let additional = object
            .get("additionalProperties")
            .filter(|schema| schema.text().starts_with('{'));
        let least = least(object, "minProperties");
        let mut missing = required;
        missing.retain(|name| !members.contains_key(name));
        let extra = (members.len() + missing.len()..least).map(|number| format!("key{number}"));
        for name in missing.into_iter().chain(extra) {
            let value = self.value_or_text(additional, depth);
            members.insert(name, value);
        }
        members
    }

    fn value_or_text(&mut self, schema: Option<Node<'_>>, depth: usize) -> Value {
        schema.map_or_else(|| json!("string"), |schema| self.value(schema, depth + 1))
    }

    fn items(&mut self, object: &Object<'_>, depth: usize) -> Value {
        let mut items: Vec<Value> = Vec::new();
        for schema in object.array("prefixItems") {
            items.push(self.value(schema, depth + 1));
        }
        let wanted = least(object, "minItems")
            .max(usize::from(depth < MAX_DEPTH))
            .min(read_count(object, "maxItems").unwrap_or(MAX_STRING_LEN));
        while items.len() < wanted {
            // If items must differ, only numbers and texts can be varied.
            let is_unique = object.is_true("uniqueItems");
            let value = match (is_unique, self.value_or_text(object.get("items"), depth)) {
                (true, Value::Number(number)) => {
                    json!(number.as_i64().unwrap_or(1) + i64::try_from(items.len()).unwrap_or(0))
                }
                (true, Value::String(text)) if !items.is_empty() => {
                    json!(format!("{text}{}", items.len()))
                }
                (_, value) => value,
            };
            items.push(value);
        }
        Value::Array(items)
    }
}

/// An example, a default, a constant or the first of an enumeration.
fn given(object: &Object<'_>) -> Option<Value> {
    let whole = ["example", "default", "const"]
        .into_iter()
        .find_map(|key| object.get(key)?.value());
    whole.or_else(|| {
        ["examples", "enum"]
            .into_iter()
            .find_map(|key| object.get(key)?.array()?.first()?.value())
    })
}

/// Members of both; of other values the one that says something.
fn merge_values(into: &mut Value, from: Value) {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            for (key, value) in from {
                merge_values(into.entry(key).or_insert(Value::Null), value);
            }
        }
        (into @ Value::Null, from) => *into = from,
        _ => {}
    }
}

/// `type`, the first of several, or what the keywords imply.
fn schema_type(object: &Object<'_>) -> String {
    let mut kinds = object.types();
    if let [_, _, ..] = kinds.as_slice() {
        kinds.retain(|kind| kind != "null");
    }
    if let Some(first) = kinds.into_iter().next() {
        first
    } else if object.has_any("properties required additionalProperties") {
        "object".into()
    } else if object.has_any("items prefixItems") {
        "array".into()
    } else {
        String::new()
    }
}

fn read_count(object: &Object<'_>, key: &str) -> Option<usize> {
    object.text(key)?.parse().ok()
}

/// The least length that a keyword asks for, as far as it is kept to.
fn least(object: &Object<'_>, key: &str) -> usize {
    read_count(object, key).unwrap_or(0).min(MAX_STRING_LEN)
}

/// The smallest number that the bounds and the step allow, near 1.
fn generate_number(object: &Object<'_>, whole: bool) -> Value {
    let bound = |key: &str| object.text(key)?.parse::<f64>().ok();
    let lower = match bound("minimum") {
        Some(limit) => Some((limit, object.is_true("exclusiveMinimum"))),
        None => bound("exclusiveMinimum").map(|limit| (limit, true)),
    };
    let upper = bound("maximum").or_else(|| bound("exclusiveMaximum").map(|limit| limit - 1.0));
    let step = bound("multipleOf")
        .filter(|step| *step > 0.0)
        .unwrap_or(if whole { 1.0 } else { 0.5 });
    let start = match (lower, upper) {
        (Some((limit, _)), _) => limit,
        (None, Some(limit)) if limit < 1.0 => limit,
        _ => step,
    };
    let mut value = (start / step).ceil() * step;
    if lower.is_some_and(|(limit, open)| open && value <= limit) {
        value += step;
    }
    if upper.is_some_and(|limit| value > limit) {
        value = upper.map_or(value, |limit| (limit / step).floor() * step);
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a made-up example; large bounds saturate"
    )]
    if value.fract() == 0.0 {
        json!(value as i64)
    } else {
        json!(value)
    }
}

fn string(object: &Object<'_>) -> String {
    let format = object.text("format").unwrap_or_default();
    let mut examples = EXAMPLES.lines().filter_map(|line| line.split_once(' '));
    let text = examples.find_map(|(known, example)| (known == format).then_some(example));
    let text = text.unwrap_or("string");
    let shortest = least(object, "minLength");
    let longest = read_count(object, "maxLength").unwrap_or(usize::MAX);
    let mut text: String = text.chars().take(longest).collect();
    while text.len() < shortest {
        text.push('x');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generated_values_fit_their_schema() {
        for schema in [
            r#"{"type":"object","required":["a","z"],"properties":{"a":{"type":"integer","minimum":5},"b":{"type":"array","items":{"type":"string","format":"date"},"minItems":2}}}"#,
            r#"{"allOf":[{"type":"object","properties":{"a":{"type":"boolean"},"o":{"type":"object","properties":{"x":{"type":"string"}}}}},{"type":"object","properties":{"b":{"type":"string","minLength":10},"o":{"type":"object","required":["y"]}}}]}"#,
            r#"{"oneOf":[{"type":"string","enum":["x"]}]}"#,
            r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer"}},"oneOf":[{"required":["a"],"properties":{"b":{"type":"string"}}}]}"#,
            r#"{"anyOf":[{"required":["id"]}]}"#,
            r#"{"type":["null","number"]}"#,
            r#"{"type":"integer","exclusiveMinimum":0,"multipleOf":5}"#,
            r#"{"type":"integer","minimum":0.5,"maximum":3}"#,
            r#"{"type":"number","maximum":-2}"#,
            r#"{"type":"array","minItems":20,"items":{"type":"integer"},"uniqueItems":true}"#,
            r#"{"type":"array","maxItems":0,"items":{"type":"integer"}}"#,
            r#"{"type":"array","prefixItems":[{"type":"integer"},{"type":"string"}]}"#,
            r#"{"type":"object","minProperties":2,"additionalProperties":{"type":"integer"}}"#,
        ] {
            let text = format!(r#"{{"openapi":"3.1.0","paths":{{}},"x":{schema}}}"#);
            let document = Document::parse(text.into_bytes(), None).unwrap();
            let generated = generate(&document, document.member("x").unwrap());
            assert!(
                jsonschema::is_valid(&serde_json::from_str(schema).unwrap(), &generated),
                "{schema}: {generated}"
            );
        }
    }

    #[test]
    fn recursion_ends_however_wide_it_is() {
        let members: Vec<String> = (0..12)
            .map(|number| format!(r##""p{number}":{{"$ref":"#/components/schemas/T"}}"##))
            .collect();
        let text = format!(
            r#"{{"openapi":"3.1.0","paths":{{}},"components":{{"schemas":{{"T":{{"type":"object","required":["p0","p1","p2"],"properties":{{{}}}}}}}}}}}"#,
            members.join(",")
        );
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let root = document.files[0].root();
        assert!(
            generate(
                &document,
                document
                    .target("#/components/schemas/T", root.span())
                    .unwrap()
            )
            .to_string()
            .len()
                < 100_000
        );
    }
}

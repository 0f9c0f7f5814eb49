//! A value that fits a schema, as plain as it can be.

use serde_json::{Map, Value, json};

use crate::spec::Document;
use crate::spec::node::{Node, Object};

/// Deeper than this only what is required is filled in; twice as deep, nothing.
const DEEPEST: usize = 5;

/// An example of the schema, its default, or a value made from its keywords.
pub(super) fn generate(document: &Document, schema: Node<'_>) -> Value {
    value(document, schema, 0)
}

fn value(document: &Document, schema: Node<'_>, depth: usize) -> Value {
    let Some(object) = document.resolve(schema).ok().and_then(Node::object) else {
        return Value::Null;
    };
    if depth > DEEPEST * 2 {
        return Value::Null;
    }
    for key in ["example", "default", "const"] {
        if let Some(value) = object.get(key).and_then(Node::value) {
            return value;
        }
    }
    for key in ["examples", "enum"] {
        if let Some(first) = object
            .get(key)
            .and_then(Node::array)
            .and_then(|values| values.first().copied())
            .and_then(Node::value)
        {
            return first;
        }
    }
    if let Some(branches) = object.get("allOf").and_then(Node::array) {
        let mut merged = members(document, &object, depth);
        for branch in branches {
            match value(document, branch, depth + 1) {
                Value::Object(part) => merged.extend(part),
                other if merged.is_empty() && !other.is_null() => return other,
                _ => {}
            }
        }
        return Value::Object(merged);
    }
    for key in ["oneOf", "anyOf"] {
        if let Some(first) = object.get(key).and_then(Node::array).and_then(|branches| branches.first().copied()) {
            return value(document, first, depth + 1);
        }
    }
    match kind(&object).as_deref() {
        Some("object") => Value::Object(members(document, &object, depth)),
        Some("array") => {
            let wanted = object
                .text("minItems")
                .and_then(|text| text.parse::<usize>().ok())
                .unwrap_or(1)
                .clamp(1, 10);
            match object.get("items") {
                Some(items) if depth < DEEPEST => Value::Array(vec![value(document, items, depth + 1); wanted]),
                _ => json!([]),
            }
        }
        Some("integer") => number(&object, "1"),
        Some("number") => number(&object, "1.5"),
        Some("boolean") => json!(true),
        Some("string") => Value::String(string(&object)),
        _ => Value::Null,
    }
}

/// `type`, the first of several, or what the keywords imply.
fn kind(object: &Object<'_>) -> Option<String> {
    let declared = object.get("type");
    if let Some(kinds) = declared.and_then(Node::array) {
        return kinds
            .into_iter()
            .filter_map(Node::string)
            .find(|kind| kind != "null")
            .map(std::borrow::Cow::into_owned);
    }
    declared.and_then(Node::string).map(std::borrow::Cow::into_owned).or_else(|| {
        let implied = if object.get("properties").is_some() {
            "object"
        } else if object.get("items").is_some() {
            "array"
        } else {
            return None;
        };
        Some(implied.to_owned())
    })
}

fn members(document: &Document, object: &Object<'_>, depth: usize) -> Map<String, Value> {
    let required: Vec<String> = object
        .get("required")
        .and_then(Node::array)
        .unwrap_or_default()
        .into_iter()
        .filter_map(|name| Some(name.string()?.into_owned()))
        .collect();
    let mut members = Map::new();
    for (name, schema) in object.get("properties").and_then(Node::object).unwrap_or_default().iter() {
        let write_only = document
            .resolve(schema)
            .ok()
            .and_then(Node::object)
            .is_some_and(|schema| schema.boolean("writeOnly") == Some(true));
        if !write_only && (depth < DEEPEST || required.iter().any(|other| other == name)) {
            members.insert(name.to_owned(), value(document, schema, depth + 1));
        }
    }
    members
}

fn number(object: &Object<'_>, plain: &str) -> Value {
    let bound = ["minimum", "exclusiveMinimum", "maximum"]
        .iter()
        .find_map(|key| object.get(key))
        .filter(|node| node.boolean().is_none());
    bound
        .and_then(Node::value)
        .filter(Value::is_number)
        .or_else(|| serde_json::from_str(plain).ok())
        .unwrap_or(Value::Null)
}

fn string(object: &Object<'_>) -> String {
    let text = match object.text("format").as_deref() {
        Some("date-time") => "2024-01-31T12:00:00Z",
        Some("date") => "2024-01-31",
        Some("time") => "12:00:00Z",
        Some("duration") => "P1D",
        Some("uuid") => "123e4567-e89b-12d3-a456-426614174000",
        Some("email") => "someone@example.com",
        Some("uri" | "url" | "uri-reference") => "https://example.com/",
        Some("hostname") => "example.com",
        Some("ipv4") => "192.0.2.1",
        Some("ipv6") => "2001:db8::1",
        Some("byte" | "binary") => "Ynl0ZXM=",
        _ => "string",
    };
    let shortest = object
        .text("minLength")
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(0)
        .min(1000);
    let longest = object
        .text("maxLength")
        .and_then(|text| text.parse::<usize>().ok())
        .unwrap_or(usize::MAX);
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
            r#"{"type":"object","required":["a"],"properties":{"a":{"type":"integer","minimum":5},"b":{"type":"array","items":{"type":"string","format":"date"},"minItems":2}}}"#,
            r#"{"allOf":[{"type":"object","properties":{"a":{"type":"boolean"}}},{"type":"object","properties":{"b":{"type":"string","minLength":10}}}]}"#,
            r#"{"oneOf":[{"type":"string","enum":["x"]}]}"#,
            r#"{"type":["null","number"]}"#,
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
    fn recursion_ends() {
        let text = r##"{"openapi":"3.1.0","paths":{},"components":{"schemas":{"T":{"type":"object","required":["t"],"properties":{"t":{"$ref":"#/components/schemas/T"}}}}}}"##;
        let document = Document::parse(text.as_bytes().to_vec(), None).unwrap();
        assert!(
            generate(
                &document,
                document.target("#/components/schemas/T", document.files()[0].root()).unwrap()
            )
            .to_string()
            .len()
                < 1000
        );
    }
}

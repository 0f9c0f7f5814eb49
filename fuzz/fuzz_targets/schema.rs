//! Any JSON as a schema, beside components that refer to each other: made an input schema under any
//! budget without a panic, valid 2020-12, without a note of our own, with legal property names; and
//! names come back from it without a panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openapi_mcp::internals::{AnnotatedTools, annotate, operations, sanitize_argument_name};
use openapi_mcp::{AnnotateOptions, Document};
use serde_json::{Map, Value, json};

const BUDGETS: [usize; 4] = [64 << 10, 4 << 10, 700, 512];

fuzz_target!(|bytes: &[u8]| {
    let Some((choice, bytes)) = bytes.split_first() else { return };
    let Ok(schema) = serde_json::from_slice::<Value>(bytes) else { return };
    let version = ["3.0.3", "3.1.0", "2.0"][usize::from(*choice >> 3) % 3];
    let document = if version == "2.0" {
        json!({"swagger": version, "paths": {"/a": {"post": {"parameters": [{"name": "b", "in": "body", "schema": schema}]}}}, "definitions": {"A": schema}})
    } else {
        json!({"openapi": version, "components": {"schemas": {"A": schema}},
            "paths": {"/a": {"post": {"requestBody": {"content": {"application/json": {"schema": schema}}}}}}})
    };
    // What nests too deeply is none.
    let Ok(document) = Document::parse(document.to_string().into_bytes(), None) else { return };
    let mut options = AnnotateOptions::default();
    options.schemas.budget = BUDGETS[usize::from(*choice) % 4];
    options.schemas.inline_all = *choice & 4 != 0;
    let AnnotatedTools { tools, diagnostics, .. } = annotate(&document, operations(&document).0, &options);
    for (_, parts) in &tools {
        let input = parts.input.as_ref().expect("a schema that is made at the start");
        let text = input.json.get();
        let cannot = diagnostics.iter().any(|diagnostic| diagnostic.message.contains("all cut that can be"));
        // The budget does not count escapes.
        let escapes = text.bytes().filter(|byte| *byte == b'\\').count() * 6;
        assert!(cannot || text.len() <= options.schemas.budget + escapes, "{} bytes: {text}", text.len());
        assert!(!["naming", "lost", "loose", "hidden"].iter().any(|note| text.contains(&format!("\\u0000{note}"))), "{text}");
        let schema: Value = serde_json::from_str(text).expect("JSON");
        assert!(jsonschema::meta::is_valid(&schema), "{text}");
        legal(&schema);
        if let Some(names) = &input.names {
            let mut arguments = json!({ "body": schema });
            names.restore(&mut arguments, schema.as_object().expect("an object"));
        }
    }
});

/// Every property has a name that model APIs accept.
fn legal(schema: &Value) {
    let empty = Map::new();
    let object = schema.as_object().unwrap_or(&empty);
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, inner) in properties {
                    assert_eq!(&sanitize_argument_name(name), name, "{schema}");
                    legal(inner);
                }
            }
            ("$defs" | "patternProperties" | "dependentSchemas", Value::Object(named)) => named.values().for_each(legal),
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(listed)) => listed.iter().for_each(legal),
            ("items" | "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames", inner) => legal(inner),
            _ => {}
        }
    }
}

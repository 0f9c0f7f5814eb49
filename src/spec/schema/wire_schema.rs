//! The input schema of a tool some of whose properties had to be renamed, with their names on the
//! wire.

use std::sync::OnceLock;

use serde_json::{Map, Value};

use crate::json;

/// Depth of nested JSON up to which `serde_json` reads it.
const MAX_READ_DEPTH: usize = 127;

/// A schema with the notes that [`wire_names`](super::wire_names) reads. It is kept as text until a
/// call needs it: as trees, the schemas of a large API take many times the memory, and most of its
/// tools are never called.
#[derive(Debug)]
pub struct WireSchema {
    text: Box<str>,
    schema: OnceLock<Map<String, Value>>,
}

impl WireSchema {
    #[must_use]
    pub(crate) fn new(schema: Map<String, Value>) -> Self {
        let schema = Value::Object(schema);
        if nests_deeper_than(&schema, MAX_READ_DEPTH) {
            return Self {
                text: Box::default(),
                schema: OnceLock::from(object(schema)),
            };
        }
        Self {
            text: schema.to_string().into_boxed_str(),
            schema: OnceLock::new(),
        }
    }

    /// The schema, read on first use.
    #[must_use]
    pub fn get(&self) -> &Map<String, Value> {
        self.schema
            .get_or_init(|| json::parse_text(&self.text).map(object).unwrap_or_default())
    }
}

fn object(schema: Value) -> Map<String, Value> {
    match schema {
        Value::Object(schema) => schema,
        _ => Map::new(),
    }
}

fn nests_deeper_than(value: &Value, levels: usize) -> bool {
    let inner = |value: &Value| levels == 0 || nests_deeper_than(value, levels - 1);
    match value {
        Value::Array(items) => items.iter().any(inner),
        Value::Object(members) => members.values().any(inner),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_schema_is_the_same_afterwards_however_deep_it_nests() {
        for levels in [0, 1, 60, 62, 63, 64, 65, 200] {
            let mut schema = json!({ "const": 12_345_678_901_234_567_890_u64, "\u{0}naming": 0 });
            for _ in 0..levels {
                schema = json!({ "properties": { "@odata.type": schema } });
            }
            assert_eq!(
                WireSchema::new(object(schema.clone())).get(),
                &object(schema),
                "{levels}"
            );
        }
    }
}

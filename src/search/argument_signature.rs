//! The arguments of an operation in a compact form that a model reads as easily as TypeScript.

use serde_json::{Map, Value};

use crate::spec::schema::resolve_reference;
use crate::text::{one_line, truncate};

/// The longest signature, in bytes; a deeper level is shown only if it fits.
const MAX_SIGNATURE_BYTES: usize = 5000;
const MAX_DEPTH: usize = 5;
/// Number of values of an enumeration that are shown.
const MAX_VALUES: usize = 16;
/// Number of alternatives of a schema that are shown.
const MAX_ALTERNATIVES: usize = 6;
/// The longest description of an argument, in bytes.
const MAX_REMARK_BYTES: usize = 140;

/// The arguments that an input schema describes, each with its type and a description in one line;
/// bodies as deep as the budget allows.
pub(crate) fn write_signature(schema: &Value) -> String {
    let Some(root) = schema.as_object() else {
        return "{}".into();
    };
    let mut shortest = String::new();
    let forms = (1..=MAX_DEPTH).rev().map(|depth| (depth, true));
    for (depth, remarks) in forms.chain([(1, false)]) {
        let writer = SignatureWriter {
            root,
            depth,
            remarks,
        };
        shortest = writer.members(root, 0);
        if shortest.len() <= MAX_SIGNATURE_BYTES {
            return shortest;
        }
    }
    shortest.truncate(shortest.floor_char_boundary(MAX_SIGNATURE_BYTES));
    shortest.truncate(shortest.rfind('\n').unwrap_or(shortest.len()));
    shortest + "\n  … more arguments: see detail \"schema\"\n}"
}

struct SignatureWriter<'s> {
    root: &'s Map<String, Value>,
    depth: usize,
    remarks: bool,
}

impl SignatureWriter<'_> {
    /// An object with its members, one in each line.
    fn members(&self, schema: &Map<String, Value>, level: usize) -> String {
        let properties = schema.get("properties").and_then(Value::as_object);
        let Some(properties) = properties.filter(|properties| !properties.is_empty()) else {
            return "{}".into();
        };
        let required = schema.get("required").and_then(Value::as_array);
        let indent = "  ".repeat(level + 1);
        let mut out = String::from("{\n");
        // What must be given comes first.
        let is_required = |name: &String| {
            required.is_some_and(|required| required.iter().any(|known| known == name))
        };
        let (first, others): (Vec<_>, Vec<_>) =
            properties.iter().partition(|(name, _)| is_required(name));
        for (name, property) in first.into_iter().chain(others) {
            let mark = if is_required(name) { "" } else { "?" };
            let kind = self.kind(property, level + 1);
            let default = property
                .get("default")
                .map(|default| format!(" = {}", truncate(&default.to_string(), 40)))
                .unwrap_or_default();
            let remark = self.remark(property);
            out.push_str(&format!(
                "{indent}{}{mark}: {kind}{default}{remark}\n",
                one_line(name)
            ));
        }
        out.push_str(&"  ".repeat(level));
        out.push('}');
        out
    }

    fn remark(&self, property: &Value) -> String {
        let said = |text: &Value| text.as_str().map(one_line);
        let own = property.get("description").and_then(said);
        let said = own.or_else(|| {
            let target = resolve_reference(property, self.root)?;
            said(target.get("description")?)
        });
        match said.filter(|said| self.remarks && !said.is_empty()) {
            Some(said) => format!(" // {}", truncate(&said, MAX_REMARK_BYTES)),
            None => String::new(),
        }
    }

    fn kind(&self, schema: &Value, level: usize) -> String {
        let Some(schema) = resolve_reference(schema, self.root) else {
            return "any".into();
        };
        if let Some(values) = schema.get("enum").and_then(Value::as_array) {
            let shown = values.iter().take(MAX_VALUES);
            let shown = shown.map(|value| truncate(&value.to_string(), 60));
            let mut shown: Vec<String> = shown.collect();
            if values.len() > MAX_VALUES {
                shown.push("…".into());
            }
            return shown.join(" | ");
        }
        if let Some(value) = schema.get("const") {
            return truncate(&value.to_string(), 60);
        }
        for combinator in ["anyOf", "oneOf"] {
            let branches = schema.get(combinator).and_then(Value::as_array);
            if let Some(branches) = branches.filter(|branches| !branches.is_empty()) {
                return self.alternatives(branches, level);
            }
        }
        match schema.get("type") {
            Some(Value::Array(types)) => types
                .iter()
                .map(|kind| self.kind_of(kind.as_str().unwrap_or("any"), schema, level))
                .collect::<Vec<_>>()
                .join(" | "),
            Some(Value::String(kind)) => self.kind_of(kind, schema, level),
            _ if schema.get("properties").is_some() => self.kind_of("object", schema, level),
            _ if schema.get("items").is_some() => self.kind_of("array", schema, level),
            _ => "any".into(),
        }
    }

    fn alternatives(&self, branches: &[Value], level: usize) -> String {
        let mut shown: Vec<String> = Vec::new();
        for branch in branches.iter().take(MAX_ALTERNATIVES) {
            let kind = self.kind(branch, level);
            if !shown.contains(&kind) {
                shown.push(kind);
            }
        }
        if branches.len() > MAX_ALTERNATIVES {
            shown.push("…".into());
        }
        shown.join(" | ")
    }

    fn kind_of(&self, kind: &str, schema: &Map<String, Value>, level: usize) -> String {
        match kind {
            "array" => match schema.get("items").map(|items| self.kind(items, level)) {
                Some(items) if items.contains(" | ") => format!("({items})[]"),
                Some(items) => format!("{items}[]"),
                None => "any[]".into(),
            },
            "object" if schema.get("properties").is_some() && level < self.depth => {
                self.members(schema, level)
            }
            "object" => "object".into(),
            "string" => match schema.get("format").and_then(Value::as_str) {
                Some(format) => format!("string ({})", truncate(&one_line(format), 30)),
                None => "string".into(),
            },
            other => truncate(&one_line(other), 30),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_signature_reads_like_typescript() {
        let schema = json!({
            "type": "object",
            "properties": {
                "state": {"enum": ["open", "closed"], "default": "open"},
                "owner": {"type": "string", "description": "The account\nowner."},
                "body": {"$ref": "#/$defs/Body"}
            },
            "required": ["owner"],
            "$defs": {"Body": {"type": "object", "properties": {
                "tags": {"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}},
                "due": {"type": ["string", "null"], "format": "date"},
                "again": {"$ref": "#/$defs/Body"}
            }, "required": ["due"]}}
        });
        let signature = write_signature(&schema);
        assert!(
            signature.starts_with("{\n  owner: string // The account owner.\n  state?: \"open\" | \"closed\" = \"open\"\n  body?: {\n"),
            "{signature}"
        );
        assert!(
            signature.contains("    due: string (date) | null\n    tags?: (string | integer)[]\n"),
            "{signature}"
        );
        assert!(
            signature.len() < 1000 && signature.ends_with('}'),
            "{signature}"
        );
        assert_eq!(write_signature(&json!({"type": "object"})), "{}");
    }

    #[test]
    fn a_long_signature_ends_within_its_budget_and_says_so() {
        let properties: serde_json::Map<String, Value> = (0..900)
            .map(|number| (format!("argument_{number}"), json!({"type": "string"})))
            .collect();
        let signature = write_signature(&json!({"type": "object", "properties": properties}));
        assert!(
            signature.len() < MAX_SIGNATURE_BYTES + 100 && signature.contains("more arguments"),
            "{}",
            signature.len()
        );
    }
}

//! One schema, keyword by keyword: from the dialect of OpenAPI 3.0 or 3.1 to what 2020-12 validators, and clients that
//! are stricter than the standard, accept.

use foldhash::HashSet;

use serde_json::{Map, Value, json};

use super::annotations::{annotation, describe_choice, has_hidden_text};
use super::cut::LOST;
use super::direction::{HIDDEN, LOOSE, is_marked, read_only_names, required_names};
use super::shape::{complete_containers, drop_contradictions, exclusive_limits, make_nullable, read_count, types};
use super::walk::SINGLE;
use super::{Direction, Schemas};
use crate::spec::argument_names::is_legal;
use crate::spec::span::Span;
use crate::text;

/// One schema under translation.
pub(crate) struct Translation<'s, 'd> {
    pub(crate) schemas: &'s mut Schemas<'d>,
    /// The schema lies in the file of this span; references in it are read from there.
    pub(crate) from: Span,
    pub(crate) warnings: &'s mut Vec<String>,
    /// Whether properties without a type are read as an object's.
    pub(crate) infers: bool,
}

impl Translation<'_, '_> {
    /// The schema in 2020-12.
    pub(crate) fn schema(&mut self, value: Value) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            // Boolean schemas are legal in 2020-12, but whole tool lists are refused because of one.
            Value::Bool(false) => json!({ "not": {} }),
            _ => json!({}),
        }
    }

    fn object(&mut self, mut object: Map<String, Value>) -> Value {
        // 2.0 has no `nullable`; its extension is in wide use.
        let nullable = [object.remove("nullable"), object.remove("x-nullable")].contains(&Some(Value::Bool(true)));
        let read_only = if object.contains_key("allOf") && object.contains_key("required") {
            read_only_names(self.schemas.document, &object, self.from, self.other_way(), &mut HashSet::default())
        } else {
            HashSet::default()
        };
        let mut out = Map::new();
        let dynamic = object.remove("$dynamicRef");
        let own = object.remove("$ref");
        if own.is_some() && dynamic.is_some() {
            self.lose(&mut out);
        }
        let is_dynamic = own.is_none();
        if let Some(Value::String(reference)) = own.or(dynamic) {
            match self.schemas.name(&reference, self.from, is_dynamic) {
                Ok(name) => {
                    out.insert("$ref".into(), Value::String(format!("#/$defs/{name}")));
                }
                Err(why) => {
                    self.warnings.push(format!("{why}; that part of the schema accepts anything"));
                    self.lose(&mut out);
                }
            }
        }
        let discriminator = object.remove("discriminator");
        // A limit on what is contained gets stricter where more is taken for it.
        let counts = object.contains_key("maxContains");
        let is_sure = !counts || object.get("contains").is_none_or(|contains| self.survives(contains));
        for (key, value) in object {
            if is_sure || key != "maxContains" {
                self.keyword(&key, value, &mut out);
            }
        }
        if let Some(Value::Object(discriminator)) = discriminator {
            describe_choice(&discriminator, &mut out);
        }
        exclusive_limits(&mut out);
        required_names(&mut out, &read_only);
        complete_containers(&mut out, self.infers);
        if out.remove(LOOSE).is_some() {
            out.remove("additionalProperties");
            out.remove("unevaluatedProperties");
        }
        drop_contradictions(&mut out);
        if nullable { make_nullable(out) } else { Value::Object(out) }
    }

    /// `$id`, `$schema` and `$anchor` would change how references are read; `xml`, `externalDocs`,
    /// `readOnly`, `writeOnly` and `x-*` say nothing that a validator or a model could use. None of them is kept.
    fn keyword(&mut self, key: &str, value: Value, out: &mut Map<String, Value>) {
        match key {
            "title" | "description" | "format" | "contentEncoding" | "contentMediaType" | "default" | "deprecated" | "example"
            | "examples" => {
                annotation(key, value, out);
            }
            "properties"
            | "patternProperties"
            | "dependentSchemas"
            | "allOf"
            | "anyOf"
            | "oneOf"
            | "prefixItems"
            | "items"
            | "additionalProperties"
            | "unevaluatedProperties"
            | "unevaluatedItems"
            | "not"
            | "if"
            | "then"
            | "else"
            | "contains"
            | "propertyNames" => {
                self.applicator(key, value, out);
            }
            _ => self.assertion(key, value, out),
        }
    }

    /// Keywords that hold schemas (2020-12 core section 10).
    fn applicator(&mut self, key: &str, value: Value, out: &mut Map<String, Value>) {
        match (key, value) {
            ("properties", Value::Object(properties)) => self.properties(properties, out),
            ("patternProperties" | "dependentSchemas", Value::Object(map)) => {
                let count = map.len();
                let kept: Vec<_> = map
                    .into_iter()
                    .filter(|(name, _)| key != "patternProperties" || self.is_pattern(name))
                    .collect();
                if kept.len() < count {
                    // The members that a lost pattern described would be refused as additional ones.
                    out.insert(LOOSE.into(), Value::Bool(true));
                    self.lose(out);
                }
                let translated: Map<_, _> = kept.into_iter().map(|(name, schema)| (name, self.inner(schema))).collect();
                out.insert(key.into(), Value::Object(translated));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                let translated: Vec<_> = schemas.into_iter().map(|schema| self.inner(schema)).collect();
                if translated.is_empty() {
                    return;
                }
                // What told the branches apart may be a property that only replies have, or a keyword that had to go;
                // then a value that is meant for one of them fits several. The API itself will know.
                let loosened = key == "oneOf" && self.schemas.direction == Direction::Input;
                let key = if loosened { "anyOf" } else { key };
                if out.contains_key(key) {
                    let both = Value::Object(Map::from_iter([(key.to_owned(), Value::Array(translated))]));
                    match out.entry("allOf").or_insert_with(|| Value::Array(Vec::new())) {
                        Value::Array(all) => all.push(both),
                        other => *other = Value::Array(vec![both]),
                    }
                } else if let Some(Value::Array(all)) = out.get_mut(key) {
                    all.extend(translated);
                } else {
                    out.insert(key.into(), Value::Array(translated));
                }
            }
            // A negation gets stricter where the schema in it gets looser.
            ("not", value) if !self.survives(&value) => {}
            ("if", value) if !self.survives(&value) => self.lose(out),
            // Before 2020-12 a list of schemas under `items` described a tuple.
            ("items", Value::Array(schemas)) => {
                let translated: Vec<_> = schemas.into_iter().map(|schema| self.schema(schema)).collect();
                if !translated.is_empty() {
                    out.insert("prefixItems".into(), Value::Array(translated));
                }
            }
            // Here the boolean form is what every client knows; `true` says nothing.
            ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(true)) => {}
            ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(false)) => {
                out.insert(key.into(), Value::Bool(false));
            }
            (key, value) if SINGLE.contains(&key) && (value.is_object() || value.is_boolean()) => {
                let translated = if key == "items" || key == "additionalProperties" {
                    self.schema(value)
                } else {
                    self.inner(value)
                };
                out.insert(key.into(), translated);
            }
            _ => {}
        }
    }

    /// Keywords that a value must satisfy (2020-12 validation section 6).
    fn assertion(&mut self, key: &str, value: Value, out: &mut Map<String, Value>) {
        match (key, value) {
            ("type", value) => {
                if let Some(kind) = types(value) {
                    out.insert(key.into(), kind);
                }
            }
            ("enum" | "const", value) if has_hidden_text(&value) => {
                self.warnings
                    .push("a constant holds hidden characters; that part of the schema accepts anything".into());
            }
            ("enum", Value::Array(values)) if !values.is_empty() => {
                let mut unique: Vec<Value> = Vec::with_capacity(values.len());
                values.into_iter().for_each(|value| {
                    if !unique.contains(&value) {
                        unique.push(value);
                    }
                });
                out.insert(key.into(), Value::Array(unique));
            }
            ("const", value) => {
                out.insert(key.into(), value);
            }
            ("required", Value::Array(names)) => {
                let mut seen = HashSet::default();
                let names = names
                    .into_iter()
                    .filter(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())));
                out.insert(key.into(), names.collect());
            }
            ("multipleOf", Value::Number(number)) if number.as_f64().is_none_or(|step| step <= 0.0) => {}
            ("multipleOf" | "maximum" | "minimum", Value::Number(number)) => {
                out.insert(key.into(), Value::Number(number));
            }
            ("exclusiveMaximum" | "exclusiveMinimum", value @ (Value::Number(_) | Value::Bool(_))) => {
                out.insert(key.into(), value);
            }
            (
                "maxLength" | "minLength" | "maxItems" | "minItems" | "maxProperties" | "minProperties" | "minContains" | "maxContains",
                Value::Number(number),
            ) => {
                if let Some(number) = read_count(&number) {
                    out.insert(key.into(), number.into());
                }
            }
            ("uniqueItems", Value::Bool(true)) => {
                out.insert(key.into(), Value::Bool(true));
            }
            ("pattern", Value::String(pattern)) if self.is_pattern(&pattern) => {
                out.insert(key.into(), Value::String(pattern));
            }
            ("dependentRequired", Value::Object(map))
                if map.values().all(|names| {
                    names.as_array().is_some_and(|names| {
                        names.iter().all(Value::is_string)
                            && names
                                .iter()
                                .enumerate()
                                .all(|(at, name)| !names.iter().take(at).any(|other| other == name))
                    })
                }) =>
            {
                out.insert(key.into(), Value::Object(map));
            }
            _ => {}
        }
    }

    /// The properties a caller may give: `readOnly` ones belong to replies.
    fn properties(&mut self, properties: Map<String, Value>, out: &mut Map<String, Value>) {
        let mut translated = Map::new();
        let mut hidden = Vec::new();
        for (name, schema) in properties {
            if is_marked(self.schemas.document, &schema, self.from, self.other_way()) {
                hidden.push(Value::String(name));
                continue;
            }
            let infers = std::mem::replace(&mut self.infers, true);
            let schema = self.schema(schema);
            self.infers = infers;
            self.schemas.has_odd_names |= !is_legal(&name);
            translated.insert(name, schema);
        }
        if !hidden.is_empty() {
            out.insert(HIDDEN.into(), Value::Array(hidden));
        }
        out.insert("properties".into(), Value::Object(translated));
    }

    /// Notes that the schema lost something that described members or items.
    fn lose(&mut self, out: &mut Map<String, Value>) {
        self.schemas.has_lost = true;
        out.insert(LOST.into(), Value::Bool(true));
    }

    /// Whether a schema says after translation what it said before. Only of plain assertions is that sure.
    fn survives(&mut self, schema: &Value) -> bool {
        const PLAIN: [&str; 12] = [
            "type",
            "enum",
            "const",
            "minimum",
            "maximum",
            "minLength",
            "maxLength",
            "minItems",
            "maxItems",
            "required",
            "title",
            "description",
        ];
        let Value::Object(object) = schema else { return false };
        let before = self.warnings.len();
        let translated = self.inner(schema.clone());
        let silent = self.warnings.len() == before;
        self.warnings.truncate(before);
        silent
            && !object.is_empty()
            && object.keys().all(|key| PLAIN.contains(&key.as_str()))
            && object.iter().all(|(key, value)| translated.get(key) == Some(value))
    }

    /// A schema of which it is not said that it is what a property or an item is: nothing is read into it.
    fn inner(&mut self, schema: Value) -> Value {
        let infers = std::mem::replace(&mut self.infers, false);
        let translated = self.schema(schema);
        self.infers = infers;
        translated
    }

    /// The mark of what belongs to the other direction.
    fn other_way(&self) -> &'static str {
        match self.schemas.direction {
            Direction::Input => "readOnly",
            Direction::Output => "writeOnly",
        }
    }

    /// Whether a pattern is an ECMA-262 regular expression with the `u` flag (2020-12 core section 6.4), as validating
    /// clients compile it.
    fn is_pattern(&mut self, pattern: &str) -> bool {
        // Classes by Unicode property are legal there, but Python clients refuse the whole schema because of one.
        let judge = || !pattern.contains("\\p{") && !pattern.contains("\\P{") && regress::Regex::with_flags(pattern, "u").is_ok();
        let legal = *self.schemas.patterns.entry(pattern.to_owned()).or_insert_with(judge);
        if !legal {
            self.warnings.push(format!(
                "the pattern `{}` is no regular expression that every client knows, and is not checked",
                text::truncate(pattern, 80)
            ));
        }
        legal
    }
}

//! One schema, keyword by keyword: from the dialect of OpenAPI 3.0 or 3.1 to what 2020-12
//! validators, and clients that are stricter than the standard, accept.

use foldhash::{HashMap, HashSet};
use serde_json::{Map, Value, json};

use super::direction::{Direction, Marks, drop_hidden_names, hidden_names};
use super::keyword_values::{annotation, describe_choice, read_assertion};
use super::keywords::{Holds, has_any, has_keyword, held_by, keyword, remove_keyword};
use super::shape::{complete_containers, drop_contradictions, exclusive_limits, make_nullable};
use crate::json::JsonObject;
use crate::spec::argument_names::{self, is_legal};
use crate::spec::document::Document;
use crate::spec::node::Span;
use crate::text;

/// Keywords beside which `additionalProperties` and `unevaluatedProperties` differ (2020-12 core
/// section 11.3).
const DESCRIBES_MEMBERS: &str =
    "additionalProperties $ref $dynamicRef allOf anyOf oneOf if dependentSchemas";

/// Translates schemas of one document, and names what they refer to.
pub(crate) struct Translator<'d> {
    document: &'d Document,
    pub(crate) direction: Direction,
    marks: Marks<'d>,
    /// The `$defs` names of components, by their places, and the other way round.
    names: HashMap<Span, String>,
    pub(crate) spans: HashMap<String, Span>,
    taken: HashSet<String>,
    /// Patterns that were seen, and true for those that every client supports.
    patterns: HashMap<String, bool>,
    /// True if any property was seen under a name that model APIs refuse.
    pub(crate) has_odd_names: bool,
    /// Sentences about what was read loosely.
    pub(crate) warnings: Vec<String>,
    /// The schema that is translated lies in the file of this span; references in it are read from
    /// there.
    from: Span,
    /// True if properties without a type are read as an object's.
    infers: bool,
}

impl<'d> Translator<'d> {
    /// A translator that has not translated anything yet.
    pub(crate) fn new(document: &'d Document, direction: Direction) -> Self {
        Self {
            document,
            direction,
            marks: Marks::new(document, direction),
            names: HashMap::default(),
            spans: HashMap::default(),
            taken: HashSet::default(),
            patterns: HashMap::default(),
            has_odd_names: false,
            warnings: Vec::new(),
            from: document.root().span(),
            infers: true,
        }
    }

    /// The schema at `span` in 2020-12. References in it name `#/$defs/…`. What cannot be read
    /// becomes the schema that accepts anything, and a warning.
    pub(crate) fn translate(&mut self, span: Span) -> Value {
        let Some(value) = self.document.node(span).value() else {
            self.warnings.push(
                "a schema nests deeper than 128 levels and is served as one that accepts anything"
                    .into(),
            );
            return json!({});
        };
        (self.from, self.infers) = (span, true);
        self.schema(value)
    }

    /// The `$defs` name for a reference of the document.
    fn name(&mut self, reference: &str, is_dynamic: bool) -> Result<String, String> {
        let node = if is_dynamic {
            self.document.dynamic_target(reference, self.from)?
        } else {
            self.document.target(reference, self.from)?
        };
        let span = node.span();
        if let Some(name) = self.names.get(&span) {
            return Ok(name.clone());
        }
        let wanted = argument_names::sanitize_argument_name(
            reference.rsplit('/').next().unwrap_or("schema"),
        );
        let name = argument_names::claim(&mut self.taken, &wanted, "schema");
        self.names.insert(span, name.clone());
        self.spans.insert(name.clone(), span);
        Ok(name)
    }

    /// The schema in 2020-12.
    fn schema(&mut self, value: Value) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            // Boolean schemas are legal in 2020-12, but whole tool lists are refused because of
            // one.
            Value::Bool(false) => json!({ "not": {} }),
            _ => json!({}),
        }
    }

    fn object(&mut self, mut object: JsonObject) -> Value {
        // Where no other schema describes members, both mean the same: maps of TypeSpec.
        if has_keyword(&object, "unevaluatedProperties")
            && !has_any(&object, DESCRIBES_MEMBERS)
            && let Some(others) = remove_keyword(&mut object, "unevaluatedProperties")
        {
            object.insert("additionalProperties".into(), others);
        }
        // 2.0 has no `nullable`; its extension is in wide use.
        let nullable = [
            remove_keyword(&mut object, "nullable"),
            remove_keyword(&mut object, "x-nullable"),
        ]
        .contains(&Some(Value::Bool(true)));
        let mut hidden = if has_keyword(&object, "allOf") && has_keyword(&object, "required") {
            hidden_names(&mut self.marks, &object, self.from, &mut HashSet::default())
        } else {
            HashSet::default()
        };
        let mut out = JsonObject::new();
        let dynamic = remove_keyword(&mut object, "$dynamicRef");
        let own = remove_keyword(&mut object, "$ref");
        let is_dynamic = own.is_none();
        if let Some(Value::String(reference)) = own.or(dynamic) {
            match self.name(&reference, is_dynamic) {
                Ok(name) => {
                    out.insert("$ref".into(), Value::String(format!("#/$defs/{name}")));
                }
                Err(why) => self
                    .warnings
                    .push(format!("{why}; that part of the schema accepts anything")),
            }
        }
        let discriminator = remove_keyword(&mut object, "discriminator");
        let infers = self.infers && !has_keyword(&object, "not");
        let patterns = |schema: &JsonObject| {
            let patterns = keyword(schema, "patternProperties").and_then(Value::as_object);
            patterns.map_or(0, Map::len)
        };
        let declared_patterns = patterns(&object);
        for (key, value) in object {
            self.keyword(&key, value, &mut out, &mut hidden);
        }
        if let Some(Value::Object(discriminator)) = discriminator {
            describe_choice(&discriminator, &mut out);
        }
        exclusive_limits(&mut out);
        drop_hidden_names(&mut out, &hidden);
        complete_containers(&mut out, infers, self.document.version());
        // The members that a lost pattern described would be refused as additional ones.
        if patterns(&out) < declared_patterns {
            remove_keyword(&mut out, "additionalProperties");
        }
        drop_contradictions(&mut out);
        if nullable {
            make_nullable(out)
        } else {
            Value::Object(out)
        }
    }

    /// `$id`, `$schema` and `$anchor` would change how references are read; `xml`, `externalDocs`,
    /// `readOnly`, `writeOnly` and `x-*` say nothing that a validator or a model could use. None of
    /// them is kept. The names of properties that belong to the other direction are added to
    /// `hidden`.
    fn keyword(
        &mut self,
        key: &str,
        value: Value,
        out: &mut JsonObject,
        hidden: &mut HashSet<String>,
    ) {
        match key {
            "title" | "description" | "format" | "contentEncoding" | "contentMediaType"
            | "default" | "deprecated" | "example" | "examples" => {
                annotation(key, value, out);
            }
            "$defs" => {}
            // If a schema inside of it, or beside it, is read more loosely, it refuses more.
            "not" | "if" | "maxContains" | "unevaluatedProperties" | "unevaluatedItems"
                if key == "not" || value != Value::Bool(true) =>
            {
                self.warnings
                    .push(format!("`{key}` is left to the API, and not checked"));
            }
            "pattern" => {
                if value
                    .as_str()
                    .is_some_and(|pattern| self.is_pattern(pattern))
                {
                    out.insert(key.into(), value);
                }
            }
            "properties" => {
                if let Value::Object(properties) = value {
                    let kept = self.properties(properties, hidden);
                    out.insert(key.into(), Value::Object(kept));
                }
            }
            _ => match held_by(key) {
                Some(held) => self.applicator(key, held, value, out),
                None => out.extend(
                    read_assertion(key, value, &mut self.warnings).map(|value| (key.into(), value)),
                ),
            },
        }
    }

    /// Keywords that hold schemas (2020-12 core section 10).
    fn applicator(&mut self, key: &str, held: Holds, value: Value, out: &mut JsonObject) {
        let translated = match (key, held, value) {
            (_, Holds::Named, Value::Object(mut map)) => {
                if key == "patternProperties" {
                    map.retain(|pattern, _| self.is_pattern(pattern));
                }
                let schemas = map.into_iter();
                let translated = schemas.map(|(name, schema)| (name, self.inner(schema)));
                Value::Object(translated.collect())
            }
            (_, Holds::Listed, Value::Array(schemas)) if !schemas.is_empty() => {
                let translated = schemas.into_iter().map(|schema| self.inner(schema));
                let translated: Value = translated.collect();
                // The branches may differ only in a property of replies, or in a keyword that was
                // removed; then a value for one of them fits several. The API itself decides.
                let loosened = key == "oneOf" && self.direction == Direction::Input;
                let key = if loosened { "anyOf" } else { key };
                if !has_keyword(out, key) {
                    out.insert(key.into(), translated);
                } else if let Value::Array(all) = out.entry("allOf").or_insert_with(|| json!([])) {
                    all.push(json!({ key: translated }));
                }
                return;
            }
            // Before 2020-12 a list of schemas under `items` described a tuple.
            ("items", _, Value::Array(schemas)) if !schemas.is_empty() => {
                let translated = schemas.into_iter().map(|schema| self.schema(schema));
                out.insert("prefixItems".into(), translated.collect());
                return;
            }
            // Here the boolean form is what every client knows; `true` says nothing by itself.
            ("additionalProperties", _, Value::Bool(true)) => return,
            ("additionalProperties", _, value @ Value::Bool(false)) => value,
            ("items" | "additionalProperties", _, value @ (Value::Object(_) | Value::Bool(_))) => {
                self.schema(value)
            }
            (_, Holds::Single, value @ (Value::Object(_) | Value::Bool(_))) => self.inner(value),
            _ => return,
        };
        out.insert(key.into(), translated);
    }

    /// The properties a caller may give: `readOnly` ones belong to replies.
    fn properties(&mut self, properties: JsonObject, hidden: &mut HashSet<String>) -> JsonObject {
        let mut translated = JsonObject::new();
        let is_reply = self.direction == Direction::Output;
        for (name, schema) in properties {
            if self.marks.is_marked(&schema, self.from) {
                if is_reply {
                    // An object that allows no other properties still allows this one: some APIs
                    // send it all the same.
                    translated.insert(name.clone(), Value::Object(JsonObject::new()));
                }
                hidden.insert(name);
                continue;
            }
            let infers = std::mem::replace(&mut self.infers, true);
            let schema = self.schema(schema);
            self.infers = infers;
            self.has_odd_names |= !is_legal(&name);
            translated.insert(name, schema);
        }
        translated
    }

    /// A schema of which it is not said that it is what a property or an item is: nothing is read
    /// into it.
    fn inner(&mut self, schema: Value) -> Value {
        let infers = std::mem::replace(&mut self.infers, false);
        let translated = self.schema(schema);
        self.infers = infers;
        translated
    }

    /// Returns true if a pattern is an ECMA-262 regular expression with the `u` flag (2020-12 core
    /// section 6.4), as validating clients compile it.
    fn is_pattern(&mut self, pattern: &str) -> bool {
        // Classes by Unicode property are legal there, but Python clients refuse the whole schema
        // because of one.
        let judge = || {
            !pattern.contains("\\p{")
                && !pattern.contains("\\P{")
                && regress::Regex::with_flags(pattern, "u").is_ok()
        };
        let legal = *self
            .patterns
            .entry(pattern.to_owned())
            .or_insert_with(judge);
        if !legal {
            self.warnings.push(format!(
                "the pattern `{}` is not a regular expression that every client knows, and is not checked",
                text::truncate(pattern, 80)
            ));
        }
        legal
    }
}

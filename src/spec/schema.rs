//! Schemas: from the document's dialect to JSON Schema 2020-12, as an input schema needs it.
//!
//! A component is translated once and remembered; a tool's schema then gets each component inlined where that stays
//! small, and as a `$defs` entry where it would repeat itself, blow up, or recurse. Cycles are never expanded.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::document::{Document, Span};
use super::keys;
use super::node::Node;
use super::text;

/// A schema whose references, all inlined, take no more than this many bytes is inlined: the form every client reads.
const INLINE_TOOL: usize = 16 << 10;
/// Above that, a component is still inlined where it takes no more than this.
const INLINE_COMPONENT: usize = 400;
/// Components that nest references deeper than this stay `$defs`.
const INLINE_DEPTH: usize = 24;
/// Examples longer than this are not shown to the model.
const LONGEST_EXAMPLE: usize = 200;

/// Translates schemas of one document for inputs; keeps what it has translated.
pub struct Schemas<'d> {
    document: &'d Document,
    components: HashMap<String, Rc<Component>>,
    names: HashMap<Span, String>,
    spans: HashMap<String, Span>,
    taken: HashSet<String>,
}

/// A translated component; references in it are `#/$defs/NAME`.
struct Component {
    schema: Value,
    size: usize,
    references: Vec<String>,
}

impl<'d> Schemas<'d> {
    /// A translator that has not translated anything yet.
    #[must_use]
    pub fn new(document: &'d Document) -> Self {
        Self {
            document,
            components: HashMap::new(),
            names: HashMap::new(),
            spans: HashMap::new(),
            taken: HashSet::new(),
        }
    }

    /// The schema at `span` in 2020-12. References in it name `#/$defs/…`, which [`Schemas::complete`] fills in. What
    /// cannot be read becomes the schema that accepts anything, and a sentence in `warnings`.
    pub fn translate(&mut self, span: Span, warnings: &mut Vec<String>) -> Value {
        let node = self.document.node(span);
        match node.value() {
            Some(value) => Translation { schemas: self, warnings }.schema(value),
            None => {
                warnings.push("a schema nests deeper than 128 levels and is served as one that accepts anything".into());
                json!({})
            }
        }
    }

    /// Makes `schema` self-contained: every component it refers to is inlined, or put under its `$defs`.
    pub fn complete(&mut self, schema: &mut Map<String, Value>, warnings: &mut Vec<String>) {
        let mut roots = Vec::new();
        let mut root = Value::Object(std::mem::take(schema));
        references(&root, &mut roots);
        let plan = self.plan(&root, &roots, warnings);
        inline(&mut root, &plan, &self.components);
        let mut defs = Map::new();
        let mut left = Vec::new();
        references(&root, &mut left);
        // Only what is still referred to, each once, in the order of first use.
        let mut queue: std::collections::VecDeque<String> = left.into();
        while let Some(name) = queue.pop_front() {
            if defs.contains_key(&name) {
                continue;
            }
            let mut definition = self
                .components
                .get(&name)
                .map_or_else(|| json!({}), |component| component.schema.clone());
            inline(&mut definition, &plan, &self.components);
            let mut inner = Vec::new();
            references(&definition, &mut inner);
            queue.extend(inner);
            defs.insert(name, definition);
        }
        if let Value::Object(object) = root {
            *schema = object;
        }
        if !defs.is_empty() {
            schema.insert("$defs".into(), Value::Object(defs));
        }
    }

    /// Which components to inline. Works from the leaves up, so that a cycle, however long, is simply never reached,
    /// and neither depth nor breadth of the references costs stack or more than linear time.
    fn plan(&mut self, root: &Value, roots: &[String], warnings: &mut Vec<String>) -> HashSet<String> {
        let mut graph: BTreeMap<String, Rc<Component>> = BTreeMap::new();
        let mut queue: Vec<String> = roots.to_vec();
        while let Some(name) = queue.pop() {
            if !graph.contains_key(&name)
                && let Some(component) = self.component(&name, warnings)
            {
                queue.extend(component.references.iter().cloned());
                graph.insert(name, component);
            }
        }
        let mut waiting: HashMap<&str, usize> = HashMap::new();
        let mut users: HashMap<&str, Vec<&str>> = HashMap::new();
        let mut uses: HashMap<&str, usize> = HashMap::new();
        for name in roots {
            *uses.entry(name).or_default() += 1;
        }
        for (name, component) in &graph {
            waiting.insert(name, component.references.len());
            for reference in &component.references {
                users.entry(reference).or_default().push(name);
                *uses.entry(reference).or_default() += 1;
            }
        }
        let mut expanded: HashMap<&str, (usize, usize)> = HashMap::new();
        let mut ready: Vec<&str> = waiting.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
        while let Some(name) = ready.pop() {
            let Some(component) = graph.get(name) else { continue };
            let mut size = component.size;
            let mut depth = 0;
            for reference in &component.references {
                if let Some((inner, below)) = expanded.get(reference.as_str()) {
                    size = size.saturating_add(*inner);
                    depth = depth.max(below + 1);
                }
            }
            expanded.insert(name, (size, depth));
            for user in users.get(name).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(user) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(user);
                    }
                }
            }
        }
        let size_of = |name: &String| expanded.get(name.as_str()).map_or(0, |(size, _)| *size);
        let total = roots.iter().map(size_of).fold(root.to_string().len(), usize::saturating_add);
        graph
            .keys()
            .filter(|name| {
                expanded.get(name.as_str()).is_some_and(|(size, depth)| {
                    let small = total <= INLINE_TOOL || *size <= INLINE_COMPONENT || uses.get(name.as_str()) == Some(&1);
                    small && *depth <= INLINE_DEPTH
                })
            })
            .cloned()
            .collect()
    }

    /// The component of that `$defs` name, translated on first use.
    fn component(&mut self, name: &str, warnings: &mut Vec<String>) -> Option<Rc<Component>> {
        if let Some(component) = self.components.get(name) {
            return Some(Rc::clone(component));
        }
        let span = *self.spans.get(name)?;
        let schema = self.translate(span, warnings);
        let mut found = Vec::new();
        references(&schema, &mut found);
        let component = Rc::new(Component {
            size: schema.to_string().len(),
            references: found,
            schema,
        });
        self.components.insert(name.to_owned(), Rc::clone(&component));
        Some(component)
    }

    /// The `$defs` name for a reference of the document.
    fn name(&mut self, reference: &str) -> Result<String, String> {
        let node = self.document.target(reference)?;
        let span = self.document.span(node);
        if let Some(name) = self.names.get(&span) {
            return Ok(name.clone());
        }
        let wanted = keys::sanitize(reference.rsplit('/').next().unwrap_or("schema"));
        let name = keys::claim(&mut self.taken, &wanted, "schema");
        self.names.insert(span, name.clone());
        self.spans.insert(name.clone(), span);
        Ok(name)
    }
}

/// One schema under translation.
struct Translation<'s, 'd> {
    schemas: &'s mut Schemas<'d>,
    warnings: &'s mut Vec<String>,
}

impl Translation<'_, '_> {
    fn schema(&mut self, value: Value) -> Value {
        match value {
            Value::Object(object) => self.object(object),
            // Boolean schemas are legal in 2020-12, but whole tool lists are refused because of one.
            Value::Bool(false) => json!({ "not": {} }),
            _ => json!({}),
        }
    }

    fn object(&mut self, mut object: Map<String, Value>) -> Value {
        let nullable = object.remove("nullable") == Some(Value::Bool(true));
        let read_only = if object.contains_key("allOf") {
            read_only_names(self.schemas.document, &object, 0)
        } else {
            HashSet::new()
        };
        let mut out = Map::new();
        if let Some(Value::String(reference)) = object.remove("$ref") {
            match self.schemas.name(&reference) {
                Ok(name) => {
                    out.insert("$ref".into(), Value::String(format!("#/$defs/{name}")));
                }
                Err(why) => self.warnings.push(format!("{why}; that part of the schema accepts anything")),
            }
        }
        for (key, value) in object {
            self.keyword(&key, value, &mut out);
        }
        exclusive_limits(&mut out);
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !read_only.contains(name)));
        }
        if out.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
            out.remove("required");
        }
        complete_containers(&mut out);
        if nullable { make_nullable(out) } else { Value::Object(out) }
    }

    fn keyword(&mut self, key: &str, value: Value, out: &mut Map<String, Value>) {
        match (key, value) {
            ("properties", Value::Object(properties)) => self.properties(properties, out),
            ("patternProperties" | "dependentSchemas", Value::Object(map)) => {
                let translated = map
                    .into_iter()
                    .filter(|(name, _)| key != "patternProperties" || self.is_pattern(name))
                    .collect::<Vec<_>>();
                let translated: Map<_, _> = translated.into_iter().map(|(name, schema)| (name, self.schema(schema))).collect();
                out.insert(key.into(), Value::Object(translated));
            }
            ("allOf" | "anyOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                let translated: Vec<_> = schemas.into_iter().map(|schema| self.schema(schema)).collect();
                if !translated.is_empty() {
                    out.insert(key.into(), Value::Array(translated));
                }
            }
            // Before 2020-12 a list of schemas under `items` described a tuple.
            ("items", Value::Array(schemas)) => {
                let translated: Vec<_> = schemas.into_iter().map(|schema| self.schema(schema)).collect();
                if !translated.is_empty() {
                    out.insert("prefixItems".into(), Value::Array(translated));
                }
            }
            ("additionalProperties" | "unevaluatedProperties" | "unevaluatedItems", Value::Bool(allowed)) => {
                // Here the boolean form is what every client knows; `true` says nothing.
                if !allowed {
                    out.insert(key.into(), Value::Bool(false));
                }
            }
            (
                "items"
                | "additionalProperties"
                | "not"
                | "if"
                | "then"
                | "else"
                | "contains"
                | "propertyNames"
                | "unevaluatedItems"
                | "unevaluatedProperties",
                value,
            ) => {
                if value.is_object() || value.is_boolean() {
                    let translated = self.schema(value);
                    out.insert(key.into(), translated);
                }
            }
            ("type", value) => {
                if let Some(kind) = types(value) {
                    out.insert(key.into(), kind);
                }
            }
            ("enum", Value::Array(values)) if !values.is_empty() => {
                let mut unique: Vec<Value> = Vec::with_capacity(values.len());
                values.into_iter().for_each(|value| {
                    if !unique.contains(&value) {
                        unique.push(value)
                    }
                });
                out.insert(key.into(), Value::Array(unique));
            }
            ("const", value) => {
                out.insert(key.into(), value);
            }
            ("required", Value::Array(names)) => {
                let mut seen = HashSet::new();
                let names: Vec<Value> = names
                    .into_iter()
                    .filter(|name| name.as_str().is_some_and(|name| seen.insert(name.to_owned())))
                    .collect();
                let known = self.hidden(out);
                out.insert(
                    key.into(),
                    names
                        .into_iter()
                        .filter(|name| name.as_str().is_none_or(|name| !known.contains(name)))
                        .collect(),
                );
            }
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
                if let Some(number) = count(&number) {
                    out.insert(key.into(), number.into());
                }
            }
            ("uniqueItems", Value::Bool(true)) => {
                out.insert(key.into(), Value::Bool(true));
            }
            ("pattern", Value::String(pattern)) => {
                if self.is_pattern(&pattern) {
                    out.insert(key.into(), Value::String(pattern));
                }
            }
            ("dependentRequired", Value::Object(map)) => {
                if map
                    .values()
                    .all(|names| names.as_array().is_some_and(|names| names.iter().all(Value::is_string)))
                {
                    out.insert(key.into(), Value::Object(map));
                }
            }
            ("title", Value::String(text)) => {
                out.insert(key.into(), Value::String(text::cut(&text::one_line(&text), 200)));
            }
            ("description", Value::String(text)) => {
                let text = text::cut(&text::clean(&text), text::LONGEST_DESCRIPTION);
                if !text.is_empty() {
                    out.insert(key.into(), Value::String(text));
                }
            }
            ("format" | "contentEncoding" | "contentMediaType", Value::String(text)) => {
                out.insert(key.into(), Value::String(text::one_line(&text)));
            }
            ("default", value) if value.to_string().len() <= LONGEST_EXAMPLE => {
                out.insert(key.into(), value);
            }
            ("deprecated", Value::Bool(true)) => {
                out.insert(key.into(), Value::Bool(true));
            }
            ("example", value) if value.to_string().len() <= LONGEST_EXAMPLE => {
                out.insert("examples".into(), Value::Array(vec![value]));
            }
            ("examples", Value::Array(values)) => {
                if let Some(first) = values.into_iter().find(|value| value.to_string().len() <= LONGEST_EXAMPLE) {
                    out.insert(key.into(), Value::Array(vec![first]));
                }
            }
            // `$id`, `$schema`, `$anchor` would change how references are read; `discriminator`, `xml`, `externalDocs`,
            // `readOnly`, `writeOnly` and `x-*` say nothing that a validator or a model could use.
            _ => {}
        }
    }

    /// The properties a caller may give: `readOnly` ones belong to replies.
    fn properties(&mut self, properties: Map<String, Value>, out: &mut Map<String, Value>) {
        let mut translated = Map::new();
        let mut hidden = HashSet::new();
        for (name, schema) in properties {
            if is_read_only(self.schemas.document, &schema) {
                hidden.insert(name);
            } else {
                let schema = self.schema(schema);
                translated.insert(name, schema);
            }
        }
        if let Some(Value::Array(required)) = out.get_mut("required") {
            required.retain(|name| name.as_str().is_none_or(|name| !hidden.contains(name)));
        }
        if !hidden.is_empty() {
            // Remembered until `required` has been seen, whichever comes first; `hidden` takes it out again.
            out.insert(HIDDEN.into(), hidden.into_iter().map(Value::String).collect());
        }
        out.insert("properties".into(), Value::Object(translated));
    }

    fn hidden(&self, out: &mut Map<String, Value>) -> HashSet<String> {
        match out.remove(HIDDEN) {
            Some(Value::Array(names)) => names.into_iter().filter_map(|name| name.as_str().map(str::to_owned)).collect(),
            _ => HashSet::new(),
        }
    }

    /// Whether a pattern is an ECMA-262 regular expression with the `u` flag (2020-12 core section 6.4), as validating
    /// clients compile it.
    fn is_pattern(&mut self, pattern: &str) -> bool {
        let legal = regress::Regex::with_flags(pattern, "u").is_ok();
        if !legal {
            self.warnings.push(format!(
                "the pattern `{}` is no ECMA-262 regular expression and is not checked",
                text::cut(pattern, 80)
            ));
        }
        legal
    }
}

/// A key that no JSON Schema has, for a note that never leaves this file.
const HIDDEN: &str = "\u{0}hidden";

fn is_read_only(document: &Document, schema: &Value) -> bool {
    let Some(object) = schema.as_object() else { return false };
    if let Some(read_only) = object.get("readOnly") {
        return read_only == &Value::Bool(true);
    }
    // 3.0 cannot write `readOnly` beside `$ref`, so authors put it into the component.
    object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| document.target(reference).ok())
        .and_then(Node::object)
        .is_some_and(|target| target.boolean("readOnly") == Some(true))
}

/// The names of read-only properties anywhere in a composition: another branch of it may require them.
fn read_only_names(document: &Document, object: &Map<String, Value>, depth: usize) -> HashSet<String> {
    const DEEPEST: usize = 6;
    let mut names = HashSet::new();
    if depth > DEEPEST {
        return names;
    }
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        names.extend(
            properties
                .iter()
                .filter(|(_, schema)| is_read_only(document, schema))
                .map(|(name, _)| name.clone()),
        );
    }
    if let Some(Value::Object(target)) = object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| document.target(reference).ok()?.value())
    {
        names.extend(read_only_names(document, &target, depth + 1));
    }
    for branch in object
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
    {
        names.extend(read_only_names(document, branch, depth + 1));
    }
    names
}

/// Draft-04 and OpenAPI 3.0 write `exclusiveMinimum: true` beside `minimum`.
fn exclusive_limits(out: &mut Map<String, Value>) {
    out.remove(HIDDEN);
    for (exclusive, limit) in [("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")] {
        if let Some(Value::Bool(is_exclusive)) = out.get(exclusive) {
            let is_exclusive = *is_exclusive;
            out.remove(exclusive);
            if is_exclusive && let Some(value) = out.remove(limit) {
                out.insert(exclusive.into(), value);
            }
        }
    }
}

/// Some clients refuse an array without `items` and an object without `properties`.
fn complete_containers(out: &mut Map<String, Value>) {
    let is = |kind: &str| match out.get("type") {
        Some(Value::String(text)) => text == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|text| text == kind),
        _ => false,
    };
    let (array, object) = (is("array"), is("object"));
    if array && !out.contains_key("items") {
        out.insert("items".into(), json!({}));
    }
    if object && !out.contains_key("properties") {
        out.insert("properties".into(), json!({}));
    }
}

/// OpenAPI 3.0 `nullable: true`.
fn make_nullable(mut out: Map<String, Value>) -> Value {
    let composed = ["$ref", "allOf", "anyOf", "oneOf", "not", "const"]
        .iter()
        .any(|key| out.contains_key(*key));
    match out.get_mut("type") {
        Some(Value::String(kind)) if !composed => {
            let kind = std::mem::take(kind);
            out.insert("type".into(), json!([kind, "null"]));
        }
        Some(Value::Array(kinds)) if !composed => {
            if !kinds.iter().any(|kind| kind == "null") {
                kinds.push("null".into());
            }
        }
        None if !composed => {}
        _ => {
            let mut outer = Map::new();
            for annotation in ["title", "description", "default", "deprecated", "examples"] {
                if let Some(value) = out.remove(annotation) {
                    outer.insert(annotation.into(), value);
                }
            }
            outer.insert("anyOf".into(), json!([out, { "type": "null" }]));
            return Value::Object(outer);
        }
    }
    if let Some(Value::Array(values)) = out.get_mut("enum")
        && !values.contains(&Value::Null)
    {
        values.push(Value::Null);
    }
    Value::Object(out)
}

/// `type` with the names that JSON Schema knows; documents also write `file`, `any` or `String`.
fn types(value: Value) -> Option<Value> {
    const KNOWN: [&str; 7] = ["string", "number", "integer", "boolean", "array", "object", "null"];
    let known = |kind: &str| KNOWN.contains(&kind);
    match value {
        Value::String(kind) if known(&kind) => Some(Value::String(kind)),
        // Swagger's `file` is a string of bytes.
        Value::String(kind) if kind == "file" => Some("string".into()),
        Value::Array(kinds) => {
            let mut kept: Vec<Value> = Vec::new();
            kinds.into_iter().filter(|kind| kind.as_str().is_some_and(known)).for_each(|kind| {
                if !kept.contains(&kind) {
                    kept.push(kind)
                }
            });
            match kept.len() {
                0 => None,
                1 => kept.pop(),
                _ => Some(Value::Array(kept)),
            }
        }
        _ => None,
    }
}

/// A count: documents also write `1.0`.
fn count(number: &serde_json::Number) -> Option<u64> {
    number.as_u64().or_else(|| {
        let float = number.as_f64()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "checked to be a whole number below 2^53"
        )]
        (float >= 0.0 && float.fract() == 0.0 && float < 9_007_199_254_740_992.0).then_some(float as u64)
    })
}

/// The `$defs` names a schema refers to, in order, with repetition.
fn references(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            for (key, inner) in object {
                match (key.as_str(), inner) {
                    ("$ref", Value::String(reference)) => {
                        if let Some(name) = reference.strip_prefix("#/$defs/") {
                            found.push(name.to_owned());
                        }
                    }
                    ("enum" | "const" | "default" | "examples", _) => {}
                    _ => references(inner, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

/// Replaces references to the planned components by the components themselves.
fn inline(value: &mut Value, plan: &HashSet<String>, components: &HashMap<String, Rc<Component>>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| inline(item, plan, components)),
        Value::Object(object) => {
            let target = match object.get("$ref") {
                Some(Value::String(reference)) => reference
                    .strip_prefix("#/$defs/")
                    .filter(|name| plan.contains(*name))
                    .and_then(|name| components.get(name)),
                _ => None,
            };
            if let Some(component) = target {
                object.remove("$ref");
                let siblings = std::mem::take(object);
                *value = merge(component.schema.clone(), siblings);
                inline(value, plan, components);
                return;
            }
            for (key, inner) in object.iter_mut() {
                if !matches!(key.as_str(), "enum" | "const" | "default" | "examples") {
                    inline(inner, plan, components);
                }
            }
        }
        _ => {}
    }
}

/// A component with what stood beside the reference to it: annotations replace the component's, assertions hold as well.
fn merge(component: Value, siblings: Map<String, Value>) -> Value {
    let Value::Object(mut object) = component else { return component };
    let (annotations, assertions): (Map<_, _>, Map<_, _>) = siblings
        .into_iter()
        .partition(|(key, _)| matches!(key.as_str(), "title" | "description" | "default" | "deprecated" | "examples"));
    if assertions.is_empty() {
        object.extend(annotations);
        return Value::Object(object);
    }
    let mut outer = annotations;
    outer.insert("allOf".into(), json!([object, assertions]));
    Value::Object(outer)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(version: &str, schema: &str, components: &str) -> Value {
        let text = format!(r#"{{"openapi":"{version}","paths":{{}},"x":{schema},"components":{{"schemas":{components}}}}}"#);
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let span = document.span(document.member("x").unwrap());
        let mut schemas = Schemas::new(&document);
        let mut warnings = Vec::new();
        let mut root = Map::new();
        root.insert("x".into(), schemas.translate(span, &mut warnings));
        schemas.complete(&mut root, &mut warnings);
        if root.len() == 1 {
            root.remove("x").unwrap()
        } else {
            Value::Object(root)
        }
    }

    #[test]
    fn the_dialect_of_3_0_becomes_2020_12() {
        for (schema, expected) in [
            (r#"{"type":"string","nullable":true}"#, json!({"type": ["string", "null"]})),
            (
                r#"{"type":"string","nullable":true,"enum":["a"]}"#,
                json!({"type": ["string", "null"], "enum": ["a", null]}),
            ),
            (
                r#"{"nullable":true,"allOf":[{"type":"string"}],"description":"d"}"#,
                json!({"description": "d", "anyOf": [{"allOf": [{"type": "string"}]}, {"type": "null"}]}),
            ),
            (
                r#"{"type":"integer","minimum":1,"exclusiveMinimum":true,"maximum":5,"exclusiveMaximum":false}"#,
                json!({"type": "integer", "maximum": 5, "exclusiveMinimum": 1}),
            ),
            (r#"{"type":"array"}"#, json!({"type": "array", "items": {}})),
            (
                r#"{"type":"object","additionalProperties":true}"#,
                json!({"type": "object", "properties": {}}),
            ),
            (
                r#"{"type":"string","example":"e","xml":{},"x-y":1,"$id":"http://h","pattern":"(?i)a"}"#,
                json!({"type": "string", "examples": ["e"]}),
            ),
            (
                r#"{"type":"object","required":["a","b"],"properties":{"a":{"type":"string","readOnly":true},"b":true}}"#,
                json!({"type": "object", "required": ["b"], "properties": {"b": {}}}),
            ),
            (r#"{"type":"file"}"#, json!({"type": "string"})),
            (
                r#"{"required":true,"enum":[],"description":null,"minLength":1.0}"#,
                json!({"minLength": 1}),
            ),
        ] {
            assert_eq!(input("3.0.3", schema, "{}"), expected, "{schema}");
        }
    }

    #[test]
    fn small_components_are_inlined_and_siblings_survive() {
        let components = r##"{"Name":{"type":"string","description":"of the component"},"Pet":{"type":"object","properties":{"name":{"$ref":"#/components/schemas/Name","description":"beside"}}}}"##;
        assert_eq!(
            input("3.0.3", r##"{"$ref":"#/components/schemas/Pet"}"##, components),
            json!({"type": "object", "properties": {"name": {"type": "string", "description": "beside"}}})
        );
    }

    #[test]
    fn recursion_survives_as_a_definition() {
        let components =
            r##"{"Tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/components/schemas/Tree"}}}}}"##;
        let schema = input("3.0.3", r##"{"$ref":"#/components/schemas/Tree"}"##, components);
        assert_eq!(schema["x"], json!({"$ref": "#/$defs/Tree"}));
        assert_eq!(
            schema["$defs"]["Tree"]["properties"]["children"]["items"],
            json!({"$ref": "#/$defs/Tree"})
        );
    }

    #[test]
    fn a_required_read_only_property_of_another_branch_is_not_asked_for() {
        let components = r##"{"Base":{"type":"object","properties":{"id":{"type":"string","readOnly":true}}}}"##;
        let schema = input(
            "3.0.3",
            r##"{"allOf":[{"$ref":"#/components/schemas/Base"}],"required":["id","name"]}"##,
            components,
        );
        assert_eq!(schema["required"], json!(["name"]));
    }

    #[test]
    fn reference_bombs_and_long_chains_are_decided_quickly() {
        let bomb: Vec<String> = (0..30)
            .map(|n| {
                format!(
                    r##""A{n}":{{"allOf":[{{"$ref":"#/components/schemas/A{m}"}},{{"$ref":"#/components/schemas/A{m}"}}]}}"##,
                    m = n + 1
                )
            })
            .collect();
        let components = format!(r#"{{{},"A30":{{"type":"string"}}}}"#, bomb.join(","));
        assert!(
            input("3.0.3", r##"{"$ref":"#/components/schemas/A0"}"##, &components)
                .to_string()
                .len()
                < 100_000
        );

        let chain: Vec<String> = (0..5000)
            .map(|n| format!(r##""C{n}":{{"$ref":"#/components/schemas/C{m}"}}"##, m = n + 1))
            .collect();
        let components = format!(r#"{{{},"C5000":{{"type":"string"}}}}"#, chain.join(","));
        assert!(
            input("3.0.3", r##"{"$ref":"#/components/schemas/C0"}"##, &components)
                .to_string()
                .len()
                < 1_000_000
        );
    }

    #[test]
    fn a_dangling_reference_accepts_anything() {
        assert_eq!(
            input(
                "3.1.0",
                r##"{"type":"object","properties":{"a":{"$ref":"#/components/schemas/None"}}}"##,
                "{}"
            ),
            json!({"type": "object", "properties": {"a": {}}})
        );
    }
}

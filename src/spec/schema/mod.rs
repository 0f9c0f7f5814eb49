//! Schemas: from the document's dialect to JSON Schema 2020-12, as an input schema needs it.
//!
//! A component is translated once and remembered; a tool's schema then gets each component inlined
//! if that stays small, and as a `$defs` entry if it would repeat itself, grow too large, or
//! recurse. Cycles are never expanded.

mod cut;
mod direction;
mod instance;
mod keyword_values;
mod keywords;
mod plan;
mod rename;
mod shape;
mod translate;

use foldhash::HashMap;
use serde_json::{Value, json};

pub(crate) use self::cut::object_size;
use self::cut::{drop_dangling, drop_unused, json_size, pruned_copy, thin};
use self::direction::Direction;
pub(crate) use self::instance::{gather_schemas, of_item, of_member};
use self::keywords::{each, each_mut, has_keyword, keyword, keyword_mut, levels, references};
pub(crate) use self::keywords::{has_any, reference, resolve_reference};
use self::plan::{Component, Components, InlinePlan, expand, inline, measure_expansions};
pub(crate) use self::rename::NewNames;
use self::translate::Translator;
use super::argument_names;
use super::document::Document;
use super::node::Span;
use crate::json::JsonObject;
use crate::text;

/// Schemas are cut no deeper than at this level at first, and no higher than at the other.
const MAX_CUT_DEPTH: usize = 16;
const MIN_CUT_DEPTH: usize = 1;
/// Number of levels to which a wide schema is reduced.
const MIN_LEVELS: usize = 3;
/// Larger schemas are translated again rather than remembered; components are remembered anyway.
const MAX_REMEMBERED_BYTES: usize = 2 << 10;

/// Options for making a schema self-contained.
#[derive(Debug, Clone)]
pub struct SchemaOptions {
    /// The most bytes it may take.
    pub budget: usize,
    /// True if no `$ref` may remain, because the client does not support it.
    pub inline_all: bool,
}

impl Default for SchemaOptions {
    fn default() -> Self {
        Self {
            budget: 64 << 10,
            inline_all: false,
        }
    }
}

/// A self-contained schema.
pub(crate) struct Completed {
    /// The schema as it is advertised.
    pub(crate) schema: JsonObject,
    /// The names of properties that had to be changed.
    pub(crate) names: Option<NewNames>,
}

/// Translates schemas of one document and makes them self-contained; keeps what it has translated.
pub(crate) struct Schemas<'d> {
    translator: Translator<'d>,
    components: Components,
    translated: HashMap<Span, Value>,
}

impl<'d> Schemas<'d> {
    /// Makes the schemas for inputs; nothing is translated yet.
    pub(crate) fn new(document: &'d Document) -> Self {
        Self::of(document, Direction::Input)
    }

    /// Makes the schemas for replies.
    pub(crate) fn for_output(document: &'d Document) -> Self {
        Self::of(document, Direction::Output)
    }

    fn of(document: &'d Document, direction: Direction) -> Self {
        Self {
            translator: Translator::new(document, direction),
            components: Components::default(),
            translated: HashMap::default(),
        }
    }

    /// Translates a schema like [`Schemas::translate`], but only once, because many operations may
    /// share it.
    pub(crate) fn translate_shared(&mut self, span: Span) -> Value {
        if let Some(known) = self.translated.get(&span) {
            return known.clone();
        }
        let before = self.translator.warnings.len();
        let value = self.translate(span);
        // Warnings are repeated for each use.
        if self.translator.warnings.len() == before && json_size(&value) <= MAX_REMEMBERED_BYTES {
            self.translated.insert(span, value.clone());
        }
        value
    }

    /// Takes the sentences about what was read loosely since the last time.
    pub(crate) fn take_warnings(&mut self) -> Vec<String> {
        std::mem::take(&mut self.translator.warnings)
    }

    /// The schema at `span` in 2020-12. References in it name `#/$defs/…`, which
    /// [`Schemas::complete`] fills in. What cannot be read becomes the schema that accepts
    /// anything, and a warning.
    pub(crate) fn translate(&mut self, span: Span) -> Value {
        self.translator.translate(span)
    }

    /// An object schema of the given properties: the form of 2.0.
    pub(crate) fn form(&mut self, fields: Vec<(String, bool, Value)>) -> Value {
        let (mut properties, mut required) = (JsonObject::new(), Vec::new());
        for (name, is_required, schema) in fields {
            self.translator.has_odd_names |= !argument_names::is_legal(&name);
            if is_required {
                required.push(Value::String(name.clone()));
            }
            properties.insert(name, schema);
        }
        let mut form = json!({ "type": "object", "properties": properties });
        if let (Value::Object(form), false) = (&mut form, required.is_empty()) {
            form.insert("required".into(), Value::Array(required));
        }
        form
    }

    /// Makes `schema` self-contained and fits it into its budget: every component it refers to is
    /// inlined, or put under its `$defs`, and the deepest schemas are replaced by ones that accept
    /// anything until it fits.
    pub(crate) fn complete(&mut self, schema: JsonObject, options: &SchemaOptions) -> Completed {
        let budget = options.budget;
        let mut root = Value::Object(schema);
        let has_left_out = self.resolve_references(&mut root, options);
        let bytes = json_size(&root);
        let mut is_cut = has_left_out | cut_depth(&mut root, bytes, budget);
        let may_rename =
            self.translator.direction == Direction::Input && self.translator.has_odd_names;
        let names = may_rename.then(|| NewNames::apply_to(&mut root)).flatten();
        finish(&mut root);
        let (is_thinned, bytes) = thin_out(&mut root, budget);
        is_cut |= is_thinned;
        if bytes > budget {
            self.translator.warnings.push(format!(
                "the input schema takes {bytes} bytes, more than the {budget} that are set, with all cut that can be"
            ));
        } else if is_cut {
            self.translator.warnings.push(format!(
                "the input schema takes more than {budget} bytes; its deepest levels are left out and accept anything"
            ));
        }
        let schema = match root {
            Value::Object(object) => object,
            _ => JsonObject::new(),
        };
        Completed { schema, names }
    }

    /// Translates the components of those `$defs` names, and all that they refer to.
    fn translate_components(&mut self, roots: &[String]) {
        let mut queue: Vec<String> = roots.to_vec();
        let mut new = Vec::new();
        while let Some(name) = queue.pop() {
            let span = self.translator.spans.get(&name).copied();
            let Some(span) = span.filter(|_| !self.components.contains_key(&name)) else {
                continue;
            };
            let component = Component::new(self.translator.translate(span));
            queue.extend(component.references.iter().cloned());
            self.components.insert(name.clone(), component);
            new.push(name);
        }
        measure_expansions(&self.components, &new);
    }

    /// Inlines what `root` refers to, or puts it under `$defs`. Whether a definition did not fit
    /// into the budget.
    fn resolve_references(&mut self, root: &mut Value, options: &SchemaOptions) -> bool {
        let roots = references(root);
        if roots.is_empty() {
            return false;
        }
        let mut room = early(options.budget);
        self.translate_components(&roots);
        let plan = InlinePlan::new(&self.components, root, &roots, room);
        inline(root, &plan);
        let (mut defs, has_left_out) = plan.definitions(root, room);
        if options.inline_all && !defs.is_empty() {
            expand(root, &defs, &mut Vec::new(), &mut room);
            return has_left_out;
        }
        if has_left_out {
            let kept = defs.keys().cloned().collect();
            drop_dangling(root, &kept);
            defs.values_mut()
                .for_each(|definition| drop_dangling(definition, &kept));
        }
        if let (Value::Object(object), false) = (root, defs.is_empty()) {
            object.insert("$defs".into(), Value::Object(defs));
        }
        has_left_out
    }
}

/// Returns the part of a budget that may be used before descriptions are added and escapes counted.
fn early(budget: usize) -> usize {
    budget - budget / 12
}

/// Cuts a schema of so many `bytes` level by level until it fits, with the descriptions that are
/// still to come: inlined schemas can be too much by themselves. Says whether anything was cut.
fn cut_depth(root: &mut Value, mut bytes: usize, budget: usize) -> bool {
    // Descriptions are counted only where they may matter, because that takes a walk over the
    // schema.
    let is_over = |root: &Value, size: usize| {
        size > early(budget) || (size.saturating_mul(4) > budget && size + unsaid(root) > budget)
    };
    let mut depth = MAX_CUT_DEPTH;
    while depth > MIN_CUT_DEPTH && is_over(root, bytes) {
        *root = pruned_copy(root, depth);
        drop_unused(root);
        bytes = json_size(root);
        // A cut below the deepest level that is left would change nothing.
        depth = (depth - 1)
            .min(levels(root).saturating_sub(1))
            .max(MIN_CUT_DEPTH);
    }
    depth < MAX_CUT_DEPTH
}

/// Thins out what is wide and not deep, a great many arguments or constants, until it fits. Says
/// whether anything was left out, and how many bytes are left.
fn thin_out(root: &mut Value, budget: usize) -> (bool, usize) {
    let mut level = 0;
    let mut bytes = json_size(root);
    while level < MIN_LEVELS && bytes > budget {
        thin(root, level);
        drop_unused(root);
        bytes = json_size(root);
        level += 1;
    }
    (level > 0, bytes)
}

/// Returns the approximate number of bytes of the descriptions that [`finish`] adds.
fn unsaid(schema: &Value) -> usize {
    let Value::Object(object) = schema else {
        return 0;
    };
    let properties = keyword(object, "properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let bare = properties.filter(|(_, property)| {
        property
            .as_object()
            .is_none_or(|schema| !has_any(schema, "description $ref"))
    });
    let mut bytes = bare.map(|(name, _)| name.len() + 20).sum();
    each(object, |inner| bytes += unsaid(inner));
    bytes
}

/// Adds a description to every property.
fn finish(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    if let Some(Value::Object(properties)) = keyword_mut(object, "properties") {
        for (name, property) in properties {
            if let Value::Object(property) = property
                && !has_keyword(property, "description")
                && reference(property).is_none()
            {
                property.insert("description".into(), Value::String(text::spelled(name)));
            }
        }
    }
    each_mut(object, finish);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn input(version: &str, schema: &str, components: &str) -> Value {
        let text = format!(
            r#"{{"openapi":"{version}","paths":{{}},"x":{schema},"components":{{"schemas":{components}}}}}"#
        );
        let document = Document::parse(text.into_bytes(), None).unwrap();
        let span = document.member("x").unwrap().span();
        let mut schemas = Schemas::new(&document);
        let mut root = JsonObject::new();
        root.insert("items".into(), schemas.translate(span));
        let root = schemas
            .complete(
                root,
                &SchemaOptions {
                    budget: 64 << 10,
                    inline_all: false,
                },
            )
            .schema;
        let mut root = root;
        if root.len() == 1 {
            root.remove("items").unwrap()
        } else {
            Value::Object(root)
        }
    }

    #[test]
    fn the_dialect_of_3_0_becomes_2020_12() {
        for (schema, expected) in [
            (
                r#"{"type":"string","nullable":true}"#,
                json!({"type": ["string", "null"]}),
            ),
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
                json!({"type": "object", "required": ["b"], "properties": {"b": {"description": "B"}}}),
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
            input(
                "3.0.3",
                r##"{"$ref":"#/components/schemas/Pet"}"##,
                components
            ),
            json!({"type": "object", "properties": {"name": {"type": "string", "description": "beside"}}})
        );
    }

    #[test]
    fn recursion_survives_as_a_definition() {
        let components = r##"{"Tree":{"type":"object","properties":{"children":{"type":"array","items":{"$ref":"#/components/schemas/Tree"}}}}}"##;
        let schema = input(
            "3.0.3",
            r##"{"$ref":"#/components/schemas/Tree"}"##,
            components,
        );
        assert_eq!(schema["items"], json!({"$ref": "#/$defs/Tree"}));
        assert_eq!(
            schema["$defs"]["Tree"]["properties"]["children"]["items"],
            json!({"$ref": "#/$defs/Tree"})
        );
    }

    #[test]
    fn a_required_read_only_property_of_another_branch_is_not_asked_for() {
        let components =
            r#"{"Base":{"type":"object","properties":{"id":{"type":"string","readOnly":true}}}}"#;
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
            input(
                "3.0.3",
                r##"{"$ref":"#/components/schemas/A0"}"##,
                &components
            )
            .to_string()
            .len()
                < 100_000
        );

        let chain: Vec<String> = (0..5000)
            .map(|n| {
                format!(
                    r##""C{n}":{{"$ref":"#/components/schemas/C{m}"}}"##,
                    m = n + 1
                )
            })
            .collect();
        let components = format!(r#"{{{},"C5000":{{"type":"string"}}}}"#, chain.join(","));
        assert!(
            input(
                "3.0.3",
                r##"{"$ref":"#/components/schemas/C0"}"##,
                &components
            )
            .to_string()
            .len()
                < 1_000_000
        );
    }

    #[test]
    fn what_is_wide_is_cut_as_well_as_what_is_deep() {
        let named = |count: usize, schema: &Value| -> Value {
            Value::Object(
                (0..count)
                    .map(|n| (format!("p{n}"), schema.clone()))
                    .collect(),
            )
        };
        let wide = json!({"type": "object", "additionalProperties": false, "properties": named(40, &json!({"type": "string", "description": "word ".repeat(60)}))});
        let bare = json!({"type": "object", "properties": named(60, &json!({}))});
        let constants = json!({"type": "object", "properties": {"a": {"enum": (0..2000).collect::<Vec<_>>(), "type": "integer"}}});
        for (schema, given) in [
            (wide, json!({"p7": "x"})),
            (bare, json!({"p1": 1})),
            (constants, json!({"a": 5})),
        ] {
            for budget in [512, 1500, 4000] {
                let document = Document::parse(
                    json!({"openapi": "3.1.0", "paths": {}, "x": schema})
                        .to_string()
                        .into_bytes(),
                    None,
                )
                .unwrap();
                let mut schemas = Schemas::new(&document);
                let Value::Object(root) = schemas.translate(document.member("x").unwrap().span())
                else {
                    panic!("no object")
                };
                let completed = schemas.complete(
                    root,
                    &SchemaOptions {
                        budget,
                        inline_all: false,
                    },
                );
                let text = Value::Object(completed.schema.clone()).to_string();
                let warnings = schemas.take_warnings();
                assert!(
                    text.len() <= budget || warnings.iter().any(|text| text.contains("all cut")),
                    "{budget}: {text}"
                );

                assert!(
                    jsonschema::is_valid(&Value::Object(completed.schema), &given),
                    "{text}"
                );
            }
        }
    }

    #[test]
    fn a_dangling_reference_accepts_anything() {
        assert_eq!(
            input(
                "3.1.0",
                r##"{"type":"object","properties":{"a":{"$ref":"#/components/schemas/None"}}}"##,
                "{}"
            ),
            json!({"type": "object", "properties": {"a": {"description": "A"}}})
        );
    }

    /// Validates like a 3.0 validator, for the few keywords whose meaning changed.
    fn valid_in_3_0(schema: &Value, value: &Value) -> bool {
        if value.is_null() {
            return schema["nullable"] == true;
        }
        let fits = match schema["type"].as_str() {
            Some("string") => value.is_string(),
            Some("integer") => value.is_i64(),
            Some("number") => value.is_number(),
            Some("boolean") => value.is_boolean(),
            _ => true,
        };
        let bound = |limit: &str, exclusive: &str, holds: fn(f64, f64, bool) -> bool| match (
            schema[limit].as_f64(),
            value.as_f64(),
        ) {
            (Some(limit), Some(value)) => holds(value, limit, schema[exclusive] == true),
            _ => true,
        };
        fits && bound("minimum", "exclusiveMinimum", |value, limit, open| {
            if open { value > limit } else { value >= limit }
        }) && bound("maximum", "exclusiveMaximum", |value, limit, open| {
            if open { value < limit } else { value <= limit }
        }) && schema["enum"]
            .as_array()
            .is_none_or(|values| values.contains(value))
    }

    proptest::proptest! {
        #[test]
        fn translation_agrees_with_a_3_0_validator(
            kind in proptest::sample::select(vec!["string", "integer", "number", "boolean"]),
            nullable: bool, low in proptest::option::of((-3..3_i64, proptest::bool::ANY)), high in proptest::option::of((-3..3_i64, proptest::bool::ANY)),
            values in proptest::option::of(proptest::collection::vec(-3..3_i64, 1..4)), probe in 0..8_i64
        ) {
            let mut schema = json!({ "type": kind, "nullable": nullable });
            if let Some((limit, exclusive)) = low { schema["minimum"] = limit.into(); schema["exclusiveMinimum"] = exclusive.into(); }
            if let Some((limit, exclusive)) = high { schema["maximum"] = limit.into(); schema["exclusiveMaximum"] = exclusive.into(); }
            if let (Some(values), true) = (values, kind != "string" && kind != "boolean") { schema["enum"] = json!(values); }
            let translated = input("3.0.3", &schema.to_string(), "{}");
            let instance = match probe { 6 => json!(null), 7 => json!("x"), number => json!(number - 3) };
            proptest::prop_assert_eq!(jsonschema::is_valid(&translated, &instance), valid_in_3_0(&schema, &instance), "{} {} {}", schema, translated, instance);
        }
    }
}

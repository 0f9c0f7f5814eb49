//! The schemas that a model gets if rules apply. An input schema is the document's without the values
//! that no call gives, and with the names, defaults, values and descriptions of the operator. An
//! output schema is without the fields that no reply has.
//!
//! A component that several operations share is changed for one operation only: on the way to a
//! property, what a reference leads to takes the place of the reference.

use serde_json::{Map, Value};

use crate::annotate::output::ReplyDescriber;
use crate::json::JsonObject;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::response_rule::{FieldPosition, ResponseRule};
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, PropertyStep, RuledProperty};
use crate::spec::schema::{Completed, NewNames, reference};
use crate::spec::{Document, Operation};

/// Schemas on the way to a property lie no deeper.
const MAX_DEPTH: usize = 64;

type SchemaObject = JsonObject;

/// Result of the rules for one operation.
pub(crate) struct RuledSchema {
    /// The input schema for models.
    pub(crate) shown: SchemaObject,
    /// The properties of the body that rules are about.
    pub(crate) properties: Vec<RuledProperty>,
    /// The rules for properties of the body that are not there.
    pub(crate) absent: Vec<ArgumentRule>,
    /// Reasons for which a rule cannot be applied, in sentences.
    pub(crate) problems: Vec<String>,
}

/// The schema for models; `completed` is the document's, with all arguments.
pub(crate) fn rule_schema(operation: &Operation, completed: &Completed) -> RuledSchema {
    let mut ruled = RuledSchema {
        shown: completed.schema.clone(),
        properties: Vec::new(),
        absent: Vec::new(),
        problems: Vec::new(),
    };
    for fixed in &operation.rules.fixed {
        remove_property(&mut ruled.shown, &fixed.parameter.key);
    }
    for rule in operation
        .rules
        .arguments
        .iter()
        .filter(|rule| !rule.is_closed())
    {
        if let ArgumentTarget::Parameter(location, name) = &rule.target
            && let Some(parameter) = operation
                .parameters
                .iter()
                .find(|parameter| parameter.is(*location, name))
        {
            describe_property(&mut ruled.shown, &parameter.key, rule);
        }
    }
    ruled.rule_body(operation, completed);
    ruled
}

/// Lets a call leave out the properties that the document requires and a rule does not, also in the
/// document's own input schema.
pub(crate) fn unrequire_properties(root: &mut SchemaObject, properties: &[RuledProperty]) {
    for property in properties
        .iter()
        .filter(|property| property.rule.required == Some(false))
    {
        edit_body(root, &property.path, Examples::Kept, &mut unrequire);
    }
}

impl RuledSchema {
    fn rule_body(&mut self, operation: &Operation, completed: &Completed) {
        for rule in &operation.rules.arguments {
            let ArgumentTarget::Body(steps) = &rule.target else {
                continue;
            };
            let path = advertised_path(steps, completed.names.as_ref());
            let mut schema = None;
            let mut is_required = false;
            let outcome = edit_body(
                &mut completed.schema.clone(),
                &path,
                Examples::Kept,
                &mut |parent, name| {
                    schema = schema
                        .take()
                        .or_else(|| parent.get("properties")?.get(name).cloned());
                    is_required |= requires(parent, name);
                },
            );
            match (outcome, schema) {
                (Found::Everywhere, Some(schema)) => {
                    if rule.is_closed() && rule.closed_source().is_none() && is_required {
                        self.refuse(
                            operation,
                            rule,
                            "is required: hide it only with `value` or `default`",
                        );
                    }
                    let rule = rule.clone();
                    self.properties.push(RuledProperty { rule, path, schema });
                }
                (Found::Partly, _) => self.refuse(
                    operation,
                    rule,
                    "is not in every form that the body may have",
                ),
                _ => self.absent.push(rule.clone()),
            }
        }
        // What is inside comes before what it is in, because a name or a whole object may go.
        self.properties
            .sort_by_key(|property| std::cmp::Reverse(property.path.len()));
        let properties = std::mem::take(&mut self.properties);
        for property in &properties {
            let rule = &property.rule;
            let mut taken = false;
            let examples = if rule.is_closed() {
                Examples::Removed
            } else {
                Examples::Kept
            };
            edit_body(
                &mut self.shown,
                &property.path,
                examples,
                &mut |parent, name| {
                    if rule.is_closed() {
                        remove_property(parent, name);
                    } else {
                        describe_property(parent, name, rule);
                        if let Some(new) = rule.name.as_deref().filter(|new| *new != name) {
                            taken |= !rename_property(parent, name, new);
                        }
                    }
                },
            );
            if taken {
                self.refuse(
                    operation,
                    rule,
                    "cannot have that name: the object has such a property",
                );
            }
        }
        self.properties = properties;
        self.relax_body();
    }

    fn refuse(&mut self, operation: &Operation, rule: &ArgumentRule, why: &str) {
        let origin = rule
            .origins
            .last()
            .map(|(origin, _)| origin.as_str())
            .unwrap_or_default();
        self.problems.push(format!(
            "{origin}: `{}` of {} {why}",
            rule.target,
            operation.label()
        ));
    }

    /// A body of which a call gives nothing is not an argument, and one of which it must give
    /// nothing need not be given.
    fn relax_body(&mut self) {
        if !self.properties.iter().any(|property| {
            property.rule.is_closed()
                || property.rule.default.is_some()
                || property.rule.required == Some(false)
        }) {
            return;
        }
        let Some(body) = self
            .shown
            .get("properties")
            .and_then(|properties| properties.get(BODY)?.as_object())
        else {
            return;
        };
        let is_plain = ["$ref", "anyOf", "oneOf", "allOf", "minProperties"]
            .iter()
            .all(|key| !body.contains_key(*key));
        let is_empty = body
            .get("properties")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty);
        let takes_others = body
            .get("additionalProperties")
            .is_some_and(Value::is_object)
            || body.contains_key("patternProperties");
        if is_plain && is_empty && !takes_others {
            remove_property(&mut self.shown, BODY);
        } else if is_plain && !body.contains_key("required") {
            unrequire(&mut self.shown, BODY);
        }
    }
}

/// The forms of a value that have a property.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    Nowhere,
    Partly,
    Everywhere,
}

/// Treatment of the defaults and examples of the schemas on the path to a property, which may show
/// its value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Examples {
    Kept,
    Removed,
}

/// Calls `edit` with every schema that declares the last step of the path, and that step.
fn edit_body(
    root: &mut SchemaObject,
    path: &[PropertyStep],
    examples: Examples,
    edit: &mut dyn FnMut(&mut SchemaObject, &str),
) -> Found {
    let definitions = root
        .get("$defs")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut editing = PropertyEdit {
        definitions,
        examples,
        edit,
    };
    match root
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(BODY))
    {
        Some(body) => editing.edit_at(body, path, 0),
        None => Found::Nowhere,
    }
}

/// A change of the schemas that declare a property.
struct PropertyEdit<'e> {
    definitions: SchemaObject,
    examples: Examples,
    edit: &'e mut dyn FnMut(&mut SchemaObject, &str),
}

impl PropertyEdit<'_> {
    fn edit_at(&mut self, schema: &mut Value, path: &[PropertyStep], depth: usize) -> Found {
        let Some((step, rest)) = path.split_first().filter(|_| depth <= MAX_DEPTH) else {
            return Found::Nowhere;
        };
        put_in_place(schema, &self.definitions);
        let Value::Object(schema) = schema else {
            return Found::Nowhere;
        };
        if self.examples == Examples::Removed {
            remove_examples(schema);
        }
        let found = match step {
            PropertyStep::EachItem => match schema.get_mut("items") {
                Some(items) => self.edit_at(items, rest, depth + 1),
                None => Found::Nowhere,
            },
            PropertyStep::Member(name) => match schema
                .get_mut("properties")
                .and_then(|properties| properties.get_mut(name))
            {
                Some(_) if rest.is_empty() => {
                    (self.edit)(schema, name);
                    Found::Everywhere
                }
                Some(property) => self.edit_at(property, rest, depth + 1),
                None => Found::Nowhere,
            },
        };
        self.edit_branches(schema, path, depth, found)
    }

    /// Edits the branches of a schema; `found` is what was found in the schema itself.
    fn edit_branches(
        &mut self,
        schema: &mut SchemaObject,
        path: &[PropertyStep],
        depth: usize,
        mut found: Found,
    ) -> Found {
        for key in ["allOf", "anyOf", "oneOf"] {
            let Some(branches) = schema.get_mut(key).and_then(Value::as_array_mut) else {
                continue;
            };
            let mut outcomes = Vec::new();
            for branch in branches.iter_mut().filter(|branch| !is_null(branch)) {
                outcomes.push(self.edit_at(branch, path, depth + 1));
            }
            let of_branches = match (
                key,
                outcomes.iter().all(|found| *found == Found::Everywhere),
            ) {
                _ if outcomes.iter().all(|found| *found == Found::Nowhere) => Found::Nowhere,
                ("allOf", _) if outcomes.contains(&Found::Everywhere) => Found::Everywhere,
                (_, true) => Found::Everywhere,
                _ => Found::Partly,
            };
            found = match (found, of_branches) {
                (Found::Everywhere, _) | (_, Found::Everywhere) => Found::Everywhere,
                (Found::Partly, _) | (_, Found::Partly) => Found::Partly,
                _ => Found::Nowhere,
            };
        }
        found
    }
}

fn is_null(schema: &Value) -> bool {
    schema.get("type").and_then(Value::as_str) == Some("null")
}

/// Replaces a reference by its target, merged with the siblings of the reference.
fn put_in_place(schema: &mut Value, definitions: &SchemaObject) {
    for _ in 0..MAX_DEPTH {
        let Some(object) = schema.as_object_mut() else {
            return;
        };
        let Some(target) = reference(object)
            .and_then(|name| definitions.get(name)?.as_object())
            .cloned()
        else {
            return;
        };
        object.shift_remove("$ref");
        let beside = std::mem::replace(object, target);
        object.extend(beside);
    }
}

/// The steps of a pointer, by the names in the input schema.
fn advertised_path(steps: &[String], names: Option<&NewNames>) -> Vec<PropertyStep> {
    let key = |name: &String| names.and_then(|names| names.key_of(name)).cloned();
    let step = |step: &String| match step.as_str() {
        "*" => PropertyStep::EachItem,
        _ => PropertyStep::Member(key(step).unwrap_or_else(|| step.clone())),
    };
    steps.iter().map(step).collect()
}

fn requires(schema: &SchemaObject, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|other| other == name))
}

fn unrequire(schema: &mut SchemaObject, name: &str) {
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|other| other != name);
        if required.is_empty() {
            schema.shift_remove("required");
        }
    }
}

fn remove_property(schema: &mut SchemaObject, name: &str) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.shift_remove(name);
    }
    unrequire(schema, name);
    undepend(schema, name);
    remove_examples(schema);
    for key in ["allOf", "anyOf", "oneOf"] {
        for branch in schema
            .get_mut(key)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Value::Object(branch) = branch {
                unrequire(branch, name);
            }
        }
    }
}

/// Takes a property out of what other properties require (JSON Schema 2020-12 validation, section
/// 6.5.4).
fn undepend(schema: &mut SchemaObject, name: &str) {
    let Some(Value::Object(dependent)) = schema.get_mut("dependentRequired") else {
        return;
    };
    dependent.shift_remove(name);
    for required in dependent.values_mut().filter_map(Value::as_array_mut) {
        required.retain(|other| other != name);
    }
}

/// Takes away what may show the value of a property.
fn remove_examples(schema: &mut SchemaObject) {
    for key in ["default", "examples"] {
        schema.shift_remove(key);
    }
}

fn describe_property(schema: &mut SchemaObject, name: &str, rule: &ArgumentRule) {
    if rule.default.is_some() || rule.required == Some(false) {
        unrequire(schema, name);
    } else if rule.required == Some(true) && !requires(schema, name) {
        let required = schema
            .entry("required")
            .or_insert_with(|| Value::Array(Vec::new()));
        if let Value::Array(required) = required {
            required.push(name.into());
        }
    }
    let Some(Value::Object(property)) = schema
        .get_mut("properties")
        .and_then(|properties| properties.get_mut(name))
    else {
        return;
    };
    if let Some(default) = &rule.default {
        property.insert("default".into(), default.clone());
    }
    if let Some(values) = &rule.values {
        property.insert("enum".into(), Value::Array(values.clone()));
    }
    if let Some(description) = &rule.description {
        property.insert("description".into(), description.clone().into());
    }
}

/// Renames a property in its place; says whether the name was free.
fn rename_property(schema: &mut SchemaObject, name: &str, new: &str) -> bool {
    let Some(Value::Object(properties)) = schema.get_mut("properties") else {
        return true;
    };
    if properties.contains_key(new) {
        return false;
    }
    let renamed = std::mem::take(properties).into_iter();
    properties.extend(renamed.map(|(key, property)| {
        if key == name {
            (new.to_owned(), property)
        } else {
            (key, property)
        }
    }));
    for required in schema
        .get_mut("required")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if required == name {
            *required = new.into();
        }
    }
    true
}

/// Returns the schema of an operation's shaped replies; `None` if it cannot be known.
pub(crate) fn ruled_output(
    rule: &ResponseRule,
    document: &Document,
    operation: &Operation,
) -> Option<JsonObject> {
    if rule.jq.is_some() || rule.file == Some(true) {
        return None;
    }
    let mut schema = ReplyDescriber::new(document).lenient(operation)?;
    // A reply that is not an object is under `result`, and is described there.
    let wrapped = schema
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| {
            properties.len() == 1
                && properties
                    .get("result")
                    .is_some_and(|result| result.get("items").is_some())
        });
    let described = if wrapped {
        schema
            .get_mut("properties")?
            .get_mut("result")?
            .as_object_mut()?
    } else {
        &mut schema
    };
    if !rule.drop.is_empty() {
        drop_described(described, &FieldPosition::root(&rule.drop));
    }
    if !rule.fields.is_empty() && !keep_described(described, &FieldPosition::root(&rule.fields)) {
        return None;
    }
    Some(schema)
}

fn drop_described(schema: &mut JsonObject, position: &FieldPosition<'_>) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, property| {
            let (inner, is_named) = position.step(name);
            if let (false, Value::Object(property)) = (is_named, property) {
                drop_described(property, &inner);
            }
            !is_named
        });
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        drop_described(items, &position.item(0).0);
    }
}

/// Keeps what a pattern names; says whether anything is left.
fn keep_described(schema: &mut JsonObject, position: &FieldPosition<'_>) -> bool {
    let mut is_left = false;
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, property| {
            let (inner, is_named) = position.step(name);
            is_named
                || property
                    .as_object_mut()
                    .is_some_and(|property| keep_described(property, &inner))
        });
        is_left |= !properties.is_empty();
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        let (inner, is_named) = position.item(0);
        is_left |= is_named || keep_described(items, &inner);
    }
    is_left
}

//! The schemas that a model gets if rules apply. An input schema is the document's without the values
//! that no call gives, and with the names, defaults, values and descriptions of the operator. An
//! output schema is without the fields that no reply has.
//!
//! A component that several operations share is changed for one operation only: on the way to a
//! property, what a reference leads to takes the place of the reference.

use serde_json::{Map, Value, json};

use crate::json::JsonObject;
use crate::spec::Operation;
use crate::spec::operation::request_body::BODY;
use crate::spec::operation::response_rule::{FieldPosition, ResponseRule};
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, PropertyStep, RuledProperty};
use crate::spec::schema::{Completed, NewNames, has_any, reference};

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
    let rules = operation.rules.arguments.iter();
    for rule in rules.filter(|rule| !rule.is_closed()) {
        let mut parameters = operation.parameters.iter();
        if let ArgumentTarget::Parameter(location, name) = &rule.target
            && let Some(parameter) = parameters.find(|parameter| parameter.is(*location, name))
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
        edit_body(root, &property.path, false, &mut unrequire);
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
            let mut note = |parent: &mut SchemaObject, name: &str| {
                schema = schema
                    .take()
                    .or_else(|| property_mut(parent, name).cloned());
                is_required |= requires(parent, name);
            };
            let outcome = edit_body(&mut completed.schema.clone(), &path, false, &mut note);
            match (outcome, schema) {
                (Found::Everywhere, Some(schema)) => {
                    if rule.is_closed() && rule.closed_source().is_none() && is_required {
                        let why = "is required: hide it only with `value` or `default`";
                        self.problems.push(rule.refusal(&operation.label(), why));
                    }
                    let rule = rule.clone();
                    self.properties.push(RuledProperty { rule, path, schema });
                }
                (Found::Partly, _) => {
                    let why = "is not in every form that the body may have";
                    self.problems.push(rule.refusal(&operation.label(), why));
                }
                _ => self.absent.push(rule.clone()),
            }
        }
        // What is inside comes before what it is in, because a name or a whole object may go.
        self.properties
            .sort_by_key(|property| std::cmp::Reverse(property.path.len()));
        for RuledProperty { rule, path, .. } in &self.properties {
            let mut taken = false;
            let mut apply = |parent: &mut SchemaObject, name: &str| {
                if rule.is_closed() {
                    remove_property(parent, name);
                } else {
                    describe_property(parent, name, rule);
                    if let Some(new) = rule.name.as_deref().filter(|new| *new != name) {
                        taken |= !rename_property(parent, name, new);
                    }
                }
            };
            edit_body(&mut self.shown, path, rule.is_closed(), &mut apply);
            if taken {
                let why = "cannot have that name: the object has such a property";
                self.problems.push(rule.refusal(&operation.label(), why));
            }
        }
        self.relax_body();
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
        let Some(Value::Object(body)) = property_mut(&mut self.shown, BODY) else {
            return;
        };
        let is_composed = has_any(body, "$ref anyOf oneOf allOf minProperties");
        let own = body.get("properties").and_then(Value::as_object);
        let takes_others = body
            .get("additionalProperties")
            .is_some_and(Value::is_object)
            || body.contains_key("patternProperties");
        if !is_composed && own.is_some_and(Map::is_empty) && !takes_others {
            remove_property(&mut self.shown, BODY);
        } else if !is_composed && !body.contains_key("required") {
            unrequire(&mut self.shown, BODY);
        }
    }
}

/// The forms of a value that have a property.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Found {
    Nowhere,
    Partly,
    Everywhere,
}

/// Calls `edit` with every schema that declares the last step of the path, and that step. May
/// remove the defaults and examples of the schemas on the path, which may show its value.
fn edit_body(
    root: &mut SchemaObject,
    path: &[PropertyStep],
    removes_examples: bool,
    edit: &mut dyn FnMut(&mut SchemaObject, &str),
) -> Found {
    let definitions = root.get("$defs").and_then(Value::as_object).cloned();
    let mut editing = PropertyEdit {
        definitions: definitions.unwrap_or_default(),
        removes_examples,
        edit,
    };
    let body = property_mut(root, BODY);
    body.map_or(Found::Nowhere, |body| editing.edit_at(body, path, 0))
}

/// The schema of a property.
fn property_mut<'s>(schema: &'s mut SchemaObject, name: &str) -> Option<&'s mut Value> {
    schema.get_mut("properties")?.get_mut(name)
}

/// A change of the schemas that declare a property.
struct PropertyEdit<'e> {
    definitions: SchemaObject,
    removes_examples: bool,
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
        if self.removes_examples {
            remove_examples(schema);
        }
        let inner = match step {
            PropertyStep::EachItem => schema.get_mut("items"),
            PropertyStep::Member(name) => property_mut(schema, name),
        };
        let mut found = match (inner, step) {
            (None, _) => Found::Nowhere,
            (Some(_), PropertyStep::Member(name)) if rest.is_empty() => {
                (self.edit)(schema, name);
                Found::Everywhere
            }
            (Some(inner), _) => self.edit_at(inner, rest, depth + 1),
        };
        for key in ["allOf", "anyOf", "oneOf"] {
            let branches = branches_mut(schema, key).filter(|branch| !is_null(branch));
            let outcomes = branches.map(|branch| self.edit_at(branch, path, depth + 1));
            let outcomes: Vec<Found> = outcomes.collect();
            let of_branches = match (outcomes.iter().min(), outcomes.iter().max()) {
                (_, None | Some(Found::Nowhere)) => Found::Nowhere,
                (Some(Found::Everywhere), _) => Found::Everywhere,
                (_, Some(Found::Everywhere)) if key == "allOf" => Found::Everywhere,
                _ => Found::Partly,
            };
            found = found.max(of_branches);
        }
        found
    }
}

/// The schemas that a keyword lists.
fn branches_mut<'s>(
    schema: &'s mut SchemaObject,
    key: &str,
) -> impl Iterator<Item = &'s mut Value> {
    let branches = schema.get_mut(key).and_then(Value::as_array_mut);
    branches.into_iter().flatten()
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
    // JSON Schema 2020-12 validation, section 6.5.4.
    if let Some(Value::Object(dependent)) = schema.get_mut("dependentRequired") {
        dependent.shift_remove(name);
        for required in dependent.values_mut().filter_map(Value::as_array_mut) {
            required.retain(|other| other != name);
        }
    }
    remove_examples(schema);
    for key in ["allOf", "anyOf", "oneOf"] {
        let branches = branches_mut(schema, key).filter_map(Value::as_object_mut);
        branches.for_each(|branch| unrequire(branch, name));
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
    } else if rule.required == Some(true)
        && !requires(schema, name)
        && let Value::Array(required) = schema.entry("required").or_insert_with(|| json!([]))
    {
        required.push(name.into());
    }
    let Some(Value::Object(property)) = property_mut(schema, name) else {
        return;
    };
    if let Some(default) = &rule.default {
        property.insert("default".into(), default.clone());
    }
    if let Some(values) = &rule.values {
        property.insert("enum".into(), values.clone().into());
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
        let key = if key == name { new.to_owned() } else { key };
        (key, property)
    }));
    for required in branches_mut(schema, "required").filter(|required| *required == name) {
        *required = new.into();
    }
    true
}

/// Returns the schema of shaped replies by that of the whole ones; `None` if it cannot be known.
pub(crate) fn ruled_output(rule: &ResponseRule, mut schema: JsonObject) -> Option<JsonObject> {
    if rule.jq.is_some() || rule.file == Some(true) {
        return None;
    }
    // A reply that is not an object is under `result`, and is described there.
    let properties = schema.get("properties").and_then(Value::as_object);
    let wrapped = properties.filter(|properties| properties.len() == 1);
    let wrapped = wrapped.and_then(|properties| properties.get("result")?.get("items"));
    let described = if wrapped.is_some() {
        property_mut(&mut schema, "result")?.as_object_mut()?
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

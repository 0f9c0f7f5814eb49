//! What two versions of a tool's schemas mean for a client: arguments that are no longer accepted, properties that results lost.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::text::one_line;

/// What changed for the arguments that the old schema accepted.
#[derive(Debug, Default)]
pub(super) struct InputChanges {
    /// What is no longer accepted, in words.
    pub(super) narrowed: Vec<String>,
    /// What may be accepted or not, in words.
    pub(super) unclear: Vec<String>,
}

/// Keywords that describe a value and restrict nothing, and those that other schemas refer to.
const ANNOTATIONS: [&str; 12] = [
    "$comment",
    "$defs",
    "$id",
    "$ref",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
    "writeOnly",
];

/// The keywords of limits, and whether a higher one accepts less.
const LIMITS: [(&str, bool); 10] = [
    ("minimum", true),
    ("exclusiveMinimum", true),
    ("minLength", true),
    ("minItems", true),
    ("minProperties", true),
    ("maximum", false),
    ("exclusiveMaximum", false),
    ("maxLength", false),
    ("maxItems", false),
    ("maxProperties", false),
];

/// Keywords that are compared with those around them.
const STRUCTURE: [&str; 6] = ["const", "enum", "items", "properties", "required", "type"];

/// Schemas that are nested more deeply are not compared.
const MAX_DEPTH: usize = 16;

impl InputChanges {
    /// Compares two schemas of arguments.
    pub(super) fn find(old: &Value, new: &Value) -> Self {
        let mut comparison = InputComparison {
            pairs: SchemaPairs::new(old, new),
            found: Self::default(),
        };
        comparison.compare(old, new, "", 0);
        comparison.found
    }
}

/// The pairs of schemas below two roots. Each is compared once, so that schemas that refer to themselves come to an end; a change of what
/// several places refer to is told at the first of them.
struct SchemaPairs<'s> {
    roots: (&'s Value, &'s Value),
    compared: BTreeSet<(*const Value, *const Value)>,
}

impl<'s> SchemaPairs<'s> {
    fn new(old: &'s Value, new: &'s Value) -> Self {
        Self {
            roots: (old, new),
            compared: BTreeSet::new(),
        }
    }

    /// The schemas that two schemas refer to; nothing where they are equal, or were compared before.
    fn open(&mut self, old: &'s Value, new: &'s Value) -> Option<(&'s Value, &'s Value)> {
        let (old, new) = (resolve(self.roots.0, old), resolve(self.roots.1, new));
        let is_new = self.compared.insert((std::ptr::from_ref(old), std::ptr::from_ref(new)));
        (is_new && old != new).then_some((old, new))
    }
}

struct InputComparison<'s> {
    pairs: SchemaPairs<'s>,
    found: InputChanges,
}

impl<'s> InputComparison<'s> {
    fn compare(&mut self, old: &'s Value, new: &'s Value, place: &str, depth: usize) {
        let Some((old, new)) = self.pairs.open(old, new) else { return };
        let shown = if place.is_empty() {
            "the arguments".to_owned()
        } else {
            format!("`{}`", one_line(place))
        };
        if depth > MAX_DEPTH {
            self.found
                .unclear
                .push(format!("{shown} changed; what is nested so deeply is not compared"));
            return;
        }
        self.compare_values(old, new, &shown);
        self.compare_keywords(old, new, &shown);
        self.compare_members(old, new, place, depth);
        match (old.get("items"), new.get("items")) {
            (Some(before), Some(after)) => self.compare(before, after, &inside(place, "[]"), depth + 1),
            (None, Some(after)) if !accepts_all(after) => {
                self.found.narrowed.push(format!("{shown} takes only some items now"));
            }
            _ => {}
        }
        for (before, after) in branches("allOf", old, new).unwrap_or_default() {
            self.compare(before, after, place, depth + 1);
        }
    }

    /// Compares types and lists of values.
    fn compare_values(&mut self, old: &Value, new: &Value, shown: &str) {
        match (types_of(old), types_of(new)) {
            // An enumeration says more than its type.
            (None, Some(_)) if values_of(old).is_none() => self.found.narrowed.push(format!("{shown} takes only some types now")),
            (Some(before), Some(after)) => {
                let is_accepted = |kind: &String| after.contains(kind) || (kind == "integer" && after.contains("number"));
                if !before.iter().all(is_accepted) {
                    self.found.narrowed.push(format!("{shown} takes fewer types"));
                }
            }
            _ => {}
        }
        match (values_of(old), values_of(new)) {
            (None, Some(_)) => self.found.narrowed.push(format!("{shown} takes only some values now")),
            (Some(before), Some(after)) if !before.iter().all(|value| after.contains(value)) => {
                self.found.narrowed.push(format!("{shown} takes fewer values"));
            }
            _ => {}
        }
    }

    /// Compares the keywords that stand for themselves. One that went accepts more.
    fn compare_keywords(&mut self, old: &Value, new: &Value, shown: &str) {
        for (keyword, after) in new.as_object().into_iter().flatten() {
            let before = old.get(keyword);
            let has_branches = keyword == "allOf" && branches(keyword, old, new).is_some();
            if has_branches || before == Some(after) || ANNOTATIONS.contains(&keyword.as_str()) || STRUCTURE.contains(&keyword.as_str()) {
                continue;
            }
            let limit = LIMITS.iter().find(|(name, _)| name == keyword);
            let is_wider = match (limit, before.and_then(Value::as_f64), after.as_f64()) {
                (Some((_, true)), Some(before), Some(after)) => after <= before,
                (Some((_, false)), Some(before), Some(after)) => after >= before,
                _ => after == &Value::Bool(keyword == "additionalProperties"),
            };
            if is_wider {
                continue;
            }
            let is_new = before.is_none() || before == Some(&Value::Bool(keyword == "additionalProperties"));
            let is_understood = ["additionalProperties", "multipleOf", "pattern", "uniqueItems"].contains(&keyword.as_str());
            if limit.is_some() || (is_new && is_understood) {
                let value = one_line(&after.to_string());
                self.found
                    .narrowed
                    .push(format!("{shown} takes fewer values: `{keyword}` is {value} now"));
            } else {
                self.found.unclear.push(format!(
                    "`{}` of {shown} changed, which may refuse calls that were valid",
                    one_line(keyword)
                ));
            }
        }
    }

    /// Compares the properties, and which of them are required.
    fn compare_members(&mut self, old: &'s Value, new: &'s Value, place: &str, depth: usize) {
        for name in required_of(new).difference(&required_of(old)) {
            self.found
                .narrowed
                .push(format!("`{}` is required now", one_line(&inside(place, name))));
        }
        let members = |schema: &'s Value| schema.get("properties").and_then(Value::as_object);
        let after = members(new);
        // Arguments that the whole schema does not name are refused; other objects without properties take any.
        if after.is_none() && !place.is_empty() {
            return;
        }
        for (name, schema) in members(old).into_iter().flatten() {
            match after.and_then(|after| after.get(name)) {
                Some(next) => self.compare(schema, next, &inside(place, name), depth + 1),
                None => self.found.narrowed.push(format!("`{}` is gone", one_line(&inside(place, name)))),
            }
        }
    }
}

/// The properties that results always had under the old schema, and not under the new one.
pub(super) fn lost_properties(old: &Value, new: &Value) -> Vec<String> {
    let mut lost = Vec::new();
    collect_lost_properties(&mut SchemaPairs::new(old, new), (old, new), "", 0, &mut lost);
    lost
}

fn collect_lost_properties<'s>(
    pairs: &mut SchemaPairs<'s>,
    (old, new): (&'s Value, &'s Value),
    place: &str,
    depth: usize,
    lost: &mut Vec<String>,
) {
    let Some((old, new)) = pairs.open(old, new).filter(|_| depth <= MAX_DEPTH) else {
        return;
    };
    lost.extend(required_of(old).difference(&required_of(new)).map(|name| inside(place, name)));
    let properties = old.get("properties").and_then(Value::as_object);
    for (name, before) in properties.into_iter().flatten() {
        if let Some(after) = new.get("properties").and_then(|properties| properties.get(name)) {
            collect_lost_properties(pairs, (before, after), &inside(place, name), depth + 1, lost);
        }
    }
    if let (Some(before), Some(after)) = (old.get("items"), new.get("items")) {
        collect_lost_properties(pairs, (before, after), &inside(place, "[]"), depth + 1, lost);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for branch in branches(keyword, old, new).unwrap_or_default() {
            collect_lost_properties(pairs, branch, place, depth + 1, lost);
        }
    }
}

/// The branches of a composition in pairs; nothing where one schema has more of them than the other.
fn branches<'s>(keyword: &str, old: &'s Value, new: &'s Value) -> Option<Vec<(&'s Value, &'s Value)>> {
    let (old, new) = (old.get(keyword)?.as_array()?, new.get(keyword)?.as_array()?);
    (old.len() == new.len()).then(|| old.iter().zip(new).collect())
}

/// The place of a member, as it is shown.
fn inside(place: &str, name: &str) -> String {
    if place.is_empty() {
        name.to_owned()
    } else {
        format!("{place}/{name}")
    }
}

fn accepts_all(schema: &Value) -> bool {
    schema == &Value::Bool(true) || schema.as_object().is_some_and(Map::is_empty)
}

fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let target = schema
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| reference.strip_prefix('#'));
    target.and_then(|pointer| root.pointer(pointer)).unwrap_or(schema)
}

/// The properties that a schema requires.
fn required_of(schema: &Value) -> BTreeSet<String> {
    let names = schema.get("required").and_then(Value::as_array).into_iter().flatten();
    names.filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The types that a schema names; nothing where it takes any.
fn types_of(schema: &Value) -> Option<BTreeSet<String>> {
    match schema.get("type")? {
        Value::String(kind) => Some(BTreeSet::from([kind.clone()])),
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).map(str::to_owned).collect()),
        _ => None,
    }
}

/// The values that a schema names; nothing where it takes any.
fn values_of(schema: &Value) -> Option<Vec<Value>> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values.clone()),
        (_, Some(value)) => Some(vec![value.clone()]),
        _ => None,
    }
}

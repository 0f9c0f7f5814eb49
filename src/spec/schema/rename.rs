//! Property names that model APIs refuse, changed at every depth into ones that they accept.
//!
//! A member of one object may be described by many schemas: by all branches of a composition,
//! behind references, under conditions. Under which name the model gives it must be the same in all
//! of them, and no other member's; so schemas that describe the same value are found first, and
//! then each such group names its members.

use std::collections::BTreeMap;

use foldhash::{HashMap, HashSet};
use serde_json::{Map, Value};

use super::instance::{of_item, of_member, of_other_members, schemas_of_same_value};
use super::keywords::{has_keyword, keyword, keyword_mut, remove_keyword};
use super::notes::Note;
use super::walk::{each, each_mut};
use crate::spec::argument_names;

/// Values nested deeper than this hold the names that they have.
const MAX_DEPTH: usize = 64;

type Schema = Map<String, Value>;

/// The names on the wire of members that had to be renamed, by their new names; `root` is the
/// schema that this one is in.
#[must_use]
pub(crate) fn wire_names<'s>(
    schema: &Map<String, Value>,
    root: &'s Map<String, Value>,
) -> Option<&'s Map<String, Value>> {
    let index = Note::WireNamesIndex.read_index(schema)?;
    Note::WireNames.read(root)?.get(index)?.as_object()
}

/// Takes the notes of [`rename_properties`] out of one schema.
pub(crate) fn forget_names(schema: &mut Schema) {
    Note::WireNamesIndex.take(schema);
    Note::WireNames.take(schema);
}

/// Changes the names of properties that are not legal keys, everywhere in `root`, and notes the old
/// ones for [`wire_names`]. Returns true if there were any.
pub(crate) fn rename_properties(root: &mut Value) -> bool {
    let Value::Object(object) = root else {
        return false;
    };
    if !has_odd_names(object) {
        return false;
    }
    number_schemas(object, &mut 0);
    let plan = Groups::of(object).plan();
    apply_plan(object, &plan);
    Note::WireNames.write(object, plan.wire_names);
    true
}

fn has_odd_names(schema: &Schema) -> bool {
    let properties = keyword(schema, "properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten();
    let mut found = properties
        .into_iter()
        .any(|(name, _)| !argument_names::is_legal(name));
    each(schema, |inner| {
        found = found || inner.as_object().is_some_and(has_odd_names);
    });
    found
}

/// Notes in each schema of a tree its number, in the order of [`each`].
fn number_schemas(schema: &mut Schema, next: &mut usize) {
    Note::Number.write(schema, *next);
    *next += 1;
    each_mut(schema, |inner| {
        if let Value::Object(inner) = inner {
            number_schemas(inner, next);
        }
    });
}

fn number_of(schema: &Schema) -> Option<usize> {
    Note::Number.read_index(schema)
}

/// All schemas of a tree by their numbers, and which of them describe the same value: a
/// disjoint-set forest.
struct Groups<'s> {
    schemas: Vec<&'s Schema>,
    parents: Vec<usize>,
}

impl<'s> Groups<'s> {
    fn of(root: &'s Schema) -> Self {
        let mut groups = Self {
            schemas: Vec::new(),
            parents: Vec::new(),
        };
        groups.collect(root);
        for (number, schema) in groups.schemas.clone().into_iter().enumerate() {
            for other in schemas_of_same_value(schema, root) {
                groups.join(number, other);
            }
        }
        while groups.join_inner() {}
        groups
    }

    fn collect(&mut self, schema: &'s Schema) {
        let number = self.schemas.len();
        self.schemas.push(schema);
        self.parents.push(number);
        each(schema, |inner| {
            if let Value::Object(inner) = inner {
                self.collect(inner);
            }
        });
    }

    fn group(&self, mut number: usize) -> usize {
        while let Some(parent) = self
            .parents
            .get(number)
            .copied()
            .filter(|parent| *parent != number)
        {
            number = parent;
        }
        number
    }

    /// Joins two groups. Returns true if they were separate.
    fn join(&mut self, number: usize, other: &Schema) -> bool {
        let Some(other) = number_of(other) else {
            return false;
        };
        let (one, other) = (self.group(number), self.group(other));
        let (low, high) = (one.min(other), one.max(other));
        if let Some(parent) = self.parents.get_mut(high).filter(|_| low != high) {
            *parent = low;
        }
        low != high
    }

    fn join_all(&mut self, schemas: &[&Schema]) -> bool {
        let Some((first, rest)) = schemas.split_first() else {
            return false;
        };
        let Some(first) = number_of(first) else {
            return false;
        };
        rest.iter()
            .fold(false, |joined, other| self.join(first, other) | joined)
    }

    fn members(&self) -> BTreeMap<usize, Vec<&'s Schema>> {
        let mut members: BTreeMap<usize, Vec<&'s Schema>> = BTreeMap::new();
        for (number, schema) in self.schemas.iter().enumerate() {
            members.entry(self.group(number)).or_default().push(schema);
        }
        members
    }

    /// Joins schemas of the same member, or the same item, of one group, because they describe the
    /// same value.
    fn join_inner(&mut self) -> bool {
        let mut joined = false;
        for schemas in self
            .members()
            .into_values()
            .filter(|schemas| schemas.len() > 1 || has_many(schemas))
        {
            let others: Vec<_> = schemas
                .iter()
                .flat_map(|schema| of_other_members(schema))
                .collect();
            joined |= self.join_all(&others);
            for name in declared_names(&schemas) {
                let inner: Vec<_> = schemas
                    .iter()
                    .flat_map(|schema| of_member(schema, name))
                    .collect();
                joined |= self.join_all(&inner);
            }
            for index in 0..=longest_prefix(&schemas) {
                let inner: Vec<_> = schemas
                    .iter()
                    .flat_map(|schema| of_item(schema, index))
                    .collect();
                joined |= self.join_all(&inner);
            }
        }
        joined
    }

    fn plan(&self) -> Plan {
        let number = |schema: &Schema| number_of(schema).map(|number| self.group(number));
        let mut plan = Plan {
            groups: (0..self.schemas.len())
                .map(|number| self.group(number))
                .collect(),
            ..Plan::default()
        };
        for (group, schemas) in self.members() {
            let mut naming = Naming::of(&schemas);
            for name in declared_names(&schemas) {
                let inner = schemas
                    .iter()
                    .flat_map(|schema| of_member(schema, name))
                    .next()
                    .and_then(number);
                naming
                    .members
                    .extend(inner.map(|inner| (name.to_owned(), inner)));
            }
            naming.others = schemas
                .iter()
                .flat_map(|schema| of_other_members(schema))
                .next()
                .and_then(number);
            naming.items = (0..=longest_prefix(&schemas))
                .filter_map(|index| {
                    schemas
                        .iter()
                        .flat_map(|schema| of_item(schema, index))
                        .next()
                        .and_then(number)
                })
                .collect();
            if !naming.keys.is_empty() {
                naming.index = plan.wire_names.len();
                let names = naming
                    .keys
                    .iter()
                    .map(|(wire, key)| (key.clone(), Value::String(wire.clone())));
                plan.wire_names.push(Value::Object(names.collect()));
            }
            plan.namings.insert(group, naming);
        }
        plan
    }
}

/// Returns true if one schema alone may describe a value twice.
fn has_many(schemas: &[&Schema]) -> bool {
    let keys = ["patternProperties", "prefixItems", "contains"];
    schemas
        .iter()
        .any(|schema| keys.iter().any(|key| has_keyword(schema, key)))
}

/// All properties that are declared, each once, in the order of the document.
fn declared_names<'s>(schemas: &[&'s Schema]) -> Vec<&'s String> {
    let mut seen = HashSet::default();
    let properties = schemas
        .iter()
        .filter_map(|schema| keyword(schema, "properties")?.as_object());
    properties
        .flat_map(Map::keys)
        .filter(|name| seen.insert(name.as_str()))
        .collect()
}

fn longest_prefix(schemas: &[&Schema]) -> usize {
    let listed = schemas
        .iter()
        .filter_map(|schema| keyword(schema, "prefixItems")?.as_array());
    listed.map(Vec::len).max().unwrap_or(0)
}

/// The new names of properties.
#[derive(Default)]
struct Plan {
    /// The group of each schema, by its number.
    groups: Vec<usize>,
    namings: HashMap<usize, Naming>,
    /// The value of [`Note::WireNames`].
    wire_names: Vec<Value>,
}

/// The names of the members of one group.
#[derive(Default)]
struct Naming {
    /// New names by names on the wire, of those that change.
    keys: HashMap<String, String>,
    /// Index of the reverse among [`Note::WireNames`].
    index: usize,
    /// Patterns that a new name would fall under and the name on the wire does not.
    lost: Vec<String>,
    /// The groups of members, of all other members, and of items.
    members: HashMap<String, usize>,
    others: Option<usize>,
    items: Vec<usize>,
}

impl Naming {
    fn of(schemas: &[&Schema]) -> Self {
        const MAX_TRIES: usize = 4;
        let declared = declared_names(schemas);
        let mut naming = Self::default();
        if declared.iter().all(|name| argument_names::is_legal(name)) {
            return naming;
        }
        // Legal names, and all that are mentioned, stay as they are; no other property may get
        // them.
        let mut taken: HashSet<String> = declared
            .iter()
            .filter(|name| argument_names::is_legal(name))
            .map(|name| (*name).clone())
            .collect();
        schemas
            .iter()
            .for_each(|schema| mentioned(schema, &mut taken));
        let patterns: Vec<(&String, regress::Regex)> = schemas
            .iter()
            .filter_map(|schema| keyword(schema, "patternProperties")?.as_object())
            .flat_map(Map::keys)
            .filter_map(|pattern| Some((pattern, regress::Regex::with_flags(pattern, "u").ok()?)))
            .collect();
        for name in declared
            .into_iter()
            .filter(|name| !argument_names::is_legal(name))
        {
            let falls = |key: &str, pattern: &regress::Regex| {
                pattern.find(key).is_some() && pattern.find(name).is_none()
            };
            let legal = argument_names::sanitize_argument_name(name);
            let mut key = argument_names::claim(&mut taken, &legal, "property");
            for _ in 0..MAX_TRIES {
                if !patterns.iter().any(|(_, pattern)| falls(&key, pattern)) {
                    break;
                }
                key = argument_names::claim(&mut taken, &legal, "property");
            }
            let lost = patterns.iter().filter(|(_, pattern)| falls(&key, pattern));
            naming.lost.extend(lost.map(|(text, _)| (*text).clone()));
            naming.keys.insert(name.clone(), key);
        }
        naming
    }
}

/// The names of members that a schema speaks of without declaring them.
fn mentioned(schema: &Schema, names: &mut HashSet<String>) {
    let strings = |value: &Value| -> Vec<String> {
        let listed = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        listed
            .iter()
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect()
    };
    names.extend(keyword(schema, "required").into_iter().flat_map(strings));
    for key in ["dependentRequired", "dependentSchemas"] {
        let map = keyword(schema, key)
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        for (name, others) in map {
            names.insert(name.clone());
            names.extend(strings(others));
        }
    }
    let all = keyword(schema, "propertyNames").into_iter();
    names.extend(all.flat_map(|all| {
        ["const", "enum"]
            .into_iter()
            .filter_map(|key| all.get(key))
            .flat_map(strings)
    }));
    let listed = ["enum", "examples"]
        .into_iter()
        .filter_map(|key| keyword(schema, key)?.as_array())
        .flatten();
    let single = ["const", "default"]
        .into_iter()
        .filter_map(|key| keyword(schema, key));
    names.extend(
        listed
            .chain(single)
            .filter_map(Value::as_object)
            .flat_map(Map::keys)
            .cloned(),
    );
}

fn apply_plan(schema: &mut Schema, plan: &Plan) {
    let number = number_of(schema);
    Note::Number.take(schema);
    let group = number
        .and_then(|number| plan.groups.get(number))
        .copied()
        .unwrap_or_default();
    each_mut(schema, |inner| {
        if let Value::Object(inner) = inner {
            apply_plan(inner, plan);
        }
    });
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("enum" | "examples", Value::Array(values)) => values
                .iter_mut()
                .for_each(|value| plan.value(value, group, 0)),
            ("const" | "default", value) => plan.value(value, group, 0),
            _ => {}
        }
    }
    if let Some(naming) = plan
        .namings
        .get(&group)
        .filter(|naming| !naming.keys.is_empty())
    {
        naming.apply(schema);
    }
}

impl Plan {
    /// The members of a constant or an example under their new names.
    fn value(&self, value: &mut Value, group: usize, depth: usize) {
        let Some(naming) = self.namings.get(&group).filter(|_| depth < MAX_DEPTH) else {
            return;
        };
        match value {
            Value::Object(members) => {
                for (name, mut member) in std::mem::take(members) {
                    if let Some(inner) = naming.members.get(&name).copied().or(naming.others) {
                        self.value(&mut member, inner, depth + 1);
                    }
                    members.insert(naming.keys.get(&name).cloned().unwrap_or(name), member);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    if let Some(inner) = naming.items.get(index).or(naming.items.last()) {
                        self.value(item, *inner, depth + 1);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Naming {
    /// One schema of the group, with all that it says of names.
    fn apply(&self, schema: &mut Schema) {
        let of = |name: &str| self.keys.get(name).cloned();
        let rename_keys = |map: &mut Schema| {
            *map = std::mem::take(map)
                .into_iter()
                .map(|(name, value)| (of(&name).unwrap_or(name), value))
                .collect();
        };
        let rename_texts = |value: &mut Value| {
            let listed = match value {
                Value::Array(items) => items.as_mut_slice(),
                single => std::slice::from_mut(single),
            };
            for item in listed {
                if let Some(key) = item.as_str().and_then(of) {
                    *item = Value::String(key);
                }
            }
        };
        for (key, value) in schema.iter_mut() {
            match (key.as_str(), value) {
                ("properties" | "dependentSchemas", Value::Object(map)) => rename_keys(map),
                ("required", names) => rename_texts(names),
                ("dependentRequired", Value::Object(map)) => {
                    rename_keys(map);
                    map.values_mut().for_each(rename_texts);
                }
                ("propertyNames", Value::Object(names)) => {
                    for key in ["const", "enum"] {
                        names.get_mut(key).into_iter().for_each(rename_texts);
                    }
                }
                _ => {}
            }
        }
        Note::WireNamesIndex.write(schema, self.index);
        // What looks at the letters of a name judges one that is not sent.
        let letters = |names: &Value| {
            let plain = ["const", "enum", "type", "title", "description"];
            names
                .as_object()
                .is_none_or(|names| names.keys().any(|key| !plain.contains(&key.as_str())))
        };
        if keyword(schema, "propertyNames").is_some_and(letters) {
            remove_keyword(schema, "propertyNames");
        }
        if !self.lost.is_empty() {
            if let Some(Value::Object(patterns)) = keyword_mut(schema, "patternProperties") {
                patterns.retain(|pattern, _| !self.lost.contains(pattern));
            }
            remove_keyword(schema, "additionalProperties");
        }
    }
}

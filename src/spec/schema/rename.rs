//! Property names that model APIs refuse, changed at every depth into ones that they accept.
//!
//! A name has one key in a whole tool, and the key is no other name in it. So it does not matter
//! which of the schemas that describe a value declare the name.

use std::collections::BTreeMap;

use foldhash::HashSet;
use serde_json::{Map, Value};

use super::instance::rename_members;
use super::keywords::{each, each_mut, keyword, keyword_mut, levels, remove_keyword};
use crate::json::JsonObject;
use crate::spec::argument_names;
use crate::text::is_word_of;

/// A schema that nests deeper keeps its names: calls read it from JSON, up to a depth of 128.
const MAX_LEVELS: usize = 56;
/// The keywords whose values are values of the schema, or lists of them.
const VALUES: [&str; 4] = ["const", "default", "enum", "examples"];

type Schema = JsonObject;

/// The keys of a tool's properties whose names are not legal keys, by their names on the wire.
#[derive(Debug, Default)]
pub struct NewNames(BTreeMap<String, String>);

impl NewNames {
    /// Changes the names of properties that are not legal keys, everywhere in `root`.
    pub(crate) fn apply_to(root: &mut Value) -> Option<Self> {
        let deep = levels(root) > MAX_LEVELS;
        let root = root.as_object_mut().filter(|_| !deep)?;
        let mut odd = Vec::new();
        add_odd_names(root, &mut odd);
        if odd.is_empty() {
            return None;
        }
        let (mut names, mut taken) = (Self::default(), HashSet::default());
        add_names(root, &mut taken);
        for name in odd {
            if !names.0.contains_key(name) {
                let legal = argument_names::sanitize_argument_name(name);
                let key = argument_names::claim(&mut taken, &legal, "property");
                names.0.insert(name.clone(), key);
            }
        }
        names.apply(root, &root.clone());
        Some(names)
    }

    /// The key of a property, by its name on the wire.
    pub(crate) fn key_of(&self, name: &str) -> Option<&String> {
        self.0.get(name)
    }

    /// Returns true if a property has that key in place of its name.
    #[cfg(test)]
    pub(crate) fn is_key(&self, key: &str) -> bool {
        self.0.values().any(|known| known == key)
    }

    /// Gives the members of arguments their names on the wire. Only what `root`, the input schema
    /// with the keys, describes at that place is renamed, so that free keys of the caller stay as
    /// they are.
    pub fn restore(&self, arguments: &mut Value, root: &JsonObject) {
        rename_members(arguments, root, root, |key, schemas, _| {
            let (name, _) = self.0.iter().find(|(_, known)| *known == key)?;
            mention(schemas, key).then(|| name.clone())
        });
    }

    /// Gives the members that were given by their names on the wire the keys of `root`, the input
    /// schema.
    ///
    /// # Errors
    /// Name and key of a member that is given under both.
    pub(crate) fn give_keys(
        &self,
        arguments: &mut Value,
        root: &Schema,
    ) -> Result<(), (String, String)> {
        let mut twice = None;
        rename_members(arguments, root, root, |name, schemas, members| {
            let key = self.key_of(name).filter(|key| mention(schemas, key))?;
            if members.contains_key(key) {
                twice = Some((name.to_owned(), key.clone()));
            }
            Some(key.clone())
        });
        twice.map_or(Ok(()), Err)
    }

    /// Returns true if a member of the value has one of the names.
    fn is_in(&self, value: &Value) -> bool {
        match value {
            Value::Array(items) => items.iter().any(|item| self.is_in(item)),
            Value::Object(members) => members
                .iter()
                .any(|(name, member)| self.0.contains_key(name) || self.is_in(member)),
            _ => false,
        }
    }

    /// Renames in one schema all that speaks of names, and in the schemas inside of it. `root` is
    /// the whole as it was before.
    fn apply(&self, schema: &mut Schema, root: &Schema) {
        for key in VALUES {
            let value = keyword(schema, key).filter(|value| self.is_in(value));
            let Some(mut value) = value.cloned() else {
                continue;
            };
            let listed = match (key, &mut value) {
                ("enum" | "examples", Value::Array(items)) => items.as_mut_slice(),
                (_, single) => std::slice::from_mut(single),
            };
            for value in listed {
                rename_members(value, schema, root, |name, schemas, _| {
                    let key = self.key_of(name).filter(|_| mention(schemas, name))?;
                    Some(key.clone())
                });
            }
            // A constant in which a name is left cannot be kept: a schema elsewhere declares it.
            if matches!(key, "const" | "enum") && self.is_in(&value) {
                remove_keyword(schema, key);
            } else {
                schema.insert(key.into(), value);
            }
        }
        each_mut(schema, |inner| {
            if let Value::Object(inner) = inner {
                self.apply(inner, root);
            }
        });
        for (key, value) in schema.iter_mut() {
            match (key.as_str(), value) {
                ("properties" | "dependentSchemas", Value::Object(map)) => self.rename_keys(map),
                ("required", names) => self.rename_texts(names),
                ("dependentRequired", Value::Object(map)) => {
                    self.rename_keys(map);
                    map.values_mut().for_each(|names| self.rename_texts(names));
                }
                ("propertyNames", Value::Object(names)) => {
                    let named = names
                        .iter_mut()
                        .filter(|(key, _)| *key == "const" || *key == "enum");
                    named.for_each(|(_, names)| self.rename_texts(names));
                }
                _ => {}
            }
        }
        self.open(schema);
    }

    fn rename_keys(&self, map: &mut Schema) {
        let key = |name: String| self.key_of(&name).cloned().unwrap_or(name);
        let members = std::mem::take(map).into_iter();
        map.extend(members.map(|(name, value)| (key(name), value)));
    }

    fn rename_texts(&self, value: &mut Value) {
        match value {
            Value::Array(items) => items.iter_mut().for_each(|item| self.rename_texts(item)),
            Value::String(name) => {
                if let Some(key) = self.key_of(name) {
                    name.clone_from(key);
                }
            }
            _ => {}
        }
    }

    /// Takes from a schema what looks at the letters of names, because it would judge a name that
    /// is not sent.
    fn open(&self, schema: &mut Schema) {
        const PLAIN: &str = "const enum type title description";
        let judges_letters = |names: &Value| {
            let names = names.as_object();
            names.is_none_or(|names| names.keys().any(|key| !is_word_of(PLAIN, key)))
        };
        if keyword(schema, "propertyNames").is_some_and(judges_letters) {
            remove_keyword(schema, "propertyNames");
        }
        if let Some(Value::Object(patterns)) = keyword_mut(schema, "patternProperties") {
            let before = patterns.len();
            patterns.retain(|pattern, _| self.mean_the_same(pattern));
            if patterns.len() < before {
                remove_keyword(schema, "additionalProperties");
            }
        }
    }

    /// Returns true if a pattern matches a key exactly if it matches the name.
    fn mean_the_same(&self, pattern: &str) -> bool {
        regress::Regex::with_flags(pattern, "u").is_ok_and(|pattern| {
            let matches = |text: &str| pattern.find(text).is_some();
            let mut names = self.0.iter();
            names.all(|(name, key)| matches(name) == matches(key))
        })
    }
}

/// Adds the names of properties that are not legal keys, in the order of the document.
fn add_odd_names<'s>(schema: &'s Schema, odd: &mut Vec<&'s String>) {
    let properties = keyword(schema, "properties").and_then(Value::as_object);
    let names = properties.into_iter().flat_map(Map::keys);
    odd.extend(names.filter(|name| !argument_names::is_legal(name)));
    each(schema, |inner| {
        if let Value::Object(inner) = inner {
            add_odd_names(inner, odd);
        }
    });
}

/// Adds all names that must stay what they are if they are legal.
fn add_names(schema: &Schema, names: &mut HashSet<String>) {
    each_name(schema, true, &mut |name| {
        names.insert(name.to_owned());
    });
    each(schema, |inner| {
        if let Value::Object(inner) = inner {
            add_names(inner, names);
        }
    });
}

/// Returns true if one of the schemas speaks of a member of that name.
fn mention(schemas: &[&Schema], name: &str) -> bool {
    schemas.iter().any(|schema| {
        let mut found = false;
        each_name(schema, false, &mut |other| found |= other == name);
        found
    })
}

/// Visits the names of members that a schema speaks of; `deep` includes those in its constants and
/// examples at every depth.
fn each_name<'s>(schema: &'s Schema, deep: bool, visit: &mut dyn FnMut(&'s str)) {
    for (key, value) in schema {
        match (key.as_str(), value) {
            ("properties", Value::Object(map)) => map.keys().for_each(|name| visit(name)),
            ("required", names) => each_text(names, visit),
            ("dependentRequired" | "dependentSchemas", Value::Object(map)) => {
                for (name, others) in map {
                    visit(name);
                    each_text(others, visit);
                }
            }
            ("propertyNames", names) => {
                let named = [names.get("const"), names.get("enum")];
                named
                    .into_iter()
                    .flatten()
                    .for_each(|names| each_text(names, visit));
            }
            ("enum" | "examples", Value::Array(values)) => {
                values.iter().for_each(|value| each_key(value, deep, visit));
            }
            ("const" | "default", value) => each_key(value, deep, visit),
            _ => {}
        }
    }
}

fn each_text<'s>(value: &'s Value, visit: &mut dyn FnMut(&'s str)) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| each_text(item, visit)),
        Value::String(text) => visit(text),
        _ => {}
    }
}

fn each_key<'s>(value: &'s Value, deep: bool, visit: &mut dyn FnMut(&'s str)) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                visit(name);
                if deep {
                    each_key(member, deep, visit);
                }
            }
        }
        Value::Array(items) if deep => items.iter().for_each(|item| each_key(item, deep, visit)),
        _ => {}
    }
}

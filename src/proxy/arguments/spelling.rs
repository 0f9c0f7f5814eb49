//! Names in other letters: `pet_id` or `PetID` for `petId`. A name is read as another one only if
//! exactly one is meant.

use foldhash::{HashMap, HashMapExt as _, HashSet, HashSetExt as _};
use serde_json::{Map, Value};

use super::repair_notes::{RepairNotes, quote_name};
use crate::json::JsonObject;
use crate::spec::schema::{gather_schemas, of_item, of_member};

/// Deeper than this no name is put right.
const MAX_DEPTH: usize = 16;

/// The letters and digits of a name in lower case: names with the same letters are the same to a
/// model.
pub(crate) fn letters(name: &str) -> String {
    name.chars()
        .filter(|character| character.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .collect()
}

/// The properties that the schemas of one value declare.
pub(crate) fn declared_properties<'s>(schemas: &[&'s JsonObject]) -> Vec<&'s str> {
    let properties = schemas
        .iter()
        .filter_map(|schema| schema.get("properties")?.as_object());
    let mut seen = HashSet::new();
    properties
        .flat_map(Map::keys)
        .map(String::as_str)
        .filter(|name| seen.insert(*name))
        .collect()
}

/// Gives the members of the objects in `value` the names of declared properties, if only such a
/// name can be meant: the object declares no such member, takes no others or lacks the one that is
/// meant, and no two members or properties have the same letters. `schemas` describe the value,
/// `root` has their definitions, and `place` is the value's JSON Pointer.
pub(crate) fn respell(
    value: &mut Value,
    schemas: &[&JsonObject],
    root: &JsonObject,
    place: &str,
    notes: &mut RepairNotes,
) {
    respell_at(value, schemas, root, place, notes, 0);
}

fn respell_at(
    value: &mut Value,
    schemas: &[&JsonObject],
    root: &JsonObject,
    place: &str,
    notes: &mut RepairNotes,
    depth: usize,
) {
    if depth > MAX_DEPTH {
        return;
    }
    let mut all = Vec::new();
    schemas
        .iter()
        .for_each(|schema| gather_schemas(schema, root, &mut all, 0));
    match value {
        Value::Object(members) => {
            rename_members(members, &all, place, notes);
            for (name, member) in members.iter_mut() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_member(schema, name))
                    .collect();
                respell_at(
                    member,
                    &inner,
                    root,
                    &format!("{place}/{name}"),
                    notes,
                    depth + 1,
                );
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter_mut().enumerate() {
                let inner: Vec<_> = all
                    .iter()
                    .flat_map(|schema| of_item(schema, index))
                    .collect();
                respell_at(
                    item,
                    &inner,
                    root,
                    &format!("{place}/{index}"),
                    notes,
                    depth + 1,
                );
            }
        }
        _ => {}
    }
}

fn rename_members(
    members: &mut JsonObject,
    schemas: &[&JsonObject],
    place: &str,
    notes: &mut RepairNotes,
) {
    let declared = declared_properties(schemas);
    if members.keys().all(|name| declared.contains(&name.as_str())) {
        return;
    }
    let is_closed = schemas
        .iter()
        .any(|schema| schema.get("additionalProperties") == Some(&Value::Bool(false)));
    if schemas
        .iter()
        .any(|schema| schema.contains_key("patternProperties"))
    {
        return;
    }
    let is_required = |name: &str| {
        let lists = schemas
            .iter()
            .filter_map(|schema| schema.get("required")?.as_array());
        lists.flatten().any(|required| required == name)
    };
    // The only property, and the only member, of these letters.
    let mut properties: HashMap<String, Option<&str>> = HashMap::new();
    for property in declared {
        let same = properties.entry(letters(property));
        same.and_modify(|only| *only = None)
            .or_insert(Some(property));
    }
    let mut given: HashMap<String, usize> = HashMap::new();
    for spelling in members.keys().map(|name| letters(name)) {
        if properties.contains_key(&spelling) {
            *given.entry(spelling).or_default() += 1;
        }
    }
    let mut renamed: Vec<(String, &str)> = Vec::new();
    for name in members.keys() {
        let spelling = letters(name);
        if let Some(property) = properties.get(&spelling).copied().flatten()
            && !spelling.is_empty()
            && name != property
            && (is_closed || is_required(property))
            && given.get(&spelling) == Some(&1)
        {
            renamed.push((name.clone(), property));
        }
    }
    for (name, property) in &renamed {
        notes.push(
            &format!("{place}/{name}"),
            &format!("was read as {}", quote_name(&format!("{place}/{property}"))),
        );
    }
    if !renamed.is_empty() {
        // Parts of a body are sent in the order of its members.
        let renamed: HashMap<String, &str> = renamed.into_iter().collect();
        let given = std::mem::take(members).into_iter();
        *members = given
            .map(|(name, member)| match renamed.get(&name) {
                Some(property) => ((*property).to_owned(), member),
                None => (name, member),
            })
            .collect();
    }
}

//! Cutting a schema that is too long: into one that accepts more, never less.

use foldhash::HashSet;
use serde_json::{Map, Value, json};

use super::instance::schemas_of_same_value;
use super::keywords::{has_keyword, keyword, keyword_mut, remove_keyword};
use super::notes::Note;
use super::walk::{copy_member, each, each_mut, holds_schemas, reference, references};
use crate::text;

/// Description of a schema that was left out.
const LEFT_OUT: &str =
    "(any JSON; its schema is left out because it is too long or repeats itself)";

/// References to definitions that are not there any more become schemas that accept anything.
pub(crate) fn drop_dangling(value: &mut Value, defs: &HashSet<String>) {
    let Value::Object(object) = value else { return };
    if reference(object).is_some_and(|name| !defs.contains(name)) {
        object.remove("$ref");
        *value = left_out(object);
        return;
    }
    remove_contravariant(object);
    each_mut(object, |inner| drop_dangling(inner, defs));
}

/// Keywords that get stricter if a schema inside of them, or beside them, gets looser.
const STRICTER: [&str; 7] = [
    "not",
    "if",
    "then",
    "else",
    "unevaluatedProperties",
    "unevaluatedItems",
    "maxContains",
];

/// Removes what would get stricter, see [`STRICTER`].
fn remove_contravariant(object: &mut Map<String, Value>) {
    if object.keys().any(|key| STRICTER.contains(&key.as_str())) {
        for key in STRICTER {
            object.remove(key);
        }
    }
}

/// Cuts a schema at a depth: what would go deeper accepts anything there.
pub(crate) fn prune(value: &mut Value, depth: usize) {
    let Value::Object(object) = value else { return };
    remove_contravariant(object);
    if depth == 0 && has_inner(object.iter()) {
        *value = left_out(object);
        return;
    }
    each_mut(object, |inner| prune(inner, depth.saturating_sub(1)));
}

/// Returns true if a schema with these members contains other schemas.
fn has_inner<'m>(mut members: impl Iterator<Item = (&'m String, &'m Value)>) -> bool {
    members.any(|(key, value)| holds_schemas(key, value))
}

/// A copy of a schema that is cut as [`prune`] does. What is deeper is not copied, which is most of
/// a large schema.
pub(crate) fn pruned_copy(value: &Value, depth: usize) -> Value {
    let Value::Object(object) = value else {
        return value.clone();
    };
    let mut members: Vec<(&String, &Value)> = object.iter().collect();
    for key in STRICTER {
        // In the order in which `Map::remove` leaves the others.
        if let Some(at) = members.iter().position(|(name, _)| *name == key) {
            members.swap_remove(at);
        }
    }
    if depth == 0 && has_inner(members.iter().copied()) {
        return left_out(object);
    }
    let copy = |inner: &Value| pruned_copy(inner, depth.saturating_sub(1));
    let copies = members
        .into_iter()
        .map(|(key, value)| (key.clone(), copy_member(key, value, copy)));
    Value::Object(copies.collect())
}

/// Removes keywords that refuse undescribed members or items from schemas that lost descriptions of
/// some.
pub(crate) fn open_lost(root: &mut Value) {
    let mut closed = Vec::new();
    if let Value::Object(object) = &*root {
        let mut next = 0;
        find_lost(object, object, &mut next, &mut closed);
    }
    let closed: HashSet<usize> = closed.into_iter().collect();
    open_closed_schemas(root, &closed, &mut 0);
}

/// The numbers, in the order of [`each`], of the schemas that have to be opened.
fn find_lost(
    schema: &Map<String, Value>,
    root: &Map<String, Value>,
    next: &mut usize,
    closed: &mut Vec<usize>,
) {
    let number = *next;
    *next += 1;
    let refuses =
        has_keyword(schema, "unevaluatedProperties") || has_keyword(schema, "unevaluatedItems");
    if refuses && loses(schema, root, &mut Vec::new()) {
        closed.push(number);
    }
    each(schema, |inner| {
        if let Value::Object(inner) = inner {
            find_lost(inner, root, next, closed);
        }
    });
}

/// Returns true if the schema, or one that describes the same value, lost something; if there are
/// too many to look at, returns true.
fn loses<'s>(
    schema: &'s Map<String, Value>,
    root: &'s Map<String, Value>,
    seen: &mut Vec<&'s Map<String, Value>>,
) -> bool {
    const MAX_CLOSED: usize = 256;
    if seen.iter().any(|known| std::ptr::eq(*known, schema)) {
        return false;
    }
    seen.push(schema);
    seen.len() > MAX_CLOSED
        || Note::Lost.is_on(schema)
        || schemas_of_same_value(schema, root).any(|other| loses(other, root, seen))
}

fn open_closed_schemas(value: &mut Value, closed: &HashSet<usize>, next: &mut usize) {
    let Value::Object(object) = value else { return };
    let number = *next;
    *next += 1;
    each_mut(object, |inner| open_closed_schemas(inner, closed, next));
    Note::Lost.take(object);
    if closed.contains(&number) {
        object.remove("unevaluatedProperties");
        object.remove("unevaluatedItems");
    }
}

/// The schema that accepts anything, in place of one that had to go; its description stays.
pub(crate) fn left_out(schema: &Map<String, Value>) -> Value {
    let said = keyword(schema, "description")
        .and_then(Value::as_str)
        .map(|text| format!("{} ", text::truncate(text, 200)))
        .unwrap_or_default();
    json!({ "description": format!("{said}{LEFT_OUT}") })
}

/// Reduces each schema inside of `value` if they are too long together. Level 0 removes examples,
/// titles and defaults, and cuts descriptions; 1 leaves a few words and the type; 2 leaves the
/// type.
pub(crate) fn thin(value: &mut Value, level: usize) {
    let Value::Object(object) = value else { return };
    remove_contravariant(object);
    each_mut(object, |inner| {
        if let Value::Object(inner) = inner {
            match level {
                0 => {
                    inner
                        .retain(|key, _| !matches!(key.as_str(), "examples" | "title" | "default"));
                }
                _ => inner.retain(|key, _| {
                    matches!(
                        key.as_str(),
                        "type" | "description" | "properties" | "items" | "$ref"
                    )
                }),
            }
            let max_bytes = [96, 24].get(level);
            match (max_bytes, keyword_mut(inner, "description")) {
                (Some(max_bytes), Some(Value::String(said))) => {
                    *said = text::truncate(said, *max_bytes);
                }
                _ => {
                    remove_keyword(inner, "description");
                }
            }
        }
        thin(inner, level);
    });
}

/// Definitions that nothing refers to any more.
pub(crate) fn drop_unused(root: &mut Value) {
    let has_definitions = |root: &Value| {
        root.as_object()
            .is_some_and(|root| has_keyword(root, "$defs"))
    };
    while has_definitions(root) {
        let mut used = Vec::new();
        references(root, &mut used);
        let used: HashSet<String> = used.into_iter().collect();
        let Some(Value::Object(defs)) = root.get_mut("$defs") else {
            return;
        };
        let before = defs.len();
        defs.retain(|name, _| used.contains(name));
        if defs.len() == before {
            break;
        }
    }
    if let Value::Object(root) = root
        && keyword(root, "$defs")
            .and_then(Value::as_object)
            .is_some_and(Map::is_empty)
    {
        root.remove("$defs");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_schema() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(true)),
            Just(json!({})),
            Just(json!({"type": "string", "description": "A word."})),
            Just(json!({"$ref": "#/$defs/A", "enum": [{"not": {}}]})),
        ];
        leaf.prop_recursive(5, 40, 4, |inner| {
            let key = proptest::sample::select(vec![
                "properties",
                "$defs",
                "items",
                "not",
                "if",
                "allOf",
                "prefixItems",
                "unevaluatedProperties",
                "maxContains",
                "description",
                "additionalProperties",
                "example",
                "x-own",
            ]);
            let held = prop_oneof![
                4 => inner.clone(),
                2 => proptest::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                4 => proptest::collection::vec(("[a-c]", inner), 0..3)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ];
            proptest::collection::vec((key, held), 0..6).prop_map(|members| {
                members
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>()
                    .into()
            })
        })
    }

    proptest! {
        #[test]
        fn a_copy_that_is_cut_is_the_whole_copy_cut(schema in any_schema(), depth in 0..4_usize) {
            let mut whole = schema.clone();
            prune(&mut whole, depth);
            // The order of members counts as well.
            prop_assert_eq!(pruned_copy(&schema, depth).to_string(), whole.to_string());
        }
    }
}

//! The arguments that an old version of a tool accepted, and a new one does not: those that are
//! gone, required now, or take fewer types or listed values. Other keywords are not compared.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::text::one_line;

/// Schemas that are nested more deeply are not compared.
const MAX_DEPTH: usize = 16;

/// Compares two versions of one schema.
struct SchemaComparison<'s> {
    roots: (&'s Value, &'s Value),
    /// Each pair is compared once, so that schemas that refer to themselves come to an end.
    compared: BTreeSet<(*const Value, *const Value)>,
    narrowed: Vec<String>,
}

/// Describes values that are no longer accepted.
pub(super) fn narrowed_arguments(old: &Value, new: &Value) -> Vec<String> {
    let mut comparison = SchemaComparison {
        roots: (old, new),
        compared: BTreeSet::new(),
        narrowed: Vec::new(),
    };
    comparison.compare(old, new, "", 0);
    comparison.narrowed
}

impl<'s> SchemaComparison<'s> {
    fn compare(&mut self, old: &'s Value, new: &'s Value, path: &str, depth: usize) {
        let (old, new) = (resolve(self.roots.0, old), resolve(self.roots.1, new));
        let is_new = self
            .compared
            .insert((std::ptr::from_ref(old), std::ptr::from_ref(new)));
        if !is_new || old == new || depth > MAX_DEPTH {
            return;
        }
        let is_accepted = |kind: &&str| {
            types_of(new).is_none_or(|after| {
                after.contains(kind) || (*kind == "integer" && after.contains(&"number"))
            })
        };
        if types_of(old).is_some_and(|before| !before.iter().all(is_accepted)) {
            self.narrowed
                .push(format!("`{}` takes fewer types", one_line(path)));
        }
        let is_listed = |after: &[Value]| {
            values_of(old).is_some_and(|before| before.iter().all(|value| after.contains(value)))
        };
        if values_of(new).is_some_and(|after| !is_listed(after)) {
            self.narrowed
                .push(format!("`{}` takes fewer values", one_line(path)));
        }
        for name in required_of(new).difference(&required_of(old)) {
            self.narrowed.push(format!(
                "`{}` is required now",
                one_line(&inside(path, name))
            ));
        }
        let members = |schema: &'s Value| schema.get("properties").and_then(Value::as_object);
        for (name, before) in members(old).into_iter().flatten() {
            let inner = inside(path, name);
            match members(new).and_then(|after| after.get(name)) {
                Some(after) => self.compare(before, after, &inner, depth + 1),
                // Arguments that the tool does not name are refused; other objects without
                // properties take any.
                None if path.is_empty() || members(new).is_some() => self
                    .narrowed
                    .push(format!("`{}` is gone", one_line(&inner))),
                None => {}
            }
        }
        if let (Some(before), Some(after)) = (old.get("items"), new.get("items")) {
            self.compare(before, after, &inside(path, "[]"), depth + 1);
        }
        let branches = |schema: &'s Value| schema.get("allOf").and_then(Value::as_array);
        if let (Some(before), Some(after)) = (branches(old), branches(new)) {
            for (before, after) in before.iter().zip(after) {
                self.compare(before, after, path, depth + 1);
            }
        }
    }
}

/// The path of a member, as it is shown.
fn inside(path: &str, name: &str) -> String {
    if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}/{name}")
    }
}

fn resolve<'s>(root: &'s Value, schema: &'s Value) -> &'s Value {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
    target.unwrap_or(schema)
}

/// The properties that a schema requires.
fn required_of(schema: &Value) -> BTreeSet<&str> {
    let names = schema
        .get("required")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    names.filter_map(Value::as_str).collect()
}

/// The types that a schema names; `None` if it takes any.
fn types_of(schema: &Value) -> Option<BTreeSet<&str>> {
    match schema.get("type")? {
        Value::Array(kinds) => Some(kinds.iter().filter_map(Value::as_str).collect()),
        kind => Some(BTreeSet::from([kind.as_str()?])),
    }
}

/// The values that a schema lists; `None` if it takes any.
fn values_of(schema: &Value) -> Option<&[Value]> {
    match (schema.get("enum"), schema.get("const")) {
        (Some(Value::Array(values)), _) => Some(values),
        (_, Some(value)) => Some(std::slice::from_ref(value)),
        _ => None,
    }
}

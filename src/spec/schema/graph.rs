//! References between translated schemas: which there are, and how they are replaced by what they name.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Map, Value, json};

use super::Component;

/// The `$defs` names a schema refers to, in order, with repetition.
pub(super) fn references(value: &Value, found: &mut Vec<String>) {
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
pub(super) fn inline(value: &mut Value, plan: &HashSet<String>, components: &HashMap<String, Rc<Component>>) {
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

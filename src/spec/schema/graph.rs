//! Replacement of references in translated schemas by their targets.

use serde_json::{Map, Value, json};

use super::cut::left_out;
use super::size::json_size;
use super::walk::{each_mut, reference};
use crate::json::JsonObject;

/// Replaces every reference by its definition, for clients that do not support `$ref`. A definition
/// inside of itself is cut the second time, and all are once `room` is used up.
pub(crate) fn expand(
    value: &mut Value,
    defs: &JsonObject,
    open: &mut Vec<String>,
    room: &mut usize,
) {
    let Value::Object(object) = value else { return };
    if let Some(name) = reference(object).map(str::to_owned) {
        object.remove("$ref");
        let siblings = std::mem::take(object);
        let again = open.iter().filter(|other| **other == name).count();
        let definition = defs.get(&name).filter(|_| again < 2);
        let size = definition.map_or(0, json_size);
        match definition {
            Some(definition) if size <= *room => {
                *room -= size;
                let mut definition = definition.clone();
                open.push(name);
                expand(&mut definition, defs, open, room);
                open.pop();
                *value = merge_siblings(definition, siblings);
            }
            _ => *value = left_out(&siblings),
        }
        return;
    }
    each_mut(object, |inner| expand(inner, defs, open, room));
}

/// Merges a component with the siblings of a reference to it: annotations replace the component's,
/// assertions apply in addition.
pub(crate) fn merge_siblings(component: Value, siblings: JsonObject) -> Value {
    let Value::Object(mut object) = component else {
        return component;
    };
    if siblings.is_empty() {
        return Value::Object(object);
    }
    let (annotations, assertions): (Map<_, _>, Map<_, _>) =
        siblings.into_iter().partition(|(key, _)| {
            matches!(
                key.as_str(),
                "title" | "description" | "default" | "deprecated" | "examples"
            )
        });
    if assertions.is_empty() {
        object.extend(annotations);
        return Value::Object(object);
    }
    let mut outer = annotations;
    outer.insert("allOf".into(), json!([object, assertions]));
    Value::Object(outer)
}

//! Bodies that are merge patches (RFC 7396): null for a member removes it, whatever its type.

use foldhash::HashSet;
use serde_json::{Map, Value, json};

use crate::annotate::files::body_mut;
use crate::spec::RequestBody;
use crate::spec::schema::reference;

/// Lets every member of a body that is sent as a merge patch be null, at every level. Lists are
/// replaced as a whole, so that nothing changes in their items.
pub(crate) fn accept_nulls(root: &mut Map<String, Value>, body: &RequestBody) {
    let mut referred = Vec::new();
    for (index, media_type) in body.media_types().enumerate() {
        if media_type.name.contains("merge-patch") {
            let branch = (!body.alternatives.is_empty()).then_some(index);
            if let Some(schema) = body_mut(root, branch) {
                accept_in(schema, &mut referred);
            }
        }
    }
    let mut seen = HashSet::default();
    while let Some(name) = referred.pop() {
        let definition = root
            .get_mut("$defs")
            .and_then(|definitions| definitions.get_mut(&name));
        if let Some(Value::Object(definition)) = definition.filter(|_| seen.insert(name)) {
            accept_in(definition, &mut referred);
        }
    }
}

/// Accepts null for the members that this schema describes. Definitions that describe the same
/// value are added to `referred`.
fn accept_in(schema: &mut Map<String, Value>, referred: &mut Vec<String>) {
    referred.extend(reference(schema).map(str::to_owned));
    for (key, value) in schema.iter_mut() {
        match (key.as_str(), value) {
            ("properties" | "patternProperties", Value::Object(members)) => {
                members
                    .values_mut()
                    .for_each(|member| accept_null(member, referred));
            }
            ("additionalProperties", member) => accept_null(member, referred),
            ("allOf" | "anyOf" | "oneOf", Value::Array(branches)) => {
                for branch in branches.iter_mut().filter_map(Value::as_object_mut) {
                    accept_in(branch, referred);
                }
            }
            _ => {}
        }
    }
}

/// Lets the value of a member be null.
fn accept_null(member: &mut Value, referred: &mut Vec<String>) {
    let Value::Object(schema) = member else {
        return;
    };
    accept_in(schema, referred);
    if takes_null(schema) {
        return;
    }
    let said = schema.get("description").cloned();
    let mut either = Map::from_iter([(
        "anyOf".to_owned(),
        json!([std::mem::take(schema), { "type": "null" }]),
    )]);
    either.extend(said.map(|said| ("description".to_owned(), said)));
    *schema = either;
}

/// Returns true if the schema itself already takes null.
fn takes_null(schema: &Map<String, Value>) -> bool {
    let is_null = |kind: &Value| kind == "null";
    let is_limited = ["$ref", "enum", "const", "allOf", "oneOf", "not"]
        .iter()
        .any(|key| schema.contains_key(*key));
    let type_takes_it = match schema.get("type") {
        None => true,
        Some(Value::Array(kinds)) => kinds.iter().any(is_null),
        Some(kind) => is_null(kind),
    };
    let branches = schema.get("anyOf").and_then(Value::as_array);
    let branches_take_it = branches.is_none_or(|branches| {
        branches
            .iter()
            .any(|branch| branch.get("type").is_some_and(is_null))
    });
    !is_limited && type_takes_it && branches_take_it
}

//! Properties that belong to one direction only: `readOnly` to replies, `writeOnly` to requests; and which names an object
//! schema still asks for without them.

use foldhash::HashSet;

use serde_json::{Map, Value};

use super::notes::Note;
use crate::spec::document::Document;
use crate::spec::node::Node;
use crate::spec::span::Span;

/// Which way a schema is read: what only the other way has is left out of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Without `readOnly` properties, under names that model APIs accept.
    Input,
    /// Without `writeOnly` properties, under their own names.
    Output,
}

impl Direction {
    /// The mark of what belongs to the other direction.
    #[must_use]
    pub(crate) fn other_mark(self) -> &'static str {
        match self {
            Self::Input => "readOnly",
            Self::Output => "writeOnly",
        }
    }
}

/// Whether a property belongs to the other direction: `readOnly` to replies, `writeOnly` to requests.
pub(crate) fn is_marked(document: &Document, schema: &Value, from: Span, mark: &str) -> bool {
    let Some(object) = schema.as_object() else { return false };
    if let Some(marked) = object.get(mark) {
        return marked == &Value::Bool(true);
    }
    // 3.0 cannot write the mark beside `$ref`, so authors put it into the component.
    object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| document.target_from(reference, from).ok())
        .and_then(Node::object)
        .is_some_and(|target| target.boolean(mark) == Some(true))
}

/// The names of properties anywhere in a composition that belong to the other direction: another branch may require them.
/// Each component is looked into once, and only so many.
pub(crate) fn read_only_names(
    document: &Document,
    object: &Map<String, Value>,
    from: Span,
    mark: &str,
    seen: &mut HashSet<Span>,
) -> HashSet<String> {
    const MAX_COMPONENTS: usize = 64;
    let mut names = HashSet::default();
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let marked = properties.iter().filter(|(_, schema)| is_marked(document, schema, from, mark));
        names.extend(marked.map(|(name, _)| name.clone()));
    }
    let target = object
        .get("$ref")
        .and_then(Value::as_str)
        .and_then(|reference| document.target_from(reference, from).ok());
    if let Some(node) = target
        && seen.len() < MAX_COMPONENTS
        && seen.insert(node.span())
        && let Some(Value::Object(target)) = node.value()
    {
        names.extend(read_only_names(document, &target, node.span(), mark, seen));
    }
    for branch in object
        .get("allOf")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_object)
    {
        names.extend(read_only_names(document, branch, from, mark, seen));
    }
    names
}

/// What must be given: nothing that only a reply has.
pub(crate) fn required_names(out: &mut Map<String, Value>, read_only: &HashSet<String>) {
    let hidden = Note::HiddenNames.take(out);
    let hidden: Vec<&str> = hidden
        .as_ref()
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let can_be_given = |name: &Value| {
        name.as_str()
            .is_some_and(|name| !read_only.contains(name) && !hidden.contains(&name))
    };
    if let Some(Value::Object(dependent)) = out.get_mut("dependentRequired") {
        let lists = dependent.values_mut().filter_map(Value::as_array_mut);
        lists.for_each(|names| names.retain(can_be_given));
    }
    let Some(Value::Array(required)) = out.get_mut("required") else {
        return;
    };
    required.retain(can_be_given);
    if required.is_empty() {
        out.remove("required");
    }
}

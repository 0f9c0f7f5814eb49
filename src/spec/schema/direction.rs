//! Properties that belong to one direction only: `readOnly` to replies, `writeOnly` to requests;
//! and which names an object schema still asks for without them.

use foldhash::{HashMap, HashSet};
use serde_json::Value;

use super::keywords::{keyword, keyword_mut};
use crate::json::JsonObject;
use crate::spec::document::Document;
use crate::spec::node::{Node, Span};

/// Direction for which a schema is read; properties of the other direction only are left out.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Requests: without `readOnly` properties, under names that model APIs accept.
    Input,
    /// Replies: without `writeOnly` properties, under their own names.
    Output,
}

/// Marks of the schemas of a document that belong to the other direction.
pub(crate) struct Marks<'d> {
    document: &'d Document,
    mark: &'static str,
    /// True if a component has the mark, by its span: many properties refer to the same component.
    components: HashMap<Span, bool>,
}

impl<'d> Marks<'d> {
    pub(crate) fn new(document: &'d Document, direction: Direction) -> Self {
        Self {
            document,
            mark: match direction {
                Direction::Input => "readOnly",
                Direction::Output => "writeOnly",
            },
            components: HashMap::default(),
        }
    }

    /// Returns true if a property belongs to the other direction: `readOnly` to replies,
    /// `writeOnly` to requests.
    pub(crate) fn is_marked(&mut self, schema: &Value, from: Span) -> bool {
        let Some(object) = schema.as_object() else {
            return false;
        };
        match keyword(object, self.mark) {
            Some(marked) => marked == &Value::Bool(true),
            // 3.0 cannot write the mark beside `$ref`, so authors put it into the component.
            None => self
                .target(object, from)
                .is_some_and(|target| self.is_component_marked(target)),
        }
    }

    fn target(&self, schema: &JsonObject, from: Span) -> Option<Node<'d>> {
        let reference = keyword(schema, "$ref")?.as_str()?;
        self.document.target(reference, from).ok()
    }

    fn is_component_marked(&mut self, component: Node<'_>) -> bool {
        *self.components.entry(component.span()).or_insert_with(|| {
            // Searching the text is cheaper than opening the object.
            component.text().contains(self.mark)
                && component.object().unwrap_or_default().is_true(self.mark)
        })
    }
}

/// The names of properties anywhere in a composition that belong to the other direction: another
/// branch may require them. Each component is looked into once, and only so many.
pub(crate) fn hidden_names(
    marks: &mut Marks<'_>,
    object: &JsonObject,
    from: Span,
    seen: &mut HashSet<Span>,
) -> HashSet<String> {
    const MAX_COMPONENTS: usize = 64;
    let mut names = HashSet::default();
    let properties = keyword(object, "properties").and_then(Value::as_object);
    let properties = properties.into_iter().flatten();
    let marked = properties.filter(|(_, schema)| marks.is_marked(schema, from));
    names.extend(marked.map(|(name, _)| name.clone()));
    if let Some(node) = marks.target(object, from)
        && seen.len() < MAX_COMPONENTS
        && seen.insert(node.span())
        && let Some(Value::Object(target)) = node.value()
    {
        names.extend(hidden_names(marks, &target, node.span(), seen));
    }
    let branches = keyword(object, "allOf").and_then(Value::as_array);
    for branch in branches.into_iter().flatten().filter_map(Value::as_object) {
        names.extend(hidden_names(marks, branch, from, seen));
    }
    names
}

/// Removes from `required` and `dependentRequired` the properties that belong to the other
/// direction.
pub(crate) fn drop_hidden_names(out: &mut JsonObject, hidden: &HashSet<String>) {
    let can_be_given = |name: &Value| name.as_str().is_some_and(|name| !hidden.contains(name));
    if let Some(Value::Object(dependent)) = keyword_mut(out, "dependentRequired") {
        let lists = dependent.values_mut().filter_map(Value::as_array_mut);
        lists.for_each(|names| names.retain(can_be_given));
    }
    let Some(Value::Array(required)) = keyword_mut(out, "required") else {
        return;
    };
    required.retain(can_be_given);
    if required.is_empty() {
        out.remove("required");
    }
}

//! The references of translated schemas: which components are inlined, and which become `$defs`.

use std::cell::{OnceCell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use serde_json::{Map, Value, json};

use super::cut::{json_size, left_out, pruned_copy};
use super::keywords::{each_mut, reference, references};
use crate::json::JsonObject;
use crate::text::is_word_of;

/// A schema whose references, all inlined, take no more than this many bytes is inlined: the form
/// every client reads.
const INLINE_TOOL: usize = 16 << 10;
/// Size in bytes up to which a component is inlined above that limit.
const INLINE_COMPONENT: usize = 400;
/// Components that nest references deeper than this stay `$defs`.
const INLINE_DEPTH: usize = 24;
/// Number of kept definitions of one component, which differ in the inlined components that are
/// referred to once.
const MAX_KEPT_DEFINITIONS: usize = 4;
/// A definition that does not fit is cut at one of these depths, the first at which it does.
const DEFINITION_DEPTHS: [usize; 3] = [3, 2, 1];

/// A translated component; references in it are `#/$defs/NAME`.
pub(crate) struct Component {
    schema: Value,
    /// Size in bytes of compact JSON.
    size: usize,
    /// The `$defs` names that it refers to, with repetition.
    pub(crate) references: Vec<String>,
    /// The component with all references replaced; empty if it refers back to itself, or to a
    /// component that does.
    expanded: OnceCell<Expansion>,
    /// The component as a definition, for each of the [`InlinePlan`]s that many tools share.
    definitions: [OnceCell<Rc<Definition>>; 2],
    /// Others, by the large components that are inlined into them.
    other_definitions: RefCell<Vec<NamedDefinition>>,
}

/// A definition, and the names of the large components that are inlined into it.
type NamedDefinition = (Vec<String>, Rc<Definition>);

impl Component {
    pub(crate) fn new(schema: Value) -> Self {
        Self {
            size: json_size(&schema),
            references: references(&schema),
            schema,
            expanded: OnceCell::new(),
            definitions: Default::default(),
            other_definitions: RefCell::default(),
        }
    }
}

/// A component with all references replaced.
struct Expansion {
    /// Approximate size in bytes.
    size: usize,
    /// Depth to which references nest in it.
    depth: usize,
}

/// Components by their `$defs` names.
pub(crate) type Components = HashMap<String, Component>;

/// The components that are inlined into the schema of one tool.
pub(crate) struct InlinePlan<'c> {
    components: &'c Components,
    /// True if each is inlined that can be, not only the small ones.
    inlines_all: bool,
    /// Those that are inlined as well, because they are referred to only once.
    once: HashSet<&'c str>,
}

/// A component as a definition: with what the plan inlines into it.
pub(crate) struct Definition {
    schema: Value,
    /// Size in bytes of compact JSON.
    size: usize,
    /// The `$defs` names that it still refers to.
    references: Vec<String>,
    /// The sizes at [`DEFINITION_DEPTHS`].
    cut_sizes: [OnceCell<usize>; 3],
}

impl<'c> InlinePlan<'c> {
    /// Makes the plan for a schema `root` that refers to `roots` and may take `room` bytes. Uses
    /// the sizes of components, which are computed from the leaves up, so cycles are never
    /// followed.
    pub(crate) fn new(
        components: &'c Components,
        root: &Value,
        roots: &[String],
        room: usize,
    ) -> Self {
        let sizes = roots
            .iter()
            .filter_map(|name| Some(components.get(name)?.expanded.get()?.size));
        let total = sizes.fold(json_size(root), usize::saturating_add);
        let inlines_all = total <= INLINE_TOOL;
        // What is near must not be crowded out by what is inside of something.
        let once = if inlines_all || total > room {
            HashSet::default()
        } else {
            used_once(components, roots)
        };
        Self {
            components,
            inlines_all,
            once,
        }
    }

    /// The component of that name, if it is inlined.
    pub(crate) fn inlined(&self, name: &str) -> Option<&'c Component> {
        let component = self.components.get(name)?;
        let Expansion { size, depth } = *component.expanded.get()?;
        let is_chosen = self.inlines_all || size <= INLINE_COMPONENT || self.once.contains(name);
        (is_chosen && depth <= INLINE_DEPTH).then_some(component)
    }

    fn definition(&self, name: &str) -> Rc<Definition> {
        let Some(component) = self.components.get(name) else {
            return Rc::new(Definition::new(json!({}), self));
        };
        let new = || Rc::new(Definition::new(component.schema.clone(), self));
        let [all, small] = &component.definitions;
        if self.inlines_all {
            return Rc::clone(all.get_or_init(new));
        }
        let mut large = Vec::new();
        if !self.once.is_empty() {
            self.add_large_inlined(component, &mut large);
        }
        if large.is_empty() {
            return Rc::clone(small.get_or_init(new));
        }
        let mut kept = component.other_definitions.borrow_mut();
        if let Some((_, definition)) = kept.iter().find(|(names, _)| *names == large) {
            return Rc::clone(definition);
        }
        let definition = new();
        if kept.len() < MAX_KEPT_DEFINITIONS {
            let names = large.into_iter().map(str::to_owned).collect();
            kept.push((names, Rc::clone(&definition)));
        }
        definition
    }

    /// Adds what is inlined into a component although it is not small, in the order of its
    /// references: two definitions of it with the same are equal, because everything inside of a
    /// small component is small.
    fn add_large_inlined(&self, component: &'c Component, large: &mut Vec<&'c str>) {
        for name in &component.references {
            let Some(inner) = self.inlined(name) else {
                continue;
            };
            if inner
                .expanded
                .get()
                .is_some_and(|expanded| expanded.size > INLINE_COMPONENT)
            {
                large.push(name);
                self.add_large_inlined(inner, large);
            }
        }
    }

    /// Returns the components that `root` refers to and that were not inlined, each once, in the
    /// order of first use, the nearest first: as many as fit with `root` into `room` bytes; and true
    /// if one did not fit.
    pub(crate) fn definitions(&self, root: &Value, room: usize) -> (JsonObject, bool) {
        let mut defs = JsonObject::new();
        let mut has_left_out = false;
        let found = references(root);
        if found.is_empty() {
            return (defs, has_left_out);
        }
        let mut used = json_size(root);
        let mut queue = VecDeque::from(found);
        while let Some(name) = queue.pop_front() {
            if defs.contains_key(&name) {
                continue;
            }
            let definition = self.definition(&name);
            let before = used + name.len();
            let (schema, size) = if before + definition.size > room {
                has_left_out = true;
                // The upper levels of what does not fit are worth more than the deeper ones of what
                // comes after it.
                let upper = definition.upper(|size| before + 2 * size <= room);
                let Some((schema, size)) = upper else {
                    continue;
                };
                queue.extend(references(&schema));
                (schema, size)
            } else {
                queue.extend(definition.references.iter().cloned());
                (definition.schema.clone(), definition.size)
            };
            used = before + size;
            defs.insert(name, schema);
        }
        (defs, has_left_out)
    }
}

/// Replaces references to the planned components by the components themselves.
pub(crate) fn inline(value: &mut Value, plan: &InlinePlan<'_>) {
    let Value::Object(object) = value else { return };
    let target = reference(object).and_then(|name| plan.inlined(name));
    if let Some(component) = target {
        object.remove("$ref");
        let siblings = std::mem::take(object);
        *value = merge_siblings(component.schema.clone(), siblings);
        inline(value, plan);
        return;
    }
    each_mut(object, |inner| inline(inner, plan));
}

impl Definition {
    fn new(mut schema: Value, plan: &InlinePlan<'_>) -> Self {
        inline(&mut schema, plan);
        Self {
            size: json_size(&schema),
            references: references(&schema),
            schema,
            cut_sizes: Default::default(),
        }
    }

    /// Returns as much of the definition as fits: its upper levels, and their size in bytes.
    fn upper(&self, fits: impl Fn(usize) -> bool) -> Option<(Value, usize)> {
        let cut = |depth: usize| pruned_copy(&self.schema, depth);
        let sizes = DEFINITION_DEPTHS.into_iter().zip(&self.cut_sizes);
        sizes
            .map(|(depth, size)| (depth, *size.get_or_init(|| json_size(&cut(depth)))))
            .find(|(_, size)| fits(*size))
            .map(|(depth, size)| (cut(depth), size))
    }
}

/// The components that are referred to once among all that the `roots` lead to.
fn used_once<'c>(components: &'c Components, roots: &[String]) -> HashSet<&'c str> {
    let mut uses: HashMap<&'c str, usize> = HashMap::default();
    let mut queue: Vec<&String> = roots.iter().collect();
    while let Some(name) = queue.pop() {
        let Some((name, component)) = components.get_key_value(name) else {
            continue;
        };
        let uses = uses.entry(name).or_default();
        *uses += 1;
        if *uses == 1 {
            queue.extend(&component.references);
        }
    }
    uses.into_iter()
        .filter(|(_, uses)| *uses == 1)
        .map(|(name, _)| name)
        .collect()
}

/// Measures the `new` components with all references replaced, from the leaves up. Those that refer
/// to a cycle have no such size.
pub(crate) fn measure_expansions(components: &Components, new: &[String]) {
    let mut waiting: HashMap<&str, usize> = HashMap::default();
    let mut users: HashMap<&str, Vec<&str>> = HashMap::default();
    let mut ready: Vec<&str> = Vec::new();
    let expanded = |name: &String| components.get(name)?.expanded.get();
    for name in new {
        let mut open = 0;
        let references = components.get(name).map(|component| &component.references);
        for reference in references.into_iter().flatten() {
            if expanded(reference).is_none() {
                users.entry(reference).or_default().push(name);
                open += 1;
            }
        }
        waiting.insert(name, open);
        if open == 0 {
            ready.push(name);
        }
    }
    while let Some(name) = ready.pop() {
        let Some(component) = components.get(name) else {
            continue;
        };
        let mut expansion = Expansion {
            size: component.size,
            depth: 0,
        };
        for inner in component.references.iter().filter_map(expanded) {
            expansion.size = expansion.size.saturating_add(inner.size);
            expansion.depth = expansion.depth.max(inner.depth + 1);
        }
        // A component is ready once.
        let _ = component.expanded.set(expansion);
        for user in users.get(name).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(user) {
                *count -= 1;
                if *count == 0 {
                    ready.push(user);
                }
            }
        }
    }
}

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
fn merge_siblings(component: Value, siblings: JsonObject) -> Value {
    let Value::Object(mut object) = component else {
        return component;
    };

    let is_annotation = |(key, _): &(String, Value)| {
        is_word_of("title description default deprecated examples", key)
    };
    let (mut annotations, assertions): (Map<_, _>, Map<_, _>) =
        siblings.into_iter().partition(is_annotation);
    if assertions.is_empty() {
        object.extend(annotations);
        return Value::Object(object);
    }
    annotations.insert("allOf".into(), json!([object, assertions]));
    Value::Object(annotations)
}

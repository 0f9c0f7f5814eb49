//! Which components are inlined and which become `$defs`.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use foldhash::{HashMap, HashSet};
use serde_json::{Map, Value, json};

use super::Schemas;
use super::cut::prune;
use super::graph::{Component, inline};
use super::size::json_size;
use super::walk::references;

/// A schema whose references, all inlined, take no more than this many bytes is inlined: the form every client reads.
const INLINE_TOOL: usize = 16 << 10;
/// Above that, a component is still inlined where it takes no more than this.
const INLINE_COMPONENT: usize = 400;
/// Components that nest references deeper than this stay `$defs`.
const INLINE_DEPTH: usize = 24;

impl Schemas<'_> {
    /// What `root` refers to and was not inlined, each once, in the order of first use: the nearest first. Says whether
    /// something did not fit.
    pub(crate) fn definitions(&self, root: &Value, plan: &HashSet<String>, budget: usize) -> (Map<String, Value>, bool) {
        let mut defs = Map::new();
        let mut cut = false;
        let mut used = json_size(root);
        let mut queue = VecDeque::new();
        let mut found = Vec::new();
        references(root, &mut found);
        queue.extend(found);
        while let Some(name) = queue.pop_front() {
            if defs.contains_key(&name) {
                continue;
            }
            let mut definition = self
                .components
                .get(&name)
                .map_or_else(|| json!({}), |component| component.schema.clone());
            inline(&mut definition, plan, &self.components);
            let room = budget.saturating_sub(used + name.len());
            if json_size(&definition) > room {
                cut = true;
                // The upper levels of what does not fit are worth more than the deeper ones of what comes after it.
                let Some(upper) = [3, 2, 1].into_iter().find_map(|depth| {
                    let mut upper = definition.clone();
                    prune(&mut upper, depth);
                    (json_size(&upper) <= room / 2).then_some(upper)
                }) else {
                    continue;
                };
                definition = upper;
            }
            used += json_size(&definition) + name.len();
            let mut inner = Vec::new();
            references(&definition, &mut inner);
            queue.extend(inner);
            defs.insert(name, definition);
        }
        (defs, cut)
    }

    /// Which components to inline. Works from the leaves up, so that a cycle, however long, is simply never reached,
    /// and neither depth nor breadth of the references costs stack or more than linear time.
    pub(crate) fn plan(&mut self, root: &Value, roots: &[String], budget: usize, warnings: &mut Vec<String>) -> HashSet<String> {
        let mut graph: BTreeMap<String, Rc<Component>> = BTreeMap::new();
        let mut queue: Vec<String> = roots.to_vec();
        while let Some(name) = queue.pop() {
            if !graph.contains_key(&name)
                && let Some(component) = self.component(&name, warnings)
            {
                queue.extend(component.references.iter().cloned());
                graph.insert(name, component);
            }
        }
        let mut waiting: HashMap<&str, usize> = HashMap::default();
        let mut users: HashMap<&str, Vec<&str>> = HashMap::default();
        let mut uses: HashMap<&str, usize> = HashMap::default();
        for name in roots {
            *uses.entry(name).or_default() += 1;
        }
        for (name, component) in &graph {
            waiting.insert(name, component.references.len());
            for reference in &component.references {
                users.entry(reference).or_default().push(name);
                *uses.entry(reference).or_default() += 1;
            }
        }
        let mut expanded: HashMap<&str, (usize, usize)> = HashMap::default();
        let mut ready: Vec<&str> = waiting.iter().filter(|(_, count)| **count == 0).map(|(name, _)| *name).collect();
        while let Some(name) = ready.pop() {
            let Some(component) = graph.get(name) else { continue };
            let mut size = component.size;
            let mut depth = 0;
            for reference in &component.references {
                if let Some((inner, below)) = expanded.get(reference.as_str()) {
                    size = size.saturating_add(*inner);
                    depth = depth.max(below + 1);
                }
            }
            expanded.insert(name, (size, depth));
            for user in users.get(name).into_iter().flatten() {
                if let Some(count) = waiting.get_mut(user) {
                    *count -= 1;
                    if *count == 0 {
                        ready.push(user);
                    }
                }
            }
        }
        let size_of = |name: &String| expanded.get(name.as_str()).map_or(0, |(size, _)| *size);
        let total = roots.iter().map(size_of).fold(json_size(root), usize::saturating_add);
        graph
            .keys()
            .filter(|name| {
                expanded.get(name.as_str()).is_some_and(|(size, depth)| {
                    // Where not everything fits, what is near must not be crowded out by what is inside of something.
                    let once = total <= budget && uses.get(name.as_str()) == Some(&1);
                    let small = total <= INLINE_TOOL || *size <= INLINE_COMPONENT || once;
                    small && *depth <= INLINE_DEPTH
                })
            })
            .cloned()
            .collect()
    }

    /// The component of that `$defs` name, translated on first use.
    fn component(&mut self, name: &str, warnings: &mut Vec<String>) -> Option<Rc<Component>> {
        if let Some(component) = self.components.get(name) {
            return Some(Rc::clone(component));
        }
        let span = self.translator.component_span(name)?;
        let schema = self.translator.translate(span, warnings);
        let mut found = Vec::new();
        references(&schema, &mut found);
        let component = Rc::new(Component {
            size: json_size(&schema),
            references: found,
            schema,
        });
        self.components.insert(name.to_owned(), Rc::clone(&component));
        Some(component)
    }
}

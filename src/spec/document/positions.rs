//! The positions of the values of a YAML text, which the parser of documents does not report.
//!
//! This uses a second parser, which reports the position of every value in one pass. It is also
//! stricter: after its first error, values have no positions.

use std::borrow::Cow;

use foldhash::HashMap;
use saphyr_parser::{Event, Parser};

use crate::spec::node::Node;

/// Places in a JSON text, as a tree of the steps that lead to them.
#[derive(Default)]
pub(crate) struct Wanted {
    /// The numbers of the places at this node.
    here: Vec<usize>,
    /// Members by name, and by the index among the members of that name, from 0. The name of an
    /// item is its index.
    members: HashMap<String, Vec<(usize, Wanted)>>,
}

/// Line and column of a value, both from 1.
pub(crate) type Position = (usize, usize);

impl Wanted {
    /// The tree of places in `node`, each an offset of its file's text at which a value starts, and
    /// a number; sorted by offset. What is not in a value, but beside it, belongs to the value around
    /// both.
    pub(crate) fn at(node: Node<'_>, places: &[(usize, usize)]) -> Self {
        let mut wanted = Self::default();
        let before = |offset: usize| places.partition_point(|(place, _)| *place < offset);
        let numbers = |from: usize, to: usize| {
            let places = places.get(from..to).unwrap_or_default();
            places.iter().map(|(_, number)| *number)
        };
        let mut passed = before(node.span().range().start + 1);
        wanted.here.extend(numbers(0, passed));
        if passed == places.len() {
            return wanted;
        }
        let members = node.members().into_iter().flatten();
        let items = node.items().into_iter().flatten().enumerate();
        let items = items.map(|(index, item)| (index.to_string().into(), item));
        let mut seen: HashMap<Cow<'_, str>, usize> = HashMap::default();
        for (name, inner) in members.chain(items) {
            let span = inner.span().range();
            let (start, end) = (before(span.start), before(span.end));
            wanted.here.extend(numbers(passed, start));
            passed = end;
            let occurrence = seen.entry(name.clone()).or_default();
            if let Some(inside @ [_, ..]) = places.get(start..end) {
                let below = Self::at(inner, inside);
                let named = wanted.members.entry(name.into_owned()).or_default();
                named.push((*occurrence, below));
            }
            *occurrence += 1;
        }
        wanted.here.extend(numbers(passed, places.len()));
        wanted
    }

    /// Sets the position of all places from here on.
    fn fill(&self, position: Position, set: &mut dyn FnMut(usize, Position)) {
        self.here.iter().for_each(|number| set(*number, position));
        for (_, inner) in self.members.values().flatten() {
            inner.fill(position, set);
        }
    }
}

/// A collection that is being read.
#[derive(Default)]
struct OpenNode<'w> {
    wanted: Option<&'w Wanted>,
    /// Index of the next item; `None` in a mapping.
    next: Option<usize>,
    /// The name of the member whose value is read next.
    name: Option<String>,
    seen: HashMap<String, usize>,
}

impl<'w> OpenNode<'w> {
    /// Records the start of a value; returns the places that are wanted in it.
    fn value(&mut self, scalar: Option<&str>) -> Option<&'w Wanted> {
        if let Some(next) = &mut self.next {
            self.name = self.wanted.map(|_| next.to_string());
            *next += 1;
        } else if self.name.is_none() {
            // A key; one that is not text is not looked up.
            self.name = Some(scalar.unwrap_or_default().to_owned());
            return None;
        }
        let name = self.name.take()?;
        let wanted = self.wanted?.members.get(&name)?;
        let seen = self.seen.entry(name).or_default();
        *seen += 1;
        let mut wanted = wanted.iter();
        wanted.find_map(|(number, inner)| (number + 1 == *seen).then_some(inner))
    }
}

/// Gives `set` the positions of the places, first those of the values around them.
pub(crate) fn positions(yaml: &str, wanted: &Wanted, set: &mut dyn FnMut(usize, Position)) {
    let mut open: Vec<OpenNode<'_>> = Vec::new();
    for (event, span) in Parser::new_from_str(yaml).map_while(Result::ok) {
        let scalar = match &event {
            Event::Scalar(text, ..) => Some(text.as_ref()),
            Event::Alias(_) | Event::MappingStart(..) | Event::SequenceStart(..) => None,
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let inner = match open.last_mut() {
            Some(around) => around.value(scalar),
            None => Some(wanted),
        };
        if let Some(inner) = inner {
            let position = (span.start.line(), span.start.col() + 1);
            inner.fill(position, set);
        }
        if matches!(event, Event::MappingStart(..) | Event::SequenceStart(..)) {
            open.push(OpenNode {
                wanted: inner,
                next: matches!(event, Event::SequenceStart(..)).then_some(0),
                ..OpenNode::default()
            });
        }
    }
}

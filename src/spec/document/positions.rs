//! The positions of the values of a YAML text, which the parser of documents does not report.
//!
//! This uses a second parser, which reports the position of every value in one pass. It is also
//! stricter: after its first error, values have no positions.

use foldhash::HashMap;
use saphyr_parser::{Event, Parser};

use crate::spec::node::Node;

/// Places in a JSON text, as a tree of the steps that lead to them.
#[derive(Default)]
pub(crate) struct Wanted {
    /// The numbers of the places at this node.
    here: Vec<usize>,
    /// Members by name, and by the index among the members of that name, from 0.
    members: HashMap<String, Vec<(usize, Wanted)>>,
    items: HashMap<usize, Wanted>,
}

/// Line and column of a value, both from 1.
pub(crate) type Position = (usize, usize);

impl Wanted {
    /// The tree of places in `node`, each an offset of its file's text at which a value starts, and
    /// a number; sorted by offset.
    pub(crate) fn at(node: Node<'_>, places: &[(usize, usize)]) -> Self {
        let mut wanted = Self::default();
        let start = node.span().range().start;
        let mut rest = places;
        let own = rest.partition_point(|(offset, _)| *offset <= start);
        wanted
            .here
            .extend(rest.iter().take(own).map(|(_, number)| *number));
        rest = rest.get(own..).unwrap_or_default();
        // What is not in a value, but before it, belongs to the value around both.
        let mut within = |inner: Node<'_>| -> &[(usize, usize)] {
            let std::ops::Range { start, end } = inner.span().range();
            let before = rest.partition_point(|(offset, _)| *offset < start);
            let (outside, from) = rest.split_at_checked(before).unwrap_or((rest, &[]));
            wanted
                .here
                .extend(outside.iter().map(|(_, number)| *number));
            let (inside, after) = from
                .split_at_checked(from.partition_point(|(offset, _)| *offset < end))
                .unwrap_or((from, &[]));
            rest = after;
            inside
        };
        if places.len() == own {
            return wanted;
        }
        if let Some(object) = node.object() {
            let mut seen: HashMap<&str, usize> = HashMap::default();
            for (name, inner) in object.iter() {
                let occurrence = seen.entry(name).or_default();
                let inside = within(inner);
                if !inside.is_empty() {
                    let below = Self::at(inner, inside);
                    wanted
                        .members
                        .entry(name.to_owned())
                        .or_default()
                        .push((*occurrence, below));
                }
                *occurrence += 1;
            }
        } else {
            for (index, inner) in node.array().unwrap_or_default().into_iter().enumerate() {
                let inside = within(inner);
                if !inside.is_empty() {
                    wanted.items.insert(index, Self::at(inner, inside));
                }
            }
        }
        wanted.here.extend(rest.iter().map(|(_, number)| *number));
        wanted
    }

    /// Sets the position of all places from here on.
    fn fill(&self, position: Position, positions: &mut [Option<Position>]) {
        for number in &self.here {
            if let Some(place) = positions.get_mut(*number) {
                *place = Some(position);
            }
        }
        let members = self.members.values().flatten().map(|(_, inner)| inner);
        members
            .chain(self.items.values())
            .for_each(|inner| inner.fill(position, positions));
    }
}

/// A collection that is being read.
enum OpenNode<'w> {
    Mapping {
        wanted: Option<&'w Wanted>,
        /// The name of the member whose value is read next.
        name: Option<String>,
        seen: HashMap<String, usize>,
    },
    Sequence {
        wanted: Option<&'w Wanted>,
        next: usize,
    },
}

impl<'w> OpenNode<'w> {
    /// Records the start of a value; returns the places that are wanted in it.
    fn value(&mut self, scalar: Option<&str>) -> Option<&'w Wanted> {
        match self {
            Self::Mapping { wanted, name, seen } => {
                let wanted = *wanted;
                let Some(name) = name.take() else {
                    // A key; one that is not text is not looked up.
                    *name = Some(scalar.unwrap_or_default().to_owned());
                    return None;
                };
                let wanted = wanted?.members.get(&name)?;
                let occurrence = seen.entry(name).or_default();
                *occurrence += 1;
                wanted
                    .iter()
                    .find(|(number, _)| number + 1 == *occurrence)
                    .map(|(_, inner)| inner)
            }
            Self::Sequence { wanted, next } => {
                *next += 1;
                wanted.as_ref()?.items.get(&(*next - 1))
            }
        }
    }
}

/// The positions of the first `count` places.
pub(crate) fn positions(yaml: &str, wanted: &Wanted, count: usize) -> Vec<Option<Position>> {
    let mut positions = vec![None; count];
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
            inner.fill(position, &mut positions);
        }
        match event {
            Event::MappingStart(..) => open.push(OpenNode::Mapping {
                wanted: inner,
                name: None,
                seen: HashMap::default(),
            }),
            Event::SequenceStart(..) => open.push(OpenNode::Sequence {
                wanted: inner,
                next: 0,
            }),
            _ => {}
        }
    }
    positions
}

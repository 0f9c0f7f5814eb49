//! The positions of the values of a YAML text, and the text of its scalars, which the parser of
//! documents does not report.
//!
//! This uses a second parser, which reports the position of every value in one pass. It is also
//! stricter: after its first error, values have no positions.

use std::borrow::Cow;

use foldhash::HashMap;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle};

use crate::spec::node::Node;

/// Places in a JSON text, as a tree of the steps that lead to them.
#[derive(Debug, Default)]
pub(crate) struct Wanted {
    /// The numbers of the places at this node.
    here: Vec<usize>,
    /// Members by name, and by the index among the members of that name, from 0.
    members: HashMap<String, Vec<(usize, Wanted)>>,
    items: HashMap<usize, Wanted>,
}

/// A value in a YAML text.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    /// Line, from 1.
    pub(crate) line: usize,
    /// Column, from 1.
    pub(crate) column: usize,
    /// The text of a scalar without its quotes; `None` if the position is that of an enclosing
    /// value, because the value itself has none.
    pub(crate) scalar: Option<String>,
    /// True if the scalar is written without quotes.
    pub(crate) is_plain: bool,
}

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

    /// Sets the mark of all positions from here on, and of the exact ones the scalar as well.
    fn fill(&self, mark: &Mark, marks: &mut [Option<Mark>]) {
        for number in &self.here {
            if let Some(place) = marks.get_mut(*number) {
                *place = Some(mark.clone());
            }
        }
        let around = Mark {
            scalar: None,
            ..mark.clone()
        };
        let members = self.members.values().flatten().map(|(_, inner)| inner);
        members
            .chain(self.items.values())
            .for_each(|inner| inner.fill(&around, marks));
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

/// The marks of the first `count` places. Says also whether the text was read to its end.
pub(crate) fn marks(yaml: &str, wanted: &Wanted, count: usize) -> (Vec<Option<Mark>>, bool) {
    let mut marks = vec![None; count];
    let mut open: Vec<OpenNode<'_>> = Vec::new();
    for event in Parser::new_from_str(yaml) {
        let Ok((event, span)) = event else {
            return (marks, false);
        };
        let scalar: Option<Cow<'_, str>> = match &event {
            Event::Scalar(text, ..) => Some(text.clone()),
            Event::Alias(_) | Event::MappingStart(..) | Event::SequenceStart(..) => None,
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
                continue;
            }
            _ => continue,
        };
        let inner = match open.last_mut() {
            Some(around) => around.value(scalar.as_deref()),
            None => Some(wanted),
        };
        if let Some(inner) = inner {
            let mark = Mark {
                line: span.start.line(),
                column: span.start.col() + 1,
                scalar: scalar.map(Cow::into_owned),
                is_plain: matches!(event, Event::Scalar(_, ScalarStyle::Plain, ..)),
            };
            inner.fill(&mark, &mut marks);
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
    (marks, true)
}

/// A member of a mapping whose key is a mapping or a sequence, which JSON cannot hold.
struct ComplexMember {
    /// The first character of the key, and the one behind the value, counted in characters.
    from: usize,
    to: usize,
    line: usize,
    column: usize,
}

/// A collection that is open, in the search for complex keys.
struct OpenCollection {
    is_mapping: bool,
    /// True if the next value is a key.
    at_key: bool,
    /// Start of the key of the current member, if the key is a collection.
    complex_key: Option<Marker>,
}

impl OpenCollection {
    /// Handles the end of a key or value directly inside. Returns the member if its key is complex.
    fn end_value(&mut self, end: &Marker) -> Option<ComplexMember> {
        if !self.is_mapping {
            return None;
        }
        self.at_key = !self.at_key;
        let start = self.complex_key.take_if(|_| self.at_key)?;
        Some(ComplexMember {
            from: start.index(),
            to: end.index(),
            line: start.line(),
            column: start.col() + 1,
        })
    }
}

/// Returns the text with blanks in place of all members whose key is not a scalar, which JSON
/// cannot hold, and their lines and columns. `None` if there is no such member, or the text cannot
/// be read.
pub(crate) fn without_complex_keys(yaml: &str) -> Option<(String, Vec<(usize, usize)>)> {
    let members = complex_members(yaml)?;
    if members.is_empty() {
        return None;
    }
    let mut characters: Vec<char> = yaml.chars().collect();
    for member in &members {
        // `? ` before a key that is written apart from its value.
        let before = characters.get(..member.from)?;
        let mark = before
            .iter()
            .rposition(|character| !character.is_whitespace());
        let mark = mark.filter(|mark| characters.get(*mark) == Some(&'?'));
        let blanked = characters.get_mut(mark.unwrap_or(member.from)..member.to)?;
        blanked
            .iter_mut()
            .filter(|character| **character != '\n')
            .for_each(|character| *character = ' ');
    }
    let places = members
        .iter()
        .map(|member| (member.line, member.column))
        .collect();
    Some((characters.into_iter().collect(), places))
}

/// Returns all members with complex keys; `None` if the text cannot be read.
fn complex_members(yaml: &str) -> Option<Vec<ComplexMember>> {
    let mut open: Vec<OpenCollection> = Vec::new();
    let mut found = Vec::new();
    for event in Parser::new_from_str(yaml) {
        let (event, span) = event.ok()?;
        match event {
            Event::MappingStart(..) | Event::SequenceStart(..) => {
                if let Some(around) = open
                    .last_mut()
                    .filter(|around| around.is_mapping && around.at_key)
                {
                    around.complex_key = Some(span.start);
                }
                open.push(OpenCollection {
                    is_mapping: matches!(event, Event::MappingStart(..)),
                    at_key: true,
                    complex_key: None,
                });
                continue;
            }
            Event::MappingEnd | Event::SequenceEnd => {
                open.pop();
            }
            Event::Scalar(..) | Event::Alias(_) => {}
            _ => continue,
        }
        found.extend(
            open.last_mut()
                .and_then(|around| around.end_value(&span.end)),
        );
    }
    Some(found)
}

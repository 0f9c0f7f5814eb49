//! Sources of the identifiers that an operation needs: `movie_id` from the operation that searches
//! or lists movies.

use std::rc::Rc;

use foldhash::HashMap;

use super::words::{Writing, stem, words_of};
use crate::annotate::{Effect, Tool};
use crate::spec::{Location, Operation};
use crate::text::is_word_of;

/// Number of sources that are kept for an operation; fewer are shown.
const MAX_NEEDS: usize = 4;
/// Endings of names that mean the identifier of a thing.
const IDENTIFIERS: &str = "id ids uuid number name slug key sha code handle login";

/// A value that an operation needs, and an operation that yields it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// The index of the parameter among those of the operation.
    pub(crate) parameter: u16,
    /// The operation that yields it, in the order of the index.
    pub(crate) operation: u32,
}

/// A parameter, with the facts that show the source of its values.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct WantedValue<'o> {
    name: &'o str,
    /// The path before it, if it is in the path.
    before: &'o str,
    is_path: bool,
}

/// An operation that lists or searches something.
struct IdentifierSource<'o> {
    operation: u32,
    path: &'o str,
    variables: usize,
    searches: bool,
}

/// Words of a segment of a path.
struct SegmentWords {
    /// The stem of its last word: `pull_requests` is about requests.
    noun: Rc<str>,
    searches: bool,
}

/// All such operations by the stem of what they list.
#[derive(Default)]
struct IdentifierSources<'o> {
    by_noun: HashMap<Rc<str>, Vec<IdentifierSource<'o>>>,
    by_path: HashMap<&'o str, u32>,
    /// The one that searches everything.
    general: Option<u32>,
    /// Each segment is read once: many operations have it.
    segments: HashMap<&'o str, SegmentWords>,
}

/// Finds for each operation the sources of the values that it needs: one for each parameter first,
/// then others.
pub(crate) fn find_needs<'o>(tools: &[&'o Tool]) -> Vec<Vec<Need>> {
    let mut sources = IdentifierSources::of(tools);
    let mut known: HashMap<WantedValue<'o>, Vec<u32>> = HashMap::default();
    let mut sources_of = |wanted: WantedValue<'o>, index: u32| -> Vec<u32> {
        let found = known
            .entry(wanted)
            .or_insert_with(|| sources.of_parameter(wanted));
        let others = found.iter().copied();
        others.filter(|source| *source != index).collect()
    };
    let tools = (0..).zip(tools);
    tools
        .map(|(index, tool)| needs_of(&tool.operation, |wanted| sources_of(wanted, index)))
        .collect()
}

fn needs_of<'o>(
    operation: &'o Operation,
    mut sources_of: impl FnMut(WantedValue<'o>) -> Vec<u32>,
) -> Vec<Need> {
    let parameters = operation.parameters.iter().enumerate();
    let mut wanted: Vec<(usize, u16, Vec<u32>)> = parameters
        .filter(|(_, parameter)| {
            parameter.required && matches!(parameter.location, Location::Path | Location::Query)
        })
        .filter_map(|(number, parameter)| {
            let is_path = parameter.location == Location::Path;
            let before = || {
                operation
                    .path
                    .split_once(&format!("{{{}}}", parameter.name))
            };
            let before = is_path.then(before).flatten().map(|(before, _)| before);
            let found = sources_of(WantedValue {
                name: &parameter.name,
                before: before.unwrap_or_default(),
                is_path,
            });
            let at = before.map_or(usize::MAX, str::len);
            Some((at, u16::try_from(number).ok()?, found))
        })
        .collect();
    wanted.sort_by_key(|(at, number, _)| (*at, *number));
    let mut needs = Vec::new();
    for round in 0..2 {
        for &(_, parameter, ref found) in &wanted {
            if let Some(&operation) = found.get(round)
                && !needs.iter().any(|need: &Need| need.operation == operation)
            {
                needs.push(Need {
                    parameter,
                    operation,
                });
            }
        }
    }
    needs.truncate(MAX_NEEDS);
    needs.shrink_to_fit();
    needs
}

impl<'o> IdentifierSources<'o> {
    fn of(tools: &[&'o Tool]) -> Self {
        let mut sources = Self::default();
        let mut fewest = usize::MAX;
        for (number, tool) in (0..).zip(tools) {
            let operation = &tool.operation;
            let path = operation.path.trim_end_matches('/');
            let last = path.rsplit('/').next().unwrap_or_default();
            if tool.hints.effect() != Effect::Read
                || last.contains('{')
                || last.is_empty()
                || operation.deprecated
            {
                continue;
            }
            let variables = operation.template.variables().count();
            let noun = Rc::clone(&sources.segment(last).noun);
            let searches = path
                .split('/')
                .any(|segment| sources.segment(segment).searches);
            if matches!(noun.as_ref(), "search" | "find") && variables == 0 && path.len() < fewest {
                fewest = path.len();
                sources.general = Some(number);
            }
            sources.by_path.entry(path).or_insert(number);
            let named = sources.by_noun.entry(noun).or_default();
            named.push(IdentifierSource {
                operation: number,
                path,
                variables,
                searches,
            });
        }
        for found in sources.by_noun.values_mut() {
            found.sort_by_key(|source| (!source.searches, source.variables, source.path.len()));
        }
        sources
    }

    fn segment(&mut self, segment: &'o str) -> &SegmentWords {
        let read = || SegmentWords {
            noun: noun_of(segment),
            searches: is_word_of("search find lookup", &stem(&segment.to_lowercase())),
        };
        self.segments.entry(segment).or_insert_with(read)
    }

    /// The operations that yield a parameter, best first.
    fn of_parameter(&mut self, wanted: WantedValue<'o>) -> Vec<u32> {
        let WantedValue {
            name,
            before,
            is_path,
        } = wanted;
        let collection = before.trim_end_matches('/');
        let mut found: Vec<u32> = self.by_path.get(collection).copied().into_iter().collect();
        let segment = collection
            .rsplit('/')
            .next()
            .filter(|segment| !segment.is_empty() && !segment.contains('{'));
        let owned = identified_noun(name);
        if segment.is_none() && owned.is_none() {
            return found;
        }
        // `/repos/{owner}`: the segment before a parameter names the identified thing only if their
        // names agree.
        let names_it = |noun: &Rc<str>| match &owned {
            Some(owned) => owned == noun,
            None => is_identifier(name) || noun_of(name) == *noun,
        };
        let of_segment = segment
            .map(|segment| Rc::clone(&self.segment(segment).noun))
            .filter(names_it);
        let placeholder = format!("{{{name}}}");
        for noun in of_segment.iter().chain(&owned) {
            for source in self.by_noun.get(noun).into_iter().flatten().take(2) {
                // A path below the same parameter cannot yield it.
                let needs_itself = is_path && source.path.contains(&placeholder);
                if !needs_itself
                    && (source.searches || source.variables == 0)
                    && !found.contains(&source.operation)
                {
                    found.push(source.operation);
                }
            }
        }
        if owned.is_some() && found.len() < 2 {
            found.extend(self.general.filter(|general| !found.contains(general)));
        }
        found.truncate(2);
        found
    }
}

/// The stem of the last word of a name.
fn noun_of(name: &str) -> Rc<str> {
    let last = words_of(name, Writing::Identifier).pop();
    stem(&last.unwrap_or_default()).into()
}

/// Returns true if a name by itself means an identifier: `id`.
fn is_identifier(name: &str) -> bool {
    is_word_of(IDENTIFIERS, &name.to_lowercase())
}

/// Returns the noun that a parameter identifies: `movie_id` a movie. `None` if its name has none.
fn identified_noun(name: &str) -> Option<Rc<str>> {
    let mut words = words_of(name, Writing::Identifier);
    let ending = words.pop()?;
    let noun = words.pop()?;
    is_word_of(IDENTIFIERS, &ending).then(|| stem(&noun).into())
}

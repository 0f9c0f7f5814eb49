//! Where the identifiers come from that an operation needs: `movie_id` from the operation that searches or lists movies.

use foldhash::{HashMap, HashMapExt as _};

use super::fields::SearchedOperation;
use super::words::{Writing, each_word, stem};
use crate::annotate::Effect;
use crate::spec::{Location, Operation};

/// At most so many are kept for an operation; fewer are shown.
const MAX_NEEDS: usize = 4;
/// Endings of names that stand for the identifier of something.
const IDENTIFIERS: [&str; 11] = [
    "id", "ids", "uuid", "number", "name", "slug", "key", "sha", "code", "handle", "login",
];

/// A value that an operation needs, and an operation that yields it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Need {
    /// The index of the parameter among those of the operation.
    pub(crate) parameter: u16,
    /// The operation that yields it, in the order of the index.
    pub(crate) operation: u32,
}

/// An operation that lists or searches something.
struct IdentifierSource {
    operation: u32,
    path: Box<str>,
    variables: usize,
    searches: bool,
}

/// All such operations by the stem of what they list.
struct IdentifierSources {
    by_noun: HashMap<String, Vec<IdentifierSource>>,
    by_path: HashMap<Box<str>, u32>,
    /// The one that searches everything.
    general: Option<u32>,
}

/// For each operation, where the values come from that it needs: one source for each parameter first, then others.
#[must_use]
pub(crate) fn find_needs(operations: &[SearchedOperation<'_>]) -> Vec<Vec<Need>> {
    let sources = IdentifierSources::of(operations);
    let needs = |(index, searched): (usize, &SearchedOperation<'_>)| needs_of(index, searched.operation, &sources);
    operations.iter().enumerate().map(needs).collect()
}

fn needs_of(index: usize, operation: &Operation, sources: &IdentifierSources) -> Vec<Need> {
    let parameters = operation.parameters.iter().enumerate();
    let mut wanted: Vec<(usize, u16, Vec<u32>)> = parameters
        .filter(|(_, parameter)| parameter.required && matches!(parameter.location, Location::Path | Location::Query))
        .filter_map(|(number, parameter)| {
            let is_path = parameter.location == Location::Path;
            let at = is_path.then(|| operation.path.find(&format!("{{{}}}", parameter.name))).flatten();
            let before = at.and_then(|at| operation.path.get(..at)).unwrap_or_default();
            let mut found = sources.of_parameter(&parameter.name, before, is_path);
            found.retain(|source| *source as usize != index);
            Some((at.unwrap_or(usize::MAX), u16::try_from(number).ok()?, found))
        })
        .collect();
    wanted.sort_by_key(|(at, number, _)| (*at, *number));
    let mut needs = Vec::new();
    for round in 0..2 {
        for (_, parameter, found) in &wanted {
            let known = |operation| needs.iter().any(|need: &Need| need.operation == operation);
            if let Some(operation) = found.get(round).copied().filter(|operation| !known(*operation)) {
                needs.push(Need {
                    parameter: *parameter,
                    operation,
                });
            }
        }
    }
    needs.truncate(MAX_NEEDS);
    needs.shrink_to_fit();
    needs
}

impl IdentifierSources {
    fn of(operations: &[SearchedOperation<'_>]) -> Self {
        let mut sources = Self {
            by_noun: HashMap::new(),
            by_path: HashMap::new(),
            general: None,
        };
        let mut fewest = usize::MAX;
        for (index, searched) in operations.iter().enumerate() {
            let (operation, Ok(number)) = (searched.operation, u32::try_from(index)) else {
                continue;
            };
            let path = operation.path.trim_end_matches('/');
            let last = path.rsplit('/').next().unwrap_or_default();
            if searched.effect != Effect::Read || last.contains('{') || last.is_empty() || searched.operation.deprecated {
                continue;
            }
            let variables = operation.template.variables().count();
            let noun = noun_of(last);
            let searches = path
                .split('/')
                .any(|segment| matches!(stem(&segment.to_lowercase()).as_ref(), "search" | "find" | "lookup"));
            if matches!(noun.as_str(), "search" | "find") && variables == 0 && path.len() < fewest {
                fewest = path.len();
                sources.general = Some(number);
            }
            sources.by_path.entry(path.into()).or_insert(number);
            sources.by_noun.entry(noun).or_default().push(IdentifierSource {
                operation: number,
                path: path.into(),
                variables,
                searches,
            });
        }
        for found in sources.by_noun.values_mut() {
            found.sort_by_key(|source| (!source.searches, source.variables, source.path.len()));
        }
        sources
    }

    /// The operations that yield a parameter, best first; `before` is the path before it.
    fn of_parameter(&self, name: &str, before: &str, is_path: bool) -> Vec<u32> {
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
        // `/repos/{owner}`: what stands before a parameter says what it identifies only where their names agree.
        let names_it = |noun: &String| {
            owned.as_ref().is_none_or(|owned| owned == noun) && (owned.is_some() || is_identifier(name) || noun_of(name) == *noun)
        };
        let nouns = segment.map(noun_of).filter(names_it).into_iter().chain(owned.clone());
        for noun in nouns {
            for source in self.by_noun.get(&noun).into_iter().flatten().take(2) {
                // What stands below the same parameter cannot yield it.
                let needs_itself = is_path && source.path.contains(&format!("{{{name}}}"));
                if !needs_itself && (source.searches || source.variables == 0) && !found.contains(&source.operation) {
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

/// The stem of the last word of a segment: `pull_requests` is about requests.
fn noun_of(segment: &str) -> String {
    let mut last = String::new();
    each_word(segment, Writing::Identifier, |word| {
        word.clone_into(&mut last);
    });
    stem(&last).into_owned()
}

/// Whether a name stands for the identifier of whatever it is about: `id`.
fn is_identifier(name: &str) -> bool {
    IDENTIFIERS.contains(&name.to_lowercase().as_str())
}

/// What a parameter identifies: `movie_id` a movie. Nothing where its name does not say so.
fn identified_noun(name: &str) -> Option<String> {
    let mut words = Vec::new();
    each_word(name, Writing::Identifier, |word| words.push(word.to_owned()));
    let ending = words.pop()?;
    let noun = words.pop()?;
    IDENTIFIERS.contains(&ending.as_str()).then(|| stem(&noun).into_owned())
}

//! The index: which operations have which words, and how much each word counts there.

use foldhash::HashMap;

use super::fields::{Field, FieldReader};
use super::needs::{Need, find_needs};
use super::verbs::Verb;
use super::words::Term;
use crate::annotate::{Effect, Tool};
use crate::spec::Document;

/// Saturation of the sum over fields that have a word (BM25).
const K1: f32 = 1.2;
/// More words of a text do not count, so that a long one cannot raise the rank of its operation.
const MAX_TEXT_WORDS: usize = 500;

/// The operations of one API, ready to be searched.
pub(crate) struct SearchIndex {
    terms: HashMap<Box<str>, Term>,
    /// The operations that have each term, in the order of the document.
    postings: Vec<Vec<Posting>>,
    /// The facts about each operation that count besides its words.
    pub(crate) entries: Vec<IndexEntry>,
    needs: Vec<Vec<Need>>,
}

/// Judges which operations a caller may list; `None` if all.
pub(crate) type Listed<'a> = Option<&'a dyn Fn(usize) -> bool>;

/// An operation that has a term.
#[derive(Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) operation: u32,
    /// Strength of the term there, from 0 to 1.
    pub(crate) strength: f32,
}

/// Facts about an operation that count besides its words.
pub(crate) struct IndexEntry {
    verb: Verb,
    effect: Effect,
    pub(crate) is_deprecated: bool,
    pub(crate) variables: u8,
    /// The words of its title, verbs left out.
    pub(crate) title: Box<[Term]>,
}

impl IndexEntry {
    /// Returns true if its effect is the one that a question asks for.
    pub(crate) fn fits(&self, wanted: Verb) -> bool {
        match wanted {
            Verb::Act => self.verb != Verb::Read,
            Verb::Delete if self.verb != Verb::Update && self.effect == Effect::Destructive => true,
            verb => verb == self.verb,
        }
    }
}

/// Adds up how much each word counts in the operation that is being read.
#[derive(Default)]
struct FieldSums {
    /// For each term, the sum, and the last field that had it.
    sums: Vec<(f32, Option<Field>)>,
    terms: Vec<Term>,
}

impl FieldSums {
    /// Adds the words of a field, each once; the parts of one field come one after the other.
    fn add(&mut self, field: Field, terms: &[Term]) {
        for term in terms.iter().take(MAX_TEXT_WORDS) {
            let index = *term as usize;
            if index >= self.sums.len() {
                self.sums.resize(index + 1, (0.0, None));
            }
            let Some((sum, last)) = self.sums.get_mut(index) else {
                continue;
            };
            if *last == Some(field) {
                continue;
            }
            if last.is_none() {
                self.terms.push(*term);
            }
            *sum += field.weight();
            *last = Some(field);
        }
    }

    /// The terms of the operation, each with its strength; the next operation begins.
    fn take(&mut self) -> impl Iterator<Item = (Term, f32)> {
        let Self { sums, terms } = self;
        terms.drain(..).filter_map(|term| {
            let (sum, _) = std::mem::take(sums.get_mut(term as usize)?);
            Some((term, sum / (K1 + sum)))
        })
    }
}

impl SearchIndex {
    /// Reads the texts of all operations; they keep their order.
    pub(crate) fn build(document: &Document, tools: &[&Tool]) -> Self {
        let mut reader = FieldReader::new(document);
        let mut sums = FieldSums::default();
        let mut postings: Vec<Vec<Posting>> = Vec::new();
        let mut entries = Vec::with_capacity(tools.len());
        for (operation, tool) in (0..).zip(tools) {
            let description = reader.description(&tool.operation).unwrap_or_default();
            reader.each_field(tool, &description, |field, terms| sums.add(field, terms));
            let title = reader.subjects(&tool.title);
            entries.push(entry_of(tool, &description, title));
            for (term, strength) in sums.take() {
                let index = term as usize;
                if index >= postings.len() {
                    postings.resize_with(index + 1, Vec::new);
                }
                if let Some(postings) = postings.get_mut(index) {
                    postings.push(Posting {
                        operation,
                        strength,
                    });
                }
            }
        }
        postings.iter_mut().for_each(Vec::shrink_to_fit);
        Self {
            terms: reader.finish(),
            postings,
            entries,
            needs: find_needs(tools),
        }
    }

    /// Returns the number of operations.
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns the operations that yield the values that an operation needs.
    pub(crate) fn needs(&self, operation: usize) -> &[Need] {
        self.needs.get(operation).map_or(&[], Vec::as_slice)
    }

    /// Returns the number of a stem, if any operation that is `listed` has it.
    pub(crate) fn term(&self, stem: &str, listed: Listed<'_>) -> Option<Term> {
        let term = self.terms.get(stem).copied()?;
        (listed.is_none() || self.count(term, listed) > 0).then_some(term)
    }

    /// Returns the number of operations that have a term and are `listed`.
    fn count(&self, term: Term, listed: Listed<'_>) -> usize {
        let postings = self.postings(term);
        listed.map_or(postings.len(), |is_listed| {
            let postings = postings.iter();
            postings
                .filter(|posting| is_listed(posting.operation as usize))
                .count()
        })
    }

    /// The operations that have a term, in the order of the document.
    pub(crate) fn postings(&self, term: Term) -> &[Posting] {
        self.postings.get(term as usize).map_or(&[], Vec::as_slice)
    }

    /// The rarity of a term among the `listed` operations, which are `count`: the fewer of them
    /// have it, the more it counts (BM25).
    pub(crate) fn rarity(&self, term: Term, count: usize, listed: Listed<'_>) -> f32 {
        let (count, having) = (to_f32(count), to_f32(self.count(term, listed)));
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    }
}

fn entry_of(tool: &Tool, description: &str, title: Box<[Term]>) -> IndexEntry {
    let operation = &tool.operation;
    let mut segments = operation.path.rsplit('/');
    let last = segments.find(|segment| !segment.starts_with('{'));
    let effect = tool.hints.effect();
    let texts = [
        &tool.title,
        description,
        &tool.name,
        last.unwrap_or_default(),
    ];
    IndexEntry {
        verb: Verb::of_operation(&operation.method, effect, &texts),
        effect,
        is_deprecated: operation.deprecated,
        variables: u8::try_from(operation.template.variables().count()).unwrap_or(u8::MAX),
        title,
    }
}

/// Counts are small; what a `f32` cannot hold exactly makes no difference to a ranking.
#[expect(
    clippy::cast_precision_loss,
    reason = "a ranking needs no more than 24 bits of a count"
)]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}

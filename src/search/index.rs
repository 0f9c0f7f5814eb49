//! The index: which operations have which words, and how much each word counts there (BM25F).

use foldhash::HashMap;

use super::fields::{FieldReader, SearchedOperation};
use super::needs::{Need, find_needs};
use super::postings::{OperationWords, Posting, Postings, to_f32};
use super::verbs::Verb;
use super::vocabulary::Term;
use super::words::{Writing, each_word};
use crate::annotate::Effect;
use crate::spec::Document;

/// How the rarity of a word counts in what it tells of a title.
const TITLE_RARITY_POWER: f32 = 0.5;
/// The operations of one API, ready to be searched.
pub(crate) struct SearchIndex {
    terms: HashMap<Box<str>, Term>,
    postings: Postings,
    entries: Vec<IndexEntry>,
    /// What the words of each title add up to, verbs left out.
    title_weights: Vec<f32>,
    needs: Vec<Vec<Need>>,
    /// How many bytes of text were read.
    text_bytes: usize,
}

/// What counts of an operation besides its words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IndexEntry {
    pub(crate) verb: Verb,
    pub(crate) effect: Effect,
    pub(crate) is_deprecated: bool,
    pub(crate) variables: u8,
    /// Whether it is about whoever calls: `/me/boards`.
    pub(crate) is_own: bool,
}

impl SearchIndex {
    /// Reads the texts of all operations; they keep their order.
    #[must_use]
    pub(crate) fn build<'a>(document: &Document, operations: impl Iterator<Item = SearchedOperation<'a>>) -> Self {
        let operations: Vec<SearchedOperation<'a>> = operations.collect();
        let mut reader = FieldReader::new(document);
        let mut words = OperationWords::default();
        let mut entries = Vec::with_capacity(operations.len());
        for searched in &operations {
            let description = reader.description(searched.operation);
            words.begin_operation();
            reader.each_field(searched, description.as_deref(), |field, terms| words.add(field, terms));
            entries.push(entry_of(searched, description.as_deref().unwrap_or_default()));
        }
        let (terms, text_bytes) = reader.finish();
        let mut index = Self {
            postings: words.into_postings(terms.len()),
            title_weights: vec![0.0; entries.len()],
            terms,
            entries,
            needs: find_needs(&operations),
            text_bytes,
        };
        index.title_weights = index.weigh_titles();
        index
    }

    fn weigh_titles(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.entries.len()];
        // In one order, so that sums are the same each time.
        let mut words: Vec<(Term, &str)> = self.terms.iter().map(|(word, term)| (*term, word.as_ref())).collect();
        words.sort_unstable();
        for (term, word) in words {
            let mut titled = self.postings(term).filter(|posting| posting.is_in_title).peekable();
            if titled.peek().is_none() || Verb::is_verb(word) {
                continue;
            }
            let tells = self.tells_of_title(term);
            for posting in titled {
                if let Some(weight) = weights.get_mut(posting.operation) {
                    *weight += tells;
                }
            }
        }
        weights
    }

    /// What a word tells of a title that has it.
    #[must_use]
    pub(crate) fn tells_of_title(&self, term: Term) -> f32 {
        self.rarity(Some(term)).powf(TITLE_RARITY_POWER)
    }

    /// What the words of the title of an operation add up to, verbs left out; 0 where it has none.
    #[must_use]
    pub(crate) fn title_weight(&self, operation: usize) -> f32 {
        self.title_weights.get(operation).copied().unwrap_or_default()
    }

    /// How many operations there are.
    #[must_use]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// What counts of an operation besides its words.
    #[must_use]
    pub(crate) fn entry(&self, operation: usize) -> Option<&IndexEntry> {
        self.entries.get(operation)
    }

    /// Which operations yield the values that an operation needs.
    #[must_use]
    pub(crate) fn needs(&self, operation: usize) -> &[Need] {
        self.needs.get(operation).map_or(&[], Vec::as_slice)
    }

    /// The number of a stem, where any operation has it.
    #[must_use]
    pub(crate) fn term(&self, stem: &str) -> Option<Term> {
        self.terms.get(stem).copied()
    }

    /// The operations that have a term, in the order of the document.
    pub(crate) fn postings(&self, term: Term) -> impl Iterator<Item = Posting> {
        self.postings.of(term)
    }

    /// How much a term tells: one of few operations tells more (BM25). Without a term, as one that no operation has.
    #[must_use]
    pub(crate) fn rarity(&self, term: Option<Term>) -> f32 {
        let count = to_f32(self.entries.len());
        let having = term.map_or(0.0, |term| to_f32(self.postings.count(term)));
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    }

    /// How many bytes of text were read, and about how many the index takes.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let terms: usize = self.terms.keys().map(|term| term.len() + 24).sum();
        let needs: usize = self.needs.iter().map(|needs| 24 + needs.len() * size_of::<Need>()).sum();
        (
            self.text_bytes,
            terms + self.postings.bytes() + needs + self.entries.len() * (size_of::<IndexEntry>() + size_of::<f32>()),
        )
    }
}

fn entry_of(searched: &SearchedOperation<'_>, description: &str) -> IndexEntry {
    let operation = searched.operation;
    let last = operation
        .path
        .rsplit('/')
        .find(|segment| !segment.starts_with('{'))
        .unwrap_or_default();
    let texts = [searched.title, description, searched.name, last];
    IndexEntry {
        verb: Verb::of_operation(&operation.method, searched.effect, &texts),
        effect: searched.effect,
        is_deprecated: operation.deprecated,
        variables: u8::try_from(operation.template.variables().count()).unwrap_or(u8::MAX),
        is_own: is_own(searched),
    }
}

/// Whether an operation is about whoever calls it, by a segment of its path or by its title.
fn is_own(searched: &SearchedOperation<'_>) -> bool {
    let mut is_own = searched
        .operation
        .path
        .split('/')
        .any(|segment| matches!(segment, "me" | "my" | "self" | "current"));
    each_word(searched.title, Writing::Prose, |word| {
        is_own |= matches!(word, "authenticated" | "current" | "my");
    });
    is_own
}

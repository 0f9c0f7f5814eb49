//! The index: which operations have which words, and how much each word counts there (BM25F).

use foldhash::HashMap;

use super::fields::{FIELDS, Field, FieldReader, SearchedOperation};
use super::needs::{Need, find_needs};
use super::verbs::Verb;
use super::words::{Writing, each_word, is_stop_word, stem};
use crate::annotate::Effect;
use crate::spec::Document;

/// How fast a word that is repeated counts less (BM25).
const K1: f32 = 1.2;
/// How much the length of a field counts (BM25).
const B: f32 = 0.5;
/// How the rarity of a word counts in what it tells of a title.
const TITLE_RARITY_POWER: f32 = 0.5;
/// The bit of a posting that says that the term stands in the title of the operation.
const IN_TITLE: u32 = 1 << 31;
/// More words of a field do not count: nobody buys the first place.
const MAX_FIELD_WORDS: usize = 500;

/// A stem, by its number.
pub(crate) type Term = u32;

/// The operations of one API, ready to be searched.
pub(crate) struct SearchIndex {
    terms: HashMap<Box<str>, Term>,
    /// Where the postings of each term begin, and where the last ones end.
    starts: Vec<u32>,
    /// The operation of each posting, with [`IN_TITLE`] where its title has the term; those of one term are in the order of the
    /// document.
    operations: Vec<u32>,
    /// How much the term counts there, from 0 to 1.
    strengths: Vec<f32>,
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

/// An operation that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) operation: usize,
    /// How much the term counts there, from 0 to 1.
    pub(crate) strength: f32,
    /// Whether its title has the term.
    pub(crate) is_in_title: bool,
}

/// How often a term stands in a field of an operation.
struct Occurrence {
    term: Term,
    operation: u32,
    field: u8,
    count: u16,
}

/// Gathers words; each distinct word is stemmed once.
#[derive(Default)]
struct Gathering {
    /// Folded words; nothing for stop words.
    words: HashMap<Box<str>, Option<Term>>,
    terms: HashMap<Box<str>, Term>,
    occurrences: Vec<Occurrence>,
    /// How many words each field of each operation has.
    lengths: Vec<[u16; FIELDS]>,
    text_bytes: usize,
}

impl Gathering {
    fn term(&mut self, word: &str) -> Option<Term> {
        if let Some(known) = self.words.get(word) {
            return *known;
        }
        let term = (!is_stop_word(word)).then(|| {
            let stem = stem(word);
            let next = Term::try_from(self.terms.len()).unwrap_or(Term::MAX);
            match self.terms.get(stem.as_ref()) {
                Some(term) => *term,
                None => *self.terms.entry(stem.into()).or_insert(next),
            }
        });
        self.words.insert(word.into(), term);
        term
    }

    fn add_text(&mut self, operation: u32, field: Field, text: &str, writing: Writing, counts: &mut Vec<(u8, Term, u16)>) {
        self.text_bytes += text.len();
        let number = field as u8;
        each_word(text, writing, |word| {
            let Some(term) = self.term(word) else { return };
            let length = self
                .lengths
                .get_mut(operation as usize)
                .and_then(|lengths| lengths.get_mut(number as usize));
            let Some(length) = length.filter(|length| usize::from(**length) < MAX_FIELD_WORDS) else {
                return;
            };
            *length += 1;
            counts.push((number, term, 1));
        });
    }

    fn add_operation(&mut self, reader: &mut FieldReader<'_>, searched: &SearchedOperation<'_>) {
        let operation = u32::try_from(self.lengths.len()).unwrap_or(u32::MAX);
        self.lengths.push([0; FIELDS]);
        let mut counts = Vec::new();
        reader.each_text(searched, |field, text, writing| {
            self.add_text(operation, field, text, writing, &mut counts);
        });
        counts.sort_unstable();
        let mut rest = counts.as_slice();
        while let Some((field, term, _)) = rest.first() {
            let same = rest
                .iter()
                .take_while(|(other_field, other, _)| other == term && other_field == field)
                .count();
            self.occurrences.push(Occurrence {
                term: *term,
                operation,
                field: *field,
                count: u16::try_from(same).unwrap_or(u16::MAX),
            });
            rest = rest.get(same..).unwrap_or_default();
        }
    }

    /// The mean length of each field where it has any words.
    fn mean_lengths(&self) -> [f32; FIELDS] {
        let mut means = [1.0; FIELDS];
        for (field, mean) in means.iter_mut().enumerate() {
            let lengths = self
                .lengths
                .iter()
                .filter_map(|lengths| lengths.get(field))
                .filter(|length| **length > 0);
            let (count, sum) = lengths.fold((0_u32, 0_u32), |(count, sum), length| (count + 1, sum + u32::from(*length)));
            if count > 0 {
                *mean = to_f32(sum as usize) / to_f32(count as usize);
            }
        }
        means
    }
}

/// Counts are small; what a `f32` cannot hold exactly makes no difference to a ranking.
#[expect(clippy::cast_precision_loss, reason = "a ranking needs no more than 24 bits of a count")]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}

impl SearchIndex {
    /// Reads the texts of all operations; they keep their order.
    #[must_use]
    pub(crate) fn build<'a>(document: &Document, operations: impl Iterator<Item = SearchedOperation<'a>>) -> Self {
        let operations: Vec<SearchedOperation<'a>> = operations.collect();
        let mut reader = FieldReader::new(document);
        let mut gathering = Gathering::default();
        let mut entries = Vec::with_capacity(operations.len());
        for searched in &operations {
            gathering.add_operation(&mut reader, searched);
            entries.push(entry_of(document, searched));
        }
        let needs = find_needs(&operations);
        let (starts, posted, strengths) = post(&mut gathering);
        let mut terms = gathering.terms;
        terms.shrink_to_fit();
        let mut index = Self {
            title_weights: vec![0.0; entries.len()],
            terms,
            starts,
            operations: posted,
            strengths,
            entries,
            needs,
            text_bytes: gathering.text_bytes,
        };
        index.title_weights = index.weigh_titles();
        index
    }

    fn weigh_titles(&self) -> Vec<f32> {
        let mut weights = vec![0.0; self.entries.len()];
        // In one order, so that sums are the same each time.
        let mut terms: Vec<Term> = self
            .terms
            .iter()
            .filter(|(word, _)| !Verb::is_verb(word))
            .map(|(_, term)| *term)
            .collect();
        terms.sort_unstable();
        for term in terms {
            let tells = self.tells_of_title(term);
            for posting in self.postings(term).filter(|posting| posting.is_in_title) {
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
        let range = self.range(term);
        let operations = self.operations.get(range.clone()).unwrap_or_default();
        let strengths = self.strengths.get(range).unwrap_or_default();
        operations.iter().zip(strengths).map(|(operation, strength)| Posting {
            operation: (operation & !IN_TITLE) as usize,
            strength: *strength,
            is_in_title: operation & IN_TITLE != 0,
        })
    }

    /// How much a term tells: one of few operations tells more (BM25). Without a term, as one that no operation has.
    #[must_use]
    pub(crate) fn rarity(&self, term: Option<Term>) -> f32 {
        let count = to_f32(self.entries.len());
        let having = term.map_or(0.0, |term| to_f32(self.range(term).len()));
        (1.0 + (count - having + 0.5) / (having + 0.5)).ln()
    }

    fn range(&self, term: Term) -> std::ops::Range<usize> {
        let at = |index: usize| self.starts.get(index).map_or(0, |start| *start as usize);
        at(term as usize)..at(term as usize + 1)
    }

    /// How many bytes of text were read, and about how many the index takes.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let terms: usize = self.terms.keys().map(|term| term.len() + 24).sum();
        let postings = self.operations.len() * 8 + self.starts.len() * 4;
        let needs: usize = self.needs.iter().map(|needs| 24 + needs.len() * size_of::<Need>()).sum();
        (
            self.text_bytes,
            terms + postings + needs + self.entries.len() * (size_of::<IndexEntry>() + size_of::<f32>()),
        )
    }
}

fn entry_of(document: &Document, searched: &SearchedOperation<'_>) -> IndexEntry {
    let operation = searched.operation;
    let last = operation
        .path
        .rsplit('/')
        .find(|segment| !segment.starts_with('{'))
        .unwrap_or_default();
    let is_plain = |method: &str| matches!(method, "GET" | "HEAD" | "DELETE" | "PATCH");
    let opening = if is_plain(operation.method.as_str()) {
        None
    } else {
        let object = operation.span.and_then(|span| document.node(span).object());
        object.and_then(|object| object.text("description"))
    };
    let texts = [searched.title, opening.as_deref().unwrap_or_default(), searched.name, last];
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

/// The postings of all terms, with what each counts.
fn post(gathering: &mut Gathering) -> (Vec<u32>, Vec<u32>, Vec<f32>) {
    let means = gathering.mean_lengths();
    let mut occurrences = std::mem::take(&mut gathering.occurrences);
    occurrences.sort_unstable_by_key(|occurrence| (occurrence.term, occurrence.operation));
    let mut starts = vec![0];
    let (mut operations, mut strengths) = (Vec::new(), Vec::new());
    let mut rest = occurrences.as_slice();
    while let Some(first) = rest.first() {
        let (term, operation) = (first.term, first.operation);
        let same = rest
            .iter()
            .take_while(|other| (other.term, other.operation) == (term, operation))
            .count();
        let of_one = rest.get(..same).unwrap_or_default();
        let counted: f32 = of_one
            .iter()
            .map(|occurrence| {
                let field = usize::from(occurrence.field);
                let weight = Field::WEIGHTS.get(field).copied().unwrap_or_default();
                let mean = means.get(field).copied().unwrap_or(1.0);
                let lengths = gathering.lengths.get(operation as usize);
                let length = lengths.and_then(|lengths| lengths.get(field)).copied().unwrap_or_default();
                weight * f32::from(occurrence.count) / (1.0 - B + B * f32::from(length) / mean)
            })
            .sum();
        while starts.len() <= term as usize {
            starts.push(u32::try_from(operations.len()).unwrap_or(u32::MAX));
        }
        let is_in_title = of_one.iter().any(|occurrence| occurrence.field == Field::Summary as u8);
        operations.push(if is_in_title { operation | IN_TITLE } else { operation });
        strengths.push(counted / (K1 + counted));
        rest = rest.get(same..).unwrap_or_default();
    }
    while starts.len() <= gathering.terms.len() {
        starts.push(u32::try_from(operations.len()).unwrap_or(u32::MAX));
    }
    (starts, operations, strengths)
}

//! The postings of an index: which operations have a term, and how much it counts there (BM25F).

use std::ops::Range;

use super::fields::{FIELDS, Field};
use super::vocabulary::Term;

/// How fast a word that is repeated counts less (BM25).
const K1: f32 = 1.2;
/// How much the length of a field counts (BM25).
const B: f32 = 0.5;
/// The bit of a posting that says that the term stands in the title of the operation.
const IN_TITLE: u32 = 1 << 31;
/// More words of a field do not count, so that a long text cannot raise the rank of its operation.
const MAX_FIELD_WORDS: usize = 500;

/// An operation that has a term.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub(crate) operation: usize,
    /// How much the term counts there, from 0 to 1.
    pub(crate) strength: f32,
    /// Whether its title has the term.
    pub(crate) is_in_title: bool,
}

/// The postings of all terms; those of one term are in the order of the document.
pub(crate) struct Postings {
    /// Where the postings of each term begin, and where the last ones end.
    starts: Vec<u32>,
    /// The operation of each posting, with [`IN_TITLE`] where its title has the term.
    operations: Vec<u32>,
    /// How much the term counts there, from 0 to 1.
    strengths: Vec<f32>,
}

/// The words of all operations, from which postings are made once the mean length of each field is known.
#[derive(Default)]
pub(crate) struct OperationWords {
    /// The words of all fields of all operations, one after the other.
    terms: Vec<Term>,
    /// How many words each field of each operation has.
    lengths: Vec<[u16; FIELDS]>,
}

impl Postings {
    /// The operations that have a term, in the order of the document.
    pub(crate) fn of(&self, term: Term) -> impl Iterator<Item = Posting> {
        let range = self.range(term);
        let operations = self.operations.get(range.clone()).unwrap_or_default();
        let strengths = self.strengths.get(range).unwrap_or_default();
        operations.iter().zip(strengths).map(|(operation, strength)| Posting {
            operation: (operation & !IN_TITLE) as usize,
            strength: *strength,
            is_in_title: operation & IN_TITLE != 0,
        })
    }

    /// How many operations have a term.
    #[must_use]
    pub(crate) fn count(&self, term: Term) -> usize {
        self.range(term).len()
    }

    /// About how many bytes they take.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        self.operations.len() * (size_of::<u32>() + size_of::<f32>()) + self.starts.len() * size_of::<u32>()
    }

    fn range(&self, term: Term) -> Range<usize> {
        let at = |index: usize| self.starts.get(index).map_or(0, |start| *start as usize);
        at(term as usize)..at(term as usize + 1)
    }
}

impl OperationWords {
    /// What is added from now on belongs to the next operation.
    pub(crate) fn begin_operation(&mut self) {
        self.lengths.push([0; FIELDS]);
    }

    /// Adds words of a field; the fields of an operation come in the order of [`Field`].
    pub(crate) fn add(&mut self, field: Field, terms: &[Term]) {
        let lengths = self.lengths.last_mut();
        let Some(length) = lengths.and_then(|lengths| lengths.get_mut(field as usize)) else {
            return;
        };
        let room = MAX_FIELD_WORDS.saturating_sub(usize::from(*length));
        let counted = terms.get(..room).unwrap_or(terms);
        *length += u16::try_from(counted.len()).unwrap_or_default();
        self.terms.extend_from_slice(counted);
    }

    /// The postings of so many terms. They are put where they belong without sorting, since the operations come in order.
    #[must_use]
    pub(crate) fn into_postings(self, terms: usize) -> Postings {
        let starts = self.starts(terms);
        let means = self.mean_lengths();
        let count = starts.last().map_or(0, |end| *end as usize);
        let (mut operations, mut strengths) = (vec![0; count], vec![0.0; count]);
        let mut next = starts.clone();
        // How often each term stands in a field of the operation, and how much it counts in all of them.
        let (mut counts, mut sums) = (vec![0_u16; terms], vec![0.0_f32; terms]);
        let (mut in_field, mut counted): (Vec<Term>, Vec<Term>) = (Vec::new(), Vec::new());
        for (operation, fields) in (0..).zip(self.fields()) {
            let mut in_title = 0;
            for (field, words) in fields {
                for term in words {
                    let Some(count) = counts.get_mut(*term as usize) else { continue };
                    if *count == 0 {
                        in_field.push(*term);
                    }
                    *count += 1;
                }
                let weigh = weight_of(field, words.len(), &means);
                for term in in_field.drain(..) {
                    let (Some(count), Some(sum)) = (counts.get_mut(term as usize), sums.get_mut(term as usize)) else {
                        continue;
                    };
                    if *sum == 0.0 {
                        counted.push(term);
                    }
                    *sum += weigh(std::mem::take(count));
                }
                if field == Field::Summary as usize {
                    in_title = counted.len();
                }
            }
            for (index, term) in counted.drain(..).enumerate() {
                let (Some(sum), Some(place)) = (sums.get_mut(term as usize), next.get_mut(term as usize)) else {
                    continue;
                };
                let sum = std::mem::take(sum);
                if let (Some(of), Some(strength)) = (operations.get_mut(*place as usize), strengths.get_mut(*place as usize)) {
                    *of = if index < in_title { operation | IN_TITLE } else { operation };
                    *strength = sum / (K1 + sum);
                }
                *place += 1;
            }
        }
        Postings {
            starts,
            operations,
            strengths,
        }
    }

    /// The fields of each operation that have words, by their numbers.
    fn fields(&self) -> impl Iterator<Item = impl Iterator<Item = (usize, &[Term])>> {
        let mut end = 0;
        self.lengths.iter().map(move |lengths| {
            let mut start = end;
            end += lengths.iter().copied().map(usize::from).sum::<usize>();
            lengths
                .iter()
                .enumerate()
                .filter(|(_, length)| **length > 0)
                .map(move |(field, length)| {
                    let from = start;
                    start += usize::from(*length);
                    (field, self.terms.get(from..start).unwrap_or_default())
                })
        })
    }

    /// Where the postings of each term begin, and where the last ones end.
    fn starts(&self, terms: usize) -> Vec<u32> {
        let mut starts = vec![0_u32; terms + 1];
        // The operation that had a term last, numbered from one.
        let mut last = vec![0_u32; terms];
        for (operation, fields) in (1..).zip(self.fields()) {
            for term in fields.flat_map(|(_, words)| words) {
                if let (Some(last), Some(count)) = (last.get_mut(*term as usize), starts.get_mut(*term as usize + 1))
                    && *last != operation
                {
                    *last = operation;
                    *count += 1;
                }
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        starts
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

/// How much a word counts, by how often it stands in a field of so many words.
fn weight_of(field: usize, length: usize, means: &[f32; FIELDS]) -> impl Fn(u16) -> f32 {
    let weight = Field::WEIGHTS.get(field).copied().unwrap_or_default();
    let mean = means.get(field).copied().unwrap_or(1.0);
    let share = 1.0 - B + B * to_f32(length) / mean;
    move |count| weight * f32::from(count) / share
}

/// Counts are small; what a `f32` cannot hold exactly makes no difference to a ranking.
#[expect(clippy::cast_precision_loss, reason = "a ranking needs no more than 24 bits of a count")]
pub(crate) fn to_f32(count: usize) -> f32 {
    count as f32
}

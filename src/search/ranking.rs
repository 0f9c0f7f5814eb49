//! Ranking: which operations answer a question, best first, or that none does.

use super::index::{IndexEntry, SearchIndex};
use super::question::{MAX_QUESTION_CHARACTERS, Question, steps};
use super::verbs::Verb;
use crate::annotate::Effect;
use http::Method;

/// How much more an operation counts that does what the question wants.
const VERB_FITS: f32 = 1.25;
const DEPRECATED: f32 = 0.7;
/// How much less an operation counts for each variable of its path.
const VARIABLE: f32 = 0.95;
/// What an operation counts that covers nothing of the question.
const UNCOVERED: f32 = 0.5;
/// From this strength on, a word is covered for the score of an operation.
const COVERED_STRENGTH: f32 = 0.4;
/// Where the best operations answer less of the question, nothing does.
const LEAST_ANSWERED: f32 = 0.27;
/// From this strength on, a word is answered: it stands in more than a remark.
const ANSWERED_STRENGTH: f32 = 0.7;
/// How far a synonym answers a word.
const SYNONYM_ANSWERS: f32 = 0.5;
/// How much a verb tells of the subject of a question.
const VERB_TELLS: f32 = 0.4;
/// How the rarity of a word counts in what it tells of the subject: less than in the score, because the subject of a question is
/// often a common word of the API.
const RARITY_POWER: f32 = 0.3;
/// How many of the best operations are asked whether they answer.
const ASKED: usize = 3;
/// Reciprocal rank fusion: how much the first ranks count more than the next.
const FUSION: f32 = 5.0;
/// How many operations of each list are fused.
const FUSED: usize = 50;

/// Operations that answer a question, best first.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    pub(crate) hits: Vec<usize>,
    /// Whether any word of the question occurs in any operation.
    pub(crate) is_known: bool,
    /// Whether there is anything to search for.
    pub(crate) has_words: bool,
}

/// One operation, and how well it fits.
struct Scored {
    operation: usize,
    score: f32,
    /// How much of the subject of the question it answers, from 0 to 1.
    answered: f32,
}

/// What the words of a question add up to for one operation.
#[derive(Clone, Copy, Default)]
struct Tally {
    score: f32,
    covered: f32,
    answered: f32,
    /// The best of the word that is being counted, and of its synonyms.
    word: Match,
}

/// How an operation has a word.
#[derive(Clone, Copy, Default)]
struct Match {
    gain: f32,
    covered: f32,
    answered: f32,
}

impl Match {
    fn new(gain: f32, strength: f32, answers: f32) -> Self {
        Self {
            gain,
            covered: (strength / COVERED_STRENGTH).min(1.0),
            answered: answers * (strength / ANSWERED_STRENGTH).min(1.0),
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            gain: self.gain.max(other.gain),
            covered: self.covered.max(other.covered),
            answered: self.answered.max(other.answered),
        }
    }
}

impl SearchIndex {
    /// The operations among the `admitted` that answer a question; none where the best of them leave most of it open.
    #[must_use]
    pub(crate) fn rank(&self, text: &str, admitted: &dyn Fn(usize) -> bool) -> Ranking {
        let end = text.char_indices().nth(MAX_QUESTION_CHARACTERS).map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or_default();
        let whole = Question::read(text, self);
        let mut lists = vec![self.score(&whole, admitted)];
        for step in steps(text) {
            lists.push(self.score(&Question::read(step, self), admitted));
        }
        let answers = |list: &Vec<Scored>| list.iter().take(ASKED).any(|scored| scored.answered >= LEAST_ANSWERED);
        Ranking {
            hits: if lists.iter().any(answers) { fuse(lists) } else { Vec::new() },
            is_known: whole.is_known(),
            has_words: !whole.words.is_empty(),
        }
    }

    /// All operations that have a word of the question, best first; equals in the order of the document.
    fn score(&self, question: &Question, admitted: &dyn Fn(usize) -> bool) -> Vec<Scored> {
        let mut tallies = vec![Tally::default(); self.len()];
        let (mut rarities, mut told) = (0.0, 0.0);
        for word in question.words.iter().filter(|word| !word.is_value) {
            let tells = word.rarity.powf(RARITY_POWER) * if word.is_verb { VERB_TELLS } else { 1.0 };
            rarities += word.rarity;
            told += tells;
            let mut touched: Vec<usize> = Vec::new();
            let mut count = |operation: usize, found: Match| {
                if let Some(tally) = tallies.get_mut(operation) {
                    if tally.word.gain == 0.0 {
                        touched.push(operation);
                    }
                    tally.word = tally.word.or(found);
                }
            };
            if let Some(term) = word.term {
                for (operation, strength) in self.postings(term) {
                    count(operation, Match::new(word.rarity * strength, strength, 1.0));
                }
            }
            for (terms, weight) in &word.alternatives {
                for (operation, gain, strength) in self.having_all(terms) {
                    count(operation, Match::new(weight * gain, strength, SYNONYM_ANSWERS));
                }
            }
            for operation in touched {
                if let Some(tally) = tallies.get_mut(operation) {
                    let found = std::mem::take(&mut tally.word);
                    tally.score += found.gain;
                    tally.covered += found.covered * word.rarity;
                    tally.answered += found.answered * tells;
                }
            }
        }
        let mut found: Vec<Scored> = Vec::new();
        for (operation, tally) in tallies.iter().enumerate().filter(|(_, tally)| tally.score > 0.0) {
            let Some(entry) = self.entry(operation).copied().filter(|_| admitted(operation)) else {
                continue;
            };
            let covered = UNCOVERED + (1.0 - UNCOVERED) * tally.covered / rarities;
            found.push(Scored {
                operation,
                score: tally.score * factor(entry, question.verb) * covered,
                answered: tally.answered / told,
            });
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// The operations that have all of some terms, with the mean of what each counts and the least strength.
    fn having_all(&self, terms: &[u32]) -> Vec<(usize, f32, f32)> {
        let Some((first, others)) = terms.split_first() else {
            return Vec::new();
        };
        let rarity = self.rarity(Some(*first));
        let mut found: Vec<(usize, f32, f32)> = self
            .postings(*first)
            .map(|(operation, strength)| (operation, rarity * strength, strength))
            .collect();
        for term in others {
            let rarity = self.rarity(Some(*term));
            let mut postings = self.postings(*term).peekable();
            found.retain_mut(|(operation, gain, least)| {
                while postings.next_if(|(other, _)| *other < *operation).is_some() {}
                let Some((_, strength)) = postings.peek().filter(|(other, _)| other == operation) else {
                    return false;
                };
                *gain += rarity * strength;
                *least = least.min(*strength);
                true
            });
        }
        found
    }
}

/// How much the score of an operation counts for what it is.
fn factor(entry: IndexEntry, verb: Option<Verb>) -> f32 {
    let fits = verb.is_some_and(|verb| {
        verb == entry.verb || (verb == Verb::Delete && entry.verb != Verb::Update && entry.effect == Effect::Destructive)
    });
    let by_verb = if fits { VERB_FITS } else { 1.0 };
    let by_age = if entry.is_deprecated { DEPRECATED } else { 1.0 };
    by_verb * by_age * VARIABLE.powi(i32::from(entry.variables))
}

/// One list of several: what stands first in many of them comes first.
fn fuse(mut lists: Vec<Vec<Scored>>) -> Vec<usize> {
    if lists.len() == 1 {
        let only = lists.pop().unwrap_or_default();
        return only.into_iter().map(|scored| scored.operation).collect();
    }
    let mut sums: Vec<(usize, f32)> = Vec::new();
    for list in &lists {
        let mut reciprocal = FUSION;
        for scored in list.iter().take(FUSED) {
            reciprocal += 1.0;
            let gain = reciprocal.recip();
            match sums.iter_mut().find(|(operation, _)| *operation == scored.operation) {
                Some((_, sum)) => *sum += gain,
                None => sums.push((scored.operation, gain)),
            }
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    sums.into_iter().map(|(operation, _)| operation).collect()
}

/// Whether a question is the name of an operation, its operationId, its path, or method and path, to the letter.
#[must_use]
pub(crate) fn names_exactly(question: &str, name: &str, id: Option<&str>, method: &Method, path: &str) -> bool {
    let question = question.trim();
    if question == name || id == Some(question) || question == path {
        return true;
    }
    let Some((first, rest)) = question.split_once(char::is_whitespace) else {
        return false;
    };
    first.eq_ignore_ascii_case(method.as_str()) && rest.trim() == path
}

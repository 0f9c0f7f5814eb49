//! Ranking: which operations answer a question, best first, or that none does.

use super::index::{IndexEntry, SearchIndex};
use super::postings::Posting;
use super::question::{Alternative, MAX_QUESTION_CHARACTERS, Question, steps};
use super::verbs::Verb;
use crate::annotate::Effect;
use http::Method;

/// How much more an operation counts that does what the question wants.
const VERB_FITS: f32 = 1.5;
/// How much a verb counts as a word: that the operation does it counts by itself.
const VERB_GAIN: f32 = 0.7;
/// How much more an operation counts that is about whoever calls, where the question is.
const OWN_FITS: f32 = 1.2;
const DEPRECATED: f32 = 0.7;
/// How much less an operation counts for each variable of its path.
const VARIABLE: f32 = 0.95;
/// What an operation counts that covers nothing of the question.
const UNCOVERED: f32 = 0.5;
/// From this strength on, a word is covered for the score of an operation.
const COVERED_STRENGTH: f32 = 0.4;
/// What an operation counts of whose title the question names nothing: `List containers` is closer to `running containers` than
/// `List processes running inside a container`.
const UNNAMED: f32 = 0.5;
/// How far a synonym names a word of a title.
const SYNONYM_NAMES: f32 = 0.7;
/// Where the best operations fit less, nothing answers the question.
const LEAST_FIT: f32 = 0.79;
/// What the share of the title that the question names, and the share of the score that it could have, add to how far an operation
/// fits a question, besides the share of the question that it answers.
const NAMED_FITS: f32 = 0.8;
const SCORE_FITS: f32 = 0.6;
/// From this strength on, a word is answered: it stands in more than a remark.
const ANSWERED_STRENGTH: f32 = 0.7;
/// How much a verb tells of the subject of a question.
const VERB_TELLS: f32 = 0.4;
/// How the rarity of a word counts in what it tells of the subject: less than in the score, because the subject of a question is
/// often a common word of the API.
const RARITY_POWER: f32 = 0.3;
/// How many of the best operations are asked whether they fit.
const ASKED: usize = 3;
/// Reciprocal rank fusion: how much the first ranks count more than the next.
const FUSION: f32 = 5.0;
/// How much the whole of a question of two parts counts, which may as well be one: `who can comment and open issues`.
const WHOLE_OF_TWO: f32 = 1.2;
/// The same of a question of more parts.
const WHOLE_OF_MORE: f32 = 0.7;
/// How many operations of each list are fused.
const FUSED: usize = 50;
/// After so many operations come those that yield what the first few need.
const NEEDS_AFTER: usize = 7;
/// How many of the first operations are asked for what they need.
const NEEDY: usize = 3;

/// Operations that answer a question, best first.
#[derive(Debug, Default)]
pub(crate) struct Ranking {
    pub(crate) hits: Vec<usize>,
    /// Whether any word of the question occurs in any operation.
    pub(crate) is_known: bool,
    /// Whether there is anything to search for.
    pub(crate) has_words: bool,
    /// How far the best operation fits.
    pub(crate) fit: f32,
}

/// One operation, and how well it fits.
struct Scored {
    operation: usize,
    score: f32,
    /// How far it fits the question: what it answers of the subject, what the question names of its title, and its score.
    fit: f32,
}

/// What the words of a question add up to for one operation.
#[derive(Clone, Copy, Default)]
struct Tally {
    score: f32,
    covered: f32,
    answered: f32,
    named: f32,
    /// The best of the word that is being counted, and of its synonyms.
    word: Match,
}

/// How an operation has a word.
#[derive(Clone, Copy, Default)]
struct Match {
    gain: f32,
    covered: f32,
    answered: f32,
    /// What it names of the title.
    named: f32,
}

impl Match {
    fn new(gain: f32, strength: f32, answers: f32, named: f32) -> Self {
        Self {
            gain,
            covered: (strength / COVERED_STRENGTH).min(1.0),
            answered: answers * (strength / ANSWERED_STRENGTH).min(1.0),
            named,
        }
    }

    fn or(self, other: Self) -> Self {
        Self {
            gain: self.gain.max(other.gain),
            covered: self.covered.max(other.covered),
            answered: self.answered.max(other.answered),
            named: self.named.max(other.named),
        }
    }
}

/// How an operation has all words of a phrase.
struct PhraseMatch {
    operation: usize,
    gain: f32,
    /// The least of its words.
    strength: f32,
    named: f32,
}

impl SearchIndex {
    /// The operations among the `admitted` that answer a question; none where the best of them leave most of it open.
    #[must_use]
    pub(crate) fn rank(&self, text: &str, admitted: &dyn Fn(usize) -> bool) -> Ranking {
        let end = text.char_indices().nth(MAX_QUESTION_CHARACTERS).map_or(text.len(), |(at, _)| at);
        let text = text.get(..end).unwrap_or_default();
        let whole = Question::read(text, self);
        let mut lists = vec![self.score(&whole, admitted)];
        lists.extend(steps(text).iter().map(|step| self.score(&Question::read(step, self), admitted)));
        let asked = lists.iter().flat_map(|list| list.iter().take(ASKED));
        let fit = asked.map(|scored| scored.fit).fold(0.0, f32::max);
        let is_one_step = lists.len() == 1;
        let mut hits = if fit >= LEAST_FIT { fuse(lists) } else { Vec::new() };
        if is_one_step {
            self.put_sources(&mut hits, admitted);
        }
        Ranking {
            hits,
            is_known: whole.is_known(),
            has_words: !whole.words.is_empty(),
            fit,
        }
    }

    /// After the first hits, puts the operations that yield what the very first ones need: they are called before.
    fn put_sources(&self, hits: &mut Vec<usize>, admitted: &dyn Fn(usize) -> bool) {
        let tail = hits.split_off(hits.len().min(NEEDS_AFTER));
        let first_source = |hit: &usize| self.needs(*hit).first().map(|need| need.operation as usize);
        let mut moved: Vec<usize> = Vec::new();
        for source in hits.iter().take(NEEDY).filter_map(first_source) {
            if !tail.is_empty() && admitted(source) && !hits.contains(&source) && !moved.contains(&source) {
                moved.push(source);
            }
        }
        hits.extend(&moved);
        hits.extend(tail.iter().filter(|operation| !moved.contains(operation)));
    }

    /// All operations that have a word of the question, best first; equals in the order of the document.
    fn score(&self, question: &Question, admitted: &dyn Fn(usize) -> bool) -> Vec<Scored> {
        let mut tallies = vec![Tally::default(); self.len()];
        let (mut rarities, mut told) = (0.0, 0.0);
        for word in question.words.iter().filter(|word| !word.is_value) {
            let tells = word.weight * word.rarity.powf(RARITY_POWER) * if word.is_verb { VERB_TELLS } else { 1.0 };
            let rarity = word.weight * word.rarity * if word.is_verb { VERB_GAIN } else { 1.0 };
            rarities += rarity;
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
                let names = if word.is_verb { 0.0 } else { self.tells_of_title(term) };
                for posting in self.postings(term) {
                    let named = if posting.is_in_title { names } else { 0.0 };
                    count(
                        posting.operation,
                        Match::new(rarity * posting.strength, posting.strength, 1.0, named),
                    );
                }
            }
            for Alternative { terms, weight, answers } in &word.alternatives {
                for found in self.having_all(terms) {
                    let gain = word.weight * weight * found.gain;
                    count(
                        found.operation,
                        Match::new(gain, found.strength, *answers, SYNONYM_NAMES * found.named),
                    );
                }
            }
            for operation in touched {
                if let Some(tally) = tallies.get_mut(operation) {
                    let found = std::mem::take(&mut tally.word);
                    tally.score += found.gain;
                    tally.covered += found.covered * rarity;
                    tally.answered += found.answered * tells;
                    tally.named += found.named;
                }
            }
        }
        let mut found: Vec<Scored> = Vec::new();
        for (operation, tally) in tallies.iter().enumerate().filter(|(_, tally)| tally.score > 0.0) {
            let Some(entry) = self.entry(operation).copied().filter(|_| admitted(operation)) else {
                continue;
            };
            let covered = UNCOVERED + (1.0 - UNCOVERED) * tally.covered / rarities;
            let title = self.title_weight(operation);
            let named = if title > 0.0 { (tally.named / title).min(1.0) } else { 0.0 };
            found.push(Scored {
                operation,
                score: tally.score * factor(entry, question) * covered * (UNNAMED + (1.0 - UNNAMED) * named),
                fit: tally.answered / told + NAMED_FITS * named + SCORE_FITS * tally.score / rarities,
            });
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// The operations that have all of some terms.
    fn having_all(&self, terms: &[u32]) -> Vec<PhraseMatch> {
        let Some((first, others)) = terms.split_first() else {
            return Vec::new();
        };
        let of = |posting: Posting, term: u32| PhraseMatch {
            operation: posting.operation,
            gain: self.rarity(Some(term)) * posting.strength,
            strength: posting.strength,
            named: if posting.is_in_title { self.tells_of_title(term) } else { 0.0 },
        };
        let mut found: Vec<PhraseMatch> = self.postings(*first).map(|posting| of(posting, *first)).collect();
        for term in others {
            let mut postings = self.postings(*term).peekable();
            found.retain_mut(|known| {
                while postings.next_if(|other| other.operation < known.operation).is_some() {}
                let Some(other) = postings.peek().filter(|other| other.operation == known.operation) else {
                    return false;
                };
                let other = of(*other, *term);
                known.gain += other.gain;
                known.strength = known.strength.min(other.strength);
                known.named += other.named;
                true
            });
        }
        found
    }
}

/// How much the score of an operation counts for what it is.
fn factor(entry: IndexEntry, question: &Question) -> f32 {
    let fits = question.verb.is_some_and(|verb| {
        verb == entry.verb || (verb == Verb::Delete && entry.verb != Verb::Update && entry.effect == Effect::Destructive)
    });
    let of = |is_so: bool, more: f32| if is_so { more } else { 1.0 };
    of(fits, VERB_FITS)
        * of(question.is_own && entry.is_own, OWN_FITS)
        * of(entry.is_deprecated, DEPRECATED)
        * VARIABLE.powi(i32::from(entry.variables))
}

/// One list of several: what stands first in many of them comes first.
fn fuse(mut lists: Vec<Vec<Scored>>) -> Vec<usize> {
    if lists.len() == 1 {
        let only = lists.pop().unwrap_or_default();
        return only.into_iter().map(|scored| scored.operation).collect();
    }
    let mut sums: Vec<(usize, f32)> = Vec::new();
    // The first list is that of the whole question.
    let of_whole = if lists.len() == 3 { WHOLE_OF_TWO } else { WHOLE_OF_MORE };
    for (list, weight) in lists.iter().zip(std::iter::once(of_whole).chain(std::iter::repeat(1.0))) {
        let mut reciprocal = FUSION;
        for scored in list.iter().take(FUSED) {
            reciprocal += 1.0;
            let gain = weight * reciprocal.recip();
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

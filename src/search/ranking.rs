//! Ranking: which operations answer a question, best first, or that none does.

use super::index::{Listed, SearchIndex, to_f32};
use super::question::{MAX_QUESTION_CHARACTERS, Question, QuestionWord, WordMeaning};
use super::words::{Term, Writing, is_stop_word, words_of};
use crate::annotate::Tool;
use crate::spec::Operation;

/// Weight of a synonym, compared to the word itself.
const SYNONYM: f32 = 0.7;
/// Weight of a verb as a word, compared to others: the effect of an operation is known in addition.
const VERB: f32 = 0.5;
/// Smallest strength at which an operation covers a word.
const COVERS: f32 = 0.3;
/// Weight of an unknown word in the coverage.
const UNKNOWN: f32 = 2.0;
/// The factor of an operation that does what the question wants.
const VERB_FITS: f32 = 1.5;
/// The factor of an operation that is deprecated.
const DEPRECATED: f32 = 0.7;
/// The factor for each variable of the path.
const VARIABLE: f32 = 0.95;
/// Weight of the named share of its title in the fit of an operation.
const NAMED_FITS: f32 = 0.7;
/// Smallest fit of the best operations at which there are hits.
const LEAST_FIT: f32 = 0.6;
/// Share of the best score that a good hit has.
const GOOD_SHARE: f32 = 0.5;
/// Number of the best operations whose fit is checked.
const ASKED: usize = 3;
/// Number of operations after which those that yield the values of the first few come.
const NEEDS_AFTER: usize = 7;
/// Number of the first operations whose needs are added.
const NEEDY: usize = 3;

/// Operations that answer a question.
pub(crate) struct Ranking<T> {
    /// Best first.
    pub(crate) hits: Vec<T>,
    /// Number of the first of them that answer about as well as the best one.
    pub(crate) good: usize,
    /// True if any word of the question occurs in any operation.
    pub(crate) is_known: bool,
    /// True if there are words to search for.
    pub(crate) has_words: bool,
    /// Fit of the best operation, which can be compared with that of another API.
    pub(crate) fit: f32,
}

/// One operation, and how well it answers.
struct Scored {
    operation: usize,
    score: f32,
    /// Fit to the question, independent of its rank.
    fit: f32,
}

/// Sums over the words of a question for one operation; the same of one word.
#[derive(Clone, Copy, Default)]
struct Tally {
    score: f32,
    covered: f32,
}

impl SearchIndex {
    /// Returns the operations among the `admitted` that answer a question; none if the best of them
    /// leave most of it open. Words count as if the API had only the operations that are `listed`.
    pub(crate) fn rank(
        &self,
        text: &str,
        listed: Listed<'_>,
        admitted: &dyn Fn(usize) -> bool,
    ) -> Ranking<usize> {
        let text: String = text.chars().take(MAX_QUESTION_CHARACTERS).collect();
        let question = Question::read(&text, self, listed);
        let scored = self.score(&question, listed, admitted);
        let best = scored.iter().take(ASKED);
        let fit = best.map(|scored| scored.fit).fold(0.0, f32::max);
        let (mut hits, mut good) = (Vec::new(), 0);
        if fit >= LEAST_FIT {
            let least = scored.first().map_or(0.0, |best| best.score * GOOD_SHARE);
            good = scored.partition_point(|scored| scored.score >= least);
            hits.extend(scored.iter().map(|scored| scored.operation));
            self.put_sources(&mut hits, admitted);
        }
        Ranking {
            hits,
            good,
            is_known: question.is_known(),
            has_words: question.has_words,
            fit,
        }
    }

    /// Puts after the first hits the operations that yield the values that the very first ones
    /// need.
    fn put_sources(&self, hits: &mut Vec<usize>, admitted: &dyn Fn(usize) -> bool) {
        let tail = hits.split_off(hits.len().min(NEEDS_AFTER));
        let mut moved: Vec<usize> = Vec::new();
        for source in hits
            .iter()
            .take(NEEDY)
            .filter_map(|hit| self.needs(*hit).first().map(|need| need.operation as usize))
        {
            if !tail.is_empty()
                && admitted(source)
                && !hits.contains(&source)
                && !moved.contains(&source)
            {
                moved.push(source);
            }
        }
        hits.extend(&moved);
        hits.extend(tail.iter().filter(|operation| !moved.contains(operation)));
    }

    /// All operations that have a word of the question, best first; equals in the order of the
    /// document.
    fn score(
        &self,
        question: &Question,
        listed: Listed<'_>,
        admitted: &dyn Fn(usize) -> bool,
    ) -> Vec<Scored> {
        let all = 0..self.len();
        let count = all
            .filter(|one| listed.is_none_or(|is_listed| is_listed(*one)))
            .count();
        let mut tallies = vec![Tally::default(); self.len()];
        let mut all_weights = 0.0;
        let of = |is_so: bool, factor: f32| if is_so { factor } else { 1.0 };
        for word in &question.words {
            let counts = of(word.is_verb, VERB);
            let weight = counts * of(word.meanings.is_empty(), UNKNOWN);
            all_weights += weight;
            for (tally, found) in tallies.iter_mut().zip(self.find(word, count, listed)) {
                tally.score += counts * found.score;
                tally.covered += weight * found.covered;
            }
        }
        let subjects = question.words.iter().filter(|word| !word.is_verb);
        let subjects: Vec<WordMeaning> = subjects
            .flat_map(|word| word.meanings.iter().copied())
            .collect();
        let mut found: Vec<Scored> = Vec::new();
        for (operation, (tally, entry)) in tallies.iter().zip(&self.entries).enumerate() {
            if tally.score == 0.0 || !admitted(operation) {
                continue;
            }
            let covered = tally.covered / all_weights;
            let named = share_named(&entry.title, &subjects);
            let fits = question.verb.is_some_and(|verb| entry.fits(verb));
            let shortness = f32::midpoint(1.0, named) * VARIABLE.powi(i32::from(entry.variables));
            let coverage = f32::midpoint(1.0, covered);
            found.push(Scored {
                operation,
                score: tally.score
                    * coverage
                    * shortness
                    * of(fits, VERB_FITS)
                    * of(entry.is_deprecated, DEPRECATED),
                fit: covered + NAMED_FITS * named,
            });
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found
    }

    /// Finds the strength of a word, or the best of its synonyms, in each operation.
    fn find(&self, word: &QuestionWord, count: usize, listed: Listed<'_>) -> Vec<Tally> {
        let mut found = vec![Tally::default(); self.len()];
        for meaning in &word.meanings {
            let rarity = self.rarity(meaning.term, count, listed);
            for posting in self.postings(meaning.term) {
                if let Some(known) = found.get_mut(posting.operation as usize) {
                    let covered = (posting.strength / COVERS).min(1.0);
                    known.score = known
                        .score
                        .max(meaning.counts() * rarity * posting.strength);
                    known.covered = known.covered.max(meaning.counts() * covered);
                }
            }
        }
        found
    }
}

impl WordMeaning {
    fn counts(self) -> f32 {
        if self.is_synonym { SYNONYM } else { 1.0 }
    }
}

/// The share of the words of a title that a question names.
fn share_named(title: &[Term], subjects: &[WordMeaning]) -> f32 {
    let named = title.iter().map(|term| {
        let meanings = subjects.iter().filter(|meaning| meaning.term == *term);
        meanings.map(|meaning| meaning.counts()).fold(0.0, f32::max)
    });
    named.sum::<f32>() / to_f32(title.len().max(1))
}

/// Returns true if a question is the name of a tool, or the operationId, the path, or method and
/// path of its operation, exactly.
pub(crate) fn names_exactly(question: &str, tool: &Tool) -> bool {
    let Operation {
        id, method, path, ..
    } = tool.operation.as_ref();
    let question = question.trim();
    if question == &*tool.name || id.as_deref() == Some(question) || question == path {
        return true;
    }
    let Some((first, rest)) = question.split_once(char::is_whitespace) else {
        return false;
    };
    first.eq_ignore_ascii_case(method.as_str()) && rest.trim() == path
}

/// Compares the words of a question with those of a name, in order and without stop words;
/// `archive a feature` says `archiveFeature`.
pub(crate) fn says_name(question: &str, name: &str) -> bool {
    let [question, name] = [question, name].map(|text| {
        let mut words = words_of(text, Writing::Identifier);
        words.retain(|word| !is_stop_word(word));
        words
    });
    question == name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_says_a_name_with_all_its_words() {
        for (question, name, says) in [
            ("archive a feature", "archiveFeature", true),
            ("Archive the Feature!", "archive_feature", true),
            ("archive features", "archiveFeature", false),
            ("archive a feature of a project", "archiveFeature", false),
            ("feature archive", "archiveFeature", false),
        ] {
            assert_eq!(says_name(question, name), says, "{question}");
        }
    }
}

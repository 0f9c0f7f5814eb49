//! A question: its words, what else they may mean, what it wants to do, and the steps that it consists of.

use super::derivations::{derived_stems, glued_parts};
use super::index::SearchIndex;
use super::synonyms::alternatives_of;
use super::verbs::Verb;
use super::vocabulary::Term;
use super::words::{Writing, each_word, is_ideograph, is_stop_word, stem};

/// More of a question is not read.
pub(crate) const MAX_QUESTION_CHARACTERS: usize = 400;
/// How much the words of a phrase count, and how far they answer it.
const ITSELF: [f32; 2] = [1.0, 1.0];
/// How much a synonym counts, and how far it answers the word.
const SYNONYM: [f32; 2] = [0.35, 0.5];
/// The same of a word of the same origin, such as `payment` for `pay`.
const DERIVED: [f32; 2] = [0.5, 0.8];
/// The same of a word that is written in two words, or two that are written in one: `usergroups`.
const GLUED: [f32; 2] = [0.8, 1.0];
/// Shorter words are not looked for in words of two.
const MIN_GLUED_BYTES: usize = 3;
/// Words by which those who ask speak of themselves.
const OWN_WORDS: [&str; 4] = ["i", "me", "my", "mine"];
/// How much a word counts that is part of a value, such as an address: the API knows the word by chance.
const PART_OF_VALUE: f32 = 0.25;
/// Words by which a step refers to what the one before names.
const PRONOUNS: [&str; 8] = ["it", "them", "this", "that", "these", "those", "him", "her"];
/// How many words of a step count for one that refers to it.
const INHERITED: usize = 3;

/// A question as the index understands it.
pub(crate) struct Question {
    pub(crate) words: Vec<QuestionWord>,
    pub(crate) verb: Option<Verb>,
    /// Whether those who ask speak of themselves: `my boards`.
    pub(crate) is_own: bool,
}

/// A word of a question, or a phrase that the synonyms know.
pub(crate) struct QuestionWord {
    pub(crate) term: Option<Term>,
    /// How much the word tells.
    pub(crate) rarity: f32,
    /// How much it counts.
    pub(crate) weight: f32,
    /// What else it may mean.
    pub(crate) alternatives: Vec<Alternative>,
    /// Whether it says what to do, and not with what.
    pub(crate) is_verb: bool,
    /// Whether it is a name or another value, which no operation has to know.
    pub(crate) is_value: bool,
}

/// What a word may mean besides itself.
pub(crate) struct Alternative {
    /// An operation must have all of them.
    pub(crate) terms: Vec<Term>,
    /// How much it counts.
    pub(crate) weight: f32,
    /// How far it answers the word.
    pub(crate) answers: f32,
}

impl Alternative {
    fn new(terms: Vec<Term>, [weight, answers]: [f32; 2]) -> Self {
        Self { terms, weight, answers }
    }
}

/// The folded words of a text; of scripts without spaces, the pairs of letters, and a letter that stands alone.
fn folded_words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    each_word(text, Writing::Prose, |word| {
        let mut letters = word.chars();
        let is_pair = letters.next().is_some_and(is_ideograph) && letters.next().is_some();
        if is_pair && let Some(before) = words.pop_if(|before| before.chars().count() == 1 && word.starts_with(before.as_str())) {
            drop(before);
        }
        words.push(word.to_owned());
    });
    // The second letter of a pair came as a letter of its own, after which the pair was shown.
    let mut kept: Vec<String> = Vec::with_capacity(words.len());
    for word in words {
        if let Some(last) = kept.last()
            && word.chars().count() > 1
            && word.chars().next().is_some_and(is_ideograph)
            && last.chars().count() == 1
            && word.ends_with(last.as_str())
        {
            kept.pop();
        }
        kept.push(word);
    }
    kept
}

impl Question {
    /// Reads a question; it has no words where it consists of stop words only.
    #[must_use]
    pub(crate) fn read(text: &str, index: &SearchIndex) -> Self {
        let words = folded_words(text);
        let verb = Verb::of_question(&words);
        let values = ValueWords::read(text);
        let mut read: Vec<QuestionWord> = Vec::new();
        let mut stems: Vec<String> = Vec::new();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let phrase = [3, 2].into_iter().find_map(|length| {
                let part = words.get(at..at + length)?;
                let key = part.iter().map(|word| stem(word)).collect::<Vec<_>>().join("_");
                Some((length, QuestionWord::of_phrase(&key, index)?, key))
            });
            if let Some((length, phrase, key)) = phrase {
                if !stems.contains(&key) {
                    read.push(phrase);
                    stems.push(key);
                }
                at += length;
                continue;
            }
            at += 1;
            let stemmed = stem(word).into_owned();
            if is_stop_word(word) || stems.contains(&stemmed) {
                continue;
            }
            let mut known = QuestionWord::of_word(word, &stemmed, index);
            let neighbours = [at.checked_sub(2).map(|before| [before, at - 1]), Some([at - 1, at])];
            for [first, second] in neighbours.into_iter().flatten() {
                known.alternatives.extend(glued_pair(&words, [first, second], index));
            }
            let is_unknown = known.term.is_none() && known.alternatives.is_empty();
            known.is_value = is_unknown && values.likely.contains(word) || word.bytes().all(|byte| byte.is_ascii_digit());
            if values.certain.contains(word) {
                known.weight = PART_OF_VALUE;
            }
            known.is_verb = Verb::is_verb(word);
            read.push(known);
            stems.push(stemmed);
        }
        Self {
            is_own: words.iter().any(|word| OWN_WORDS.contains(&word.as_str())),
            words: read,
            verb,
        }
    }

    /// Whether any word of it occurs in any operation.
    #[must_use]
    pub(crate) fn is_known(&self) -> bool {
        self.words.iter().any(|word| word.term.is_some() || !word.alternatives.is_empty())
    }
}

impl QuestionWord {
    fn of_word(word: &str, stemmed: &str, index: &SearchIndex) -> Self {
        let term = index.term(stemmed);
        let mut alternatives = known_alternatives(stemmed, index);
        let derived = derived_stems(stemmed).filter_map(|stem| index.term(&stem));
        alternatives.extend(derived.map(|term| Alternative::new(vec![term], DERIVED)));
        if term.is_none() {
            let parts = glued_parts(word, |part| index.term(&stem(part)));
            alternatives.extend(parts.map(|parts| Alternative::new(parts.to_vec(), GLUED)));
        }
        Self {
            term,
            rarity: index.rarity(term),
            weight: 1.0,
            alternatives,
            is_verb: false,
            is_value: false,
        }
    }

    /// A phrase, which also means its own words; `None` where no operation has what else it may mean.
    fn of_phrase(key: &str, index: &SearchIndex) -> Option<Self> {
        let mut alternatives = known_alternatives(key, index);
        if alternatives.is_empty() {
            return None;
        }
        let own: Option<Vec<Term>> = key.split('_').map(|stem| index.term(stem)).collect();
        alternatives.extend(own.map(|terms| Alternative::new(terms, ITSELF)));
        let rarest = alternatives
            .iter()
            .flat_map(|alternative| &alternative.terms)
            .map(|term| index.rarity(Some(*term)));
        let rarity = rarest.fold(0.0, f32::max);
        Some(Self {
            term: None,
            rarity,
            weight: 1.0,
            alternatives,
            is_verb: false,
            is_value: false,
        })
    }
}

fn known_alternatives(key: &str, index: &SearchIndex) -> Vec<Alternative> {
    let known = |stems: &Vec<String>| stems.iter().map(|stem| index.term(stem)).collect::<Option<Vec<Term>>>();
    alternatives_of(key)
        .iter()
        .filter_map(known)
        .map(|terms| Alternative::new(terms, SYNONYM))
        .collect()
}

/// Two words as an API may write them in one: `user groups` as `usergroups`.
fn glued_pair(words: &[String], [first, second]: [usize; 2], index: &SearchIndex) -> Option<Alternative> {
    let (first, second) = (words.get(first)?, words.get(second)?);
    let is_short = first.len() < MIN_GLUED_BYTES || second.len() < MIN_GLUED_BYTES;
    let term = (!is_short).then(|| index.term(&stem(&format!("{first}{second}")))).flatten()?;
    Some(Alternative::new(vec![term], GLUED))
}

/// The folded words of what looks like a value.
#[derive(Default)]
struct ValueWords {
    /// What stands in quotes, holds a mark as addresses and paths do, or digits as identifiers do.
    certain: Vec<String>,
    /// Also what holds a digit or an underscore, or begins with a capital letter without being the first word.
    likely: Vec<String>,
}

impl ValueWords {
    fn read(text: &str) -> Self {
        let mut found = Self::default();
        let mut is_quoted = false;
        for (index, token) in text.split_whitespace().enumerate() {
            let trimmed = token.trim_matches(|character: char| matches!(character, '.' | ',' | '?' | '!' | ':' | ';' | '(' | ')'));
            let opens = trimmed.starts_with(['"', '\u{201c}', '\'']);
            let closes = trimmed.len() > 1 && trimmed.ends_with(['"', '\u{201d}', '\'']);
            is_quoted |= opens;
            let has_digit = trimmed.contains(char::is_numeric);
            let has_mark = trimmed.contains(['/', '@', '.', '=', '$']);
            let is_certain = is_quoted || has_mark || (has_digit && trimmed.contains(['-', '_']));
            let is_name = index > 0 && trimmed.starts_with(char::is_uppercase);
            if is_certain || is_name || has_digit || trimmed.contains(['_', '#']) {
                let words = folded_words(trimmed);
                if is_certain {
                    found.certain.extend(words.iter().cloned());
                }
                found.likely.extend(words);
            }
            is_quoted &= !closes;
        }
        found
    }
}

/// The steps of a question that asks for several: its parts at `and`, `then`, and marks of punctuation. None where it is one. A step
/// that names nothing itself (`close it`) is about what the step before names, and one that only names something does what the step
/// before does: `create a project, section and task`.
#[must_use]
pub(crate) fn steps(text: &str) -> Vec<String> {
    let mut steps: Vec<String> = Vec::new();
    let (mut named_before, mut verb_before) = (Vec::new(), None);
    let pieces = text.split([',', ';', ':', '\n']).flat_map(split_at_words);
    for part in pieces.flat_map(|piece| piece.split(". ")) {
        let mut words = folded_words(part);
        let refers_back = words.iter().any(|word| PRONOUNS.contains(&word.as_str()));
        words.retain(|word| !is_stop_word(word) && !word.bytes().all(|byte| byte.is_ascii_digit()));
        if words.is_empty() {
            continue;
        }
        let (verbs, mut named): (Vec<String>, Vec<String>) = words.iter().cloned().partition(|word| Verb::is_verb(word));
        let mut step = part.to_owned();
        let is_reference = named.is_empty() || (words.len() == 1 && refers_back);
        if is_reference {
            for word in named_before.iter().filter(|word| !words.contains(word)) {
                step.push(' ');
                step.push_str(word);
            }
        } else if let Some(verb) = verb_before.as_ref().filter(|_| words.len() == 1) {
            step = format!("{verb} {}", part.trim());
        }
        if !is_reference {
            named.truncate(INHERITED);
            named_before = named;
        }
        verb_before = verbs.into_iter().next().or(verb_before);
        steps.push(step);
    }
    if steps.len() > 1 { steps } else { Vec::new() }
}

fn split_at_words(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for (at, _) in text.match_indices(' ') {
        let rest = text.get(at + 1..).unwrap_or_default();
        let joint = ["and ", "then ", "und ", "et ", "y "]
            .into_iter()
            .find(|joint| rest.starts_with(joint));
        if let Some(joint) = joint.filter(|_| at >= start) {
            parts.push(text.get(start..at).unwrap_or_default());
            start = at + 1 + joint.len();
        }
    }
    parts.push(text.get(start..).unwrap_or_default());
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_of_several_steps_is_taken_apart() {
        assert_eq!(
            steps("Cut release v1 of acme and attach the archive, then notify the team"),
            ["Cut release v1 of acme", "attach the archive", "notify the team"]
        );
        assert_eq!(
            steps("Comment on an issue, then close it"),
            ["Comment on an issue", "close it comment issue"]
        );
        assert_eq!(
            steps("Create a project, section and task"),
            ["Create a project", "create section", "create task"]
        );
        assert!(steps("list the pets of an owner").is_empty() && steps("pets, please").is_empty());
    }
}

//! A question: its words, what they may also mean, and what it wants to do. Synonyms are words that
//! mean the same to people who use APIs.

use std::sync::LazyLock;

use foldhash::HashMap;

use super::index::{Listed, SearchIndex};
use super::verbs::Verb;
use super::words::{Term, Writing, is_particle, is_stop_word, stem, words_of};
use crate::text::is_word_of;

/// More of a question is not read.
pub(crate) const MAX_QUESTION_CHARACTERS: usize = 400;

/// Verbs whose meaning a particle changes: `turn on`, `log in`, `set up`.
const PHRASAL_VERBS: &str =
    "turn switch power shut log sign set opt check roll scale spin start take clean hang lock";

/// A question as the index understands it.
pub(crate) struct Question {
    /// Its words, without stop words and values.
    pub(crate) words: Vec<QuestionWord>,
    pub(crate) verb: Option<Verb>,
    /// True if the question has a word that is not a stop word.
    pub(crate) has_words: bool,
}

/// A word of a question.
pub(crate) struct QuestionWord {
    /// Its term and those of its synonyms, if any operation has them.
    pub(crate) meanings: Vec<WordMeaning>,
    /// True if the word is an action, and not its object.
    pub(crate) is_verb: bool,
}

/// A term that a word of a question may mean.
#[derive(Clone, Copy)]
pub(crate) struct WordMeaning {
    pub(crate) term: Term,
    pub(crate) is_synonym: bool,
}

impl Question {
    /// Reads a question by the rules by which documents are read.
    pub(crate) fn read(text: &str, index: &SearchIndex, listed: Listed<'_>) -> Self {
        let folded = words_of(text, Writing::Prose);
        let stems: Vec<String> = folded.iter().map(|word| stem(word).into_owned()).collect();
        let likely_values = words_of_values(text);
        let mut words = Vec::new();
        // The verb that a particle may belong to: `turn a feature on`.
        let mut phrasal: Option<&String> = None;
        let mut read: Vec<&str> = Vec::new();
        for (at, (word, stemmed)) in folded.iter().zip(&stems).enumerate() {
            let verb = phrasal.take_if(|_| is_particle(word));
            if is_word_of(PHRASAL_VERBS, stemmed) {
                phrasal = Some(stemmed);
            }
            let stops = if is_particle(word) {
                verb.is_none()
            } else {
                is_stop_word(word)
            };
            if stops || read.contains(&stemmed.as_str()) {
                continue;
            }
            read.push(stemmed);
            let pair = match verb {
                Some(verb) => format!("{verb}_{stemmed}"),
                None => format!("{stemmed}_{}", stems.get(at + 1).map_or("", String::as_str)),
            };
            let meanings = meanings_of(stemmed, &pair, index, listed);
            let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
            if is_number || (meanings.is_empty() && likely_values.contains(word)) {
                continue;
            }
            words.push(QuestionWord {
                is_verb: Verb::is_verb(word),
                meanings,
            });
        }
        Self {
            words,
            verb: Verb::of_question(&folded),
            has_words: !read.is_empty(),
        }
    }

    /// Returns true if any word of it occurs in any operation.
    pub(crate) fn is_known(&self) -> bool {
        self.words.iter().any(|word| !word.meanings.is_empty())
    }
}

/// The meanings of a stem, alone and in a pair of stems such as `turn_off`, as far as any operation
/// has them.
fn meanings_of(
    stem: &str,
    pair: &str,
    index: &SearchIndex,
    listed: Listed<'_>,
) -> Vec<WordMeaning> {
    let synonyms = synonyms_of(stem).iter().chain(synonyms_of(pair));
    std::iter::once((stem, false))
        .chain(synonyms.map(|synonym| (synonym.as_str(), true)))
        .filter_map(|(stem, is_synonym)| {
            Some(WordMeaning {
                term: index.term(stem, listed)?,
                is_synonym,
            })
        })
        .collect()
}

/// The words of a question that may be values: those in quotes, with a digit or a mark as addresses
/// and identifiers have, or with a capital letter although they are not the first.
fn words_of_values(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut is_quoted = false;
    for (index, token) in text.split_whitespace().enumerate() {
        let token = token.trim_matches(['.', ',', '?', '!', ':', ';', '(', ')']);
        is_quoted |= token.starts_with(['"', '\u{201c}', '\'']);
        let is_name = index > 0 && token.starts_with(char::is_uppercase);
        let has_mark = token
            .contains(|character: char| character.is_numeric() || "/@.=$_#".contains(character));
        if is_quoted || is_name || has_mark {
            found.extend(words_of(token, Writing::Prose));
        }
        is_quoted &= !token.ends_with(['"', '\u{201d}', '\'']);
    }
    found
}

/// Groups of synonyms: in each line, a word, or two joined by `_`, and its synonyms. Of a synonym
/// that is joined by `_`, each word counts.
const GROUPS: &str = include_str!("synonyms.txt");

static TABLE: LazyLock<HashMap<String, Vec<String>>> = LazyLock::new(|| {
    let mut table: HashMap<String, Vec<String>> = HashMap::default();
    for line in GROUPS.lines() {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or_default().split('_').map(stem);
        let key: Vec<_> = key.collect();
        let synonyms = words.flat_map(|word| word.split('_'));
        let synonyms = synonyms.map(|word| stem(word).into_owned());
        table.entry(key.join("_")).or_default().extend(synonyms);
    }
    table
});

/// The synonyms of a stem, or of two stems joined by `_`, as stems.
fn synonyms_of(stem: &str) -> &'static [String] {
    TABLE.get(stem).map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_what_is_quoted_numbered_or_named() {
        assert_eq!(
            words_of_values("delete the label \"good first issue\""),
            ["good", "first", "issue"]
        );
        assert_eq!(
            words_of_values("Rename v2 of acme/widgets for Ann"),
            ["v2", "acme", "widgets", "ann"]
        );
        assert!(words_of_values("Archive a feature").is_empty());
    }
}

#[cfg(test)]
mod synonyms_tests {
    use super::*;

    #[test]
    fn the_table_knows_abbreviations_and_pairs_of_words() {
        let has =
            |key: &str, word: &str| synonyms_of(key).iter().any(|found| found == &*stem(word));
        assert!(has("repo", "repository") && has("turn_off", "disable") && has("bill", "invoice"));
        assert!(has("pr", "pull") && has("pr", "request"));
        assert!(synonyms_of("xyzzy").is_empty());
    }
}

//! The policy `infer`: words that make a tool look less dangerous than its method does.

use super::lexicon::{KnownWord, Meaning};
use super::operation_verbs::{NamePart, OperationVerbs};

/// Returns the word at the begin or end of the name that says that a POST reads, if no other word
/// says that it acts; and true if its description begins with such a word as well.
pub(super) fn reading_word(words: &OperationVerbs) -> Option<(&'static str, bool)> {
    let acts = Meaning::Destroys | Meaning::Changes | Meaning::Adds;
    let reads = |part: &NamePart| {
        let ends = part.head().into_iter().chain(part.last());
        ends.into_iter().find(|entry| entry.is(Meaning::Reads))
    };
    let named = match words.id.as_slice() {
        [] => reads(&words.action),
        parts => parts.iter().find_map(reads),
    };
    let is_said = words.texts.first().is_some_and(|entry| {
        entry.is(Meaning::Reads) && !entry.is(Meaning::Destroys | Meaning::Changes)
    });
    let acts = words
        .heads()
        .chain(words.all())
        .any(|entry| entry.is(acts) && !entry.is(Meaning::Noun | Meaning::Reads));
    // What is computed of a thing may be kept in it: `/messages/{id}/translate`.
    let may_keep = |entry: &KnownWord| {
        words.follows_variable && words.is_path_end && !entry.is(Meaning::SaysRead)
    };
    named
        .filter(|entry| !acts && !may_keep(entry))
        .map(|entry| (entry.word.as_str(), is_said))
}

/// The word that says that a repeated call leaves the same state.
pub(super) fn setting_word(words: &OperationVerbs) -> Option<&'static str> {
    let harms = words.all().any(|entry| entry.is(Meaning::Destroys));
    let head = words
        .heads()
        .find(|entry| entry.is(Meaning::Sets))
        .filter(|_| !harms);
    head.map(|entry| entry.word.as_str())
}

/// The word that names a local thing.
pub(super) fn near_word(words: &OperationVerbs) -> Option<&'static str> {
    let all = words
        .all()
        .chain(words.action.words.iter().copied().flatten());
    all.into_iter()
        .find(|entry| entry.is(Meaning::Near))
        .map(|entry| entry.word.as_str())
}

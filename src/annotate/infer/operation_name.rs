//! The words of an operation's name, and what they say of it.

use http::Method;

use super::words::{HARMS, Word, WordList, snake_case, words};
use crate::spec::Operation;
use crate::spec::operation::template::TemplatePart;

/// The words of an operation's name.
pub(crate) struct OperationName<'n> {
    /// All words: those of each part of its operationId (`repos/list-for-org` has two parts), then those of the last literal
    /// segment of its path.
    words: Vec<Word<'n>>,
    /// Where each part begins among them; the last part is that of the path.
    starts: Vec<usize>,
    /// Whether the segment is the last one of the path, and so may be a verb: `/stops/{id}` names a thing.
    path_ends: bool,
}

/// The text of the words that [`OperationName`] is made of.
pub(crate) struct NameText {
    id: Vec<String>,
    path: String,
    path_ends: bool,
}

impl NameText {
    pub(crate) fn of(operation: &Operation) -> Self {
        // `{id}:delete` ends with a verb as well.
        let literal = |parts: &Vec<TemplatePart>| {
            let mut text = String::new();
            for part in parts {
                if let TemplatePart::Literal(literal) = part {
                    if !text.is_empty() {
                        text.push(' ');
                    }
                    text.push_str(literal);
                }
            }
            Some(text).filter(|text| !text.trim().is_empty())
        };
        let mut segments = operation.template.segments.iter().rev();
        let mut path_ends = true;
        let mut segment = String::new();
        for parts in &mut segments {
            if let Some(text) = literal(parts) {
                segment = text;
                break;
            }
            if parts.iter().any(|part| matches!(part, TemplatePart::Variable(_))) {
                path_ends = false;
            }
        }
        let id = without_method(operation.id.as_deref().unwrap_or_default(), &operation.method);
        Self {
            id: id.split(['/', '.', ':', '#', ' ']).map(snake_case).collect(),
            path_ends: path_ends && !segment.is_empty(),
            path: snake_case(&segment),
        }
    }

    pub(crate) fn name(&self) -> OperationName<'_> {
        let mut name = OperationName {
            words: Vec::with_capacity(8),
            starts: Vec::with_capacity(3),
            path_ends: self.path_ends,
        };
        for part in &self.id {
            let start = name.words.len();
            name.words.extend(words(part).map(Word::of));
            if name.words.len() > start {
                name.starts.push(start);
            }
        }
        name.starts.push(name.words.len());
        name.words.extend(words(&self.path).map(Word::of));
        name
    }
}

/// An operationId without the method in capitals that some generators put before it: `GET_DeleteStack` does not get anything.
pub(crate) fn without_method<'i>(id: &'i str, method: &Method) -> &'i str {
    let rest = id.strip_prefix(method.as_str());
    rest.and_then(|rest| rest.strip_prefix(['_', '-'])).unwrap_or(id)
}

impl<'n> OperationName<'n> {
    /// The parts of the operationId that have words, then the segment of the path.
    fn parts(&self) -> impl Iterator<Item = &[Word<'n>]> {
        let ends = self.starts.iter().copied().skip(1).chain([self.words.len()]);
        let parts = self.starts.iter().zip(ends);
        parts.map(|(start, end)| self.words.get(*start..end).unwrap_or_default())
    }

    /// A harmful word, as `harm_of` tells of each word, that does not clearly name a thing: `listResetTokens` and `getForStop` read,
    /// `adminDeleteUser` does not.
    pub(crate) fn harms(&self, harm_of: impl Fn(Word<'_>) -> Option<&'static str>) -> Option<&'static str> {
        for (number, part) in self.parts().enumerate() {
            let is_path = number + 1 == self.starts.len();
            let reads = part.first().is_some_and(|word| word.is_in(WordList::Reads).is_some());
            let joins = part.iter().any(|word| word.is_in(WordList::Joins).is_some());
            for (index, word) in part.iter().enumerate() {
                let Some(harm) = harm_of(*word) else { continue };
                let before = index.checked_sub(1).and_then(|index| part.get(index));
                let is_last = index + 1 == part.len();
                let thing = before.is_some_and(|word| word.is_in(WordList::Prepositions).is_some())
                    || (reads && !joins && !is_last)
                    || (is_path && !self.path_ends && harm == "stop");
                if !thing {
                    return Some(harm);
                }
            }
        }
        None
    }

    /// A reading word at the beginning or the end of a part, where names have their verb. If there is an operationId, only its
    /// parts count, because a path often names a thing.
    pub(crate) fn reads(&self) -> Option<&'static str> {
        let parts = match self.starts.len() {
            1 => 1,
            parts => parts - 1,
        };
        self.parts().take(parts).find_map(|words| {
            let mut verbs = words.first().into_iter().chain(words.last());
            verbs.find_map(|verb| verb.is_in(WordList::Reads))
        })
    }

    /// A word of the list at the beginning of a part.
    pub(crate) fn begins(&self, list: WordList) -> Option<&'static str> {
        self.parts().filter_map(|words| words.first()).find_map(|word| word.is_in(list))
    }

    /// A word of the list anywhere.
    pub(crate) fn any(&self, list: WordList) -> Option<&'static str> {
        self.words.iter().find_map(|word| word.is_in(list))
    }

    /// Whether "and", "or" or "then" is followed by anything but a known harmless verb: `showAndHide`, `fetchAndAck`. Any
    /// unknown word may be a verb.
    pub(crate) fn joins_unknown_word(&self) -> bool {
        let harmless = WordList::Reads | WordList::Sets | WordList::Joins;
        let pairs = self.parts().flat_map(|words| words.iter().zip(words.iter().skip(1)));
        pairs
            .into_iter()
            .any(|(join, next)| join.is_in(WordList::Joins).is_some() && next.is_in(harmless).is_none())
    }

    /// Whether a harmful word is part of any word of the name: `deletepet`, `bulk_deletes`, `removed`.
    pub(crate) fn hints_at_harm(&self) -> bool {
        // Building a searcher for each pair takes longer than comparing.
        let holds = |word: &[u8], harm: &[u8]| word.windows(harm.len()).any(|part| part == harm);
        self.words
            .iter()
            .any(|word| HARMS.iter().any(|harm| holds(word.text.as_bytes(), harm.as_bytes())))
    }
}

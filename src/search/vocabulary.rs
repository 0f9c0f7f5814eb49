//! The vocabulary of an index: each distinct word is folded, stemmed and numbered once.

use foldhash::HashMap;

use super::words::{Writing, each_word, is_stop_word, stem};

/// A stem, by its number.
pub(crate) type Term = u32;

/// The words of a document.
#[derive(Default)]
pub(crate) struct Vocabulary {
    /// Folded words; nothing for stop words.
    words: HashMap<Box<str>, Option<Term>>,
    terms: HashMap<Box<str>, Term>,
}

impl Vocabulary {
    /// Shows the term of each word of a text, in order; stop words have none.
    pub(crate) fn each_term(&mut self, text: &str, writing: Writing, mut visit: impl FnMut(Term)) {
        each_word(text, writing, |word| {
            if let Some(term) = self.term(word) {
                visit(term);
            }
        });
    }

    /// The number of each stem.
    pub(crate) fn into_terms(mut self) -> HashMap<Box<str>, Term> {
        self.terms.shrink_to_fit();
        self.terms
    }

    /// The number of the stem of a folded word; none for a stop word.
    pub(crate) fn term(&mut self, word: &str) -> Option<Term> {
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
}

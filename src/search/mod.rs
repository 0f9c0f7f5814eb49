//! Search among the operations of an API: words, index, ranking, and what a hit says. Pure: it reads a document, and answers.

mod answer;
mod derivations;
mod fields;
mod index;
mod needs;
mod postings;
mod question;
mod ranking;
mod signature;
mod synonyms;
mod verbs;
mod vocabulary;
mod words;

pub(crate) use self::answer::{Hit, QueryAnswer, SearchAnswer, as_path, as_words};
pub(crate) use self::fields::SearchedOperation;
pub(crate) use self::index::SearchIndex;
pub(crate) use self::ranking::{Ranking, names_exactly};
pub(crate) use self::signature::write_signature;

//! Search among the operations of an API: words, index, ranking, and what a hit says. Pure: it
//! reads a document, and answers.
//!
//! The ranking, of which `ranking.rs` has the constants:
//!
//! 1. Words are split at marks and capital letters, folded in case and accents, and stemmed if they
//!    are English; of scripts without spaces, each letter and each pair is a word. Stop words are
//!    dropped, but not the particle of a verb such as `turn on`. Numbers, and names or quotes that
//!    no operation has, are values and do not count.
//! 2. A word counts in an operation by the fields that have it (title, keywords, name, path, tags,
//!    description, names of arguments and of properties of the result), whose weights are added and
//!    saturated, and by how few operations have it: BM25F, in which a field has a word or not. A
//!    synonym of the word counts less.
//! 3. The sum is multiplied by factors: whether the operation does what the verb of the question
//!    wants, the share of the question that it covers, and shortness: the share of its title that
//!    the question names, and the variables of its path.
//! 4. An operation whose name, operationId, path, or method and path the question is to the letter
//!    comes first, and then one whose name has the words of the question.
//! 5. If the best operations leave most of the question open, there are no hits. After the first
//!    hits come the operations that yield the identifiers that they need.

mod answer;
mod argument_signature;
mod fields;
mod index;
mod needs;
mod question;
mod ranking;
mod verbs;
mod words;

pub(crate) use self::answer::{Hit, QueryAnswer, SearchAnswer, as_path, as_words};
pub(crate) use self::argument_signature::write_signature;
pub(crate) use self::index::SearchIndex;
pub(crate) use self::ranking::{Ranking, names_exactly, says_name};

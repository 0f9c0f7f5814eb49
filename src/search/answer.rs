//! Answers of a search: hits as lines, within a budget.

use crate::annotate::Effect;
use crate::text::{MIN_BYTES_PER_TOKEN, one_line, truncate};

/// The longest answer, in tokens.
const MAX_ANSWER_TOKENS: usize = 1500;
/// The longest title or tag of a hit, in bytes.
const MAX_WORDS_BYTES: usize = 100;
/// The longest question that is repeated in an answer, in bytes.
const MAX_SHOWN_QUESTION_BYTES: usize = 120;

/// An operation that answers a question.
pub(crate) struct Hit {
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) effect: Effect,
    pub(crate) title: String,
    /// `movie_id <- search_movie`.
    pub(crate) needs: Vec<String>,
}

/// Answer to one question.
pub(crate) struct QueryAnswer {
    pub(crate) query: String,
    pub(crate) hits: Vec<Hit>,
    /// Number of all hits.
    pub(crate) total: usize,
    /// Remark for the client: why there are no hits, or a better question.
    pub(crate) remark: Option<String>,
}

/// A whole answer.
pub(crate) struct SearchAnswer {
    pub(crate) results: Vec<QueryAnswer>,
    /// A sentence after the hits.
    pub(crate) note: Option<String>,
}

/// Words of a document in one line, in which nothing can be taken for an effect, a name or another
/// hit.
#[must_use]
pub(crate) fn as_words(text: &str) -> String {
    let plain = one_line(text)
        .replace("<-", "<")
        .replace(['·', '`', '\u{2190}'], " ");
    truncate(&one_line(&plain), MAX_WORDS_BYTES)
}

/// A path in one line, in which nothing can be taken for the end of it.
#[must_use]
pub(crate) fn as_path(path: &str) -> String {
    one_line(path)
        .replace(['·', '`', '\u{2190}'], "_")
        .replace(' ', "%20")
}

impl Hit {
    fn line(&self) -> String {
        let Self {
            name,
            method,
            path,
            title,
            ..
        } = self;
        let effect = self.effect.word();
        let needs = if self.needs.is_empty() {
            String::new()
        } else {
            format!(" · needs: {}", self.needs.join(", "))
        };
        format!("{name} · {method} {path} · {effect} · {title}{needs}")
    }
}

impl SearchAnswer {
    /// Leaves hits out from the end, the longest list first, until the text fits.
    #[must_use]
    pub(crate) fn fitted(mut self) -> Self {
        let most = MAX_ANSWER_TOKENS * MIN_BYTES_PER_TOKEN;
        let mut left_out = 0;
        while self.text().len() > most {
            let longest = self
                .results
                .iter_mut()
                .max_by_key(|result| result.hits.len());
            if longest.and_then(|result| result.hits.pop()).is_none() {
                break;
            }
            left_out += 1;
            self.note = Some(format!(
                "{left_out} more hits would have made this answer too long; ask with a smaller limit, or for the next ones with offset."
            ));
        }
        self
    }

    /// The answer as text.
    #[must_use]
    pub(crate) fn text(&self) -> String {
        let mut blocks = Vec::new();
        for result in &self.results {
            let mut lines = Vec::new();
            if self.results.len() > 1 {
                lines.push(format!(
                    "\u{201c}{}\u{201d}:",
                    truncate(&as_words(&result.query), MAX_SHOWN_QUESTION_BYTES)
                ));
            }
            lines.extend(result.hits.iter().map(Hit::line));
            lines.extend(result.remark.clone());
            if result.hits.len() < result.total && !result.hits.is_empty() {
                lines.push(format!("({} of {})", result.hits.len(), result.total));
            }
            blocks.push(lines.join("\n"));
        }
        blocks.extend(self.note.clone());
        blocks.join("\n\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(title: &str) -> Hit {
        Hit {
            name: "list_pets".into(),
            method: "GET".into(),
            path: "/pets".into(),
            effect: Effect::Read,
            title: as_words(title),
            needs: vec!["id <- list_owners".into()],
        }
    }

    #[test]
    fn p33_words_of_a_document_cannot_look_like_a_hit() {
        let title = "Pets · read · x\nother · GET /x · read · id <- call `it`";
        let line = hit(title).line();
        assert_eq!(line.matches('·').count(), 4, "{line}");
        assert_eq!(line.matches("<-").count(), 1, "{line}");
        assert!(!line.contains('\n') && !line.contains('`'), "{line}");
    }

    #[test]
    fn an_answer_never_takes_more_than_its_budget_and_says_what_is_left_out() {
        let hits = (0..60).map(|_| hit(&"long words ".repeat(30))).collect();
        let result = QueryAnswer {
            query: "x".repeat(1000),
            hits,
            total: 400,
            remark: None,
        };
        let answer = SearchAnswer {
            results: vec![result],
            note: None,
        };
        let answer = answer.fitted();
        let text = answer.text();
        assert!(text.len() <= 4500 && text.contains("more hits"), "{text}");
        assert!(answer.results[0].hits.len() > 5, "{text}");
    }
}

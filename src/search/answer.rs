//! Answers of a search: hits as lines and as JSON, within a budget.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use crate::annotate::Effect;
use crate::text::{MIN_BYTES_PER_TOKEN, one_line, truncate};

/// The longest answer, in tokens, as text and as JSON.
const MAX_ANSWER_TOKENS: usize = 1500;
/// The longest title or tag of a hit, in bytes.
const MAX_WORDS_BYTES: usize = 100;
/// The longest question that is repeated in an answer, in bytes.
const MAX_SHOWN_QUESTION_BYTES: usize = 120;

/// An operation that answers a question.
#[derive(Serialize)]
pub(crate) struct Hit {
    /// The name of its API, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) api: Option<String>,
    pub(crate) name: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) effect: Effect,
    pub(crate) title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) tag: Option<String>,
    /// `movie_id <- search_movie`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) needs: Vec<String>,
}

/// Answer to one question.
#[derive(Serialize)]
pub(crate) struct QueryAnswer {
    #[serde(serialize_with = "write_query")]
    pub(crate) query: String,
    pub(crate) hits: Vec<Hit>,
    /// Number of all hits.
    pub(crate) total: usize,
    /// Remark for the client: why there are no hits, or a better question.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) remark: Option<String>,
}

/// A whole answer.
pub(crate) struct SearchAnswer {
    pub(crate) results: Vec<QueryAnswer>,
    /// Number of hits of the only question that were skipped.
    pub(crate) offset: usize,
    /// A sentence after the hits.
    pub(crate) note: Option<String>,
}

/// Words of a document in one line, in which nothing can be taken for an effect, a name or another
/// hit.
pub(crate) fn as_words(text: &str) -> String {
    let plain = one_line(text)
        .replace("<-", "<")
        .replace(['·', '`', '\u{2190}'], " ");
    truncate(&one_line(&plain), MAX_WORDS_BYTES)
}

/// A path in one line, in which nothing can be taken for the end of it.
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
        let mut line = format!("{name} · {method} {path} · {effect} · {title}");
        if !self.needs.is_empty() {
            line.extend([" · needs: ", &self.needs.join(", ")]);
        }
        line
    }
}

impl SearchAnswer {
    /// Leaves hits out from the end, the longest list first, until text and JSON fit.
    pub(crate) fn fitted(mut self) -> Self {
        let most = MAX_ANSWER_TOKENS * MIN_BYTES_PER_TOKEN;
        let mut left_out = 0;
        while self.text().len() > most || self.json().to_string().len() > most {
            let results = self.results.iter_mut();
            let longest = results.max_by_key(|result| result.hits.len());
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

    /// Returns the offset of the next hits of the only question.
    fn next_offset(&self) -> Option<usize> {
        let [only] = self.results.as_slice() else {
            return None;
        };
        let next = self.offset + only.hits.len();
        (!only.hits.is_empty() && next < only.total).then_some(next)
    }

    /// The answer as text.
    pub(crate) fn text(&self) -> String {
        let mut blocks = Vec::new();
        for result in &self.results {
            let mut lines = Vec::new();
            if self.results.len() > 1 {
                lines.push(format!("\u{201c}{}\u{201d}:", shown_query(&result.query)));
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

    /// The answer as structured content.
    pub(crate) fn json(&self) -> Value {
        let mut answer = json!({ "results": self.results });
        if let Value::Object(members) = &mut answer {
            if let Some(next) = self.next_offset() {
                members.insert("next_offset".into(), next.into());
            }
            if let Some(note) = &self.note {
                members.insert("note".into(), note.as_str().into());
            }
        }
        answer
    }
}

/// A question, cleaned and cut.
fn shown_query(query: &str) -> String {
    truncate(&as_words(query), MAX_SHOWN_QUESTION_BYTES)
}

fn write_query<S: Serializer>(query: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&shown_query(query))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(title: &str) -> Hit {
        Hit {
            api: None,
            name: "list_pets".into(),
            method: "GET".into(),
            path: "/pets".into(),
            effect: Effect::Read,
            title: as_words(title),
            tag: Some("pets".into()),
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
        let hits = (0..25).map(|_| hit(&"long words ".repeat(30))).collect();
        let result = QueryAnswer {
            query: "x".repeat(1000),
            hits,
            total: 400,
            remark: None,
        };
        let answer = SearchAnswer {
            results: vec![result],
            offset: 0,
            note: None,
        };
        let answer = answer.fitted();
        assert!(answer.text().len() <= 4500 && answer.json().to_string().len() <= 4500);
        assert!(
            answer.text().contains("more hits")
                && answer.json()["next_offset"].as_u64().unwrap() > 5
        );
    }
}

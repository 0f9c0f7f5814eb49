//! Settings of a document or an operator for a tool. Problems are collected: those of a document
//! are reported and ignored, those of a configuration are errors.

pub(crate) mod arguments;
pub(crate) mod ruled_schema;
pub(crate) mod unmatched;
pub(crate) mod wait;

use serde_json::Value;

use crate::annotate::annotations::Hint;
use crate::annotate::descriptions::DescriptionDetail;
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::operation::rules::{ArgumentRule, CallKeys, WaitRule};
use crate::text;

/// The fields that are set; a field that is absent keeps the value of weaker sources.
#[derive(Debug, Clone, Default)]
pub struct Override {
    /// True if the operation may become a tool.
    pub enabled: Option<bool>,
    /// The tool's name, before it is made legal.
    pub name: Option<String>,
    /// The tool's title.
    pub title: Option<String>,
    /// The tool's description.
    pub description: Option<String>,
    /// The tool's category.
    pub category: Option<String>,
    /// Words by which a search should find it as well, which are never shown.
    pub keywords: Option<Vec<String>>,
    /// `annotations.title`, if there is to be one beside the title of the tool.
    pub annotations_title: Option<String>,
    /// Settings for calls. Only a rule of the configuration has them, and [`Self::read`] does not
    /// read them: a document must not widen what a call can reach.
    pub keys: CallKeys,
    /// Detail of the description, by rules of the configuration alone.
    pub describe: Option<DescriptionDetail>,
    /// Settings for arguments, by rules of the configuration alone.
    pub arguments: Vec<ArgumentRule>,
    /// Settings for replies, by rules of the configuration alone.
    pub response: ResponseRule,
    /// Settings for operations that are done after their first reply, by rules of the configuration
    /// alone.
    pub wait: Option<WaitRule>,
    /// The hints that are set.
    pub hints: Vec<(Hint, bool)>,
}

/// Problem with one member.
#[derive(Clone, PartialEq)]
pub(crate) struct OverrideProblem {
    /// The keys that lead to the member.
    pub(crate) path: Vec<String>,
    /// Kind of problem.
    pub(crate) kind: OverrideProblemKind,
}

#[derive(Clone, PartialEq)]
pub(crate) enum OverrideProblemKind {
    /// An unknown key; with advice, if there is any.
    UnknownKey(Option<String>),
    /// A value of another type.
    WrongType {
        /// The value that is there.
        found: Value,
        /// The type that belongs there.
        expected: ExpectedType,
    },
}

/// The type of a member.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExpectedType {
    Boolean,
    Text,
    Texts,
    Object,
}

impl OverrideProblem {
    /// A value that is not of the expected type; without a key, the whole value.
    pub(crate) fn of_type(key: Option<&str>, found: &Value, expected: ExpectedType) -> Self {
        let found = found.clone();
        Self {
            path: key.map(str::to_owned).into_iter().collect(),
            kind: OverrideProblemKind::WrongType { found, expected },
        }
    }

    /// The problem as one of a document, which is read without the member.
    pub(crate) fn of_document(&self) -> String {
        let key = match self.path.last() {
            Some(key) => format!("`{key}`"),
            None => "it".to_owned(),
        };
        match &self.kind {
            OverrideProblemKind::UnknownKey(None) => format!("the unknown key {key} is ignored"),
            OverrideProblemKind::UnknownKey(Some(advice)) => {
                format!("the unknown key {key} is ignored; {advice}")
            }
            OverrideProblemKind::WrongType { expected, .. } => {
                let expected = match expected {
                    ExpectedType::Boolean => "true or false",
                    ExpectedType::Text => "a string that is not empty",
                    ExpectedType::Texts => "a list of strings",
                    ExpectedType::Object => "an object",
                };
                format!("{key} must be {expected}; it is ignored")
            }
        }
    }
}

const KEYS: [&str; 7] = [
    "enabled",
    "name",
    "title",
    "description",
    "category",
    "keywords",
    "annotations",
];
/// More words than these, and more of a word, do not count, so that a long text cannot raise the
/// rank of its operation.
const MAX_KEYWORDS: usize = 32;
const MAX_KEYWORD_CHARACTERS: usize = 40;

impl Override {
    /// Reads an object with the keys `enabled`, `name`, `title`, `description`, `category`,
    /// `keywords` and `annotations`. Unknown keys and values of the wrong type are pushed to
    /// `problems`, and the rest counts.
    pub(crate) fn read(value: &Value, problems: &mut Vec<OverrideProblem>) -> Self {
        let mut said = Self::default();
        for (key, value) in members(value, problems) {
            match key.as_str() {
                "enabled" => said.enabled = boolean(key, value, problems),
                "name" => said.name = read_words(key, value, problems),
                "title" => said.title = read_words(key, value, problems),
                "description" => said.description = read_words(key, value, problems),
                "category" => said.category = read_words(key, value, problems),
                "keywords" => said.keywords = read_keywords(key, value, problems),
                "annotations" => {
                    let mut wrong = Vec::new();
                    said.read_annotations(value, &mut wrong);
                    problems.extend(wrong.into_iter().map(|mut problem: OverrideProblem| {
                        problem.path.insert(0, key.clone());
                        problem
                    }));
                }
                "disabled" => problems.push(OverrideProblem {
                    path: vec![key.clone()],
                    kind: OverrideProblemKind::UnknownKey(Some(
                        "write `enabled: false` to leave a tool out".into(),
                    )),
                }),
                _ => problems.push(unknown_key(key, KEYS.into_iter())),
            }
        }
        said
    }

    /// Reads an object with MCP's hints and `title`.
    pub(crate) fn read_annotations(&mut self, value: &Value, problems: &mut Vec<OverrideProblem>) {
        for (key, value) in members(value, problems) {
            match Hint::parse(key) {
                Some(hint) => self
                    .hints
                    .extend(boolean(key, value, problems).map(|value| (hint, value))),
                None if key == "title" => self.annotations_title = read_words(key, value, problems),
                None => problems.push(unknown_key(
                    key,
                    Hint::ALL.into_iter().map(Hint::key).chain(["title"]),
                )),
            }
        }
    }

    /// Takes the fields that a stronger source sets. Hints are kept in order; the last one counts.
    pub fn take(&mut self, stronger: Self) {
        fn over<T>(weak: &mut Option<T>, strong: Option<T>) {
            if strong.is_some() {
                *weak = strong;
            }
        }
        over(&mut self.enabled, stronger.enabled);
        over(&mut self.name, stronger.name);
        over(&mut self.title, stronger.title);
        over(&mut self.description, stronger.description);
        over(&mut self.category, stronger.category);
        over(&mut self.keywords, stronger.keywords);
        over(&mut self.annotations_title, stronger.annotations_title);
        over(&mut self.describe, stronger.describe);
        over(&mut self.wait, stronger.wait);
        self.keys.take(stronger.keys);
        self.response.take(stronger.response);
        self.hints.extend(stronger.hints);
    }
}

fn members<'v>(
    value: &'v Value,
    problems: &mut Vec<OverrideProblem>,
) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
    let members = value.as_object();
    if members.is_none() {
        problems.push(OverrideProblem::of_type(None, value, ExpectedType::Object));
    }
    members.into_iter().flatten()
}

fn boolean(key: &str, value: &Value, problems: &mut Vec<OverrideProblem>) -> Option<bool> {
    let read = value.as_bool();
    if read.is_none() {
        problems.push(OverrideProblem::of_type(
            Some(key),
            value,
            ExpectedType::Boolean,
        ));
    }
    read
}

fn read_words(key: &str, value: &Value, problems: &mut Vec<OverrideProblem>) -> Option<String> {
    let read = value.as_str().map(text::clean);
    let read = read.filter(|text| !text.is_empty());
    if read.is_none() {
        problems.push(OverrideProblem::of_type(
            Some(key),
            value,
            ExpectedType::Text,
        ));
    }
    read
}

fn read_keywords(
    key: &str,
    value: &Value,
    problems: &mut Vec<OverrideProblem>,
) -> Option<Vec<String>> {
    let word = |word: &Value| {
        let characters = word.as_str()?.chars();
        Some(characters.take(MAX_KEYWORD_CHARACTERS).collect())
    };
    let words = value.as_array();
    let words = words.and_then(|words| words.iter().take(MAX_KEYWORDS).map(word).collect());
    if words.is_none() {
        problems.push(OverrideProblem::of_type(
            Some(key),
            value,
            ExpectedType::Texts,
        ));
    }
    words
}

fn unknown_key(key: &str, known: impl Iterator<Item = &'static str>) -> OverrideProblem {
    let nearest = text::nearest(key, known, 0.75);
    OverrideProblem {
        path: vec![text::truncate(&text::one_line(key), 64)],
        kind: OverrideProblemKind::UnknownKey(
            nearest.map(|nearest| format!("did you mean `{nearest}`?")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_unknown_or_of_the_wrong_type_is_reported_and_the_rest_counts() {
        let mut problems = Vec::new();
        let said = Override::read(
            &json!({"titel": "x", "name": 5, "enabled": "no", "category": "c",
                "annotations": {"readOnlyHint": true, "destructive": "yes", "idempotent": false, "safeHint": true, "title": "T"}}),
            &mut problems,
        );
        assert_eq!(
            said.hints,
            [(Hint::ReadOnly, true), (Hint::Idempotent, false)]
        );
        assert_eq!(
            (said.category.as_deref(), said.annotations_title.as_deref()),
            (Some("c"), Some("T"))
        );
        assert_eq!((said.name, said.enabled), (None, None));
        let mut places: Vec<String> = problems
            .iter()
            .map(|problem| problem.path.join("/"))
            .collect();
        places.sort();
        assert_eq!(
            places,
            [
                "annotations/destructive",
                "annotations/safeHint",
                "enabled",
                "name",
                "titel"
            ]
        );
        assert!(
            problems
                .iter()
                .any(|problem| problem.of_document().contains("did you mean `title`?"))
        );
    }

    #[test]
    fn a_stronger_word_replaces_only_what_it_mentions() {
        let mut weak = Override::read(&json!({"title": "a", "category": "b"}), &mut Vec::new());
        weak.take(Override::read(&json!({"title": "c"}), &mut Vec::new()));
        assert_eq!(
            (weak.title.as_deref(), weak.category.as_deref()),
            (Some("c"), Some("b"))
        );
    }
}

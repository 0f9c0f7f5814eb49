//! What a document or an operator sets for a tool. The fields are read one by one: one that is not valid does not cost the
//! others.

use serde_json::Value;

use super::annotations::Hint;
use crate::text;

/// The fields that are set; a field that is absent keeps the value of weaker sources.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Override {
    /// Whether the operation becomes a tool.
    pub enabled: Option<bool>,
    /// The tool's name, before it is made legal.
    pub name: Option<String>,
    /// The tool's title.
    pub title: Option<String>,
    /// The tool's description.
    pub description: Option<String>,
    /// The tool's category.
    pub category: Option<String>,
    /// `annotations.title`, if there is to be one beside the title of the tool.
    pub annotations_title: Option<String>,
    /// The hints that are set.
    pub hints: Vec<(Hint, bool)>,
}

/// A key that is not valid: the path to it, and a sentence.
pub(crate) type Problem = (Vec<String>, String);

const KEYS: [&str; 6] = ["enabled", "name", "title", "description", "category", "annotations"];

impl Override {
    /// Reads an object with the keys `enabled`, `name`, `title`, `description`, `category` and `annotations`. Unknown keys
    /// and values of the wrong type are pushed to `problems` and ignored.
    #[must_use]
    pub fn read(value: &Value, problems: &mut Vec<Problem>) -> Self {
        let mut said = Self::default();
        let Some(members) = value.as_object() else {
            problems.push((Vec::new(), "it must be an object; it is ignored".into()));
            return said;
        };
        for (key, value) in members {
            match key.as_str() {
                "enabled" => said.enabled = boolean(key, value, problems),
                "name" => said.name = read_words(key, value, problems),
                "title" => said.title = read_words(key, value, problems),
                "description" => said.description = read_words(key, value, problems),
                "category" => said.category = read_words(key, value, problems),
                "annotations" => {
                    let mut wrong = Vec::new();
                    said.read_annotations(value, &mut wrong);
                    problems.extend(wrong.into_iter().map(|(mut path, message)| {
                        path.insert(0, key.clone());
                        (path, message)
                    }));
                }
                _ => problems.push(unknown_key(key, KEYS.into_iter())),
            }
        }
        said
    }

    /// Reads an object with MCP's hints and `title`.
    pub fn read_annotations(&mut self, value: &Value, problems: &mut Vec<Problem>) {
        let Some(members) = value.as_object() else {
            problems.push((Vec::new(), "it must be an object; it is ignored".into()));
            return;
        };
        for (key, value) in members {
            match Hint::parse(key) {
                Some(hint) => self.hints.extend(boolean(key, value, problems).map(|value| (hint, value))),
                None if key == "title" => self.annotations_title = read_words(key, value, problems),
                None => problems.push(unknown_key(key, Hint::ALL.into_iter().map(Hint::key).chain(["title"]))),
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
        over(&mut self.annotations_title, stronger.annotations_title);
        self.hints.extend(stronger.hints);
    }
}

fn boolean(key: &str, value: &Value, problems: &mut Vec<Problem>) -> Option<bool> {
    let read = value.as_bool();
    if read.is_none() {
        problems.push((vec![key.to_owned()], format!("`{key}` must be true or false; it is ignored")));
    }
    read
}

fn read_words(key: &str, value: &Value, problems: &mut Vec<Problem>) -> Option<String> {
    let read = value.as_str().map(text::clean).filter(|text| !text.is_empty());
    if read.is_none() {
        problems.push((
            vec![key.to_owned()],
            format!("`{key}` must be a string that is not empty; it is ignored"),
        ));
    }
    read
}

fn unknown_key(key: &str, known: impl Iterator<Item = &'static str>) -> Problem {
    let hint = text::nearest(key, known, 0.75)
        .map(|nearest| format!("; did you mean `{nearest}`?"))
        .unwrap_or_default();
    let key = text::truncate(&text::one_line(key), 64);
    (vec![key.clone()], format!("the unknown key `{key}` is ignored{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_unknown_or_of_the_wrong_type_is_reported_and_the_rest_counts() {
        let mut problems = Vec::new();
        let said = Override::read(
            &json!({"titel": "x", "name": 5, "enabled": "no", "category": "c",
                "annotations": {"readOnlyHint": true, "destructive": "yes", "idempotent": false, "safeHint": true, "title": "T"}}),
            &mut problems,
        );
        assert_eq!(said.hints, [(Hint::ReadOnly, true), (Hint::Idempotent, false)]);
        assert_eq!(
            (said.category.as_deref(), said.annotations_title.as_deref()),
            (Some("c"), Some("T"))
        );
        assert_eq!((said.name, said.enabled), (None, None));
        let mut places: Vec<String> = problems.iter().map(|(path, _)| path.join("/")).collect();
        places.sort();
        assert_eq!(
            places,
            ["annotations/destructive", "annotations/safeHint", "enabled", "name", "titel"]
        );
        assert!(problems.iter().any(|(_, message)| message.contains("did you mean `title`?")));
    }

    #[test]
    fn a_stronger_word_replaces_only_what_it_mentions() {
        let mut weak = Override::read(&json!({"title": "a", "category": "b"}), &mut Vec::new());
        weak.take(Override::read(&json!({"title": "c"}), &mut Vec::new()));
        assert_eq!((weak.title.as_deref(), weak.category.as_deref()), (Some("c"), Some("b")));
    }
}

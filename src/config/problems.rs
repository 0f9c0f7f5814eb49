//! The problems of settings, which are reported all at once. Those of the configuration file say the
//! location, the value, and the expected value: a part of the file is read as a type, with all that is
//! wrong with it.

use std::fmt::Display;
use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use serde_path_to_error::Segment;
use thiserror::Error;

use crate::api::about::ApiName;
use crate::text::one_line;

/// Longer texts of a file are not repeated as a whole.
const MAX_SHOWN_BYTES: usize = 64;

/// Problems of settings, each a sentence.
#[derive(Debug, Default, Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Problems(Vec<String>);

/// Permission to repeat a value in a message.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disclosure {
    Shown,
    /// The value may be a secret: only its type is reported.
    Hidden,
}

impl Deref for Problems {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.0
    }
}

impl From<Vec<String>> for Problems {
    fn from(problems: Vec<String>) -> Self {
        Self(problems)
    }
}

impl Problems {
    /// Adds a problem, in one line: it may repeat a value that would change the terminal.
    pub(crate) fn push(&mut self, problem: impl Into<String>) {
        let problem = problem.into();
        self.0.push(if problem.contains(char::is_control) {
            one_line(&problem)
        } else {
            problem
        });
    }

    pub(crate) fn extend(&mut self, problems: impl IntoIterator<Item = String>) {
        problems.into_iter().for_each(|problem| self.push(problem));
    }

    /// The value that was read; a fault is a problem at `place`.
    pub(crate) fn ok<T>(
        &mut self,
        place: impl Display,
        read: Result<T, impl Display>,
    ) -> Option<T> {
        read.map_err(|why| self.push(format!("{place}: {why}")))
            .ok()
    }

    /// The value, if there is one; otherwise, that is a problem.
    pub(crate) fn some<T, P: Into<String>>(
        &mut self,
        found: Option<T>,
        problem: impl FnOnce() -> P,
    ) -> Option<T> {
        if found.is_none() {
            self.push(problem());
        }
        found
    }

    /// Does what pushes problems of the part at `place`, each of which is reported once, with its
    /// place.
    pub(crate) fn within<T>(
        &mut self,
        place: impl Display,
        find: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut own = Self::default();
        let found = find(&mut own);
        for problem in own.0 {
            let problem = format!("{place}: {problem}");
            if !self.contains(&problem) {
                self.0.push(problem);
            }
        }
        found
    }

    /// Does what pushes problems of an API, each of which is reported with its name if it has one.
    pub(crate) fn of_api<T>(
        &mut self,
        name: Option<&ApiName>,
        find: impl FnOnce(&mut Self) -> T,
    ) -> T {
        match name {
            Some(name) => self.within(format!("`apis.{name}`"), find),
            None => find(self),
        }
    }

    /// # Errors
    /// There are problems.
    pub(crate) fn check(self) -> Result<(), Self> {
        if self.is_empty() { Ok(()) } else { Err(self) }
    }

    /// A key that does not exist, with the keys that do.
    pub(crate) fn push_unknown_key<'k>(
        &mut self,
        path: &str,
        key: &str,
        known: impl IntoIterator<Item = &'k str>,
    ) {
        let hint = crate::text::nearest(key, known, 0.75)
            .map(|nearest| format!("; did you mean `{nearest}`?"))
            .unwrap_or_default();
        self.push(format!("unknown key `{}`{hint}", join_path(path, key)));
    }

    /// A value of the wrong type.
    pub(crate) fn push_wrong_value(
        &mut self,
        path: &str,
        found: &Value,
        expected: &str,
        disclosure: Disclosure,
    ) {
        let found = describe_value(found, disclosure);
        let expected = match expected {
            "true or false" => boolean_advice(path, &found),
            other => format!("expected {other}"),
        };
        self.push(format!("`{path}` is {found}; {expected}"));
    }

    /// The value without the keys and elements that have no value, each of which is a problem: of a
    /// setting that was meant, nothing would be left.
    pub(crate) fn without_nulls(&mut self, path: &str, value: Value) -> Option<Value> {
        match value {
            Value::Null => {
                self.push(format!(
                    "`{path}` has no value; remove the key, or give it a value"
                ));
                None
            }
            Value::Array(items) => {
                let count = items.len();
                let items = items.into_iter().enumerate();
                let kept: Vec<Value> = items
                    .filter_map(|(index, item)| {
                        self.without_nulls(&format!("{path}[{index}]"), item)
                    })
                    .collect();
                (count == 0 || !kept.is_empty()).then_some(Value::Array(kept))
            }
            Value::Object(members) => {
                let count = members.len();
                let kept: Map<String, Value> = members
                    .into_iter()
                    .filter_map(|(key, member)| {
                        self.without_nulls(&join_path(path, &key), member)
                            .map(|member| (key, member))
                    })
                    .collect();
                (count == 0 || !kept.is_empty()).then_some(Value::Object(kept))
            }
            other => Some(other),
        }
    }
}

impl IntoIterator for Problems {
    type Item = String;
    type IntoIter = std::vec::IntoIter<String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

/// The path of a member.
pub(crate) fn join_path(path: &str, key: &str) -> String {
    let key = key.escape_debug();
    if path.is_empty() {
        key.to_string()
    } else {
        format!("{path}.{key}")
    }
}

fn describe_value(value: &Value, disclosure: Disclosure) -> String {
    let is_shown = disclosure == Disclosure::Shown;
    match value {
        // A URL may hold a password.
        Value::String(text) if is_shown && !text.contains("://") => {
            let text = crate::text::truncate(text, MAX_SHOWN_BYTES);
            format!("the text {}", Value::String(text))
        }
        Value::Number(number) if is_shown => format!("the number {number}"),
        Value::Bool(value) if is_shown => format!("the boolean {value}"),
        Value::String(_) => "a text".into(),
        Value::Number(_) => "a number".into(),
        Value::Bool(_) => "a boolean".into(),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
        Value::Null => "empty".into(),
    }
}

/// Advises about a word that is a boolean in YAML 1.1, in which `no` means false, but not in YAML
/// 1.2.
fn boolean_advice(path: &str, found: &str) -> String {
    let word = found
        .trim_start_matches("the text ")
        .trim_start_matches("the number ")
        .trim_matches('"');
    let meant = match word.to_ascii_lowercase().as_str() {
        "no" | "n" | "off" | "false" | "f" | "0" => false,
        "yes" | "y" | "on" | "true" | "t" | "1" => true,
        _ => return "write true or false".into(),
    };
    let key = path.rsplit('.').next().unwrap_or(path);
    format!("write `{key}: {meant}`")
}

/// Reads from a message of serde what it expected ("invalid type: …, expected …"), in the words of
/// this program.
pub(crate) fn expected_by(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let expected = message
        .split_once(", expected ")
        .map_or(message.as_str(), |(_, expected)| expected);
    let expected = expected.split(" at line ").next().unwrap_or(expected);
    match expected {
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "a mapping",
        // The kinds of a reference to a secret.
        "`env` or `file`" => "`{ env: VARIABLE }` or `{ file: PATH }`",
        "f64" => "a number",
        // serde_json says no more of a number that is negative or has a fraction.
        "usize" | "u32" | "u64" | "invalid number" => "a whole number of at least 0",
        "a string" | "path string" | "string or map" => "a text",
        other => {
            return other
                .trim_start_matches("expected ")
                .trim_start_matches("one of ")
                .to_owned();
        }
    }
    .to_owned()
}

/// A step from a value to a part of it.
#[derive(Clone, PartialEq)]
enum PathStep {
    Key(String),
    Index(usize),
}

/// Elements that were taken out of lists: the list and the index, as they are in the file.
type TakenOut = Vec<(Vec<PathStep>, usize)>;

/// Reads the value at `path` in the file. Each fault is a problem with its place; the part that
/// holds it is taken out, and the rest is read again. `None` if nothing can be read.
pub(crate) fn read_all<T: DeserializeOwned>(
    path: &str,
    value: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) -> Option<T> {
    let mut rest = value.clone();
    let mut taken_out = TakenOut::new();
    loop {
        // From a borrowed value, serde_json does not say which number it expected.
        let error = match serde_path_to_error::deserialize::<_, T>(rest.clone()) {
            Ok(read) => return Some(read),
            Err(error) => error,
        };
        let mut steps: Vec<PathStep> = error.path().iter().map_while(step_of).collect();
        // A member without a value, or of another type than the path says, is not there.
        while find(&mut rest, &steps).is_none() {
            steps.pop();
        }
        let (place, in_file) = describe_path(path, &steps, &taken_out);
        report(
            &place,
            &steps,
            error.inner(),
            find(&mut rest, &steps)?,
            disclosure,
            problems,
        );
        let last = steps.pop()?;
        match (find(&mut rest, &steps)?, last) {
            (Value::Object(members), PathStep::Key(key)) => {
                members.shift_remove(&key);
            }
            (Value::Array(items), PathStep::Index(index)) => {
                items.remove(index);
                if let Some((PathStep::Index(index), list)) = in_file.split_last() {
                    taken_out.push((list.to_vec(), *index));
                }
            }
            _ => return None,
        }
    }
}

/// Returns true if a value can be read as a type; all that is wrong with it is pushed to
/// `problems`.
pub(crate) fn can_be_read<T: DeserializeOwned>(
    path: &str,
    value: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) -> bool {
    let before = problems.len();
    read_all::<T>(path, value, disclosure, problems).is_some() && problems.len() == before
}

/// The keys of a type that knows no others: serde names them all to whoever gives another one.
pub(crate) fn key_names<T: DeserializeOwned>() -> Vec<String> {
    let unknown = Map::from_iter([(String::new(), Value::Null)]);
    let message = serde_json::from_value::<T>(Value::Object(unknown)).err();
    let message = message.map(|error| error.to_string()).unwrap_or_default();
    known_keys(&message).map(str::to_owned).collect()
}

/// The names in "unknown field `x`, expected one of `env`, `file`, …".
fn known_keys(message: &str) -> impl Iterator<Item = &str> {
    let known = message.rsplit_once(", expected ").unwrap_or_default().1;
    known.split('`').skip(1).step_by(2)
}

fn step_of(segment: &Segment) -> Option<PathStep> {
    match segment {
        Segment::Map { key } | Segment::Enum { variant: key } => Some(PathStep::Key(key.clone())),
        Segment::Seq { index } => Some(PathStep::Index(*index)),
        Segment::Unknown => None,
    }
}

fn find<'v>(value: &'v mut Value, steps: &[PathStep]) -> Option<&'v mut Value> {
    steps.iter().try_fold(value, |value, step| match step {
        PathStep::Key(key) => value.get_mut(key),
        PathStep::Index(index) => value.get_mut(*index),
    })
}

/// The place of a part in words, and its steps, with the indices that the file has.
fn describe_path(path: &str, steps: &[PathStep], taken_out: &TakenOut) -> (String, Vec<PathStep>) {
    let (mut place, mut in_file) = (path.to_owned(), Vec::new());
    for step in steps {
        match step {
            PathStep::Key(key) => {
                place = join_path(&place, key);
                in_file.push(step.clone());
            }
            PathStep::Index(index) => {
                let mut before: Vec<usize> = taken_out
                    .iter()
                    .filter(|(list, _)| *list == in_file)
                    .map(|(_, index)| *index)
                    .collect();
                before.sort_unstable();
                let shifted = before
                    .into_iter()
                    .fold(*index, |index, before| index + usize::from(before <= index));
                place = format!("{place}[{shifted}]");
                in_file.push(PathStep::Index(shifted));
            }
        }
    }
    (place, in_file)
}

/// Reports what is wrong with the value at `place`.
fn report(
    place: &str,
    steps: &[PathStep],
    error: &serde_json::Error,
    found: &Value,
    disclosure: Disclosure,
    problems: &mut Problems,
) {
    let message = error.to_string();
    match steps.last() {
        Some(PathStep::Key(key)) if message.starts_with("unknown field ") => {
            let parent = place.strip_suffix(&join_path("", key)).unwrap_or(place);
            let known = known_keys(&message);
            problems.push_unknown_key(parent.trim_end_matches('.'), key, known);
        }
        _ if message.contains("expected ") || message == "invalid number" => {
            problems.push_wrong_value(place, found, &expected_by(error), disclosure);
        }
        _ => problems.push(format!("`{place}`: {message}")),
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    #[derive(Default)]
    struct Shelf {
        name: String,
        sizes: Vec<u64>,
        value: Value,
        inner: Option<Box<Shelf>>,
    }

    fn read(value: &Value) -> (Option<Shelf>, Vec<String>) {
        let mut problems = Problems::default();
        let read = read_all("shelf", value, Disclosure::Shown, &mut problems);
        (read, problems.to_vec())
    }

    #[test]
    fn every_fault_has_its_place_and_the_rest_is_read() {
        let (shelf, problems) = read(&json!({
            "name": 7, "sizes": ["a", 1, -1, "b"], "naem": "x",
            "inner": {"name": "b", "sizes": {}, "inner": 3},
        }));
        let shelf = shelf.unwrap();
        assert_eq!(
            (shelf.sizes, shelf.inner.unwrap().name.as_str()),
            (vec![1], "b")
        );
        for expected in [
            "`shelf.name` is the number 7; expected a text",
            "`shelf.sizes[0]` is the text \"a\"; expected a whole number of at least 0",
            "`shelf.sizes[2]` is the number -1; expected a whole number of at least 0",
            "`shelf.sizes[3]` is the text \"b\"; expected a whole number of at least 0",
            "unknown key `shelf.naem`; did you mean `name`?",
            "`shelf.inner.sizes` is a mapping; expected a list",
            "`shelf.inner.inner` is the number 3; expected struct Shelf",
        ] {
            assert!(
                problems.contains(&expected.to_owned()),
                "{expected}: {problems:?}"
            );
        }
        assert_eq!(problems.len(), 7, "{problems:?}");
    }

    #[test]
    fn numbers_keep_their_digits() {
        let value: Value =
            serde_json::from_str(r#"{"value": {"a": [1.50, 12345678901234567890123]}}"#).unwrap();
        let (shelf, problems) = read(&value);
        assert!(problems.is_empty(), "{problems:?}");
        assert_eq!(
            shelf.unwrap().value.to_string(),
            r#"{"a":[1.50,12345678901234567890123]}"#
        );
    }
}

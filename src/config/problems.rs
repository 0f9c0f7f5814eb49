//! The problems of settings, which are reported all at once. Those of the configuration file say the
//! location, the value, and the expected value.

use std::fmt::Display;
use std::ops::Deref;

use serde_json::{Map, Value};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

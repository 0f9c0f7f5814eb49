//! Messages about problems of the configuration file: the location, the value, and the expected
//! value.

use std::fmt::Display;

use serde_json::{Map, Value};

/// Longer texts of a file are not repeated as a whole.
const MAX_SHOWN_BYTES: usize = 64;

/// The problems of one configuration file.
pub(crate) struct FileProblems<'f> {
    /// The file as the operator named it.
    pub(crate) file: &'f str,
    /// The part of the file that keys are named within; none for its top.
    pub(crate) section: Option<&'f str>,
    pub(crate) problems: &'f mut Vec<String>,
}

/// Permission to repeat a value in a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Disclosure {
    Shown,
    /// The value may be a secret: only its type is reported.
    Hidden,
}

impl FileProblems<'_> {
    /// A problem of the file as a whole.
    pub(crate) fn push(&mut self, problem: impl Display) {
        let section = self
            .section
            .map(|section| format!(", `{section}`"))
            .unwrap_or_default();
        self.problems.push(format!(
            "the configuration file `{}`{section}: {problem}",
            self.file
        ));
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
        Value::String(text) if is_shown => {
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

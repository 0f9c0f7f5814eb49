//! Redacts JSON: strings and keys are compared decoded, numbers as a whole, and everything else
//! stays as it is written, so that the result is valid JSON of the same structure.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;

use serde::Deserializer as _;
use serde::de::{Error, Visitor};
use serde_json::Value;

use super::escapes::has_escapes;
use super::secrets::Redactor;
use crate::json::{JsonString, strings};

/// Replacement of a number that is a secret.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum NumberMark {
    /// The text in place of it.
    #[default]
    Text,
    /// Zero, if a client checks the type of the number.
    Zero,
}

impl NumberMark {
    fn value(self, text: String) -> Value {
        match self {
            Self::Text => Value::from(text),
            Self::Zero => Value::from(0),
        }
    }
}

/// Redacts valid JSON; `None` if it contains no secret. This works on the text, because the tree of
/// a large reply takes many times its memory.
pub(crate) fn redact_json(
    redactor: &Redactor,
    json: &[u8],
    numbers: NumberMark,
) -> Option<Vec<u8>> {
    let mut redaction = JsonRedaction {
        redactor,
        json,
        // If no secret is in the whole text, only a string with escapes can contain one.
        everywhere: redactor.may_be_plain_in(json),
        out: Vec::new(),
        copied: 0,
        names: KeyNames::default(),
        taken: None,
    };
    redaction.run(numbers);
    let (mut out, copied) = (redaction.out, redaction.copied);
    (copied > 0).then(|| {
        out.extend_from_slice(json.get(copied..).unwrap_or_default());
        out
    })
}

/// Names for redacted keys, so that two keys of one object stay different.
#[derive(Default)]
struct KeyNames {
    /// The names given so far in each object that is open, by its depth.
    given: HashMap<usize, HashSet<String>>,
    /// The last number behind each name, in the whole text.
    numbers: HashMap<String, usize>,
}

impl KeyNames {
    /// Returns the redacted key, with a number if the object or the text already contains that key.
    fn name(&mut self, depth: usize, clean: String, taken: &HashSet<String>) -> String {
        let given = self.given.entry(depth).or_default();
        if !taken.contains(&clean) && given.insert(clean.clone()) {
            return clean;
        }
        let number = self.numbers.entry(clean.clone()).or_insert(1);
        loop {
            *number += 1;
            let name = format!("{clean}-{number}");
            if !taken.contains(&name) && given.insert(name.clone()) {
                return name;
            }
        }
    }

    fn close(&mut self, depth: usize) {
        if !self.given.is_empty() {
            self.given.remove(&depth);
        }
    }
}

struct JsonRedaction<'r> {
    redactor: &'r Redactor,
    json: &'r [u8],
    everywhere: bool,
    out: Vec<u8>,
    /// Number of bytes of the text that are in `out`.
    copied: usize,
    names: KeyNames,
    /// The keys of the text that already contain the mark; read on first use.
    taken: Option<HashSet<String>>,
}

impl JsonRedaction<'_> {
    fn run(&mut self, numbers: NumberMark) {
        let mut depth = 0_usize;
        for string in strings(self.json) {
            for byte in string.before {
                match byte {
                    b'{' => depth += 1,
                    b'}' => {
                        self.names.close(depth);
                        depth = depth.saturating_sub(1);
                    }
                    _ => {}
                }
            }
            if self.everywhere {
                self.numbers(&string, numbers);
            }
            self.string(&string, depth);
        }
    }

    fn numbers(&mut self, JsonString { at, before, .. }: &JsonString<'_>, numbers: NumberMark) {
        let is_part = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
        let mut at = *at;
        for part in before.chunk_by(|one, next| is_part(*one) == is_part(*next)) {
            if let [b'-' | b'0'..=b'9', ..] = part
                && let Some(text) = self.redactor.clean_number(part)
            {
                self.replace(at, at + part.len(), &numbers.value(text));
            }
            at += part.len();
        }
    }

    fn string(&mut self, string: &JsonString<'_>, depth: usize) {
        if !self.everywhere && !has_escapes(string.quoted) {
            return;
        }
        let Some(clean) = self.redactor.clean_string(&decode_string(string.quoted)) else {
            return;
        };
        let text = if string.is_key {
            let taken = self.taken.get_or_insert_with(|| marked_keys(self.json));
            self.names.name(depth, clean, taken)
        } else {
            clean
        };
        let start = string.at + string.before.len();
        self.replace(start, start + string.quoted.len(), &Value::from(text));
    }

    fn replace(&mut self, start: usize, end: usize, value: &Value) {
        self.out
            .extend_from_slice(self.json.get(self.copied..start).unwrap_or_default());
        self.out.extend_from_slice(value.to_string().as_bytes());
        self.copied = end;
    }
}

/// All keys of a JSON text that may hold a mark.
fn marked_keys(json: &[u8]) -> HashSet<String> {
    let keys = strings(json).filter(|string| string.is_key);
    keys.map(|key| decode_string(key.quoted).into_owned())
        .filter(|key| key.contains('['))
        .collect()
}

/// Decodes a JSON string; lone surrogates become replacement characters.
fn decode_string(quoted: &[u8]) -> Cow<'_, str> {
    struct Bytes;
    impl Visitor<'_> for Bytes {
        type Value = String;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<String, E> {
            Ok(String::from_utf8_lossy(bytes).into_owned())
        }
    }
    let inner = quoted
        .strip_prefix(b"\"")
        .and_then(|quoted| quoted.strip_suffix(b"\""))
        .unwrap_or_default();
    if memchr::memchr(b'\\', inner).is_none() {
        return String::from_utf8_lossy(inner);
    }
    let decoded = serde_json::Deserializer::from_slice(quoted).deserialize_bytes(Bytes);
    decoded.map_or_else(|_| String::from_utf8_lossy(inner), Cow::Owned)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::redact::secrets::MARK;

    /// Secrets made of what JSON, URLs and HTML are written with, and of digits.
    fn any_secret() -> impl Strategy<Value = String> {
        prop_oneof![
            "[\\[\\]{}:,\"\\\\/ntu0-9a-f%&;# ]{6,14}",
            "[0-9]{12,14}",
            "[a-c\\\\\"]{6,8}",
            "[\\PC\\t]{6,12}",
            Just("d]abcd".to_owned()),
        ]
    }

    fn any_json(secrets: &[String]) -> impl Strategy<Value = Value> + use<> {
        let secrets = secrets.to_vec();
        let text = (
            ".{0,6}",
            proptest::sample::select(secrets.clone()),
            ".{0,6}",
            0..8_u8,
        )
            .prop_map(|(before, secret, after, kind)| match kind {
                0 => before,
                1 => secret,
                2 => format!(
                    "{before}{}{after}",
                    secret
                        .bytes()
                        .map(|byte| format!("%{byte:02x}"))
                        .collect::<String>()
                ),
                3 => format!(
                    "{before}{}{after}",
                    secret
                        .chars()
                        .map(|c| format!("&#{};", u32::from(c)))
                        .collect::<String>()
                ),
                4 => format!("{before}{secret}{secret}{after}"),
                _ => format!("{before}{secret}{after}"),
            });
        let number = |text: String| {
            serde_json::from_str::<Value>(&text).unwrap_or_else(|_| Value::from(text))
        };
        let spelled =
            (proptest::sample::select(secrets), 0..5_u8).prop_map(move |(secret, kind)| {
                let (first, rest) =
                    secret.split_at(secret.chars().next().map_or(0, char::len_utf8));
                number(match kind {
                    0 => format!("{secret}.0"),
                    1 => format!("-{secret}e0"),
                    2 => format!("{first}.{rest}E+{}", rest.len()),
                    3 => format!("{secret}00e-2"),
                    _ => secret,
                })
            });
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.clone().prop_map(Value::from),
            text.clone().prop_map(number),
            spelled,
        ];
        leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                proptest::collection::hash_map(text.clone(), inner, 0..5)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn any_case() -> impl Strategy<Value = (Vec<String>, Value)> {
        proptest::collection::vec(any_secret(), 1..4)
            .prop_flat_map(|secrets| (Just(secrets.clone()), any_json(&secrets)))
    }

    fn has_secret(secrets: &[String], text: &str) -> bool {
        secrets
            .iter()
            .any(|secret| text.contains(secret.as_str()) && !MARK.contains(secret.as_str()))
    }

    /// Returns true if a number has the digits of a secret.
    fn is_spelled(secrets: &[String], number: &serde_json::Number) -> bool {
        let text = number.to_string();
        secrets
            .iter()
            .any(|secret| *secret == text || *secret == text.trim_start_matches('-'))
    }

    fn check(secrets: &[String], before: &Value, after: &Value) -> Result<(), TestCaseError> {
        match (before, after) {
            (Value::Array(before), Value::Array(after)) => {
                prop_assert_eq!(before.len(), after.len());
                before
                    .iter()
                    .zip(after)
                    .try_for_each(|(before, after)| check(secrets, before, after))?;
            }
            (Value::Object(before), Value::Object(after)) => {
                prop_assert_eq!(before.len(), after.len());
                for ((name, before), (new_name, after)) in before.iter().zip(after) {
                    prop_assert!(!has_secret(secrets, new_name), "{}", new_name);
                    prop_assert!(
                        name == new_name || new_name.contains(MARK),
                        "{} {}",
                        name,
                        new_name
                    );
                    check(secrets, before, after)?;
                }
            }
            (_, Value::String(after)) => {
                prop_assert!(!has_secret(secrets, after), "{}", after);
                let changed = before.as_str().is_none_or(|before| before != after);
                prop_assert!(!changed || after.contains(MARK), "{} {}", before, after);
            }
            (Value::Number(before), after) if is_spelled(secrets, before) => {
                prop_assert_eq!(after, &Value::from(MARK));
            }
            (before, after) => prop_assert_eq!(before, after),
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]
        #[test]
        fn json_stays_json_of_the_same_shape_without_its_secrets((given, json) in any_case(), escaped in any::<bool>()) {
            let redactor = Redactor::for_values(&given);
            let mut text = json.to_string();
            if escaped {
                // Every other way to write a character.
                text = text.replace('/', "\\/").replace('a', "\\u0061").replace("\\u0061lse", "alse").replace("f\\u0061lse", "false");
                text = text.replace("\\\\u0061", "\\\\a");
            }
            if let Ok(read) = serde_json::from_str::<Value>(&text)
                && read == json
            {
                let clean = redact_json(&redactor, text.as_bytes(), NumberMark::Text).unwrap_or(text.into_bytes());
                let clean: Value = serde_json::from_slice(&clean).unwrap();
                check(&given, &json, &clean)?;
            }
        }
    }
}

//! Parses untrusted JSON into a tree.
//!
//! To keep numbers and texts as they are written, `serde_json` gives some keys a meaning of its own
//! (`$serde_json::private::…`). A text that holds one would be read as something else than it says, and nested past every
//! limit. Untrusted text is therefore checked for such keys before it becomes a tree.

use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::Error as _;
use serde_json::Value;

const RESERVED: &str = "$serde_json::private::";

/// Reads a JSON text.
///
/// # Errors
/// As `serde_json`; and where a key is one that `serde_json` keeps for itself.
pub(crate) fn parse_value(text: &[u8]) -> serde_json::Result<Value> {
    if !is_plain(text) {
        return Err(serde_json::Error::custom(format!(
            "a key begins with `{RESERVED}`, which is reserved"
        )));
    }
    serde_json::from_slice(text)
}

/// Whether no key of a JSON text begins with what `serde_json` keeps for itself. For a text that is not JSON, the answer may be either.
#[must_use]
pub(crate) fn is_plain(text: &[u8]) -> bool {
    static RESERVED_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RESERVED));
    static ESCAPE_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));
    // Spelled out, or with escapes; most texts hold neither.
    if RESERVED_FINDER.find(text).is_none() && ESCAPE_FINDER.find(text).is_none() {
        return true;
    }
    let mut rest = text;
    while let Some(start) = memchr::memchr(b'"', rest) {
        let Some(string) = rest.get(start..) else { break };
        let Some(length) = string_length(string) else { break };
        let (Some(quoted), Some(after)) = (string.get(..length), string.get(length..)) else {
            break;
        };
        let is_key = after.trim_ascii_start().first() == Some(&b':');
        if is_key && serde_json::from_slice::<String>(quoted).is_ok_and(|key| key.starts_with(RESERVED)) {
            return false;
        }
        rest = after;
    }
    true
}

/// How long the string is that the text begins with, both quotes included; `None` where it does not end.
pub(crate) fn string_length(text: &[u8]) -> Option<usize> {
    let mut at = 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', text.get(at..)?)?;
        if text.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_mean_something_else_are_refused_however_they_are_written() {
        for text in [
            r#"{"$serde_json::private::RawValue":"[1]"}"#,
            r#"[{"a":{"$serde_json::private::Number" : "5"}}]"#,
            r#"{"\u0024serde_json::private::RawValue":"[1]"}"#,
            r#"{"$\u0073erde_json::private::RawValue":"1"}"#,
        ] {
            assert!(parse_value(text.as_bytes()).is_err(), "{text}");
        }
        for text in [
            r#"{"a":"$serde_json::private::RawValue","b":"\u0024","c":[1.50,12345678901234567890]}"#,
            r#"["$serde_json::private::RawValue","\"","\\"]"#,
        ] {
            assert_eq!(
                parse_value(text.as_bytes()).unwrap().to_string(),
                text.replace("\\u0024", "$"),
                "{text}"
            );
        }
    }
}

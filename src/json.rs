//! Parses untrusted JSON into a tree.
//!
//! To keep numbers and texts as they are written, `serde_json` gives some keys a meaning of its own
//! (`$serde_json::private::…`). A text that holds one would be read as something else than it says,
//! and nested past every limit. Untrusted text is therefore checked for such keys before it becomes
//! a tree.

use std::borrow::Cow;
use std::io::Write as _;
use std::sync::LazyLock;

use memchr::memmem::Finder;
use serde::de::{Error as _, IgnoredAny};
use serde_json::{Map, Value};

/// A JSON object.
pub(crate) type JsonObject = Map<String, Value>;

/// The member of structured content that holds a reply that is not an object.
pub(crate) const RESULT_KEY: &str = "result";
/// The member of structured content that holds the notes of this server.
pub(crate) const NOTES_KEY: &str = "_notes";

/// Returns the member of an object with that name, or at that JSON Pointer (RFC 6901) if it begins
/// with `/`.
pub(crate) fn member_at<'v>(object: &'v JsonObject, place: &str) -> Option<&'v Value> {
    let Some(pointer) = place.strip_prefix('/') else {
        return object.get(place);
    };
    let (first, rest) = pointer.split_at(pointer.find('/').unwrap_or(pointer.len()));
    object.get(&unescaped_token(first))?.pointer(rest)
}

/// Returns a reference token of a JSON Pointer as the name that it stands for (RFC 6901 section 4).
pub(crate) fn unescaped_token(token: &str) -> String {
    if token.contains('~') {
        token.replace("~1", "/").replace("~0", "~")
    } else {
        token.to_owned()
    }
}

/// Returns an object in which [`member_at`] finds that value at that place.
pub(crate) fn object_with(place: &str, value: Value) -> JsonObject {
    let Some(pointer) = place.strip_prefix('/') else {
        return JsonObject::from_iter([(place.to_owned(), value)]);
    };
    let (first, rest) = pointer.split_once('/').unwrap_or((pointer, ""));
    let steps = rest.rsplit('/').filter(|_| first.len() < pointer.len());
    let around = |inner, step| Value::Object(object_of(step, inner));
    object_of(first, steps.fold(value, around))
}

fn object_of(step: &str, value: Value) -> JsonObject {
    JsonObject::from_iter([(unescaped_token(step), value)])
}

const RESERVED: &str = "$serde_json::private::";

/// Reads a JSON text.
///
/// # Errors
/// Those of `serde_json`; and a key that `serde_json` reserves.
pub(crate) fn parse_value(text: &[u8]) -> serde_json::Result<Value> {
    check_plain(text)?;
    serde_json::from_slice(text)
}

/// Parses like [`parse_value`], but faster, because the text is known to be UTF-8.
///
/// # Errors
/// As [`parse_value`].
pub(crate) fn parse_text(text: &str) -> serde_json::Result<Value> {
    check_plain(text.as_bytes())?;
    serde_json::from_str(text)
}

fn check_plain(text: &[u8]) -> serde_json::Result<()> {
    if is_plain(text) {
        return Ok(());
    }
    let message = format!("a key begins with `{RESERVED}`, which is reserved");
    Err(serde_json::Error::custom(message))
}

/// Returns true if a text is JSON, of any depth.
pub(crate) fn is_json(text: &[u8]) -> bool {
    serde_json::from_slice::<IgnoredAny>(text).is_ok()
}

/// Returns true if no key of a JSON text begins with the prefix that `serde_json` reserves. For a
/// text that is not JSON, the answer may be either.
pub(crate) fn is_plain(text: &[u8]) -> bool {
    static RESERVED_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(RESERVED));
    static ESCAPE_FINDER: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new("\\u"));
    // Spelled out, or with escapes; most texts hold neither.
    if memchr::memchr2(b'$', b'\\', text).is_none()
        || (RESERVED_FINDER.find(text).is_none() && ESCAPE_FINDER.find(text).is_none())
    {
        return true;
    }
    let is_reserved = |key: &[u8]| {
        serde_json::from_slice::<String>(key).is_ok_and(|key| key.starts_with(RESERVED))
    };
    !strings(text).any(|string| string.is_key && is_reserved(string.quoted))
}

/// A string of a JSON text, with the text between it and the one before.
pub(crate) struct JsonString<'t> {
    /// Offset of the text before the string.
    pub(crate) at: usize,
    pub(crate) before: &'t [u8],
    /// The string with its quotes; empty at the end of the text.
    pub(crate) quoted: &'t [u8],
    pub(crate) is_key: bool,
}

/// Returns the strings of a JSON text, and last the text that has none. Nothing is checked.
pub(crate) fn strings(text: &[u8]) -> impl Iterator<Item = JsonString<'_>> {
    let mut next = Some(0);
    std::iter::from_fn(move || {
        let at = next?;
        let rest = text.get(at..)?;
        let start = memchr::memchr(b'"', rest).unwrap_or(rest.len());
        let (before, string) = rest.split_at_checked(start)?;
        let length = string_length(string).unwrap_or(string.len());
        let (quoted, after) = string.split_at_checked(length)?;
        next = (length > 0).then_some(at + start + length);
        Some(JsonString {
            at,
            before,
            quoted,
            is_key: after.trim_ascii_start().first() == Some(&b':'),
        })
    })
}

/// A JSON number without an exponent, digit for digit: `1e2` is `100`, `1.5E-3` is `0.0015`.
/// Numbers whose plain form would not fit into a line stay as they were written.
pub(crate) fn plain_number(number: &str) -> Cow<'_, str> {
    const MAX_EXPONENT: i64 = 400;
    let Some((mantissa, exponent)) = number.split_once(['e', 'E']) else {
        return Cow::Borrowed(number);
    };
    let (sign, mantissa) = mantissa
        .strip_prefix('-')
        .map_or(("", mantissa), |rest| ("-", rest));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let Ok(exponent) = exponent.trim_start_matches('+').parse::<i64>() else {
        return Cow::Borrowed(number);
    };
    if exponent.abs() > MAX_EXPONENT {
        return Cow::Borrowed(number);
    }
    let digits = format!("{whole}{fraction}");
    let point = i64::try_from(whole.len()).unwrap_or(0) + exponent;
    let length = i64::try_from(digits.len()).unwrap_or(0);
    let zeros = |count: i64| "0".repeat(usize::try_from(count).unwrap_or(0));
    let text = if point <= 0 {
        format!("0.{}{digits}", zeros(-point))
    } else if point >= length {
        format!("{digits}{}", zeros(point - length))
    } else {
        let (before, after) = digits.split_at(usize::try_from(point).unwrap_or(0));
        format!("{before}.{after}")
    };
    let trimmed = text.trim_start_matches('0');
    let text = if trimmed.is_empty() || trimmed.starts_with('.') {
        format!("0{trimmed}")
    } else {
        trimmed.to_owned()
    };
    Cow::Owned(format!("{sign}{text}"))
}

/// The digits of a number that has a zero fraction or an exponent and is an integer of at most 40
/// digits; `None` for every other number.
pub(crate) fn plain_integer(number: &str) -> Option<String> {
    const MAX_DIGITS: usize = 40;
    if !number.contains(['.', 'e', 'E']) {
        return None;
    }
    let plain = plain_number(number);
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let digits = whole.trim_start_matches('-');
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit())
        && fraction.bytes().all(|byte| byte == b'0');
    let whole = if digits == "0" { digits } else { whole };
    (is_integer && digits.len() <= MAX_DIGITS).then(|| whole.to_owned())
}

/// Appends a text as a JSON string, with the escapes of `serde_json`: most of them are quotes in a
/// text that is JSON itself, for which it is slow.
pub(crate) fn write_string(text: &str, out: &mut Vec<u8>) {
    out.reserve(text.len() + text.len() / 4 + 2);
    out.push(b'"');
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    for chunk in chunks {
        if has_escaped_byte(*chunk) {
            chunk.iter().for_each(|byte| write_string_byte(*byte, out));
        } else {
            out.extend_from_slice(chunk);
        }
    }
    rest.iter().for_each(|byte| write_string_byte(*byte, out));
    out.push(b'"');
}

/// Returns true if one of eight bytes is written as an escape. By arithmetic on all of them at once
/// (Anderson, "Bit Twiddling Hacks": a zero byte, a byte less than n), which may also be true for a
/// byte after such a byte.
fn has_escaped_byte(bytes: [u8; 8]) -> bool {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let word = u64::from_le_bytes(bytes);
    let is_zero = |word: u64| word.wrapping_sub(ONES) & !word;
    let is_control = word.wrapping_sub(ONES * 0x20) & !word;
    let is_quote = is_zero(word ^ (ONES * u64::from(b'"')));
    let is_backslash = is_zero(word ^ (ONES * u64::from(b'\\')));
    (is_control | is_quote | is_backslash) & HIGHS != 0
}

fn write_string_byte(byte: u8, out: &mut Vec<u8>) {
    let short = match byte {
        b'"' | b'\\' => byte,
        0x20.. => return out.push(byte),
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0c => b'f',
        // Writing to a Vec cannot fail.
        _ => return drop(write!(out, "\\u{byte:04x}")),
    };
    out.extend_from_slice(&[b'\\', short]);
}

/// Returns the length of the string that the text begins with, both quotes included; `None` if it
/// does not end.
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_are_written_as_serde_json_writes_them(text in prop_oneof![".*", "[\u{0}-\u{80}\\\\\"é]{0,40}", "[a-c \"]{0,40}"]) {
            let mut out = b"before".to_vec();
            write_string(&text, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), format!("before{}", serde_json::to_string(&text).unwrap()));
        }
    }

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

    #[test]
    fn integers_lose_their_fraction_and_their_exponent() {
        for (written, expected) in [
            ("2.0", Some("2")),
            ("-2.000", Some("-2")),
            ("0.0", Some("0")),
            ("-0.0", Some("0")),
            ("1e2", Some("100")),
            ("1.50E+1", Some("15")),
            ("1500e-2", Some("15")),
            ("0.5e1", Some("5")),
            ("1e39", Some("1000000000000000000000000000000000000000")),
            ("1e40", None),
            ("1e400", None),
            ("1e99999999999999999999", None),
            ("2", None),
            ("2.5", None),
            ("1e-1", None),
            ("15e-2", None),
        ] {
            assert_eq!(plain_integer(written).as_deref(), expected, "{written}");
        }
    }

    proptest! {
        #[test]
        fn the_value_stays_the_same(number in -1_000_000_000_i64..1_000_000_000, zeros in 0_usize..6) {
            let written = format!("{number}.{}", "0".repeat(zeros + 1));
            prop_assert_eq!(plain_integer(&written), Some(number.to_string()));
            let shifted = format!("{number}{}e-{zeros}", "0".repeat(zeros));
            prop_assert_eq!(plain_integer(&shifted), Some(number.to_string()));
        }
    }
}

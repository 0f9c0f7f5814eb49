//! Splits the text of a JSON object or array at its own commas. The text was checked to be JSON
//! before, so that what is inside of a member is passed over by its quotes and brackets alone,
//! eight bytes at a time, and not read as JSON once more.

use std::borrow::Cow;

use crate::json::RESERVED_KEYS;

/// Applies `member` to the members of an object, given as slices of its text, in order; `None` if
/// only a complete parser can split the text.
pub(super) fn split_object<'t, T>(
    text: &'t str,
    member: impl Fn(Cow<'t, str>, &'t str) -> T,
) -> Option<Vec<T>> {
    let mut splitter = Splitter { text, at: 0 };
    let mut members = Vec::with_capacity(8);
    splitter.pass(b'{')?;
    if splitter.peek()? == b'}' {
        splitter.end(b'}')?;
        return Some(members);
    }
    loop {
        let key = splitter.key()?;
        splitter.pass(b':')?;
        members.push(member(key, splitter.value()?));
        if splitter.pass(b',').is_none() {
            splitter.end(b'}')?;
            return Some(members);
        }
    }
}

/// Error for a text that only a complete parser can split.
pub(super) struct NeedsParser;

/// The first member of that name in the text of an object, of which no more is read.
///
/// # Errors
/// As `None` of [`split_object`].
pub(super) fn find_member<'t>(text: &'t str, name: &str) -> Result<Option<&'t str>, NeedsParser> {
    let mut splitter = Splitter { text, at: 0 };
    splitter.pass(b'{').ok_or(NeedsParser)?;
    let mut has_next = splitter.peek() != Some(b'}');
    while has_next {
        let key = splitter.key().ok_or(NeedsParser)?;
        splitter.pass(b':').ok_or(NeedsParser)?;
        let value = splitter.value().ok_or(NeedsParser)?;
        if key == name {
            return Ok(Some(value));
        }
        has_next = splitter.pass(b',').is_some();
    }
    splitter.end(b'}').map(|()| None).ok_or(NeedsParser)
}

/// Applies `item` to the items of an array, like [`split_object`].
pub(super) fn split_array<'t, T>(text: &'t str, item: impl Fn(&'t str) -> T) -> Option<Vec<T>> {
    let mut splitter = Splitter { text, at: 0 };
    let mut items = Vec::new();
    splitter.pass(b'[')?;
    if splitter.peek()? == b']' {
        splitter.end(b']')?;
        return Some(items);
    }
    loop {
        items.push(item(splitter.value()?));
        if splitter.pass(b',').is_none() {
            splitter.end(b']')?;
            return Some(items);
        }
    }
}

/// Returns the items of an array one after the other; `None` if the text is not one.
pub(super) fn array_items(text: &str) -> Option<impl Iterator<Item = &str>> {
    let mut splitter = Splitter { text, at: 0 };
    splitter.pass(b'[')?;
    Some(std::iter::from_fn(move || {
        let item = splitter.value()?;
        splitter.pass(b',');
        Some(item)
    }))
}

struct Splitter<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Splitter<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
    }

    /// Passes one byte and the white space behind it.
    fn pass(&mut self, byte: u8) -> Option<()> {
        if self.peek()? != byte {
            return None;
        }
        self.at += 1;
        self.skip_space();
        Some(())
    }

    /// Passes the last byte, with nothing behind it.
    fn end(&mut self, byte: u8) -> Option<()> {
        self.pass(byte)?;
        (self.at == self.text.len()).then_some(())
    }

    fn key(&mut self) -> Option<Cow<'t, str>> {
        let start = self.at;
        if self.peek()? != b'"' {
            return None;
        }
        self.at = string_end(self.text.as_bytes(), start)?;
        let quoted = self.text.get(start..self.at)?;
        self.skip_space();
        let key = quoted.get(1..quoted.len() - 1)?;
        let key = if key.contains('\\') {
            Cow::Owned(serde_json::from_str::<String>(quoted).ok()?)
        } else {
            Cow::Borrowed(key)
        };
        // `serde_json` gives these a meaning of its own.
        (!key.starts_with(RESERVED_KEYS)).then_some(key)
    }

    fn value(&mut self) -> Option<&'t str> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        self.at = match self.peek()? {
            b'"' => string_end(bytes, start)?,
            b'{' | b'[' => bracket_end(bytes, start)?,
            _ => scalar_end(bytes, start),
        };
        let value = self
            .text
            .get(start..self.at)
            .filter(|value| !value.is_empty())?;
        self.skip_space();
        Some(value)
    }
}

/// Returns the index after the string that begins at `start`.
pub(crate) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let found = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes.get(found) == Some(&b'"') {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

/// Returns the index after the object or the array that begins at `start`.
fn bracket_end(bytes: &[u8], start: usize) -> Option<usize> {
    let (mut at, mut depth) = (start, 0_usize);
    loop {
        at += next_bracket_or_quote(bytes.get(at..)?)?;
        match bytes.get(at)? {
            b'"' => at = string_end(bytes, at)?,
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            _ => {
                depth -= 1;
                at += 1;
                if depth == 0 {
                    return Some(at);
                }
            }
        }
    }
}

/// Returns the index after the number, or the word, that begins at `start`.
pub(crate) fn scalar_end(bytes: &[u8], start: usize) -> usize {
    let rest = bytes.get(start..).unwrap_or_default();
    let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t');
    start + rest.iter().position(ends).unwrap_or(rest.len())
}

/// Returns the index of the next of `"{}[]`. Looks at eight bytes at once by the arithmetic that
/// finds a zero byte in a word (Anderson, "Bit Twiddling Hacks"), whose lowest hit is exact.
fn next_bracket_or_quote(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    let (chunks, rest) = bytes.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let word = u64::from_le_bytes(*chunk);
        // Brackets and braces differ in one bit.
        let folded = word | (ONES * 0x20);
        let found = zeros(word ^ (ONES * u64::from(b'"')))
            | zeros(folded ^ (ONES * u64::from(b'{')))
            | zeros(folded ^ (ONES * u64::from(b'}')));
        if found != 0 {
            return Some(index * 8 + (found.trailing_zeros() / 8) as usize);
        }
    }
    let is_found = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
    rest.iter()
        .position(is_found)
        .map(|at| chunks.len() * 8 + at)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Map, Value};

    use super::*;

    fn members(text: &str) -> Option<Vec<(Cow<'_, str>, &str)>> {
        split_object(text, |key, value| (key, value))
    }

    fn items(text: &str) -> Option<Vec<&str>> {
        split_array(text, |item| item)
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            "[a-z{}\\[\\]\"\\\\:,é\u{0}\n ]{0,20}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec(("[a-c\"\\\\{é]{0,3}", inner), 0..6)
                    .prop_map(|members| members.into_iter().collect::<Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn members_and_items_are_those_that_a_parser_finds(value in any_json(), is_pretty: bool) {
            let text = if is_pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            match &value {
                Value::Object(object) => {
                    let split = members(&text).unwrap();
                    prop_assert_eq!(split.iter().map(|(key, _)| key.as_ref()).collect::<Vec<_>>(), object.keys().collect::<Vec<_>>());
                    for ((_, slice), value) in split.iter().zip(object.values()) {
                        prop_assert_eq!(&serde_json::from_str::<Value>(slice).unwrap(), value);
                        prop_assert_eq!(slice.trim(), *slice);
                    }
                    for (key, slice) in &split {
                        prop_assert_eq!(find_member(&text, key).ok().flatten(), Some(*slice));
                    }
                    prop_assert_eq!(find_member(&text, "absent").ok(), Some(None));
                }
                Value::Array(_) => {
                    let parsed: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
                    let parsed: Vec<&str> = parsed.into_iter().map(RawValue::get).collect();
                    prop_assert_eq!(array_items(&text).unwrap().collect::<Vec<_>>(), parsed.clone());
                    prop_assert_eq!(items(&text).unwrap(), parsed);
                }
                _ => prop_assert!(members(&text).is_none() && items(&text).is_none()),
            }
        }

        #[test]
        fn any_text_is_split_or_not_but_never_panics(text in "[a-b{}\\[\\]\":, \\\\é]{0,40}") {
            let _ = (members(&text), items(&text), array_items(&text).map(Iterator::count));
            let _ = (members(&format!("{{{text}")), items(&format!("[{text}")));
        }
    }

    #[test]
    fn what_a_parser_reads_in_a_way_of_its_own_is_left_to_it() {
        for text in [
            "{\"$serde_json::private::Number\":\"1\"}",
            "{\"\\u0024serde_json::private::RawValue\":1}",
            "{\"\\ud800\":1}",
            "{} x",
            "{\"a\":1,}",
            "{\"a\" 1}",
            "{\"a\":}",
            "{",
        ] {
            assert!(members(text).is_none(), "{text}");
        }
        assert_eq!(members("{ } \n"), Some(Vec::new()));
        assert_eq!(items("[ ]"), Some(Vec::new()));
    }
}

//! JSON as `serde_json` writes it, made of a text in one scan.
//!
//! Most replies have this form already: their text is then the text of the result and its
//! structured content, and no tree is built.

use std::borrow::Cow;

use crate::json;

/// Deeper than this the text is left to the parser, which has a limit of 128 levels.
const MAX_DEPTH: usize = 120;
/// Objects with more members than this are searched for repeated keys by sorting.
const MAX_COMPARED_KEYS: usize = 16;
/// Prefix of the keys that `serde_json` reserves.
const RESERVED: &[u8] = b"$serde_json::";

/// Returns the text that parsing `json` and writing the tree would give: without white space, on
/// one line. Borrowed if it is `json` itself. `None` if a tree is needed: the text is not valid
/// JSON, a key is repeated, reserved or has an escape that `serde_json` would not write, or the
/// nesting is deep.
pub(crate) fn compact_json(json: &[u8]) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(json).ok()?;
    let mut scan = Scan {
        text: json,
        at: 0,
        copied: 0,
        out: Vec::new(),
        keys: Vec::new(),
    };
    scan.skip_space();
    scan.value(0)?;
    scan.skip_space();
    if scan.at < json.len() {
        return None;
    }
    if scan.copied == 0 {
        return Some(Cow::Borrowed(text));
    }
    let mut out = scan.out;
    out.extend_from_slice(json.get(scan.copied..)?);
    String::from_utf8(out).ok().map(Cow::Owned)
}

struct Scan<'t> {
    text: &'t [u8],
    at: usize,
    /// Number of bytes of the text that are in `out`, as they are or written anew, or are white
    /// space.
    copied: usize,
    out: Vec<u8>,
    /// The keys of all objects that are open, the innermost last.
    keys: Vec<&'t [u8]>,
}

impl<'t> Scan<'t> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        let start = self.at;
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.peek() {
            self.at += 1;
        }
        if self.at > start {
            self.copy_to(start);
            self.copied = self.at;
        }
    }

    /// Copies the text before `end` that is not copied yet.
    fn copy_to(&mut self, end: usize) {
        self.out
            .extend_from_slice(self.text.get(self.copied..end).unwrap_or_default());
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        match self.peek()? {
            b'"' => self.string().map(|_| ()),
            b'{' if depth < MAX_DEPTH => self.object(depth + 1),
            b'[' if depth < MAX_DEPTH => self.items(b']', |scan| scan.value(depth + 1)),
            b't' => self.literal(b"true"),
            b'f' => self.literal(b"false"),
            b'n' => self.literal(b"null"),
            b'-' | b'0'..=b'9' => self.number(),
            _ => None,
        }
    }

    fn literal(&mut self, literal: &[u8]) -> Option<()> {
        self.text
            .get(self.at..)?
            .starts_with(literal)
            .then(|| self.at += literal.len())
    }

    /// Reads an array or an object up to its `end`, by reading one item or member after the other.
    #[inline]
    fn items(&mut self, end: u8, mut item: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.at += 1;
        self.skip_space();
        if self.peek()? == end {
            self.at += 1;
            return Some(());
        }
        loop {
            item(self)?;
            self.skip_space();
            let byte = self.peek()?;
            self.at += 1;
            match byte {
                b',' => self.skip_space(),
                byte if byte == end => return Some(()),
                _ => return None,
            }
        }
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        let first = self.keys.len();
        self.items(b'}', |scan| {
            let copied = scan.copied;
            let key = scan.string().filter(|_| scan.copied == copied)?;
            scan.add_key(key, first)?;
            scan.skip_space();
            if scan.peek()? != b':' {
                return None;
            }
            scan.at += 1;
            scan.skip_space();
            scan.value(depth)
        })?;
        self.close_keys(first)
    }

    /// Escapes of keys are written in one way only, so that equal keys are equal bytes.
    fn add_key(&mut self, key: &'t [u8], first: usize) -> Option<()> {
        let known = self.keys.get(first..)?;
        if key.starts_with(RESERVED) || (known.len() < MAX_COMPARED_KEYS && known.contains(&key)) {
            return None;
        }
        self.keys.push(key);
        Some(())
    }

    fn close_keys(&mut self, first: usize) -> Option<()> {
        let keys = self.keys.get_mut(first..)?;
        if keys.len() > MAX_COMPARED_KEYS {
            keys.sort_unstable();
            if keys
                .iter()
                .zip(keys.iter().skip(1))
                .any(|(key, next)| key == next)
            {
                return None;
            }
        }
        self.keys.truncate(first);
        Some(())
    }

    /// Reads the text between the quotes. A string with an escape that `serde_json` would not write
    /// is written anew.
    fn string(&mut self) -> Option<&'t [u8]> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        let mut end = start;
        loop {
            let rest = self.text.get(end..)?;
            end += rest
                .iter()
                .position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\')?;
            match self.text.get(end)? {
                b'"' => break,
                b'\\' => match escape_length(self.text.get(end + 1..)?) {
                    Some(length) => end += length + 1,
                    None => return self.rewritten_string(),
                },
                // A control character, which must be written as an escape.
                _ => return None,
            }
        }
        self.at = end + 1;
        self.text.get(start..end)
    }

    fn rewritten_string(&mut self) -> Option<&'t [u8]> {
        let rest = self.text.get(self.at..)?;
        let quoted = rest.get(..json::string_length(rest)?)?;
        let text: String = serde_json::from_slice(quoted).ok()?;
        self.copy_to(self.at);
        json::write_string(&text, &mut self.out);
        self.at += quoted.len();
        self.copied = self.at;
        Some(quoted)
    }

    /// `serde_json` keeps the digits of a number, but writes every exponent as `e` with a sign.
    fn number(&mut self) -> Option<()> {
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek()? {
            b'0' => self.at += 1,
            _ => self.digits()?,
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        match self.peek() {
            Some(letter @ (b'e' | b'E')) => {
                let is_signed = matches!(self.text.get(self.at + 1)?, b'+' | b'-');
                if letter == b'E' || !is_signed {
                    self.copy_to(self.at);
                    self.out
                        .extend_from_slice(if is_signed { b"e" } else { b"e+" });
                    self.copied = self.at + 1;
                }
                self.at += 1 + usize::from(is_signed);
                self.digits()
            }
            // What else follows a number is judged by who expects it.
            Some(b'0'..=b'9') => None,
            _ => Some(()),
        }
    }

    fn digits(&mut self) -> Option<()> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }
}

/// Returns the length of an escape after its backslash, if `serde_json` would write the same one.
fn escape_length(rest: &[u8]) -> Option<usize> {
    match rest.first()? {
        b'"' | b'\\' | b'b' | b'f' | b'n' | b'r' | b't' => Some(1),
        // The other control characters, with lower-case digits.
        b'u' => match rest.get(1..5)? {
            [b'0', b'0', b'0', b'0'..=b'7' | b'b' | b'e' | b'f']
            | [b'0', b'0', b'1', b'0'..=b'9' | b'a'..=b'f'] => Some(5),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    #[test]
    fn compact_json_is_taken_as_it_is() {
        let deep = format!("{}1{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        let many: String = (0..40)
            .map(|number| format!("\"k{number}\":{number},"))
            .collect();
        let many = format!("{{{many}\"last\":null}}");
        for text in [
            "1",
            "-0",
            "1.50",
            "1e+5",
            "1.0e-400",
            "null",
            "\"\"",
            "[]",
            "{}",
            r#"{"a":[1,{"b":"c"},true,false],"d":"\"\\\n\u0000\u001f\u007f é/"}"#
                .replace("\\u007f", "\u{7f}")
                .as_str(),
            r#"{"a":{"a":{"a":1}},"b":{"a":1}}"#,
            &deep,
            &many,
        ] {
            assert!(
                matches!(compact_json(text.as_bytes()), Some(Cow::Borrowed(same)) if same == text),
                "{text}"
            );
        }
        assert_eq!(
            compact_json(b" {\r\n\t\"a b\" : [ 1 , 2 ] ,\n\"c\" : { } }\n").as_deref(),
            Some(r#"{"a b":[1,2],"c":{}}"#)
        );
        assert_eq!(
            compact_json(
                br#"{"a":["\u0041\/\u000a\u001F\u00e9\ud83d\ude00", 1e5,1E-05,{"b":2.50E+7}]}"#
            )
            .as_deref(),
            Some("{\"a\":[\"A/\\n\\u001fé😀\",1e+5,1e-05,{\"b\":2.50e+7}]}")
        );
    }

    #[test]
    fn what_only_a_tree_can_tell_is_left_to_it() {
        let deep = "[".repeat(MAX_DEPTH + 1);
        let many: String = (0..40)
            .map(|number| format!("\"k{number}\":{number},"))
            .collect();
        let repeated = format!("{{{many}\"k7\":null}}");
        for text in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{1:2}",
            "[1 2]",
            "01",
            "-",
            "1.",
            ".5",
            "1e",
            "+1",
            "nul",
            "truetrue",
            "1 2",
            "\"a",
            "\"\n\"",
            r#""\ud800""#,
            r#""\x""#,
            r#"{"a":1,"a":2}"#,
            r#"{"\u0061":1}"#,
            r#"{"b":{"a":1,"b":2,"a":3}}"#,
            r#"{"$serde_json::private::Number":"5"}"#,
            "\u{feff}{}",
            &deep,
            &repeated,
        ] {
            assert_eq!(compact_json(text.as_bytes()), None, "{text}");
        }
        assert_eq!(compact_json(b"\"\xff\""), None);
    }

    /// JSON, and what looks like it.
    fn any_text() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,3})?([eE][+-]?[0-9]{1,3})?",
            "\"([a-c ]|\\\\[\"\\\\/bfnrt]|\\\\u00[01][0-9a-fA-F]|\\\\u[0-9a-d][0-9]{3}|é|\\PC){0,6}\"",
            prop_oneof![
                Just("true"),
                Just("false"),
                Just("null"),
                Just("nul"),
                Just("")
            ]
            .prop_map(str::to_owned),
        ];
        let space = || "( |\n|\t|\r|){0,1}";
        leaf.prop_recursive(4, 40, 5, move |inner| {
            let item = (space(), inner.clone(), space())
                .prop_map(|(before, item, after)| format!("{before}{item}{after}"));
            let member = (space(), "\"([a-e]|\\\\u006[1-3]){0,2}\"", space(), inner)
                .prop_map(|(before, key, after, value)| format!("{before}{key}{after}:{value}"));
            prop_oneof![
                proptest::collection::vec(item, 0..5)
                    .prop_map(|items| format!("[{}]", items.join(","))),
                proptest::collection::vec(member, 0..5)
                    .prop_map(|members| format!("{{{}}}", members.join(","))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]
        #[test]
        fn what_is_given_is_what_the_tree_would_be_written_as(text in any_text()) {
            if let Some(compact) = compact_json(text.as_bytes()) {
                let tree: Value = serde_json::from_str(&text).unwrap();
                prop_assert_eq!(compact, tree.to_string());
            }
        }
    }
}

//! A JSON value inside a document's text, read only as deep as it is asked for.
//!
//! The text was checked to be JSON once, when the document was loaded; from there on a value is a
//! slice of it, with its offset. Opening an object of a document passes over the long objects and
//! arrays in it, and copies nothing; what is never opened costs nothing.

use std::borrow::Cow;

use serde_json::Value;

use super::jumps::{
    Jump, MIN_JUMP_BYTES, bracket_end, offset_in_file, scalar_end, string_end, unquoted,
};

/// A JSON value: the slice of text that spells it, and the position of that slice in the document.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    text: &'a str,
    /// The jumps inside of the value; none if its text has no table of them.
    jumps: &'a [Jump],
    /// The number of the file that the text is of.
    file: u32,
    /// The offset of the slice in the text of that file.
    start: u32,
}

/// The members of a JSON object in the order they were written.
#[derive(Debug, Clone, Default)]
pub struct Object<'a> {
    members: Vec<(Cow<'a, str>, Node<'a>)>,
}

impl<'a> Node<'a> {
    /// Makes a node of the value that `text` spells. The text must be one JSON value; every reader
    /// here answers `None` if it is not.
    pub fn new(text: &'a str) -> Self {
        Self::in_file(0, text, &[])
    }

    /// Makes a node, like [`Node::new`], of the whole text of the file with that number, which has
    /// these jumps.
    pub(crate) fn in_file(file: u32, text: &'a str, jumps: &'a [Jump]) -> Self {
        let span = Span {
            file,
            start: 0,
            end: offset_in_file(text.len()),
        };
        Self::at(text, jumps, span)
    }

    /// The value at `span` of `text`, which is the whole text of the file that the span names.
    pub(crate) fn at(text: &'a str, jumps: &'a [Jump], span: Span) -> Self {
        let Some(padded) = text.get(span.range()) else {
            return Self::new("null");
        };
        let text = padded.trim_start();
        let start = span
            .start
            .saturating_add(offset_in_file(padded.len() - text.len()));
        let mut own: &[Jump] = &[];
        if text.len() >= MIN_JUMP_BYTES && text.starts_with(['{', '[']) {
            let before = jumps.partition_point(|jump| jump.start < start);
            if let Some((jump, rest)) = jumps.get(before..).and_then(<[Jump]>::split_first)
                && jump.start == start
            {
                own = rest.get(..jump.inner as usize).unwrap_or_default();
            }
        }
        Self {
            text,
            jumps: own,
            file: span.file,
            start,
        }
    }

    /// Returns the span of the value.
    pub fn span(self) -> Span {
        Span {
            file: self.file,
            start: self.start,
            end: self.start.saturating_add(offset_in_file(self.text.len())),
        }
    }

    /// The JSON text itself.
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Returns the members, or `None` if the value is not an object.
    pub fn object(self) -> Option<Object<'a>> {
        let mut members = self.members()?;
        let mut all = Vec::with_capacity(8);
        all.extend(members.by_ref());
        members.is_whole().then_some(Object { members: all })
    }

    /// Returns the members one after the other, without a list of them, or `None` if the value is
    /// not an object.
    pub(crate) fn members(self) -> Option<Contents<'a>> {
        Contents::of(self, b'{')
    }

    /// Returns the member of that name, as [`Object::get`] does, without a list of all members.
    pub(crate) fn member(self, name: &str) -> Option<Node<'a>> {
        let named = self.members()?.filter(|(key, _)| key == name);
        named.last().map(|(_, node)| node)
    }

    /// Returns the items, or `None` if the value is not an array.
    pub fn array(self) -> Option<Vec<Node<'a>>> {
        let mut items = Contents::of(self, b'[')?;
        let all = items.by_ref().map(|(_, item)| item).collect();
        items.is_whole().then_some(all)
    }

    /// Returns the items one after the other, without a list of them, or `None` if the value is not
    /// an array.
    pub(crate) fn items(self) -> Option<impl Iterator<Item = Node<'a>>> {
        let items = Contents::of(self, b'[')?;
        Some(items.map(|(_, item)| item))
    }

    /// Returns the strings among the items; none if the value is not an array.
    pub fn strings(self) -> Vec<String> {
        let items = self.items().into_iter().flatten();
        items
            .filter_map(|item| Some(item.string()?.into_owned()))
            .collect()
    }

    /// Returns the string, or `None` if the value is not a string.
    pub fn string(self) -> Option<Cow<'a, str>> {
        let quoted = self.text.trim_end();
        let is_string =
            quoted.starts_with('"') && string_end(quoted.as_bytes(), 0) == Some(quoted.len());
        unquoted(quoted).filter(|_| is_string)
    }

    /// The boolean; documents also write it as a string (`"true"`), which is what they mean.
    pub fn boolean(self) -> Option<bool> {
        match self.text.trim_end() {
            "true" | "\"true\"" => Some(true),
            "false" | "\"false\"" => Some(false),
            _ => None,
        }
    }

    /// A string, or the text of a number or boolean: some documents write `version: 3.0` or
    /// `default: true` unquoted.
    pub fn scalar(self) -> Option<Cow<'a, str>> {
        match self.text.as_bytes().first() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[' | b'n') | None => None,
            Some(_) => Some(Cow::Borrowed(self.text.trim_end())),
        }
    }

    /// Returns the whole value as a tree, or `None` if it nests deeper than `serde_json` follows
    /// (128 levels).
    pub fn value(self) -> Option<Value> {
        crate::json::parse_text(self.text).ok()
    }
}

impl<'a> Object<'a> {
    /// The value of `key`; of a key written twice the last one counts, as in every JSON parser
    /// users know.
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, node)| *node)
    }

    /// The string under `key`, owned.
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Node::scalar).map(Cow::into_owned)
    }

    /// The boolean under `key`.
    pub(crate) fn boolean(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(Node::boolean)
    }

    /// Returns true if the boolean under `key` is there and true.
    pub(crate) fn is_true(&self, key: &str) -> bool {
        self.boolean(key) == Some(true)
    }

    /// Returns true if there is one of some keys, which are separated by spaces.
    pub(crate) fn has_any(&self, keys: &str) -> bool {
        keys.split(' ').any(|key| self.get(key).is_some())
    }

    /// Returns true if there is that text under `key`.
    pub(crate) fn is(&self, key: &str, text: &str) -> bool {
        self.get(key).and_then(Node::scalar).as_deref() == Some(text)
    }

    /// The object under `key`; an empty one if there is none.
    pub(crate) fn object(&self, key: &str) -> Self {
        self.get(key).and_then(Node::object).unwrap_or_default()
    }

    /// The items of the array under `key`; none if there is none.
    pub(crate) fn array(&self, key: &str) -> Vec<Node<'a>> {
        self.get(key).and_then(Node::array).unwrap_or_default()
    }

    /// The strings in the array under `key`; none if there is none.
    pub(crate) fn strings(&self, key: &str) -> Vec<String> {
        self.get(key).map(Node::strings).unwrap_or_default()
    }

    /// The types that a schema names; none if it names none.
    pub(crate) fn types(&self) -> Vec<String> {
        let Some(kind) = self.get("type") else {
            return Vec::new();
        };
        kind.string()
            .map_or_else(|| kind.strings(), |one| vec![one.into_owned()])
    }

    /// The members in document order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        self.members.iter().map(|(key, node)| (key.as_ref(), *node))
    }

    /// Returns the number of members.
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if there are no members.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// The members of an object by key, or the items of an array without keys, in their order.
pub(crate) struct Contents<'a> {
    /// The object or array, with the jumps that were not passed yet.
    around: Node<'a>,
    at: usize,
    closing: u8,
    is_over: bool,
}

impl<'a> Contents<'a> {
    /// Returns `None` if the value does not begin with that bracket.
    fn of(around: Node<'a>, opening: u8) -> Option<Self> {
        let mut members = Self {
            around,
            at: 0,
            closing: if opening == b'{' { b'}' } else { b']' },
            is_over: false,
        };
        members.pass(opening)?;
        members.is_over = members.pass(members.closing).is_some();
        Some(members)
    }

    /// Returns true if all members were read, and nothing is behind the last bracket.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_over && self.at == self.around.text.len()
    }

    fn peek(&self) -> Option<u8> {
        self.around.text.as_bytes().get(self.at).copied()
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

    fn key(&mut self) -> Option<Cow<'a, str>> {
        let (text, start) = (self.around.text, self.at);
        if self.peek()? != b'"' {
            return None;
        }
        self.at = string_end(text.as_bytes(), start)?;
        let quoted = text.get(start..self.at)?;
        self.skip_space();
        self.pass(b':')?;
        // An escape that stands for no character stays as it is written.
        Some(unquoted(quoted).unwrap_or(Cow::Borrowed(quoted)))
    }

    fn value(&mut self) -> Option<Node<'a>> {
        let (text, start) = (self.around.text, self.at);
        let start_in_file = self.around.start.saturating_add(offset_in_file(start));
        let mut jumps: &[Jump] = &[];
        self.at = match self.peek()? {
            b'"' => string_end(text.as_bytes(), start)?,
            b'{' | b'[' => match self.around.jumps.split_first() {
                Some((jump, rest)) if jump.start == start_in_file => {
                    (jumps, self.around.jumps) = rest.split_at_checked(jump.inner as usize)?;
                    start + (jump.end - jump.start) as usize
                }
                _ => bracket_end(text.as_bytes(), start)?,
            },
            _ => scalar_end(text.as_bytes(), start),
        };
        let value = text.get(start..self.at).filter(|value| !value.is_empty())?;
        self.skip_space();
        Some(Node {
            text: value,
            jumps,
            start: start_in_file,
            ..self.around
        })
    }
}

impl<'a> Iterator for Contents<'a> {
    type Item = (Cow<'a, str>, Node<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_over {
            return None;
        }
        let key = if self.closing == b'}' {
            self.key()?
        } else {
            Cow::Borrowed("")
        };
        let value = self.value()?;
        if self.pass(b',').is_none() {
            self.pass(self.closing)?;
            self.is_over = true;
        }
        Some((key, value))
    }
}

/// A range of bytes in the JSON text of one of a document's files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Span {
    /// The number of the file; the document itself is 0.
    pub(crate) file: u32,
    /// The offset of the first byte.
    pub(crate) start: u32,
    /// The offset behind the last byte.
    pub(crate) end: u32,
}

impl Span {
    /// Returns true if the other span is inside of this one, or equals it.
    pub(crate) fn holds(self, other: Self) -> bool {
        self.file == other.file && self.start <= other.start && other.end <= self.end
    }

    /// Its place in the order of all values.
    pub(crate) fn begin(self) -> (u32, u32) {
        (self.file, self.start)
    }

    /// The offsets as a range of the file's text.
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;
    use serde_json::{Map, Value};

    use super::*;
    use crate::spec::jumps::jumps;

    #[test]
    fn an_object_is_opened_one_level_at_a_time() {
        let object =
            Node::new(r#" {"a": {"b": [1, 2]}, "c\u0064": "x\ny", "n": 12345678901234567890123} "#)
                .object()
                .unwrap();
        assert_eq!(object.len(), 3);
        assert_eq!(
            object
                .get("a")
                .unwrap()
                .object()
                .unwrap()
                .get("b")
                .unwrap()
                .array()
                .unwrap()
                .len(),
            2
        );
        assert_eq!(object.text("cd").unwrap(), "x\ny");
        assert_eq!(object.get("n").unwrap().text(), "12345678901234567890123");
    }

    #[test]
    fn of_a_key_written_twice_the_last_one_counts() {
        assert_eq!(
            Node::new(r#"{"a": 1, "a": 2}"#)
                .object()
                .unwrap()
                .get("a")
                .unwrap()
                .text(),
            "2"
        );
    }

    #[test]
    fn depth_beyond_the_limit_is_no_value_but_no_crash() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        assert!(Node::new(&deep).array().is_some());
        assert!(Node::new(&deep).value().is_none());
    }

    fn contents(node: Node<'_>) -> Option<Contents<'_>> {
        Contents::of(node, b'{').or_else(|| Contents::of(node, b'['))
    }

    fn read<'t>(text: &'t str, jumps: &[Jump]) -> Option<Vec<(String, &'t str)>> {
        let mut members = contents(Node::in_file(0, text, jumps))?;
        let all = members
            .by_ref()
            .map(|(key, node)| (key.into_owned(), text.get(node.span().range()).unwrap()))
            .collect();
        members.is_whole().then_some(all)
    }

    /// The members of a text, which are the same without jumps and with them.
    fn members(text: &str) -> Option<Vec<(String, &str)>> {
        let plain = read(text, &[]);
        assert_eq!(read(text, &jumps(text)), plain);
        plain
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
                    prop_assert_eq!(split.iter().map(|(key, _)| key).collect::<Vec<_>>(), object.keys().collect::<Vec<_>>());
                    for ((_, slice), value) in split.iter().zip(object.values()) {
                        prop_assert_eq!(&serde_json::from_str::<Value>(slice).unwrap(), value);
                        prop_assert_eq!(slice.trim(), *slice);
                    }
                }
                Value::Array(_) => {
                    let parsed: Vec<&RawValue> = serde_json::from_str(&text).unwrap();
                    let items = members(&text).unwrap().into_iter();
                    prop_assert_eq!(items.map(|(_, item)| item).collect::<Vec<_>>(), parsed.into_iter().map(RawValue::get).collect::<Vec<_>>());
                }
                _ => prop_assert!(members(&text).is_none()),
            }
        }

        #[test]
        fn any_text_is_split_or_not_but_never_panics(text in "[a-b{}\\[\\]\":, \\\\é]{0,40}") {
            for text in [format!("{{{text}"), format!("[{text}"), text] {
                let jumps = jumps(&text);
                contents(Node::in_file(0, &text, &jumps)).map(Iterator::count);
                let _ = contents(Node::new(&text)).map(Iterator::count);
            }
        }
    }

    #[test]
    fn a_text_that_is_not_one_value_has_no_members() {
        for text in ["{} x", "{\"a\":1,}", "{\"a\" 1}", "{\"a\":}", "{"] {
            let members = contents(Node::new(text)).map(|mut members| {
                members.by_ref().for_each(drop);
                members.is_whole()
            });
            assert_eq!(members, Some(false), "{text}");
        }
        assert_eq!(members("{\"\\ud800\":1}").unwrap()[0].1, "1");
        assert_eq!(members("{ } \n"), Some(Vec::new()));
        assert_eq!(members("[ ]"), Some(Vec::new()));
    }
}

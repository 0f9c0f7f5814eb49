//! A JSON value inside a document's text, read only as deep as it is asked for.
//!
//! The text was checked to be JSON once, when the document was loaded; from there on a value is a
//! slice of it, with its offset. Opening an object costs one scan of that object and no copy; what
//! is never opened costs nothing.

use std::borrow::Cow;
use std::fmt;

use serde::de::{DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::members::{NeedsParser, array_items, find_member, split_array, split_object};
use super::span::Span;

/// The key under which `serde_json` hands a number to a visitor when numbers keep all their digits.
const NUMBER_TOKEN: &str = "$serde_json::private::Number";

/// A JSON value: the slice of text that spells it, and the position of that slice in the document.
#[derive(Debug, Clone, Copy)]
pub struct Node<'a> {
    text: &'a str,
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

/// The members of an object that are objects themselves, opened; `None` for a member that is not
/// one.
pub(crate) type Objects<'a> = Vec<(Cow<'a, str>, Option<Object<'a>>)>;

impl<'a> Node<'a> {
    /// Makes a node of the value that `text` spells. The text must be one JSON value; every reader
    /// here answers `None` if it is not.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self::in_file(0, text)
    }

    /// Makes a node, like [`Node::new`], of the whole text of the file with that number.
    #[must_use]
    pub(crate) fn in_file(file: u32, text: &'a str) -> Self {
        Self {
            text,
            file,
            start: 0,
        }
        .trimmed()
    }

    /// The value at `span` of `text`, which is the whole text of the file that the span names.
    #[must_use]
    pub(crate) fn at(text: &'a str, span: Span) -> Self {
        let found = text.get(span.range()).map(|text| Self {
            text,
            file: span.file,
            start: span.start,
        });
        found.map_or_else(|| Self::new("null"), Self::trimmed)
    }

    /// A value directly inside of this one; `text` is a slice of this value's text.
    pub(super) fn inner(self, text: &'a str) -> Self {
        let offset = (text.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize);
        Self {
            text,
            file: self.file,
            start: self.start.saturating_add(offset_in_file(offset)),
        }
        .trimmed()
    }

    fn trimmed(self) -> Self {
        let text = self.text.trim_start();
        Self {
            text,
            start: self
                .start
                .saturating_add(offset_in_file(self.text.len() - text.len())),
            ..self
        }
    }

    /// Returns the span of the value.
    #[must_use]
    pub fn span(self) -> Span {
        Span {
            file: self.file,
            start: self.start,
            end: self.start.saturating_add(offset_in_file(self.text.len())),
        }
    }

    /// The JSON text itself.
    #[must_use]
    pub fn text(self) -> &'a str {
        self.text
    }

    /// Returns the members, or `None` if the value is not an object.
    #[must_use]
    pub fn object(self) -> Option<Object<'a>> {
        if !self.text.starts_with('{') {
            return None;
        }
        if let Some(members) = split_object(self.text, |key, text| (key, self.inner(text))) {
            return Some(Object { members });
        }
        read_node(self, Slices { around: self }).ok().flatten()
    }

    /// Returns the first member of that name. The text after it is not read, so a repeated member
    /// is not seen.
    pub(crate) fn first_member(self, name: &str) -> Option<Node<'a>> {
        match find_member(self.text, name) {
            Ok(found) => found.map(|text| self.inner(text)),
            Err(NeedsParser) => self.object()?.get(name),
        }
    }

    /// Returns the items, or `None` if the value is not an array.
    #[must_use]
    pub fn array(self) -> Option<Vec<Node<'a>>> {
        if !self.text.starts_with('[') {
            return None;
        }
        if let Some(items) = split_array(self.text, |item| self.inner(item)) {
            return Some(items);
        }
        let items: Vec<&'a RawValue> = serde_json::from_str(self.text).ok()?;
        Some(
            items
                .into_iter()
                .map(|item| self.inner(item.get()))
                .collect(),
        )
    }

    /// Returns the items one after the other, without a list of them, or `None` if the value is not
    /// an array.
    pub(crate) fn items(self) -> Option<impl Iterator<Item = Node<'a>>> {
        Some(array_items(self.text)?.map(move |item| self.inner(item)))
    }

    /// Returns the strings among the items; none if the value is not an array.
    #[must_use]
    pub fn strings(self) -> Vec<String> {
        let items = self.array().unwrap_or_default().into_iter();
        items
            .filter_map(|item| Some(item.string()?.into_owned()))
            .collect()
    }

    /// Returns the string, or `None` if the value is not a string.
    #[must_use]
    pub fn string(self) -> Option<Cow<'a, str>> {
        if !self.text.starts_with('"') {
            return None;
        }
        serde_json::from_str::<Text<'a>>(self.text)
            .ok()
            .map(|text| text.0)
    }

    /// The boolean; documents also write it as a string (`"true"`), which is what they mean.
    #[must_use]
    pub fn boolean(self) -> Option<bool> {
        match self.text.trim_end() {
            "true" | "\"true\"" => Some(true),
            "false" | "\"false\"" => Some(false),
            _ => None,
        }
    }

    /// A string, or the text of a number or boolean: some documents write `version: 3.0` or
    /// `default: true` unquoted.
    #[must_use]
    pub fn scalar(self) -> Option<Cow<'a, str>> {
        match self.text.as_bytes().first() {
            Some(b'"') => self.string(),
            Some(b'{' | b'[' | b'n') | None => None,
            Some(_) => Some(Cow::Borrowed(self.text.trim_end())),
        }
    }

    /// Returns the whole value as a tree, or `None` if it nests deeper than `serde_json` follows
    /// (128 levels).
    #[must_use]
    pub fn value(self) -> Option<Value> {
        crate::json::parse_text(self.text).ok()
    }
}

impl<'a> Object<'a> {
    /// The value of `key`; of a key written twice the last one counts, as in every JSON parser
    /// users know.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<Node<'a>> {
        self.members
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, node)| *node)
    }

    /// The string under `key`, owned.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<String> {
        self.get(key).and_then(Node::scalar).map(Cow::into_owned)
    }

    /// The boolean under `key`.
    #[must_use]
    pub fn boolean(&self, key: &str) -> Option<bool> {
        self.get(key).and_then(Node::boolean)
    }

    /// The members in document order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Node<'a>)> {
        self.members.iter().map(|(key, node)| (key.as_ref(), *node))
    }

    /// The object of these members.
    pub(super) fn of_members(members: Vec<(Cow<'a, str>, Node<'a>)>) -> Self {
        Self { members }
    }

    /// Returns the object as a value, with both of its braces, in the value that holds it; nothing
    /// if it is empty.
    pub(super) fn place_in(&self, around: Node<'a>) -> Option<Node<'a>> {
        let offset = |place: u32| {
            place
                .checked_sub(around.start)
                .map(|offset| offset as usize)
        };
        let first = offset(self.members.first()?.1.start)?;
        let last = offset(self.members.last()?.1.span().end)?;
        let start = around.text.get(..first)?.rfind('{')?;
        // Between the last member and the brace there is white space alone.
        let end = last + around.text.get(last..)?.find('}')? + 1;
        around.text.get(start..end).map(|text| around.inner(text))
    }

    /// Returns the number of members.
    #[must_use]
    pub fn len(&self) -> usize {
        self.members.len()
    }

    /// Returns true if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }
}

/// A file is at most 1 GiB, and twice that if YAML became JSON: below 4 GiB.
fn offset_in_file(offset: usize) -> u32 {
    u32::try_from(offset).unwrap_or(u32::MAX)
}

/// Opens a whole JSON text: checks all of it, and returns the root's members if it is an object.
///
/// # Errors
/// An error with line and column if the text is not one JSON value.
pub(crate) fn open_object(text: &str) -> Result<Option<Object<'_>>, serde_json::Error> {
    // Not trimmed, so that an error names line and column of the whole text.
    let root = Node {
        text,
        file: 0,
        start: 0,
    };
    read_node(root, Slices { around: root })
}

/// Opens a whole JSON text as [`open_object`] does, and the member `components` two levels deeper
/// in the same scan.
///
/// # Errors
/// As [`open_object`].
pub(crate) fn open_with_components(
    text: &str,
) -> Result<Option<(Object<'_>, Objects<'_>)>, serde_json::Error> {
    // Not trimmed, so that an error names line and column of the whole text.
    let root = Node {
        text,
        file: 0,
        start: 0,
    };
    read_node(
        root,
        Nested {
            around: root,
            is_root: true,
        },
    )
}

/// An object whose members are slices, but for the objects inside of one of them: those of
/// `components` at the root.
struct Nested<'a> {
    around: Node<'a>,
    is_root: bool,
}

impl<'de> OpenValue<'de> for Nested<'de> {
    type Opened = (Object<'de>, Objects<'de>);

    fn open<A: MapAccess<'de>>(
        self,
        mut next: Option<Text<'de>>,
        mut map: A,
    ) -> Result<Self::Opened, A::Error> {
        let (mut members, mut inner) = (Vec::with_capacity(8), Vec::new());
        while let Some(key) = next {
            if self.is_root && key.0 == "components" {
                inner = map
                    .next_value_seed(Any(Nested {
                        around: self.around,
                        is_root: false,
                    }))?
                    .map(|(_, kinds)| kinds)
                    .unwrap_or_default();
                members.push((key.0, Node::new("{}")));
            } else if self.is_root {
                let raw: &'de RawValue = map.next_value()?;
                members.push((key.0, self.around.inner(raw.get())));
            } else {
                inner.push((
                    key.0,
                    map.next_value_seed(Any(Slices {
                        around: self.around,
                    }))?,
                ));
            }
            next = map.next_key()?;
        }
        Ok((Object { members }, inner))
    }
}

/// A string of the document, borrowed if it has no escapes.
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl<'de: 'a, 'a> serde::Deserialize<'de> for Text<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct TextVisitor;
        impl<'de> Visitor<'de> for TextVisitor {
            type Value = Text<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Borrowed(text)))
            }
            fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }
        deserializer.deserialize_str(TextVisitor)
    }
}

/// Deserialization of an object from its first key on.
pub(super) trait OpenValue<'de> {
    type Opened;
    fn open<A: MapAccess<'de>>(
        self,
        first: Option<Text<'de>>,
        map: A,
    ) -> Result<Self::Opened, A::Error>;
}

/// All members as slices.
pub(super) struct Slices<'a> {
    /// The value that the object is, or is in.
    pub(super) around: Node<'a>,
}

impl<'de> OpenValue<'de> for Slices<'de> {
    type Opened = Object<'de>;

    fn open<A: MapAccess<'de>>(
        self,
        mut next: Option<Text<'de>>,
        mut map: A,
    ) -> Result<Self::Opened, A::Error> {
        let mut members = Vec::with_capacity(8);
        while let Some(key) = next {
            let raw: &'de RawValue = map.next_value()?;
            members.push((key.0, self.around.inner(raw.get())));
            next = map.next_key()?;
        }
        Ok(Object { members })
    }
}

/// A value of any kind: an object is opened, everything else is `None`.
pub(super) struct Any<O>(pub(super) O);

/// Reads a whole value.
fn read_node<'a, O: OpenValue<'a>>(
    node: Node<'a>,
    open: O,
) -> Result<Option<O::Opened>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(node.text);
    let opened = Any(open).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(opened)
}

impl<'de, O: OpenValue<'de>> DeserializeSeed<'de> for Any<O> {
    type Value = Option<O::Opened>;
    fn deserialize<D: serde::Deserializer<'de>>(
        self,
        deserializer: D,
    ) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de, O: OpenValue<'de>> Visitor<'de> for Any<O> {
    type Value = Option<O::Opened>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any JSON value")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let first = map.next_key::<Text<'de>>()?;
        if first.as_ref().is_some_and(|key| key.0 == NUMBER_TOKEN) {
            map.next_value::<IgnoredAny>()?;
            return Ok(None);
        }
        self.0.open(first, map).map(Some)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        while seq.next_element::<IgnoredAny>()?.is_some() {}
        Ok(None)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_i64<E>(self, _: i64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_u64<E>(self, _: u64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_f64<E>(self, _: f64) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_str<E>(self, _: &str) -> Result<Self::Value, E> {
        Ok(None)
    }
    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn components_are_opened_with_the_root() {
        let (root, kinds) = open_with_components(
            r#"{"a": 1, "components": {"schemas": {"A": {"x": 1}}, "b": 5}, "c": []} "#,
        )
        .unwrap()
        .unwrap();
        assert_eq!((root.len(), root.get("c").unwrap().text()), (3, "[]"));
        let kinds: Vec<_> = kinds
            .iter()
            .map(|(kind, entries)| (kind.as_ref(), entries.as_ref().map(Object::len)))
            .collect();
        assert_eq!(kinds, [("schemas", Some(1)), ("b", None)]);
        assert!(
            open_with_components("[1]").unwrap().is_none() && open_with_components("{} x").is_err()
        );
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
}

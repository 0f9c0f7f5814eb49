//! `paths` of a document, opened down to its operations in one scan.

use std::borrow::Cow;
use std::fmt;

use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::node::{Any, Node, Object, OpenValue, Slices, Text};

/// A path item: its members, and those of them opened that `open` says are operations.
pub(crate) struct PathItem<'a> {
    /// All members; the slice of an operation serves only as its position.
    pub members: Object<'a>,
    /// The operations by their place among the members; `None` for one that is not an object.
    pub operations: Vec<(usize, Option<Object<'a>>)>,
}

/// Path items by their path; `None` for one that is not an object.
pub(crate) type PathItems<'a> = Vec<(Cow<'a, str>, Option<PathItem<'a>>)>;

/// `paths` down to the members of its operations, in one scan. A path whose value is not an object
/// is `None`.
///
/// # Errors
/// An error if the text is not one JSON object.
pub(crate) fn path_items<'a>(
    node: Node<'a>,
    is_operation: &dyn Fn(&str) -> bool,
) -> Result<PathItems<'a>, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(node.text());
    serde::Deserializer::deserialize_map(
        &mut deserializer,
        PathItemsVisitor {
            paths: node,
            is_operation,
        },
    )
}

struct PathItemsVisitor<'a, 'f> {
    paths: Node<'a>,
    is_operation: &'f dyn Fn(&str) -> bool,
}

impl<'de> Visitor<'de> for PathItemsVisitor<'de, '_> {
    type Value = PathItems<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(key) = map.next_key::<Text<'de>>()? {
            items.push((key.0, map.next_value_seed(Any(Operations(&self)))?));
        }
        Ok(items)
    }
}

struct Operations<'s, 'a, 'f>(&'s PathItemsVisitor<'a, 'f>);

impl<'de> OpenValue<'de> for Operations<'_, 'de, '_> {
    type Opened = PathItem<'de>;

    fn open<A: MapAccess<'de>>(
        self,
        mut next: Option<Text<'de>>,
        mut map: A,
    ) -> Result<Self::Opened, A::Error> {
        let mut members = Vec::with_capacity(4);
        let mut operations = Vec::with_capacity(4);
        while let Some(key) = next {
            if (self.0.is_operation)(&key.0) {
                let object = map.next_value_seed(Any(Slices {
                    around: self.0.paths,
                }))?;
                let place = object
                    .as_ref()
                    .and_then(|object| object.place_in(self.0.paths));
                let place = place.unwrap_or_else(|| Node::new("null"));
                operations.push((members.len(), object));
                members.push((key.0, place));
            } else {
                let raw: &'de RawValue = map.next_value()?;
                members.push((key.0, self.0.paths.inner(raw.get())));
            }
            next = map.next_key()?;
        }
        Ok(PathItem {
            members: Object::of_members(members),
            operations,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_opened_down_to_their_operations() {
        let text = r#" {"/a": { "get" : { "operationId": "x", "tags": [1] }, "parameters": [2]}, "/b": 5, "/c": {"get": 7, "put": {}}, "/d": [], "/e": "s"}"#;
        let items = path_items(Node::new(text), &|key| key == "get" || key == "put").unwrap();
        let kinds: Vec<_> = items
            .iter()
            .map(|(path, item)| {
                (
                    path.as_ref(),
                    item.as_ref().map(|item| item.operations.len()),
                )
            })
            .collect();
        assert_eq!(
            kinds,
            [
                ("/a", Some(1)),
                ("/b", None),
                ("/c", Some(2)),
                ("/d", None),
                ("/e", None)
            ]
        );
        let item = items[0].1.as_ref().unwrap();
        assert_eq!(
            item.operations[0]
                .1
                .as_ref()
                .unwrap()
                .text("operationId")
                .unwrap(),
            "x"
        );
        let place = item.members.get("get").unwrap();
        assert_eq!(place.text(), "{ \"operationId\": \"x\", \"tags\": [1] }");
        assert!(
            place.object().is_some(),
            "an operation can be opened where it stands"
        );
        assert_eq!(item.members.get("parameters").unwrap().text(), "[2]");
        assert!(items[2].1.as_ref().unwrap().operations[0].1.is_none());
    }
}

//! Shows each object of a file, with the kind of those that are known.

use super::object_kind::{ObjectKind, is_extension};
use crate::spec::document::Version;
use crate::spec::node::{Node, Object};
use crate::spec::pointer;

/// Values deeper than this are not looked through. No tree of values is deeper either.
const MAX_DEPTH: usize = 128;

/// An object of a document.
pub(super) struct WalkedObject<'w, 't> {
    /// Its kind; `None` for an object that is not looked through, such as an example.
    pub(super) kind: Option<ObjectKind>,
    pub(super) node: Node<'t>,
    pub(super) members: &'w Object<'t>,
    place: &'w str,
}

impl WalkedObject<'_, '_> {
    /// Returns the location of one of its members, as a JSON Pointer fragment.
    pub(super) fn place_of(&self, key: &str) -> String {
        let mut place = self.place.to_owned();
        pointer::push(&mut place, key);
        place
    }
}

/// Calls `visit` with each object in a value, the outer ones first. The kind of the value is given
/// if it is known.
pub(super) fn each_object<'t>(
    value: Node<'t>,
    kind: Option<ObjectKind>,
    version: Version,
    visit: impl FnMut(&WalkedObject<'_, 't>),
) {
    let mut walk = Walk {
        version,
        place: "#".to_owned(),
        depth: 0,
        visit,
    };
    walk.value(value, kind.map(|kind| (kind, 0)));
}

struct Walk<F> {
    version: Version,
    place: String,
    depth: usize,
    visit: F,
}

impl<'t, F: FnMut(&WalkedObject<'_, 't>)> Walk<F> {
    /// Shows the objects in a value. `expected` is the kind of the objects below so many levels of
    /// names.
    fn value(&mut self, node: Node<'t>, expected: Option<(ObjectKind, usize)>) {
        let own = expected.filter(|(_, levels)| *levels == 0);
        let Some(members) = node.object() else {
            for (index, item) in node.items().into_iter().flatten().enumerate() {
                self.inner(item, own, |place| pointer::push_index(place, index));
            }
            return;
        };
        (self.visit)(&WalkedObject {
            kind: own.map(|(kind, _)| kind),
            node,
            members: &members,
            place: &self.place,
        });
        for (key, member) in members.iter() {
            let below = match expected {
                Some((kind, 0)) => kind.below(key, self.version).flatten(),
                Some((kind, levels)) if !is_extension(key) => Some((kind, levels - 1)),
                _ => None,
            };
            self.inner(member, below, |place| pointer::push(place, key));
        }
    }

    fn inner(
        &mut self,
        node: Node<'t>,
        expected: Option<(ObjectKind, usize)>,
        step: impl FnOnce(&mut String),
    ) {
        if self.depth == MAX_DEPTH || !node.text().starts_with(['{', '[']) {
            return;
        }
        let length = self.place.len();
        step(&mut self.place);
        self.depth += 1;
        self.value(node, expected);
        self.depth -= 1;
        self.place.truncate(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_object_is_shown_with_its_place_and_kind() {
        let text = r#"{"info": {"a\"b": [[], {"x": 1}]}, "paths": {"/a": {"get": {"parameters": [{"schema": {"type": "string"}}], "responses": {"x-y": {}, "200": {}}}}},
            "components": {"schemas": {"A": {"items": [{"type": 1}]}}}}"#;
        let mut seen = Vec::new();
        each_object(
            Node::new(text),
            Some(ObjectKind::ROOT),
            Version::V3_1,
            |object| {
                let kind = object.kind.map_or("-", ObjectKind::name);
                seen.push(format!("{} {kind}", object.place));
            },
        );
        let expected = [
            "# the document",
            "#/info -",
            "#/info/a\"b/1 -",
            "#/paths -",
            "#/paths/~1a a path item",
            "#/paths/~1a/get an operation",
            "#/paths/~1a/get/parameters/0 a parameter",
            "#/paths/~1a/get/parameters/0/schema a schema",
            "#/paths/~1a/get/responses -",
            "#/paths/~1a/get/responses/x-y -",
            "#/paths/~1a/get/responses/200 a response",
            "#/components the components",
            "#/components/schemas -",
            "#/components/schemas/A a schema",
            "#/components/schemas/A/items/0 a schema",
        ];
        assert_eq!(seen, expected);
    }
}

//! The objects of a document, each with its kind and the keys that it may have if it is known.

use std::sync::LazyLock;

use foldhash::HashMap;

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

/// The table of keys; its first lines say what its lines are.
const OBJECT_KEYS: &str = include_str!("object_keys.txt");
/// Keys of all objects, beside a reference at least.
const KEYS_OF_ALL: [&str; 3] = ["$ref", "summary", "description"];

/// The kinds of objects, with what people call each.
const NAMES: [(&str, &str); 9] = [
    ("Root", "the document"),
    ("PathItem", "a path item"),
    ("Operation", "an operation"),
    ("Parameter", "a parameter"),
    ("RequestBody", "a request body"),
    ("MediaType", "a media type"),
    ("Response", "a response"),
    ("Components", "the components"),
    ("Schema", "a schema"),
];

/// An object whose keys are known, as an index into [`NAMES`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ObjectKind(usize);

/// The objects below a key: their kind, and how many levels of names are between.
type ObjectsBelow = Option<(ObjectKind, usize)>;

/// The versions that have each key of each kind, and the objects below it.
type KnownKeys = HashMap<(ObjectKind, &'static str), (&'static str, ObjectsBelow)>;

static KEYS: LazyLock<KnownKeys> = LazyLock::new(|| {
    let mut keys = KnownKeys::default();
    for line in OBJECT_KEYS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (Some(kind), Some(versions)) = (words.next().and_then(ObjectKind::named), words.next())
        else {
            continue;
        };
        for word in words {
            let (key, below) = word.split_once(':').unwrap_or((word, ""));
            let name = below.trim_start_matches('*');
            let levels = below.len() - name.len();
            let below = ObjectKind::named(name).map(|below| (below, levels));
            keys.insert((kind, key), (versions, below));
        }
    }
    keys
});

impl ObjectKind {
    pub(super) const ROOT: Self = Self(0);
    const PARAMETER: Self = Self(3);
    pub(super) const SCHEMA: Self = Self(8);

    fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|(known, _)| *known == name).map(Self)
    }

    /// Returns its usual name.
    pub(super) fn name(self) -> &'static str {
        NAMES.get(self.0).map_or("", |(_, name)| name)
    }

    /// Returns the kind of the objects below a key; `None` if the object has no such key in that
    /// version.
    pub(super) fn below(self, key: &str, version: Version) -> Option<ObjectsBelow> {
        let (versions, below) = KEYS.get(&(self, key)).copied().unwrap_or_default();
        if has_version(versions, version) {
            return Some(below);
        }
        // A parameter of 2.0 is its own schema.
        let is_schema = self == Self::PARAMETER && version == Version::V2_0;
        let below = is_schema.then(|| Self::SCHEMA.below(key, version));
        let of_all = KEYS_OF_ALL.contains(&key).then_some(None);
        below.flatten().or(of_all)
    }

    /// Returns true if the object may have that key in that version.
    pub(super) fn has_key(self, key: &str, version: Version) -> bool {
        self.below(key, version).is_some()
    }

    /// The keys that the object may have in that version.
    pub(super) fn known_keys(self, version: Version) -> impl Iterator<Item = &'static str> {
        let keys = KEYS.keys().map(|(_, key)| *key).chain(KEYS_OF_ALL);
        keys.filter(move |key| self.has_key(key, version))
    }
}

/// Returns true if the versions of a line of the table include this one.
fn has_version(versions: &str, version: Version) -> bool {
    match versions {
        "all" => true,
        "2" => version == Version::V2_0,
        "3" => version > Version::V2_0,
        "3.2" => version >= Version::V3_2,
        _ => false,
    }
}

/// Returns true if a key is one of the author's own (OpenAPI, "Specification Extensions").
pub(super) fn is_extension(key: &str) -> bool {
    key.starts_with("x-") || key.starts_with("X-")
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

#[cfg(test)]
mod object_kind_tests {
    use super::*;

    #[test]
    fn each_line_of_the_table_names_a_kind_and_versions_that_are_known() {
        for line in OBJECT_KEYS.lines().filter(|line| !line.starts_with('#')) {
            let mut words = line.split(' ');
            assert!(words.next().and_then(ObjectKind::named).is_some(), "{line}");
            let versions = words.next().unwrap_or_default();
            assert!(
                has_version(versions, Version::V2_0) || has_version(versions, Version::V3_2),
                "{line}"
            );
            for word in words.filter_map(|word| word.split_once(':')) {
                assert!(
                    ObjectKind::named(word.1.trim_start_matches('*')).is_some(),
                    "{line}"
                );
            }
        }
    }
}

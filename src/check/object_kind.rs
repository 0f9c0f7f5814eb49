//! The objects of a document that are looked through, by the keys that each of them may have.

use std::sync::LazyLock;

use foldhash::HashMap;

use crate::spec::document::Version;
use crate::spec::node::{Node, Object};
use crate::spec::{Document, pointer};

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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct ObjectKind(usize);

/// The objects below a key: their kind, and how many levels of names are between.
type ObjectsBelow = Option<(ObjectKind, usize)>;

/// The keys of a kind, with the versions of each.
type KnownKeys = HashMap<&'static str, (&'static str, ObjectsBelow)>;

static KEYS: LazyLock<Vec<KnownKeys>> = LazyLock::new(|| {
    let mut keys = vec![KnownKeys::default(); NAMES.len()];
    for line in OBJECT_KEYS.lines().filter(|line| !line.starts_with('#')) {
        let mut words = line.split(' ');
        let (Some(kind), Some(versions)) = (words.next().and_then(ObjectKind::named), words.next()) else {
            continue;
        };
        let Some(keys) = keys.get_mut(kind.0) else { continue };
        for word in words {
            let (key, below) = word.split_once(':').map_or((word, None), |(key, below)| (key, Some(below)));
            let below = below.and_then(|below| {
                let kind = below.trim_start_matches('*');
                Some((ObjectKind::named(kind)?, below.len() - kind.len()))
            });
            keys.insert(key, (versions, below));
        }
    }
    keys
});

impl ObjectKind {
    const ROOT: Self = Self(0);
    const PARAMETER: Self = Self(3);
    const SCHEMA: Self = Self(8);

    fn named(name: &str) -> Option<Self> {
        NAMES.iter().position(|(known, _)| *known == name).map(Self)
    }

    /// What people call it.
    pub(super) fn name(self) -> &'static str {
        NAMES.get(self.0).map_or("", |(_, name)| name)
    }

    /// What stands under a key; `None` if the object has no such key in that version.
    fn below(self, key: &str, version: Version) -> Option<ObjectsBelow> {
        let (versions, below) = KEYS.get(self.0)?.get(key).copied().unwrap_or_default();
        if has_version(versions, version) {
            return Some(below);
        }
        // A parameter of 2.0 is its own schema.
        let is_schema = self == Self::PARAMETER && version == Version::V2_0;
        match is_schema.then(|| Self::SCHEMA.below(key, version)).flatten() {
            None if KEYS_OF_ALL.contains(&key) => Some(None),
            below => below,
        }
    }

    /// Whether the object may have that key in that version.
    pub(super) fn has_key(self, key: &str, version: Version) -> bool {
        self.below(key, version).is_some()
    }

    /// The keys that the object may have in that version.
    pub(super) fn known_keys(self, version: Version) -> impl Iterator<Item = &'static str> {
        let own = KEYS.get(self.0).into_iter().chain(KEYS.get(Self::SCHEMA.0)).flatten();
        let keys = own.map(|(key, _)| *key).chain(KEYS_OF_ALL);
        keys.filter(move |key| self.has_key(key, version))
    }
}

/// Whether the versions of a line of the table include this one.
fn has_version(versions: &str, version: Version) -> bool {
    match versions {
        "all" => true,
        "2" => version == Version::V2_0,
        "3" => version > Version::V2_0,
        "3.2" => version >= Version::V3_2,
        _ => false,
    }
}

/// An object of a document whose kind is known.
pub(super) struct KnownObject<'d> {
    /// Where it is, as a JSON Pointer fragment.
    pub place: String,
    pub kind: ObjectKind,
    pub node: Node<'d>,
    pub members: Object<'d>,
}

/// Calls `visit` with each of them. Files that the document refers to are not looked into.
pub(super) fn each_known_object<'d>(document: &'d Document, mut visit: impl FnMut(&KnownObject<'d>)) {
    let version = document.version();
    let root = document
        .files()
        .first()
        .map(|file| (String::from("#"), file.root(), ObjectKind::ROOT));
    let mut open: Vec<(String, Node<'d>, ObjectKind)> = root.into_iter().collect();
    while let Some((place, node, kind)) = open.pop() {
        for (index, item) in node.array().into_iter().flatten().enumerate() {
            let mut place = place.clone();
            pointer::push_index(&mut place, index);
            open.push((place, item, kind));
        }
        let Some(members) = node.object() else { continue };
        for (key, value) in members.iter() {
            if let Some((below, levels)) = kind.below(key, version).flatten() {
                open_below(&mut open, within(&place, key), value, below, levels);
            }
        }
        visit(&KnownObject {
            place,
            kind,
            node,
            members,
        });
    }
}

/// Opens the objects of a node, so many levels of names below it.
fn open_below<'d>(open: &mut Vec<(String, Node<'d>, ObjectKind)>, place: String, node: Node<'d>, kind: ObjectKind, levels: usize) {
    let Some(levels) = levels.checked_sub(1) else {
        open.push((place, node, kind));
        return;
    };
    for (name, value) in node.object().unwrap_or_default().iter().filter(|(name, _)| !is_extension(name)) {
        open_below(open, within(&place, name), value, kind, levels);
    }
}

fn within(place: &str, key: &str) -> String {
    let mut place = place.to_owned();
    pointer::push(&mut place, key);
    place
}

/// Whether a key is one of the author's own (OpenAPI, "Specification Extensions").
pub(super) fn is_extension(key: &str) -> bool {
    key.starts_with("x-") || key.starts_with("X-")
}

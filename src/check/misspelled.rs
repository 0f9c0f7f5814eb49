//! Keys of a document that are not read although they look as if they were: misspelled ones, such as `pots` for `post`, and those
//! of another version. Nothing else speaks of them.

use super::object_kind::{ObjectKind, is_extension, push_below};
use crate::spec::document::Version;
use crate::spec::node::Node;
use crate::spec::{Diagnostic, Document, pointer};

/// More of them say nothing new.
const MAX_MISSPELLED_KEYS: usize = 100;

/// The keys that are misspelled, each with the key that was meant, and those of another version. Files that the document refers to
/// are not looked into.
pub(super) fn misspelled_keys(document: &Document) -> Vec<Diagnostic> {
    let version = document.version();
    let mut found = Vec::new();
    let root = document
        .files()
        .first()
        .map(|file| (String::from("#"), file.root(), ObjectKind::Root));
    let mut open: Vec<(String, Node<'_>, ObjectKind)> = root.into_iter().collect();
    while let Some((place, node, kind)) = open.pop() {
        if found.len() >= MAX_MISSPELLED_KEYS {
            break;
        }
        for (index, item) in node.array().into_iter().flatten().enumerate() {
            let mut place = place.clone();
            pointer::push_index(&mut place, index);
            open.push((place, item, kind));
        }
        let Some(object) = node.object() else { continue };
        let keys = kind.keys(version);
        let known = || keys.iter().copied().flatten();
        for (key, value) in object.iter() {
            match known().find(|(known, _)| *known == key) {
                Some((_, below)) => push_below(&mut open, &place, key, value, *below),
                None if is_extension(key) => {}
                None => {
                    let meant = || nearest_key(key, known().map(|(known, _)| *known)).filter(|meant| object.get(meant).is_none());
                    let why = version_of_key(key, kind)
                        .map(|version| format!("`{key}` is a key of {} in {version} and is ignored here", kind.name()))
                        .or_else(|| {
                            let meant = meant()?;
                            Some(format!(
                                "`{key}` is not a key of {} and is ignored; did you mean `{meant}`?",
                                kind.name()
                            ))
                        });
                    found.extend(why.map(|why| at_key(&place, key, value, why)));
                }
            }
        }
    }
    found
}

/// The version of the specification that has the key, where it is not the document's.
fn version_of_key(key: &str, kind: ObjectKind) -> Option<&'static str> {
    let versions = [
        (Version::V2_0, "Swagger 2.0"),
        (Version::V3_1, "OpenAPI 3"),
        (Version::V3_2, "OpenAPI 3.2"),
    ];
    let has = |version: Version| kind.keys(version).into_iter().flatten().any(|(known, _)| *known == key);
    versions.into_iter().find(|(version, _)| has(*version)).map(|(_, name)| name)
}

fn at_key(place: &str, key: &str, value: Node<'_>, message: String) -> Diagnostic {
    let mut pointer = place.to_owned();
    pointer::push(&mut pointer, key);
    let mut diagnostic = Diagnostic::warning(pointer, message);
    diagnostic.span = Some(value.span());
    diagnostic
}

/// The known key that differs from `key` only in case and separators, or in one letter in four.
fn nearest_key(key: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = |key: &str| key.replace(['_', '-', ' '], "").to_lowercase();
    let written = plain(key);
    let distance = |known: &&str| strsim::osa_distance(&written, &plain(known));
    let nearest = known.map(|known| (distance(&known), known)).min_by_key(|(distance, _)| *distance);
    nearest
        .filter(|(distance, _)| *distance * 4 <= written.chars().count().max(4 * usize::from(written.len() > 2)))
        .map(|(_, known)| known)
}

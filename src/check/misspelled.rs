//! Keys of a document that are not read although they look as if they were: misspelled ones, such
//! as `pots` for `post`, and those of another version. Nothing else speaks of them.

use super::object_kind::{ObjectKind, is_extension};
use super::walk::WalkedObject;
use crate::spec::Diagnostic;
use crate::spec::document::Version;

/// More of them say nothing new.
const MAX_MISSPELLED_KEYS: usize = 100;

/// Adds the keys of an object that are misspelled, each with the key that was meant, and those of
/// another version.
pub(super) fn add_misspelled_keys(
    object: &WalkedObject<'_, '_>,
    version: Version,
    found: &mut Vec<Diagnostic>,
) {
    let Some(kind) = object.kind.filter(|_| found.len() < MAX_MISSPELLED_KEYS) else {
        return;
    };
    for (key, value) in object.members.iter() {
        if !is_extension(key)
            && !kind.has_key(key, version)
            && let Some(why) = explain_unknown_key(key, kind, object, version)
        {
            found.push(Diagnostic::warning(object.place_of(key), why).at(value.span()));
        }
    }
}

/// Explains an unknown key by the known one that it is similar to; `None` if there is none.
fn explain_unknown_key(
    key: &str,
    kind: ObjectKind,
    object: &WalkedObject<'_, '_>,
    version: Version,
) -> Option<String> {
    if let Some(version) = version_of_key(key, kind) {
        return Some(format!(
            "`{key}` is a key of {} in {version} and is ignored here",
            kind.name()
        ));
    }
    let meant = nearest_key(key, kind.known_keys(version))
        .filter(|meant| object.members.get(meant).is_none())?;
    Some(format!(
        "`{key}` is not a key of {} and is ignored; did you mean `{meant}`?",
        kind.name()
    ))
}

/// Returns the version of the specification that has the key, if it is not the document's.
fn version_of_key(key: &str, kind: ObjectKind) -> Option<&'static str> {
    let versions = [
        (Version::V2_0, "Swagger 2.0"),
        (Version::V3_1, "OpenAPI 3"),
        (Version::V3_2, "OpenAPI 3.2"),
    ];
    let has_key = |(version, _): &(Version, &str)| kind.has_key(key, *version);
    versions.into_iter().find(has_key).map(|(_, name)| name)
}

/// The known key that differs from `key` only in case and separators, or in one letter in four.
fn nearest_key(key: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    let plain = |key: &str| key.replace(['_', '-', ' '], "").to_lowercase();
    let written = plain(key);
    let distance = |known: &&str| strsim::osa_distance(&written, &plain(known));
    let nearest = known.map(|known| (distance(&known), known)).min();
    nearest
        .filter(|(distance, _)| {
            *distance * 4
                <= written
                    .chars()
                    .count()
                    .max(4 * usize::from(written.len() > 2))
        })
        .map(|(_, known)| known)
}

//! Faults of a document that are not reported when it is read: keys that look like others, such as
//! `pots` for `post`, and those of another version; keys that an object has twice, of which the last
//! one applies; references without a target, in replies too.

use foldhash::HashSet;

use super::walk::{ObjectKind, WalkedObject, is_extension};
use crate::spec::document::Version;
use crate::spec::node::Node;
use crate::spec::{Diagnostic, Document};

/// More faults of one kind say nothing new.
const MAX_FAULTS: usize = 100;

/// Adds the keys of an object that are misspelled, each with the key that was meant, and those of
/// another version.
pub(super) fn add_misspelled_keys(
    object: &WalkedObject<'_, '_>,
    version: Version,
    found: &mut Vec<Diagnostic>,
) {
    let Some(kind) = object.kind.filter(|_| found.len() < MAX_FAULTS) else {
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
    versions
        .into_iter()
        .find(|(version, _)| kind.has_key(key, *version))
        .map(|(_, name)| name)
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

/// The most members of an object for which comparing all pairs takes less time than a set.
const MAX_COMPARED_MEMBERS: usize = 12;

/// Adds the keys that the object has twice, each at its second use.
pub(super) fn add_duplicate_keys(object: &WalkedObject<'_, '_>, found: &mut Vec<Diagnostic>) {
    if found.len() >= MAX_FAULTS {
        return;
    }
    let mut add = |(key, value): (&str, Node<'_>)| {
        let why = "this key is written twice; the last one counts";
        found.push(Diagnostic::warning(object.place_of(key), why).at(value.span()));
    };
    let members = || object.members.iter();
    if object.members.len() <= MAX_COMPARED_MEMBERS {
        for (index, member) in members().enumerate() {
            if members().take(index).any(|(key, _)| key == member.0) {
                add(member);
            }
        }
        return;
    }
    let mut keys = HashSet::default();
    members()
        .filter(|(key, _)| !keys.insert(*key))
        .for_each(add);
}

/// The references that lead nowhere, each target once.
pub(super) struct DanglingReferences<'d> {
    document: &'d Document,
    /// Those that other diagnostics report are left out.
    others: &'d [Diagnostic],
    seen: HashSet<String>,
    /// The references that were looked up, if the same text means the same everywhere: no schema
    /// has a base of its own.
    looked_up: Option<HashSet<String>>,
    pub(super) found: Vec<Diagnostic>,
}

impl<'d> DanglingReferences<'d> {
    pub(super) fn new(document: &'d Document, others: &'d [Diagnostic]) -> Self {
        let has_ids = document
            .files
            .iter()
            .any(|file| file.text().contains("\"$id\""));
        Self {
            document,
            others,
            seen: HashSet::default(),
            looked_up: (!has_ids).then(HashSet::default),
            found: Vec::new(),
        }
    }

    /// Adds the reference in place of an object if it has no target.
    pub(super) fn add(&mut self, object: &WalkedObject<'_, '_>) {
        if self.seen.len() >= MAX_FAULTS || object.kind.is_none() {
            return;
        }
        let Some(node) = object.members.get("$ref") else {
            return;
        };
        let Some(reference) = node.string() else {
            return;
        };
        if let Some(looked_up) = &mut self.looked_up
            && !looked_up.insert(reference.into_owned())
        {
            return;
        }
        if let Err(why) = self.document.resolve(object.node)
            && self.seen.insert(why.clone())
            && !self.others.iter().any(|other| other.message.contains(&why))
        {
            let place = object.place_of("$ref");
            let why = format!("{why}; its target is not described to clients");
            self.found
                .push(Diagnostic::warning(place, why).at(node.span()));
        }
    }
}

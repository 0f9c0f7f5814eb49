//! Keys that an object has twice, of which the last one counts.

use foldhash::HashSet;

use super::walk::{WalkedMember, WalkedObject};
use crate::spec::Diagnostic;

/// More of them say nothing new.
const MAX_DUPLICATE_KEYS: usize = 100;
/// In objects of at most so many members, comparing all pairs takes less time than a set.
const MAX_COMPARED_MEMBERS: usize = 12;

/// Adds the keys that the object has twice, each at its second use.
pub(super) fn add_duplicate_keys(object: &WalkedObject<'_, '_>, found: &mut Vec<Diagnostic>) {
    if found.len() >= MAX_DUPLICATE_KEYS {
        return;
    }
    let mut add = |member: &WalkedMember<'_>| {
        let mut diagnostic = Diagnostic::warning(
            object.place_of(&member.key),
            "this key is written twice; the last one counts",
        );
        diagnostic.span = Some(object.value(member).span());
        found.push(diagnostic);
    };
    if object.members.len() <= MAX_COMPARED_MEMBERS {
        for (index, member) in object.members.iter().enumerate() {
            if object
                .members
                .iter()
                .take(index)
                .any(|other| other.key == member.key)
            {
                add(member);
            }
        }
        return;
    }
    let mut keys = HashSet::default();
    object
        .members
        .iter()
        .filter(|member| !keys.insert(member.key.as_ref()))
        .for_each(add);
}

//! Keys that an object has twice, of which the last one counts.

use foldhash::HashSet;

use super::walk::WalkedObject;
use crate::spec::Diagnostic;
use crate::spec::node::Node;

/// More of them say nothing new.
const MAX_DUPLICATE_KEYS: usize = 100;
/// In objects of at most so many members, comparing all pairs takes less time than a set.
const MAX_COMPARED_MEMBERS: usize = 12;

/// Adds the keys that the object has twice, each at its second use.
pub(super) fn add_duplicate_keys(object: &WalkedObject<'_, '_>, found: &mut Vec<Diagnostic>) {
    if found.len() >= MAX_DUPLICATE_KEYS {
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

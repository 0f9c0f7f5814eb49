//! References that lead nowhere, wherever they stand in a document: in replies nothing else speaks of them.

use std::collections::HashSet;

use super::object_kind::KnownObject;
use crate::spec::node::Node;
use crate::spec::{Diagnostic, Document, pointer};

/// More of them say nothing new.
const MAX_DANGLING_REFERENCES: usize = 100;

/// The references that lead nowhere, each target once.
pub(super) struct DanglingReferences<'d> {
    document: &'d Document,
    /// Those that other diagnostics speak of are left out.
    others: &'d [Diagnostic],
    seen: HashSet<String>,
    pub(super) found: Vec<Diagnostic>,
}

impl<'d> DanglingReferences<'d> {
    pub(super) fn new(document: &'d Document, others: &'d [Diagnostic]) -> Self {
        Self {
            document,
            others,
            seen: HashSet::new(),
            found: Vec::new(),
        }
    }

    /// Adds the reference that stands in place of an object, where it leads nowhere.
    pub(super) fn add(&mut self, object: &KnownObject<'_>) {
        if self.found.len() >= MAX_DANGLING_REFERENCES {
            return;
        }
        if let Some(why) = why_dangling(self.document, object)
            && self.seen.insert(why.clone())
            && !self.others.iter().any(|other| other.message.contains(&why))
        {
            let mut place = object.place.clone();
            pointer::push(&mut place, "$ref");
            let mut diagnostic = Diagnostic::warning(place, format!("{why}; what it stands for is not described to clients"));
            diagnostic.span = object.members.get("$ref").map(Node::span);
            self.found.push(diagnostic);
        }
    }
}

/// Why the object's reference leads nowhere; `None` where it leads somewhere, or the object has none.
fn why_dangling(document: &Document, object: &KnownObject<'_>) -> Option<String> {
    object.members.get("$ref")?.string()?;
    document.resolve(object.node).err()
}

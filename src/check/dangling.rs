//! References without a target in all parts of a document: those in replies are not reported by
//! other checks.

use std::collections::HashSet;

use super::walk::WalkedObject;
use crate::spec::{Diagnostic, Document};

/// More of them say nothing new.
const MAX_DANGLING_REFERENCES: usize = 100;

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
            .files()
            .iter()
            .any(|file| file.text().contains("\"$id\""));
        Self {
            document,
            others,
            seen: HashSet::new(),
            looked_up: (!has_ids).then(HashSet::new),
            found: Vec::new(),
        }
    }

    /// Adds the reference in place of an object if it has no target.
    pub(super) fn add(&mut self, object: &WalkedObject<'_, '_>) {
        if self.seen.len() >= MAX_DANGLING_REFERENCES || object.kind.is_none() {
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

//! References that lead nowhere, wherever they stand in a document: in replies nothing else speaks of them.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::object_kind::{KnownObject, each_known_object};
use crate::spec::node::Node;
use crate::spec::{Diagnostic, Document, pointer};

/// More of them say nothing new.
const MAX_DANGLING_REFERENCES: usize = 100;

/// The references that lead nowhere, each target once. Those of which the other `diagnostics` speak are left out.
pub(super) fn dangling_references(document: &Document, diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut told = HashSet::new();
    let mut found = Vec::new();
    each_known_object(document, |object| {
        if let Some(why) = why_dangling(document, object)
            && !diagnostics.iter().any(|diagnostic| diagnostic.message.contains(&why))
            && told.insert(why.clone())
        {
            let mut place = object.place.clone();
            pointer::push(&mut place, "$ref");
            let mut diagnostic = Diagnostic::warning(place, format!("{why}; what it stands for is not described to clients"));
            diagnostic.span = object.members.get("$ref").map(Node::span);
            found.push(diagnostic);
        }
        if found.len() < MAX_DANGLING_REFERENCES {
            ControlFlow::Continue(())
        } else {
            ControlFlow::Break(())
        }
    });
    found
}

/// Why the object's reference leads nowhere; `None` where it leads somewhere, or the object has none.
fn why_dangling(document: &Document, object: &KnownObject<'_>) -> Option<String> {
    object.members.get("$ref")?.string()?;
    document.resolve(object.node).err()
}

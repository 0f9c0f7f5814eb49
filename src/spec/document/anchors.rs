//! Schemas named by `$id`, `$anchor` or `$dynamicAnchor` (JSON Schema 2020-12 core section 8.2).
//!
//! Names are compared as they are written: an `$id` is not resolved against the one around it.
//! Where several schemas have a name, it names none of them.

use foldhash::HashMap;

use super::file::DocumentFile;
use crate::spec::node::{Node, Span};

/// All named schemas of all files.
#[derive(Debug, Default)]
pub(crate) struct NamedSchemas {
    /// By `$id`, and by `#` and the anchor; in the order of the text.
    names: HashMap<String, Vec<Span>>,
    /// The schemas with an `$id`, in the order of the text.
    resources: Vec<Span>,
}

impl NamedSchemas {
    /// Reads the names; nearly all documents have none, which one scan of the text shows.
    pub(crate) fn of(files: &[DocumentFile]) -> Self {
        let mut named = Self::default();
        for file in files {
            named.collect(file.root(), 0);
        }
        named
    }

    /// Adds the names in a value.
    fn collect(&mut self, node: Node<'_>, depth: usize) {
        const MAX_DEPTH: usize = 128;
        let text = node.text();
        if depth > MAX_DEPTH || !(text.contains("nchor\"") || text.contains("\"$id\"")) {
            return;
        }
        for item in node.array().unwrap_or_default() {
            self.collect(item, depth + 1);
        }
        let Some(object) = node.object() else { return };
        let id = object.text("$id");
        if id.as_ref().is_some_and(|id| !id.starts_with('#')) {
            self.resources.push(node.span());
        }
        let anchors = ["$anchor", "$dynamicAnchor"]
            .into_iter()
            .filter_map(|key| Some(format!("#{}", object.text(key)?)));
        for name in id.into_iter().chain(anchors) {
            self.names.entry(name).or_default().push(node.span());
        }
        for (key, inner) in object.iter() {
            // There, an object with these keys is a value, not a schema.
            if !matches!(key, "example" | "examples" | "default" | "const" | "enum") {
                self.collect(inner, depth + 1);
            }
        }
    }

    /// The only schema of that name inside of `place`; if there is none, the only one of all.
    pub(crate) fn get(&self, name: &str, place: Span) -> Option<Span> {
        let spans = self.names.get(name)?;
        let before = spans.partition_point(|span| span.begin() < place.begin());
        let mut inside = spans
            .iter()
            .skip(before)
            .take_while(|span| place.holds(**span));
        match (inside.next(), inside.next(), spans.as_slice()) {
            (Some(only), None, _) | (None, _, [only]) => Some(*only),
            _ => None,
        }
    }

    /// Returns the number of schemas of that name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.names.get(name).map_or(0, Vec::len)
    }

    /// Returns true if a schema inside of `place` has an `$id`, so that a pointer may begin there.
    pub(crate) fn is_divided(&self, place: Span) -> bool {
        let before = self
            .resources
            .partition_point(|span| span.begin() <= place.begin());
        self.resources
            .get(before)
            .is_some_and(|next| place.holds(*next))
    }
}

//! The petstore, mutated: every text is served or refused, and nothing panics.

use openapi_mcp::internals::{AnnotatedTools, annotate, operations};
use openapi_mcp::{AnnotateOptions, Document};
use proptest::prelude::*;

use crate::support::petstore;

/// Pieces that a mutation puts into the text.
const PIECES: [&str; 24] = [
    "{",
    "}",
    "[",
    "]",
    ":",
    "- ",
    "\n",
    "\"",
    "null",
    "true",
    "1e400",
    "-0",
    "$ref",
    "'#/components/schemas/Category'",
    "allOf: [",
    "\u{202e}",
    "&a ",
    "*a",
    "<<: *a",
    "!tag ",
    "../x.yaml",
    "  ",
    "{id}",
    "/..",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::support::soak() { 10_000 } else { 300 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn p21_a_mutated_document_is_served_or_refused(edits in proptest::collection::vec((any::<prop::sample::Index>(), 0..30_usize, 0..PIECES.len()), 1..12)) {
        let mut text = std::fs::read_to_string(petstore()).unwrap();
        for (at, cut, piece) in edits {
            let start = text.floor_char_boundary(at.index(text.len()));
            let end = text.floor_char_boundary((start + cut).min(text.len())).max(start);
            text.replace_range(start..end, PIECES[piece]);
        }
        if let Ok(document) = Document::parse(text.into_bytes(), None) {
            let (operations, _) = operations(&document);
            let AnnotatedTools { tools, diagnostics, .. } = annotate(&document, operations, &AnnotateOptions::default());
            for (_, parts) in &tools {
                let schema = serde_json::from_str(parts.input.as_ref().unwrap().json.get()).unwrap();
                prop_assert!(jsonschema::meta::is_valid(&schema), "{}", schema);
            }
            for diagnostic in diagnostics.iter().take(3) {
                let _ = document.locate(diagnostic);
            }
        }
    }
}

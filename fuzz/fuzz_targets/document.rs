//! Any bytes as a document: read, described and checked without a panic, and every schema is valid
//! 2020-12.
#![no_main]

use libfuzzer_sys::fuzz_target;
use openapi_mcp::internals::{AnnotatedTools, annotate, operations};
use openapi_mcp::{AnnotateOptions, Document};

fuzz_target!(|bytes: &[u8]| {
    let Ok(document) = Document::parse(bytes.to_vec(), None) else { return };
    let (operations, _) = operations(&document);
    let AnnotatedTools { tools, diagnostics, .. } = annotate(&document, operations, &AnnotateOptions::default());
    for diagnostic in diagnostics.iter().take(20) {
        let _ = document.locate(diagnostic);
    }
    let mut names = std::collections::HashSet::new();
    for (tool, parts) in tools {
        assert!(names.insert(tool.name.to_ascii_lowercase()), "{} is there twice", tool.name);
        let input = parts.input.expect("a schema that is made at the start");
        assert!(input.json.get().contains("\"properties\""));
    }
});

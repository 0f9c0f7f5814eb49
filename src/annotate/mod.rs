//! What a tool looks like: name, title, description, input schema and hints. Knows the document, and nothing of calls.

pub mod hints;
pub mod input;
pub mod names;
pub mod selection;
pub mod words;

use rmcp::model::Tool;

use crate::spec::schema::Schemas;
use crate::spec::{Diagnostic, Document, Operation};
pub use names::NameOptions;
pub use selection::{Pattern, PatternError, Selection};

/// What an operator sets about the look of tools.
#[derive(Debug, Clone, Default)]
pub struct AnnotateOptions {
    /// How tools are named.
    pub names: NameOptions,
    /// Which operations become tools.
    pub selection: Selection,
}

/// One tool per operation that is selected, each with the operation it stands for, and remarks on schemas that had to be
/// read loosely.
#[must_use]
pub fn annotate(document: &Document, operations: Vec<Operation>, options: &AnnotateOptions) -> (Vec<(Tool, Operation)>, Vec<Diagnostic>) {
    // Names come from all operations, so that a selection never changes the name of a tool.
    let names = names::names(&operations, &options.names);
    let mut diagnostics: Vec<Diagnostic> = options
        .selection
        .idle(&names, &operations)
        .into_iter()
        .map(|pattern| Diagnostic::warning("#/paths", format!("the pattern `{pattern}` matches no operation")))
        .collect();
    let mut schemas = Schemas::new(document);
    let mut tools = Vec::with_capacity(operations.len());
    for (name, operation) in names.into_iter().zip(operations) {
        let hints = hints::for_method(&operation.method);
        if !options.selection.admits(&name, &operation) || (options.selection.read_only && !hints::is_read_only(hints.as_ref())) {
            continue;
        }
        let mut warnings = Vec::new();
        let schema = input::input_schema(&operation, &mut schemas, &mut warnings);
        diagnostics.extend(
            warnings
                .into_iter()
                .map(|warning| Diagnostic::warning(operation.pointer.clone(), warning)),
        );
        let mut tool = Tool::new(name, words::description(&operation), schema).with_title(words::title(&operation));
        tool.annotations = hints;
        tools.push((tool, operation));
    }
    (tools, diagnostics)
}

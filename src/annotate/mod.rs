//! What a tool looks like: name, title, description, input schema and hints. Knows the document, and nothing of calls.

pub mod client;
pub mod hints;
pub mod infer;
pub mod input;
pub mod names;
pub mod obey;
pub mod output;
pub mod selection;
pub mod words;

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::spec::schema::{SchemaOptions, Schemas};
use crate::spec::{Diagnostic, Document, Operation};
pub use client::{Client, Profile};
pub use names::NameOptions;
pub use output::OutputSchemas;
pub use selection::{Pattern, PatternError, Selection};

/// What an operator sets about the look of tools.
#[derive(Debug, Clone)]
pub struct AnnotateOptions {
    /// How tools are named.
    pub names: NameOptions,
    /// Which operations become tools.
    pub selection: Selection,
    /// How input schemas are made self-contained, and how much each may take.
    pub schemas: SchemaOptions,
    /// How many bytes the whole list should take at the most.
    pub list_budget: usize,
    /// Which output schemas are offered.
    pub output: OutputSchemas,
    /// How many bytes the list may take for `auto` to offer output schemas.
    pub output_budget: usize,
}

impl Default for AnnotateOptions {
    fn default() -> Self {
        Self {
            names: NameOptions::default(),
            selection: Selection::default(),
            schemas: SchemaOptions {
                budget: 64 << 10,
                inline_all: false,
            },
            list_budget: 6 << 20,
            output: OutputSchemas::Auto,
            output_budget: 1 << 20,
        }
    }
}

/// A tool and the operation it stands for.
///
/// Schemas are kept as text: as trees those of a large API take many times the memory, and nobody needs more than a few.
pub struct Annotated {
    /// The tool without its schemas.
    pub tool: Tool,
    /// The operation that a call makes.
    pub operation: Box<Operation>,
    /// The input schema.
    pub input: Box<RawValue>,
    /// The output schema, where one is offered.
    pub output: Option<Box<RawValue>>,
    /// Where property names had to be changed: the input schema with the names on the wire noted in it.
    pub wire: Option<Arc<Map<String, Value>>>,
}

/// The members of a tool in the order in which clients show them.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'t> {
    name: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'t str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'t str>,
    input_schema: &'t RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_schema: Option<&'t RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    annotations: Option<&'t ToolAnnotations>,
}

/// One tool per operation that is selected, each with the operation it stands for, and remarks on schemas that had to be
/// read loosely.
#[must_use]
pub fn annotate(document: &Document, operations: Vec<Operation>, options: &AnnotateOptions) -> (Vec<Annotated>, Vec<Diagnostic>) {
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
        let mut tool = Tool::new(name, words::description(&operation), Map::new()).with_title(words::title(&operation));
        tool.annotations = hints;
        let mut operation = operation;
        // Said in the tool now; a call needs neither.
        (operation.summary, operation.description) = (None, None);
        let mut annotated = Annotated {
            tool,
            operation: Box::new(operation),
            input: RawValue::NULL.to_owned(),
            output: None,
            wire: None,
        };
        annotated.describe_input(&mut schemas, &options.schemas, &mut diagnostics);
        tools.push(annotated);
    }
    fit_list(&mut tools, &mut schemas, options, &mut diagnostics);
    drop(schemas);
    describe_outputs(document, &mut tools, options, &mut diagnostics);
    (tools, diagnostics)
}

impl Annotated {
    /// The tool as it stands in `tools/list`.
    #[must_use]
    pub fn json(&self) -> String {
        let listed = Listed {
            name: &self.tool.name,
            title: self.tool.title.as_deref(),
            description: self.tool.description.as_deref(),
            input_schema: &self.input,
            output_schema: self.output.as_deref(),
            annotations: self.tool.annotations.as_ref(),
        };
        serde_json::to_string(&listed).unwrap_or_default()
    }

    /// How many bytes that is, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        /// The hints and the keys around the members.
        const FRAME: usize = 180;
        let words = self.tool.name.len()
            + self.tool.description.as_ref().map_or(0, |text| text.len())
            + self.tool.title.as_ref().map_or(0, String::len);
        FRAME + words + self.input.get().len() + self.output.as_ref().map_or(0, |output| output.get().len())
    }

    fn describe_input(&mut self, schemas: &mut Schemas<'_>, options: &SchemaOptions, diagnostics: &mut Vec<Diagnostic>) {
        let mut warnings = Vec::new();
        let completed = input::input_schema(&self.operation, schemas, options, &mut warnings);
        diagnostics.extend(
            warnings
                .into_iter()
                .map(|warning| Diagnostic::warning(self.operation.pointer.clone(), warning)),
        );
        self.input = raw(&completed.schema);
        self.wire = completed.wire.map(Arc::new);
    }
}

fn raw(schema: &Map<String, Value>) -> Box<RawValue> {
    serde_json::value::to_raw_value(schema).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Where the list as a whole is over its budget, the largest schemas give way until it fits: all of them down to the same
/// size, so that no small tool pays for a large one.
fn fit_list(tools: &mut [Annotated], schemas: &mut Schemas<'_>, options: &AnnotateOptions, diagnostics: &mut Vec<Diagnostic>) {
    const SMALLEST: usize = 512;
    let total: usize = tools.iter().map(Annotated::bytes).sum();
    if total <= options.list_budget {
        return;
    }
    let mut sizes: Vec<usize> = tools.iter().map(Annotated::bytes).collect();
    sizes.sort_unstable();
    // The largest cap under which all tools together fit.
    let mut room = options.list_budget;
    let mut cap = SMALLEST;
    for (index, size) in sizes.iter().enumerate() {
        let share = room / (sizes.len() - index);
        if *size > share {
            cap = share.max(SMALLEST);
            break;
        }
        room -= size;
    }
    let options = SchemaOptions {
        budget: cap,
        ..options.schemas.clone()
    };
    for tool in tools.iter_mut().filter(|tool| tool.bytes() > cap) {
        tool.describe_input(schemas, &options, diagnostics);
    }
}

fn describe_outputs(document: &Document, tools: &mut [Annotated], options: &AnnotateOptions, diagnostics: &mut Vec<Diagnostic>) {
    let inputs: usize = tools.iter().map(Annotated::bytes).sum();
    let over = || {
        Diagnostic::note(
            "#",
            format!(
                "the list of tools would take more than {} bytes with output schemas, so that none are offered; --output-schemas lenient insists on them",
                options.output_budget
            ),
        )
    };
    match options.output {
        OutputSchemas::Off => {}
        OutputSchemas::Auto if inputs > options.output_budget => diagnostics.push(over()),
        OutputSchemas::Auto | OutputSchemas::Lenient => {
            let outputs: Vec<_> = tools
                .iter()
                .map(|tool| output::lenient(document, &tool.operation).map(|schema| raw(&schema)))
                .collect();
            let bytes: usize = outputs.iter().flatten().map(|schema| schema.get().len()).sum();
            if options.output == OutputSchemas::Auto && inputs + bytes > options.output_budget {
                diagnostics.push(over());
                return;
            }
            for (tool, output) in tools.iter_mut().zip(outputs) {
                tool.output = output;
            }
        }
        OutputSchemas::Strict => {
            let mut schemas = Schemas::for_output(document);
            for tool in tools {
                let mut warnings = Vec::new();
                let output = output::strict(document, &tool.operation, &mut schemas, &options.schemas, &mut warnings);
                diagnostics.extend(
                    warnings
                        .into_iter()
                        .map(|warning| Diagnostic::warning(tool.operation.pointer.clone(), warning)),
                );
                tool.output = output.map(|schema| raw(&schema));
            }
        }
    }
}

//! Tools that are finished when they are used: search mode lists a few tools for all operations, and of a large API most are never
//! described or called. Their input schemas would take most of the start, and most of the memory after it.

use rmcp::model::Tool;
use serde_json::value::RawValue;

use crate::annotate::files::Files;
use crate::annotate::input::{input_schema, offer_filter};
use crate::annotate::list::tool_json::{Grouping, ToolParts, to_json, write_tool};
use crate::annotate::selection::Pattern;
use crate::spec::schema::{Completed, SchemaOptions, Schemas, WireSchema};
use crate::spec::{Document, Operation};

/// When the input schema of a tool is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputTime {
    /// At the start, as long as the list has room for it.
    InList,
    /// At the start: the tool is not listed.
    AtStart,
    /// When it is used.
    OnUse,
}

/// Decides when the input schemas of tools are made.
pub(crate) struct InputTimes<'o> {
    /// The operations that are listed, where not all are.
    pub(crate) pins: Option<&'o [Pattern]>,
    /// What every name begins with.
    pub(crate) prefix: &'o str,
    /// Whether output schemas are offered depends on whether all tools take more bytes; `None` where it does not.
    pub(crate) output_budget: Option<usize>,
    /// How many bytes the tools take that are made at the start without being listed.
    pub(crate) bytes: usize,
}

/// What is set about input schemas.
#[derive(Debug, Clone)]
pub(crate) struct InputOptions {
    pub(crate) schemas: SchemaOptions,
    pub(crate) files: Files,
    /// Whether there is an argument that filters the reply.
    pub(crate) filter: bool,
}

/// A tool without its input schema: the long parts that are known at the start.
pub(crate) struct UnfinishedTool {
    description: String,
    output: Option<Box<RawValue>>,
}

/// What is made of an unfinished tool.
#[derive(Default)]
pub(crate) struct FinishedParts {
    /// The whole tool as JSON.
    pub(crate) json: String,
    /// Where property names had to be changed: the input schema with the names on the wire noted in it.
    pub(crate) wire: Option<WireSchema>,
    /// What had to be read loosely, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// Whether an operation matches a pattern of those that are listed in search mode as well.
#[must_use]
pub(crate) fn is_pinned(pins: &[Pattern], name: &str, prefix: &str, operation: &Operation) -> bool {
    let without = name.strip_prefix(prefix).unwrap_or(name);
    pins.iter().any(|pin| pin.matches([name, without], operation))
}

impl InputTimes<'_> {
    /// When the input schema of a tool is made. What rules set for arguments is checked at the start.
    pub(crate) fn of(&self, name: &str, operation: &Operation) -> InputTime {
        let Some(pins) = self.pins else {
            return InputTime::InList;
        };
        let has_rules = !operation.rules.fixed.is_empty() || !operation.rules.arguments.is_empty();
        if is_pinned(pins, name, self.prefix, operation) {
            InputTime::InList
        } else if has_rules || self.output_budget.is_some_and(|budget| self.bytes <= budget) {
            InputTime::AtStart
        } else {
            InputTime::OnUse
        }
    }
}

/// The input schema of an operation, with the argument that filters the reply where it is offered.
pub(crate) fn complete_input(
    operation: &Operation,
    schemas: &mut Schemas<'_>,
    limits: &SchemaOptions,
    (files, filter): (Files, bool),
    warnings: &mut Vec<String>,
) -> Completed {
    let mut completed = input_schema(operation, schemas, limits, files, warnings);
    if filter {
        offer_filter(&mut completed, operation);
    }
    completed
}

impl UnfinishedTool {
    pub(crate) fn new(parts: ToolParts) -> Self {
        Self {
            description: parts.description,
            output: parts.output,
        }
    }

    /// Makes the input schema. `tool` has name, title and hints.
    pub(crate) fn finish(
        &self,
        tool: &Tool,
        operation: &Operation,
        category: Option<&str>,
        document: &Document,
        options: &InputOptions,
    ) -> FinishedParts {
        let mut warnings = Vec::new();
        let (limits, shape) = (&options.schemas, (options.files, options.filter));
        let completed = complete_input(operation, &mut Schemas::new(document), limits, shape, &mut warnings);
        warnings.extend(completed.fit.warning(limits.budget));
        let parts = ToolParts {
            description: self.description.clone(),
            input: to_json(&completed.schema),
            output: self.output.clone(),
        };
        let tags = &operation.tags;
        FinishedParts {
            json: write_tool(tool, &parts, Grouping { category, tags }),
            wire: completed.wire.map(WireSchema::new),
            warnings,
        }
    }
}

//! Tools that are finished when they are used: search mode lists a few tools for all operations,
//! and of a large API most are never described or called. Their input schemas would take most of
//! the start, and most of the memory after it.

use serde_json::value::RawValue;

use crate::annotate::files::Files;
use crate::annotate::input::{input_schema, offer_filter, offer_pages};
use crate::annotate::options::{AnnotateOptions, ListExtent, MAX_LIST_BYTES};
use crate::annotate::output::OutputSchemas;
use crate::annotate::selection::Pattern;
use crate::annotate::tool::{Grouping, ToolParts, ToolSummary, to_json, write_tool};
use crate::spec::schema::{Completed, NewNames, SchemaOptions, Schemas};
use crate::spec::{Document, Operation};

/// Time at which the input schema of a tool is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InputTime {
    /// The start.
    AtStart,
    /// The first use.
    OnUse,
}

/// Decides when the input schemas of tools are made.
pub(crate) struct InputTimes<'o> {
    options: &'o AnnotateOptions,
    /// The operations that are listed, if not all are.
    pins: Option<&'o [Pattern]>,
    /// Number of bytes of all tools so far.
    bytes: usize,
    /// Least number of bytes of the list, once it is known to be too long.
    too_long: Option<usize>,
    /// True if input schemas were made before that was known.
    is_late: bool,
}

/// Settings for input schemas.
#[derive(Debug, Clone)]
pub(crate) struct InputOptions {
    pub(crate) schemas: SchemaOptions,
    pub(crate) files: Files,
    /// True if there is an argument that filters the reply.
    pub(crate) filter: bool,
}

/// A tool without its input schema: the long parts that are known at the start.
pub(crate) struct UnfinishedTool {
    description: String,
    output: Option<Box<RawValue>>,
}

/// The parts that are made of an unfinished tool.
#[derive(Default)]
pub(crate) struct FinishedParts {
    /// The whole tool as JSON.
    pub(crate) json: String,
    /// The names of properties that had to be changed.
    pub(crate) names: Option<NewNames>,
    /// Parts that had to be read loosely, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// Returns true if an operation matches a pattern of operations that are listed in search mode too.
#[must_use]
pub(crate) fn is_pinned(pins: &[Pattern], name: &str, prefix: &str, operation: &Operation) -> bool {
    let without = name.strip_prefix(prefix).unwrap_or(name);
    pins.iter()
        .any(|pin| pin.matches([name, without], operation))
}

impl<'o> InputTimes<'o> {
    /// Makes it for tools that take so many bytes without their input schemas.
    pub(crate) fn new(options: &'o AnnotateOptions, bytes: usize) -> Self {
        let pins = match &options.extent {
            ListExtent::Pinned(pins) => Some(pins.as_slice()),
            ListExtent::All | ListExtent::AllOrPinned(_) => None,
        };
        let mut times = Self {
            options,
            pins,
            bytes: 0,
            too_long: None,
            is_late: false,
        };
        times.add(bytes);
        times.is_late = false;
        times
    }

    /// Decides when the input schema of a tool is made.
    pub(crate) fn of(&self, name: &str, operation: &Operation) -> InputTime {
        let decides_output =
            self.options.output == OutputSchemas::Auto && self.bytes <= self.options.output_budget;
        if self.pins.is_none() || decides_output || self.needs_input(name, operation) {
            InputTime::AtStart
        } else {
            InputTime::OnUse
        }
    }

    /// Returns true if the tool has its input schema at the start in any case: it is listed, or
    /// rules apply to its arguments, which are checked at the start.
    pub(crate) fn needs_input(&self, name: &str, operation: &Operation) -> bool {
        let has_rules = !operation.rules.fixed.is_empty() || !operation.rules.arguments.is_empty();
        has_rules
            || self
                .pins
                .is_none_or(|pins| is_pinned(pins, name, &self.options.names.prefix, operation))
    }

    /// Counts what the input schema of a tool takes.
    pub(crate) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if let ListExtent::AllOrPinned(pins) = &self.options.extent
            && self.pins.is_none()
            && self.bytes > MAX_LIST_BYTES
        {
            self.pins = Some(pins);
            self.too_long = Some(self.bytes);
            self.is_late = true;
        }
    }

    /// Returns true if input schemas were made for a list that turned out to be too long.
    pub(crate) fn is_late(&self) -> bool {
        self.is_late
    }

    /// Returns the number of bytes the list takes at least, if it is too long.
    pub(crate) fn too_long(&self) -> Option<usize> {
        self.too_long
    }
}

/// The input schema of an operation, with the arguments about the reply that are offered.
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
    if operation.rules.max_pages > 0 {
        offer_pages(&mut completed, operation);
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
        tool: &ToolSummary,
        operation: &Operation,
        category: Option<&str>,
        document: &Document,
        options: &InputOptions,
    ) -> FinishedParts {
        let mut warnings = Vec::new();
        let (limits, shape) = (&options.schemas, (options.files, options.filter));
        let completed = complete_input(
            operation,
            &mut Schemas::new(document),
            limits,
            shape,
            &mut warnings,
        );
        warnings.extend(completed.fit.warning(limits.budget));
        let parts = ToolParts {
            description: self.description.clone(),
            input: to_json(&completed.schema),
            output: self.output.clone(),
        };
        let tags = &operation.tags;
        FinishedParts {
            json: write_tool(tool, &parts, Grouping { category, tags }),
            names: completed.names,
            warnings,
        }
    }
}

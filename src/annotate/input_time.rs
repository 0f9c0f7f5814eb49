//! The input schemas of tools, and when each is made. Search mode lists a few tools for all
//! operations, and of a large API most are never described or called: their schemas would take most
//! of the start, and most of the memory after it. They are made when they are used.

use std::sync::Arc;

use crate::annotate::input::{input_schema, offer_filter, offer_pages};
use crate::annotate::options::{AnnotateOptions, ListExtent, MAX_LIST_BYTES};
use crate::annotate::output::OutputSchemas;
use crate::annotate::overrides::arguments::RuleFindings;
use crate::annotate::overrides::ruled_schema::{rule_schema, unrequire_properties};
use crate::annotate::selection::Pattern;
use crate::annotate::tool::{InputSchema, Tool, to_json};
use crate::spec::Operation;
use crate::spec::schema::{Completed, SchemaOptions, Schemas};

/// The budget of a schema that is not cut for its size.
const WHOLE_SCHEMA_BYTES: usize = 4 << 20;

/// Decides which input schemas are made at the start.
pub(super) struct InputTimes<'o> {
    options: &'o AnnotateOptions,
    /// The operations that are listed, if not all are.
    pins: Option<&'o [Pattern]>,
    /// Number of bytes of all tools so far.
    bytes: usize,
    /// Least number of bytes of the list, once it is known to be too long.
    pub(super) too_long: Option<usize>,
}

impl<'o> InputTimes<'o> {
    /// Makes it for tools that take so many bytes without their input schemas.
    pub(super) fn new(options: &'o AnnotateOptions, bytes: usize) -> Self {
        let pins = match &options.extent {
            ListExtent::Pinned(pins) => Some(pins.as_slice()),
            ListExtent::All | ListExtent::AllOrPinned(_) => None,
        };
        let mut times = Self {
            options,
            pins,
            bytes: 0,
            too_long: None,
        };
        times.add(bytes);
        times
    }

    /// Returns true if the input schema of a tool is made at the start.
    pub(super) fn is_at_start(&self, tool: &Tool) -> bool {
        let decides_output =
            self.options.output == OutputSchemas::Auto && self.bytes <= self.options.output_budget;
        decides_output || self.needs_input(tool)
    }

    /// Returns true if the tool has its input schema at the start in any case: it is listed, or
    /// rules apply to its arguments, which are checked at the start.
    pub(super) fn needs_input(&self, tool: &Tool) -> bool {
        let prefix = &self.options.names.prefix;
        has_rules(&tool.operation) || self.pins.is_none_or(|pins| tool.is_pinned(pins, prefix))
    }

    /// Counts what the input schema of a tool takes.
    pub(super) fn add(&mut self, bytes: usize) {
        self.bytes += bytes;
        if let ListExtent::AllOrPinned(pins) = &self.options.extent
            && self.pins.is_none()
            && self.bytes > MAX_LIST_BYTES
        {
            self.pins = Some(pins);
            self.too_long = Some(self.bytes);
        }
    }
}

/// Makes the input schema of an operation. Parts that had to be read loosely are told in sentences.
pub(crate) fn make_input(
    operation: &Operation,
    options: &AnnotateOptions,
    schemas: &mut Schemas<'_>,
    findings: &mut RuleFindings,
) -> (InputSchema, Vec<String>) {
    let mut warnings = Vec::new();
    let limits = &options.schemas;
    let mut completed = complete_input(operation, options, schemas, limits, &mut warnings);
    warnings.extend(completed.fit.warning(limits.budget));
    let (mut unruled, mut ruled_properties) = (None, Vec::new());
    let json = if has_rules(operation) {
        let mut ruled = rule_schema(operation, &completed);
        if !ruled.absent.is_empty() && limits.budget < WHOLE_SCHEMA_BYTES {
            // What is cut off for its size may hold a property that a rule is about.
            let whole = SchemaOptions {
                budget: WHOLE_SCHEMA_BYTES,
                ..limits.clone()
            };
            completed = complete_input(operation, options, schemas, &whole, &mut Vec::new());
            ruled = rule_schema(operation, &completed);
        }
        findings.note_properties(&ruled);
        unrequire_properties(&mut completed.schema, &ruled.properties);
        unruled = Some(Arc::new(completed.schema));
        ruled_properties = ruled.properties;
        to_json(&ruled.shown)
    } else {
        to_json(&completed.schema)
    };
    let input = InputSchema {
        json,
        names: completed.names.map(Arc::new),
        unruled,
        ruled_properties,
    };
    (input, warnings)
}

fn has_rules(operation: &Operation) -> bool {
    !operation.rules.fixed.is_empty() || !operation.rules.arguments.is_empty()
}

/// The input schema of an operation, with the arguments about the reply that are offered.
fn complete_input(
    operation: &Operation,
    options: &AnnotateOptions,
    schemas: &mut Schemas<'_>,
    limits: &SchemaOptions,
    warnings: &mut Vec<String>,
) -> Completed {
    let mut completed = input_schema(operation, schemas, limits, options.files, warnings);
    if options.filter {
        offer_filter(&mut completed, operation);
    }
    if operation.rules.max_pages > 0 {
        offer_pages(&mut completed, operation);
    }
    completed
}

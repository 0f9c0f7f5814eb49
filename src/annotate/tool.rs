//! A tool: how an operation looks to clients; and when its input schema is made. Search mode lists a
//! few tools for all operations, and of a large API most are never described or called: their schemas
//! would take most of the start, and most of the memory after it. They are made when they are used.

use std::sync::Arc;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

use super::annotations::{Hints, ToolAnnotations};
use super::descriptions;
use super::input::{input_schema, offer_filter, offer_pages};
use super::layers::{Candidate, Decision};
use super::options::{AnnotateOptions, ListExtent, MAX_LIST_BYTES, OUTPUT_BUDGET};
use super::output::OutputSchemas;
use super::overrides::arguments::RuleFindings;
use super::overrides::ruled_schema::{rule_schema, unrequire_properties};
use super::selection::Pattern;
use super::wording::Wording;
use crate::json::JsonObject;
use crate::spec::operation::rules::RuledProperty;
use crate::spec::schema::{Completed, NewNames, SchemaOptions, Schemas};
use crate::spec::{Diagnostic, Operation};
use crate::text;

/// A tool without what is long: description and schemas.
pub struct Tool {
    /// The operation that a call makes.
    pub operation: Arc<Operation>,
    /// The name.
    pub name: Arc<str>,
    /// The title.
    pub title: Box<str>,
    /// A title that a person wrote for `annotations`.
    annotations_title: Option<Box<str>>,
    /// Its hints, each with its source.
    pub hints: Hints,
    /// The hints of its words.
    pub(crate) wording: Wording,
    /// True if a person must confirm each call.
    pub must_confirm: bool,
    /// The operation's first tag, unless it is overridden.
    pub category: Option<Box<str>>,
    /// Words by which a search finds it as well, which are never shown.
    pub keywords: Box<[String]>,
    /// The rules of `access` that a caller must meet, by their places.
    pub(crate) access: Box<[usize]>,
}

/// The input schema of a tool.
pub struct InputSchema {
    /// The schema as clients get it.
    pub json: Box<RawValue>,
    /// The names of properties that had to be changed.
    pub names: Option<Arc<NewNames>>,
    /// The document's schema with all arguments, if rules set something for arguments.
    pub(crate) unruled: Option<Arc<JsonObject>>,
    /// The properties of the body that rules are about.
    pub(crate) ruled_properties: Vec<RuledProperty>,
}

/// The long parts of a tool, until it is written: as JSON text, because trees take many times the
/// memory, and few are used.
pub struct ToolParts {
    /// `description`.
    pub(crate) description: String,
    /// `inputSchema`; `None` if it is made when the tool is used.
    pub input: Option<InputSchema>,
    /// `outputSchema`.
    pub(crate) output: Option<Box<RawValue>>,
}

impl Tool {
    /// A tool, and its description.
    pub(super) fn new(
        candidate: Candidate,
        description: String,
        options: &AnnotateOptions,
    ) -> (Self, ToolParts) {
        let must_confirm = options.confirm.asks(
            candidate.names(),
            &candidate.operation,
            &candidate.decision.hints,
        );
        let Candidate {
            name,
            title,
            mut operation,
            access,
            decision:
                Decision {
                    hints,
                    said,
                    wording,
                },
            ..
        } = candidate;
        let said = Arc::unwrap_or_clone(said);
        let in_a_line = |text: String| {
            text::truncate(&text::one_line(&text), descriptions::MAX_TITLE_BYTES).into_boxed_str()
        };
        // Said in the tool now; a call needs neither.
        (operation.summary, operation.description) = (None, None);
        clean_tags(&mut operation.tags);
        let category = said.category.or_else(|| operation.tags.first().cloned());
        let tool = Self {
            name: name.into(),
            title: said.title.map_or(title.into(), in_a_line),
            annotations_title: said.annotations_title.map(in_a_line),
            hints,
            wording,
            must_confirm,
            category: category
                .map(in_a_line)
                .filter(|category| !category.is_empty()),
            keywords: said.keywords.unwrap_or_default().into(),
            access: access.into(),
            operation: Arc::from(operation),
        };
        let parts = ToolParts {
            description,
            input: None,
            output: None,
        };
        (tool, parts)
    }

    /// The hints as clients get them, if there are any.
    #[must_use]
    pub fn annotations(&self) -> Option<ToolAnnotations> {
        self.hints.to_annotations(self.annotations_title.clone())
    }

    /// Warnings about its operation.
    pub(crate) fn warnings(&self, texts: Vec<String>) -> impl Iterator<Item = Diagnostic> {
        texts
            .into_iter()
            .map(|text| Diagnostic::warning(&self.operation.pointer, text))
    }

    /// Its names in patterns: with and without the prefix of its API.
    pub(crate) fn names(&self, prefix: &str) -> [&str; 2] {
        let without = self.name.strip_prefix(prefix).unwrap_or(&self.name);
        [&self.name, without]
    }

    /// Returns true if it matches a pattern of tools that are listed in search mode too.
    pub(crate) fn is_pinned(&self, pins: &[Pattern], prefix: &str) -> bool {
        let names = self.names(prefix);
        pins.iter().any(|pin| pin.matches(names, &self.operation))
    }

    /// Writes the tool as `tools/list` has it.
    pub(crate) fn write(
        &self,
        parts: &ToolParts,
        input: &RawValue,
        max_result_chars: Option<usize>,
    ) -> String {
        /// The members, in the order in which clients show them.
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Members<'t> {
            name: &'t str,
            title: &'t str,
            description: &'t str,
            input_schema: &'t RawValue,
            #[serde(skip_serializing_if = "Option::is_none")]
            output_schema: Option<&'t RawValue>,
            #[serde(skip_serializing_if = "Option::is_none")]
            annotations: Option<ToolAnnotations>,
            #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
            meta: Option<Meta<'t>>,
        }

        /// Members that MCP does not define.
        #[derive(Serialize)]
        struct Meta<'t> {
            #[serde(rename = "openapi-mcp", skip_serializing_if = "Option::is_none")]
            own: Option<Groups<'t>>,
            /// For clients that take so many characters of a result only if a tool says so.
            #[serde(
                rename = "anthropic/maxResultSizeChars",
                skip_serializing_if = "Option::is_none"
            )]
            max_result_chars: Option<usize>,
        }

        #[derive(Serialize)]
        struct Groups<'t> {
            #[serde(skip_serializing_if = "Option::is_none")]
            category: Option<&'t str>,
            #[serde(skip_serializing_if = "<[String]>::is_empty")]
            tags: &'t [String],
        }

        let category = self.category.as_deref();
        // Most operations have one tag, which is their category: it is not said twice.
        let tags = match self.operation.tags.as_slice() {
            [only] if Some(only.as_str()) == category => &[],
            tags => tags,
        };
        let own = (category.is_some() || !tags.is_empty()).then_some(Groups { category, tags });
        let members = Members {
            name: &self.name,
            title: &self.title,
            description: &parts.description,
            input_schema: input,
            output_schema: parts.output.as_deref(),
            annotations: self.annotations(),
            meta: (own.is_some() || max_result_chars.is_some()).then_some(Meta {
                own,
                max_result_chars,
            }),
        };
        serde_json::to_string(&members).unwrap_or_default()
    }

    /// Returns the approximate length of that in bytes, as far as its parts are there.
    pub(crate) fn bytes(&self, parts: &ToolParts) -> usize {
        /// The hints and the keys around the members.
        const FRAME: usize = 220;
        let own_title = self
            .annotations_title
            .as_ref()
            .map_or(0, |title| title.len());
        let input = parts.input.as_ref().map(|input| &input.json);
        let schemas = input.into_iter().chain(&parts.output);
        FRAME
            + self.name.len()
            + self.title.len()
            + own_title
            + parts.description.len()
            + schemas.map(|schema| schema.get().len()).sum::<usize>()
    }
}

/// A value as JSON. The values of this crate can always be written, because their keys are strings.
pub(crate) fn to_json(value: &impl Serialize) -> Box<RawValue> {
    to_raw_value(value).unwrap_or_default()
}

/// Tags as clients may see them: cleaned, and no more than a reader takes in.
fn clean_tags(tags: &mut Vec<String>) {
    const MAX_TAGS: usize = 20;
    tags.truncate(MAX_TAGS);
    for tag in tags.iter_mut() {
        *tag = text::truncate(&text::one_line(tag), descriptions::MAX_TITLE_BYTES);
    }
    tags.retain(|tag| !tag.is_empty());
}

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
    /// Decides by the bytes that the tools take without their input schemas.
    pub(super) fn new(options: &'o AnnotateOptions, bytes: usize) -> Self {
        let pins = match &options.extent {
            ListExtent::Pinned(pins) => Some(pins.as_slice()),
            _ => None,
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
            self.options.output == OutputSchemas::Auto && self.bytes <= OUTPUT_BUDGET;
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

/// Makes the input schema of an operation. Sentences name the parts that could not be read exactly.
pub(crate) fn make_input(
    operation: &Operation,
    options: &AnnotateOptions,
    schemas: &mut Schemas<'_>,
    findings: &mut RuleFindings,
) -> (InputSchema, Vec<String>) {
    let limits = &options.schemas;
    let mut completed = complete_input(operation, options, schemas, limits);
    let warnings = schemas.take_warnings();
    let (mut unruled, mut ruled_properties) = (None, Vec::new());
    let json = if has_rules(operation) {
        let mut ruled = rule_schema(operation, &completed);
        if !ruled.absent.is_empty() && limits.budget < WHOLE_SCHEMA_BYTES {
            // What is cut off for its size may hold a property that a rule is about.
            let whole = SchemaOptions {
                budget: WHOLE_SCHEMA_BYTES,
                ..limits.clone()
            };
            completed = complete_input(operation, options, schemas, &whole);
            schemas.take_warnings();
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
) -> Completed {
    let mut completed = input_schema(operation, schemas, limits, options.files);
    if options.filter {
        offer_filter(&mut completed, operation);
    }
    if operation.rules.max_pages > 0 {
        offer_pages(&mut completed, operation);
    }
    completed
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rmcp::model::{MetaObject, Tool as RmcpTool};
    use serde_json::{Value, json};

    use super::*;
    use crate::annotate::annotations::{Hint, Reason};
    use crate::spec::{Document, operations};

    fn schema(title: &str, default: i64) -> JsonObject {
        let schema =
            json!({"type": "object", "title": title, "properties": {title: {"default": default}}});
        schema.as_object().cloned().unwrap()
    }

    proptest! {
        #[test]
        fn the_text_says_what_rmcp_would_say_of_the_tool(
            name in "[a-z_]{1,20}",
            title in ".{0,30}",
            description in ".{0,80}",
            (input, output) in (".{0,30}", proptest::option::of(".{0,30}")),
            hint in proptest::option::of(any::<bool>()),
            category in proptest::option::of(".{1,10}"),
            tags in proptest::collection::vec(".{1,10}", 0..3),
            number in any::<i64>(),
        ) {
            let document = r#"{"openapi": "3.1.0", "paths": {"/a": {"get": {}}}}"#;
            let document = Document::parse(document.into(), None).unwrap();
            let mut operation = operations(&document).0.remove(0);
            operation.tags.clone_from(&tags);
            let mut hints = Hints::default();
            for (known, value) in Hint::ALL.into_iter().zip([true, false, true, true]) {
                if let Some(hint) = hint {
                    hints.set(known, hint == value, Reason::CommandLine);
                }
            }
            let tool = Tool {
                operation: operation.into(),
                name: name.as_str().into(),
                title: title.as_str().into(),
                annotations_title: None,
                hints,
                wording: Wording::default(),
                must_confirm: false,
                category: category.as_deref().map(Into::into),
                keywords: Box::default(),
                access: Box::default(),
            };
            let parts = ToolParts {
                description: description.clone(),
                input: None,
                output: output.as_deref().map(|title| to_json(&schema(title, number))),
            };
            let text = tool.write(&parts, &to_json(&schema(&input, number)), None);
            let mut expected = RmcpTool::new_with_raw(name, None, Arc::default());
            expected.title = Some(title);
            expected.annotations = hint.map(|_| {
                let [read_only, destructive, idempotent, open_world] = Hint::ALL.map(|hint| Some(hints.effective(hint)));
                rmcp::model::ToolAnnotations::from_raw(None, read_only, destructive, idempotent, open_world)
            });
            expected.description = Some(description.into());
            expected.input_schema = Arc::new(schema(&input, number));
            expected.output_schema = output.as_deref().map(|title| Arc::new(schema(title, number)));
            let mut own = JsonObject::new();
            if let Some(category) = &category {
                own.insert("category".into(), category.as_str().into());
            }
            if !tags.is_empty() && Some(&tags) != category.map(|category| vec![category]).as_ref() {
                own.insert("tags".into(), json!(tags));
            }
            if !own.is_empty() {
                let mut meta = MetaObject::new();
                meta.insert("openapi-mcp".into(), own.into());
                expected.meta = Some(meta);
            }
            let written: Value = serde_json::from_str(&text).unwrap();
            prop_assert_eq!(written, serde_json::to_value(&expected).unwrap());
        }
    }
}

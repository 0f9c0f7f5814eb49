//! Makes tools of operations: name, title, description, schemas and hints. It knows the document
//! and nothing of calls.
//!
//! # Adding a hint
//!
//! - `Hint` and `Hints` in `annotate/annotations.rs`.
//! - `for_method` in `annotate/hints.rs`: its value for each HTTP method.
//! - `review_hints` in `annotate/hint_review.rs`: what `check` advises.
//! - Its column in `cli/listing.rs`.

pub(crate) mod annotations;
pub(crate) mod candidate;
pub(crate) mod client_profile;
pub(crate) mod description_detail;
pub(crate) mod descriptions;
mod extension;
pub(crate) mod files;
pub(crate) mod hint_review;
pub(crate) mod hints;
pub(crate) mod input;
pub(crate) mod input_time;
pub(crate) mod layers;
pub(crate) mod meta_tool_names;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod overrides;
pub(crate) mod selection;
pub(crate) mod tool;
pub(crate) mod wording;

use std::sync::Arc;

use serde_json::{Map, Value};

use self::candidate::{Candidate, Candidates, offer_pages, replacements};
use self::hint_review::Restriction;
use self::input_time::{InputTime, InputTimes, UnfinishedTool, complete_input};
use self::layers::Decision;
use self::overrides::arguments::RuleFindings;
use self::overrides::ruled_output::ruled_output;
use self::overrides::ruled_schema::{rule_schema, unrequire_properties};
pub use self::tool::ToolSummary;
use self::tool::{Grouping, ToolParts, to_json, write_tool};
use self::wording::Wording;
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::operation::rules::RuledProperty;
use crate::spec::schema::{NewNames, SchemaOptions, Schemas};
use crate::spec::{Diagnostic, Document, Operation};
use crate::text;

pub(crate) use self::annotations::Effect;
pub use self::annotations::{Hint, Hints, Reason, ToolAnnotations};
#[cfg(test)]
pub(crate) use self::client_profile::ShownForm;
pub(crate) use self::client_profile::{ClientProfile, KnownClient};
pub(crate) use self::description_detail::DescriptionDetail;
pub(crate) use self::files::Files;
pub use self::layers::Policy;
pub(crate) use self::layers::{AccessRule, HintTrust, Layers, Rule};
pub(crate) use self::names::NameOptions;
pub use self::options::AnnotateOptions;
pub use self::output::OutputSchemas;
use self::output::{ReplyDescriber, strict};
pub(crate) use self::overrides::Override;
pub(crate) use self::selection::{LeftOut, Pattern, Selection, TokenShare};

/// The budget of a schema that is not cut for its size.
const WHOLE_SCHEMA_BYTES: usize = 4 << 20;

/// A tool and its operation.
///
/// Its schemas are kept as JSON text: as trees, those of a large API take many times the memory,
/// and few of them are used.
pub struct Annotated {
    /// The tool without what is long: schemas and description.
    pub tool: ToolSummary,
    /// The operation that a call makes.
    pub operation: Box<Operation>,
    /// Its hints, each with its source.
    pub hints: Hints,
    /// The hints of its words.
    pub(crate) wording: Wording,
    /// True if a person must confirm each call.
    pub must_confirm: bool,
    /// Category of the tool: the operation's first tag, unless it is overridden.
    pub category: Option<String>,
    /// Words by which a search finds it as well.
    pub keywords: Vec<String>,
    /// The rules of `access` that a caller must meet, by their places.
    pub(crate) access: Vec<usize>,
    /// True if the tool has an output schema.
    pub has_output: bool,
    /// The names of properties that had to be changed.
    pub names: Option<Arc<NewNames>>,
    /// The document's input schema with all arguments, if rules set something for arguments.
    pub(crate) unruled: Option<Arc<Map<String, Value>>>,
    /// The properties of the body that rules are about.
    pub(crate) ruled_properties: Vec<RuledProperty>,
    /// True if its input schema is made on first use.
    is_finished_on_use: bool,
    /// Its long parts.
    parts: ToolParts,
}

/// The tools of a document.
#[derive(Default)]
pub struct AnnotatedTools {
    /// One tool per operation that is selected, in the order of the operations.
    pub tools: Vec<Annotated>,
    /// The tools that settings leave out or ask about because of their words.
    pub(crate) restrictions: Vec<Restriction>,
    /// Number of tools that are offered without a question, although the policy `strict` would call
    /// them destructive and the operator names another one.
    pub(crate) loosened: usize,
    /// The names of the tools that are left out, each with the reason.
    pub(crate) left_out: Vec<(String, LeftOut)>,
    /// Least number of bytes of the list if it is too long, in which case input schemas are made on
    /// first use.
    pub(crate) too_long: Option<usize>,
    /// A sentence for each pattern of the settings that had to match an operation, and matches
    /// none.
    pub(crate) unmatched: Vec<String>,
    /// Remarks, such as those on schemas that had to be read loosely.
    pub diagnostics: Vec<Diagnostic>,
}

/// Makes one tool per selected operation, each with its operation.
#[must_use]
pub fn annotate(
    document: &Document,
    operations: Vec<Box<Operation>>,
    options: &AnnotateOptions,
) -> AnnotatedTools {
    let Candidates {
        all: candidates,
        unmatched,
        diagnostics,
        mut rule_findings,
    } = Candidates::find(document, operations, options);
    let mut annotated = AnnotatedTools {
        tools: Vec::with_capacity(candidates.len()),
        unmatched,
        diagnostics,
        ..AnnotatedTools::default()
    };
    let mut offered = Vec::with_capacity(candidates.len());
    for candidate in candidates {
        if candidate.is_disabled() {
            annotated.left_out.push((candidate.name, LeftOut::Disabled));
            continue;
        }
        annotated
            .restrictions
            .extend(candidate.restriction(options));
        if let Some(why) = options.selection.leaves_out(
            candidate.names(),
            &candidate.operation,
            &candidate.decision.hints,
        ) {
            annotated.left_out.push((candidate.name, why));
            continue;
        }
        offered.push(candidate);
    }
    if options.layers.policy.is_some() && options.holds_back_destructive() {
        let is_loosened = |Candidate { decision, .. }: &&Candidate| {
            let strict = decision.wording.strictly(&decision.hints);
            strict.is_destructive() && !decision.hints.is_destructive()
        };
        annotated.loosened = offered.iter().filter(is_loosened).count();
    }
    let replacements = replacements(&offered, options);
    annotated
        .diagnostics
        .extend(offer_pages(document, &mut offered, options));
    for (candidate, replacement) in offered.into_iter().zip(replacements) {
        let description = candidate.description(document, replacement.as_deref(), options);
        annotated
            .tools
            .push(Annotated::new(candidate, description, options));
    }
    annotated.describe_inputs(document, options, &mut rule_findings);
    annotated.unmatched.extend(rule_findings.into_problems());
    annotated.describe_outputs(document, options);
    annotated
}

impl AnnotatedTools {
    /// Gives the tools their input schemas, except those that get one on first use.
    fn describe_inputs(
        &mut self,
        document: &Document,
        options: &AnnotateOptions,
        findings: &mut RuleFindings,
    ) {
        let mut times = InputTimes::new(options, self.tools.iter().map(Annotated::bytes).sum());
        let mut schemas = Schemas::new(document);
        let mut remarks = Vec::new();
        for tool in &mut self.tools {
            let before = tool.bytes();
            match times.of(&tool.tool.name, &tool.operation) {
                InputTime::AtStart => {
                    remarks.extend(tool.describe_input(options, &mut schemas, findings));
                }
                InputTime::OnUse => tool.is_finished_on_use = true,
            }
            times.add(tool.bytes() - before);
        }
        if times.is_late() {
            // The list turned out to be too long: what was made for it is not needed.
            for tool in &mut self.tools {
                tool.is_finished_on_use = !times.needs_input(&tool.tool.name, &tool.operation);
                if tool.is_finished_on_use {
                    (tool.parts.input, tool.names) = (ToolParts::default().input, None);
                }
            }
        }
        self.too_long = times.too_long();
        self.diagnostics.extend(remarks);
    }
}

impl Annotated {
    /// A tool without its schemas.
    fn new(candidate: Candidate, description: String, options: &AnnotateOptions) -> Self {
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
        let in_a_line =
            |text: String| text::truncate(&text::one_line(&text), descriptions::MAX_TITLE_BYTES);
        let title = said.title.map_or(title, in_a_line);
        let tool = ToolSummary {
            name: name.into(),
            title: Some(title.into()),
            annotations: hints.to_annotations(said.annotations_title.map(in_a_line)),
            max_result_chars: options.max_result_chars,
        };
        operation.rules.takes_any_body = said.takes_any_body == Some(true);
        operation.rules.response =
            (said.response != ResponseRule::default()).then_some(said.response);
        // Said in the tool now; a call needs neither.
        (operation.summary, operation.description) = (None, None);
        clean_tags(&mut operation.tags);
        let category = said.category.or_else(|| operation.tags.first().cloned());
        Self {
            tool,
            category: category
                .map(in_a_line)
                .filter(|category| !category.is_empty()),
            keywords: said.keywords.unwrap_or_default(),
            access,
            operation,
            hints,
            must_confirm,
            wording,
            has_output: false,
            names: None,
            unruled: None,
            ruled_properties: Vec::new(),
            is_finished_on_use: false,
            parts: ToolParts {
                description,
                ..ToolParts::default()
            },
        }
    }

    /// The input schema as JSON.
    #[must_use]
    pub fn input(&self) -> &str {
        self.parts.input.get()
    }

    /// Writes the whole tool as `tools/list` has it.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        let grouping = Grouping {
            category: self.category.as_deref(),
            tags: &self.operation.tags,
        };
        write_tool(&self.tool, &self.parts, grouping)
    }

    /// Returns the approximate length of that in bytes.
    #[must_use]
    pub(crate) fn bytes(&self) -> usize {
        /// The hints and the keys around the members.
        const FRAME: usize = 220;
        let own_title = self
            .tool
            .annotations
            .as_ref()
            .and_then(|annotations| annotations.title.as_ref());
        let titles = own_title
            .into_iter()
            .chain(&self.tool.title)
            .map(|title| title.len())
            .sum::<usize>();
        FRAME + self.tool.name.len() + titles + self.parts.bytes()
    }

    /// Takes the parts that are known without the input schema, if that is made on first use.
    pub(crate) fn take_unfinished(&mut self) -> Option<UnfinishedTool> {
        self.is_finished_on_use
            .then(|| UnfinishedTool::new(std::mem::take(&mut self.parts)))
    }

    /// Makes the input schema, and gives the remarks on it.
    fn describe_input(
        &mut self,
        options: &AnnotateOptions,
        schemas: &mut Schemas<'_>,
        rule_findings: &mut RuleFindings,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let limits = &options.schemas;
        let shape = (options.files, options.filter);
        let mut completed = complete_input(&self.operation, schemas, limits, shape, &mut warnings);
        warnings.extend(completed.fit.warning(limits.budget));
        if self.operation.rules.fixed.is_empty() && self.operation.rules.arguments.is_empty() {
            self.parts.input = to_json(&completed.schema);
        } else {
            let mut ruled = rule_schema(&self.operation, &completed);
            if !ruled.absent.is_empty() && limits.budget < WHOLE_SCHEMA_BYTES {
                // What is cut off for its size may hold a property that a rule is about.
                let whole = SchemaOptions {
                    budget: WHOLE_SCHEMA_BYTES,
                    ..limits.clone()
                };
                completed =
                    complete_input(&self.operation, schemas, &whole, shape, &mut Vec::new());
                ruled = rule_schema(&self.operation, &completed);
            }
            rule_findings.note_properties(&ruled);
            self.parts.input = to_json(&ruled.shown);
            unrequire_properties(&mut completed.schema, &ruled.properties);
            self.ruled_properties = ruled.properties;
            self.unruled = Some(Arc::new(completed.schema));
        }
        self.names = completed.names.map(Arc::new);
        let remark = |warning| Diagnostic::warning(self.operation.pointer.clone(), warning);
        warnings.into_iter().map(remark).collect()
    }
}

impl AnnotatedTools {
    /// Gives the tools their output schemas, if they are offered.
    fn describe_outputs(&mut self, document: &Document, options: &AnnotateOptions) {
        self.describe_replies(document, options);
        self.tools
            .iter_mut()
            .for_each(|tool| tool.describe_shaped_output(document));
    }

    fn describe_replies(&mut self, document: &Document, options: &AnnotateOptions) {
        let inputs: usize = self.tools.iter().map(Annotated::bytes).sum();
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
            OutputSchemas::Auto if inputs > options.output_budget => self.diagnostics.push(over()),
            OutputSchemas::Auto | OutputSchemas::Lenient => {
                let mut replies = ReplyDescriber::new(document);
                let outputs: Vec<_> = self
                    .tools
                    .iter()
                    .map(|tool| {
                        replies
                            .lenient(&tool.operation)
                            .map(|schema| to_json(&schema))
                    })
                    .collect();
                let bytes: usize = outputs
                    .iter()
                    .flatten()
                    .map(|schema| schema.get().len())
                    .sum();
                if options.output == OutputSchemas::Auto && inputs + bytes > options.output_budget {
                    self.diagnostics.push(over());
                    return;
                }
                for (tool, output) in self.tools.iter_mut().zip(outputs) {
                    (tool.has_output, tool.parts.output) = (output.is_some(), output);
                }
            }
            OutputSchemas::Strict => {
                let mut schemas = Schemas::for_output(document);
                let mut replies = ReplyDescriber::new(document);
                // What an operation that takes long returns in the end may be something else than
                // its first reply.
                for tool in self
                    .tools
                    .iter_mut()
                    .filter(|tool| !tool.operation.may_wait())
                {
                    let mut warnings = Vec::new();
                    // The schema of one page may limit the length of its list.
                    let output = if tool.operation.rules.max_pages > 0 {
                        replies.lenient(&tool.operation)
                    } else {
                        strict(
                            document,
                            &tool.operation,
                            &mut schemas,
                            &options.schemas,
                            &mut warnings,
                        )
                    };
                    self.diagnostics.extend(warnings.into_iter().map(|warning| {
                        Diagnostic::warning(tool.operation.pointer.clone(), warning)
                    }));
                    (tool.has_output, tool.parts.output) =
                        (output.is_some(), output.map(|schema| to_json(&schema)));
                }
            }
        }
    }
}

impl Annotated {
    /// Describes the shaped replies in the output schema, if a rule shapes them.
    fn describe_shaped_output(&mut self, document: &Document) {
        let Some(rule) = self
            .operation
            .rules
            .response
            .as_ref()
            .filter(|_| self.has_output)
        else {
            return;
        };
        let output = ruled_output(rule, document, &self.operation);
        (self.has_output, self.parts.output) =
            (output.is_some(), output.map(|schema| to_json(&schema)));
    }
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

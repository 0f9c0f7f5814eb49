//! Makes tools of operations: name, title, description, schemas and hints. It knows the document
//! and nothing of calls.
//!
//! # Adding a hint
//!
//! - `Hint` and `Hints` in `annotate/annotations.rs`.
//! - `for_method` in `annotate/annotations.rs`: its value for each HTTP method.
//! - `review_hints` in `annotate/hint_review.rs`: what `check` advises.
//! - Its column in `cli/listing.rs`.

pub(crate) mod annotations;
pub(crate) mod candidate;
pub(crate) mod client_profile;
pub(crate) mod descriptions;
mod extension;
pub(crate) mod files;
pub(crate) mod hint_review;
pub(crate) mod input;
pub(crate) mod layers;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod overrides;
pub(crate) mod selection;
pub(crate) mod tool;
pub(crate) mod wording;

pub(crate) use self::annotations::Effect;
pub use self::annotations::{Hint, Hints, Reason, ToolAnnotations};
use self::candidate::{Candidates, offer_pages, replacements};
pub(crate) use self::client_profile::{ClientProfile, KnownClient};
pub(crate) use self::descriptions::DescriptionDetail;
pub(crate) use self::files::Files;
use self::hint_review::Restriction;
use self::layers::Candidate;
pub use self::layers::Policy;
pub(crate) use self::layers::{AccessRule, HintTrust, Layers, Rule};
pub(crate) use self::names::NameOptions;
pub use self::options::AnnotateOptions;
use self::options::OUTPUT_BUDGET;
pub use self::output::OutputSchemas;
use self::output::{ReplyDescriber, strict};
pub(crate) use self::overrides::Override;
use self::overrides::arguments::RuleFindings;
pub(crate) use self::selection::{LeftOut, Pattern, Selection, TokenShare};
pub use self::tool::Tool;
pub(crate) use self::tool::make_input;
pub(crate) use self::tool::{InputSchema, ToolParts};
use self::tool::{InputTimes, to_json};
use crate::spec::schema::Schemas;
use crate::spec::{Diagnostic, Document, Operation};

/// The tools of a document.
#[derive(Default)]
pub struct AnnotatedTools {
    /// One tool per operation that is selected, in the order of the operations.
    pub tools: Vec<(Tool, ToolParts)>,
    /// The tools that settings leave out or ask about because of their words.
    pub(crate) restrictions: Vec<Restriction>,
    /// Number of tools that are offered without a question, although the policy `strict` would call
    /// them destructive and the operator names another one.
    pub(crate) loosened: usize,
    /// The names of the tools that are left out, each with the setting that does so.
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
            let why = "`enabled: false` in `overrides`, or by an extension of the document such as `x-mcp: false`";
            annotated.left_out.push((candidate.name, why.into()));
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
            .push(Tool::new(candidate, description, options));
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
        let mut times = InputTimes::new(options, self.bytes());
        let mut schemas = Schemas::new(document);
        for (tool, parts) in &mut self.tools {
            if times.is_at_start(tool) {
                let (input, warnings) =
                    make_input(&tool.operation, options, &mut schemas, findings);
                times.add(input.json.get().len());
                parts.input = Some(input);
                self.diagnostics.extend(tool.warnings(warnings));
            }
        }
        self.too_long = times.too_long;
        if self.too_long.is_some() {
            // What was made for the list is not needed.
            for (tool, parts) in &mut self.tools {
                parts.input = parts.input.take().filter(|_| times.needs_input(tool));
            }
        }
    }

    /// Returns the approximate length of the list in bytes.
    fn bytes(&self) -> usize {
        let tools = self.tools.iter();
        tools.map(|(tool, parts)| tool.bytes(parts)).sum()
    }

    /// Gives the tools their output schemas, if they are offered.
    fn describe_outputs(&mut self, document: &Document, options: &AnnotateOptions) {
        let is_over = |bytes: usize| options.output == OutputSchemas::Auto && bytes > OUTPUT_BUDGET;
        let mut replies = ReplyDescriber::new(document);
        match options.output {
            OutputSchemas::Off => {}
            OutputSchemas::Auto | OutputSchemas::Lenient => {
                let mut bytes = self.bytes();
                if !is_over(bytes) {
                    for (tool, parts) in &mut self.tools {
                        let output = replies.lenient(&tool.operation);
                        parts.output = output.map(|schema| to_json(&schema));
                        bytes += parts.output.as_ref().map_or(0, |schema| schema.get().len());
                    }
                }
                if is_over(bytes) {
                    self.tools
                        .iter_mut()
                        .for_each(|(_, parts)| parts.output = None);
                    let what = format!(
                        "the list of tools would take more than {OUTPUT_BUDGET} bytes with output schemas, so that none are offered; `output_schemas: lenient` insists on them"
                    );
                    self.diagnostics.push(Diagnostic::note("#", what));
                }
            }
            OutputSchemas::Strict => {
                let mut schemas = Schemas::for_output(document);
                // What an operation that takes long returns in the end may be something else than
                // its first reply.
                for (tool, parts) in self
                    .tools
                    .iter_mut()
                    .filter(|(tool, _)| !tool.operation.may_wait())
                {
                    let operation = &tool.operation;
                    // The schema of one page may limit the length of its list.
                    let output = if operation.rules.max_pages > 0 {
                        replies.lenient(operation)
                    } else {
                        let own = strict(document, operation, &mut schemas, &options.schemas);
                        match operation.rules.response {
                            Some(_) => own.and_then(|_| replies.lenient(operation)),
                            None => own,
                        }
                    };
                    parts.output = output.map(|schema| to_json(&schema));
                    self.diagnostics
                        .extend(tool.warnings(schemas.take_warnings()));
                }
            }
        }
    }
}

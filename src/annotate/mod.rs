//! Operations become tools: name, title, description, schemas and hints. This part knows the document, not the calls.

pub(crate) mod annotations;
pub(crate) mod client_profile;
pub(crate) mod confirm;
pub(crate) mod descriptions;
pub(crate) mod enforcement;
mod extension;
pub(crate) mod files;
pub(crate) mod gate_names;
pub(crate) mod hint_review;
pub(crate) mod hints;
mod infer;
pub(crate) mod input;
pub(crate) mod layers;
pub(crate) mod list;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod output;
pub(crate) mod overrides;
pub(crate) mod richer;
pub(crate) mod selection;

use std::sync::Arc;

use rmcp::model::Tool;
use serde_json::{Map, Value};

use self::confirm::ConfirmLevel;
use self::enforcement::Restriction;
use self::layers::{Decision, careful_hints};
use self::list::list_budget::{ListBudget, SizedTool};
use self::list::on_use::{InputTime, InputTimes, UnfinishedTool, complete_input};
use self::list::tool_json::{Grouping, ToolParts, to_json, write_tool};
use self::overrides::arguments::{RuleFindings, rule_arguments, rules_name_arguments};
use self::overrides::ruled_schema::rule_schema;
use self::overrides::unmatched::{self, NamedOperations};
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::operation::rules::RuledProperty;
use crate::spec::schema::{Fit, SchemaOptions, Schemas, WireSchema};
use crate::spec::{Diagnostic, Document, Operation};
use crate::text;

pub use self::annotations::{Hint, Hints, Reason};
pub(crate) use self::client_profile::{ClientProfile, KnownClient};
pub(crate) use self::enforcement::Effect;
pub use self::enforcement::Enforcement;
pub(crate) use self::files::Files;
pub use self::layers::Policy;
pub(crate) use self::layers::{HintTrust, Layers, Rule};
pub(crate) use self::names::NameOptions;
pub use self::options::AnnotateOptions;
pub use self::output::OutputSchemas;
pub(crate) use self::overrides::Override;
pub(crate) use self::richer::{DescriptionDetail, split_at_replacement};
pub(crate) use self::selection::{LeftOut, Pattern, Selection};

/// The budget of a schema that is not cut for its size.
const WHOLE_SCHEMA_BYTES: usize = 4 << 20;

/// A tool and the operation it stands for.
///
/// Its schemas are kept as JSON text: as trees, those of a large API take many times the memory, and few of them are used.
pub struct Annotated {
    /// The tool without what is long: schemas and description.
    pub tool: Tool,
    /// The operation that a call makes.
    pub operation: Box<Operation>,
    /// Its hints, each with where it came from.
    pub hints: Hints,
    /// What is enforced of it.
    pub enforcement: Enforcement,
    /// Whether a person is asked before each call.
    pub must_confirm: bool,
    /// What the tool belongs to: the operation's first tag, unless a person said otherwise.
    pub category: Option<String>,
    /// Words by which a search finds it as well.
    pub keywords: Vec<String>,
    /// The name of the tool that takes the place of a deprecated one, which the description names.
    pub(crate) replacement: Option<String>,
    /// Whether an output schema is offered.
    pub has_output: bool,
    /// Where property names had to be changed: the input schema with the names on the wire noted in it.
    pub wire: Option<Box<WireSchema>>,
    /// Where rules set something for arguments: the document's input schema, with all of them.
    pub(crate) unruled: Option<Arc<Map<String, Value>>>,
    /// The properties of the body that rules are about.
    pub(crate) ruled_properties: Vec<RuledProperty>,
    /// Whether its input schema is made when it is used.
    is_finished_on_use: bool,
    /// Its long parts.
    parts: ToolParts,
}

/// The tools of a document.
#[derive(Default)]
pub struct AnnotatedTools {
    /// One tool per operation that is selected, in the order of the operations.
    pub tools: Vec<Annotated>,
    /// What the settings restrict because of names.
    pub(crate) restrictions: Vec<Restriction>,
    /// The names of the tools that are left out, each with the reason.
    pub(crate) left_out: Vec<(String, LeftOut)>,
    /// A sentence for each pattern of the settings that had to match an operation, and matches none.
    pub(crate) unmatched: Vec<String>,
    /// Remarks, such as those on schemas that had to be read loosely.
    pub diagnostics: Vec<Diagnostic>,
}

/// One tool per operation that is selected, each with the operation it stands for.
#[must_use]
pub fn annotate(document: &Document, operations: Vec<Box<Operation>>, options: &AnnotateOptions) -> AnnotatedTools {
    // Names come from all operations, so that a selection never changes the name of a tool.
    let mut names = names::names(&operations, &options.names);
    let mut diagnostics = Vec::new();
    let mut operations = operations;
    let mut rule_findings = RuleFindings::default();
    if rules_name_arguments(&options.layers) {
        let given = given_names(document, &operations, &names, options);
        rule_arguments(&mut operations, &options.layers, [&names, &given], &mut rule_findings);
    }
    let mut decisions = options.layers.author(document, &operations, &mut diagnostics);
    // Rules know a tool by the name that it has without them, and by the one that it has without anybody. The latter has no
    // prefix: one that comes with the name of an API must not change what a pattern matches.
    let own = names::without_prefix(&names, &options.names.prefix);
    names::apply_wished_names(&mut names, &operations, &decisions, &options.names, &mut diagnostics);
    let authored = names.clone();
    options.layers.operate(&mut decisions, &own, &names, &operations);
    names::apply_wished_names(&mut names, &operations, &decisions, &options.names, &mut diagnostics);
    for pattern in options.selection.idle(&own, &names, &operations) {
        diagnostics.push(Diagnostic::warning("#", format!("the pattern `{pattern}` matches no operation")));
    }
    let [ruled, selected] = [&authored, &names].map(|given| NamedOperations::new(&own, given, &operations));
    let mut unmatched = unmatched::unmatched_patterns(&options.selection, &options.confirm, selected);
    unmatched.extend(unmatched::unmatched_rules(&options.layers, ruled));
    let titles = descriptions::titles(&operations);
    let said = decisions.iter().map(|decision| &decision.said);
    diagnostics.extend(overrides::allow_slashes(&mut operations, said));
    let mut replacements = replacements(&operations, &names, &decisions, options);
    let mut schemas = Schemas::new(document);
    let mut tools = Vec::with_capacity(operations.len());
    let mut restrictions = Vec::new();
    let mut left_out = Vec::new();
    let mut list = ListBudget::new(options.list_budget, &options.schemas, options);
    let mut input_times = InputTimes {
        pins: options.on_use.as_deref(),
        prefix: &options.names.prefix,
        output_budget: (options.output == OutputSchemas::Auto).then_some(options.output_budget),
        bytes: 0,
    };
    let count = operations.len();
    let all = names.into_iter().zip(own).zip(titles).zip(operations).zip(decisions);
    for (index, ((((name, own), title), operation), decision)) in all.enumerate() {
        let Decision { hints, said } = &decision;
        if said.enabled == Some(false) {
            left_out.push((name, LeftOut::Disabled));
            continue;
        }
        let inferred = careful_hints(options.layers.local, &operation, document, hints);
        let enforcement = Enforcement::new(hints, &inferred);
        restrictions.extend(restriction([&own, &name], &operation, hints, &enforcement, options));
        if let Some(why) = options.selection.leaves_out([&own, &name], &operation, &enforcement) {
            left_out.push((name, why));
            continue;
        }
        let replacement = replacements.get_mut(index).and_then(Option::take);
        let (words, detail) = (said.description.as_deref(), said.describe.unwrap_or(options.describe));
        let description = richer::describe(document, &operation, words, &title, replacement.as_deref(), detail);
        let must_confirm = options.confirm.asks([&own, &name], &operation, &enforcement);
        tools.push(Annotated::new(
            name,
            title,
            description,
            operation,
            decision,
            enforcement,
            must_confirm,
        ));
        let count = count * tools.len() / (index + 1);
        let Some(tool) = tools.last_mut() else { continue };
        tool.replacement = replacement;
        match input_times.of(&tool.tool.name, &tool.operation) {
            InputTime::InList => list.describe_next(tool, count, &mut schemas, &mut rule_findings),
            InputTime::AtStart => {
                list.pass_over();
                diagnostics.extend(tool.describe_whole_input(options, &mut schemas, &mut rule_findings));
                input_times.bytes += tool.bytes();
            }
            InputTime::OnUse => {
                list.pass_over();
                tool.is_finished_on_use = true;
            }
        }
    }
    list.finish(&mut tools, &mut schemas, &mut diagnostics, &mut rule_findings);
    drop(schemas);
    unmatched.extend(rule_findings.into_problems());
    let mut annotated = AnnotatedTools {
        tools,
        restrictions,
        left_out,
        unmatched,
        diagnostics,
    };
    annotated.describe_outputs(document, options);
    annotated
}

/// The tools that take the place of deprecated operations, where descriptions say so.
fn replacements(operations: &[Box<Operation>], names: &[String], decisions: &[Decision], options: &AnnotateOptions) -> Vec<Option<String>> {
    let details = decisions.iter().map(|decision| decision.said.describe.unwrap_or(options.describe));
    let replacement = |(operation, detail): (&Operation, DescriptionDetail)| {
        let others = operations.iter().map(Box::as_ref).zip(names.iter().map(String::as_str));
        let found = (detail != DescriptionDetail::Plain).then(|| richer::replacement(operation, others));
        found.flatten().map(str::to_owned)
    };
    operations.iter().map(Box::as_ref).zip(details).map(replacement).collect()
}

/// The names that the document gives to operations, by which rules know them as well.
fn given_names(document: &Document, operations: &[Box<Operation>], own: &[String], options: &AnnotateOptions) -> Vec<String> {
    let mut given = own.to_vec();
    let decisions = options.layers.author(document, operations, &mut Vec::new());
    names::apply_wished_names(&mut given, operations, &decisions, &options.names, &mut Vec::new());
    given
}

/// What the settings would not do to the operation by its hints alone, but do because of a word in its name.
fn restriction(
    names: [&str; 2],
    operation: &Operation,
    hints: &Hints,
    enforcement: &Enforcement,
    options: &AnnotateOptions,
) -> Option<Restriction> {
    let word = enforcement.word()?;
    let by_hints = Enforcement::of_hints(hints);
    if !options.selection.admits(names, operation, &by_hints) {
        return None;
    }
    let is_left_out = !options.selection.admits(names, operation, enforcement);
    let asks = |enforcement: &Enforcement| options.confirm.asks(names, operation, enforcement);
    let is_asked_about = asks(enforcement) && !asks(&by_hints);
    let must_read = options.selection.read_only || options.confirm.level == ConfirmLevel::Write;
    (is_left_out || is_asked_about).then(|| Restriction {
        tool: names[1].to_owned(),
        label: text::one_line(&operation.label()),
        pointer: operation.pointer.clone(),
        word,
        frees: if must_read && by_hints.is_read_only() {
            (Hint::ReadOnly, true)
        } else {
            (Hint::Destructive, false)
        },
        is_left_out,
    })
}

impl Annotated {
    /// A tool without its schemas.
    fn new(
        name: String,
        title: String,
        description: String,
        mut operation: Box<Operation>,
        Decision { hints, said }: Decision,
        enforcement: Enforcement,
        must_confirm: bool,
    ) -> Self {
        let in_a_line = |text: String| text::truncate(&text::one_line(&text), descriptions::MAX_TITLE_BYTES);
        let title = said.title.map_or(title, in_a_line);
        let mut tool = Tool::new_with_raw(name, None, Arc::default()).with_title(title);
        tool.annotations = hints.to_annotations(said.annotations_title.map(in_a_line));
        operation.rules.response = (said.response != ResponseRule::default()).then_some(said.response);
        // Said in the tool now; a call needs neither.
        (operation.summary, operation.description) = (None, None);
        clean_tags(&mut operation.tags);
        let category = said.category.or_else(|| operation.tags.first().cloned());
        Self {
            tool,
            category: category.map(in_a_line).filter(|category| !category.is_empty()),
            keywords: said.keywords.unwrap_or_default(),
            replacement: None,
            operation,
            hints,
            must_confirm,
            enforcement,
            has_output: false,
            wire: None,
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

    /// The whole tool as it stands in `tools/list`.
    #[must_use]
    pub(crate) fn to_json(&self) -> String {
        let grouping = Grouping {
            category: self.category.as_deref(),
            tags: &self.operation.tags,
        };
        write_tool(&self.tool, &self.parts, grouping)
    }

    /// About how many bytes that is.
    #[must_use]
    pub(crate) fn estimated_bytes(&self) -> usize {
        self.bytes()
    }

    /// What is known of it without its input schema, where that is made when it is used.
    pub(crate) fn take_unfinished(&mut self) -> Option<UnfinishedTool> {
        self.is_finished_on_use
            .then(|| UnfinishedTool::new(std::mem::take(&mut self.parts)))
    }

    /// Describes the input of a tool that is not listed, and gives the remarks on it.
    fn describe_whole_input(
        &mut self,
        options: &AnnotateOptions,
        schemas: &mut Schemas<'_>,
        findings: &mut RuleFindings,
    ) -> Vec<Diagnostic> {
        let mut warnings = Vec::new();
        let fit = self.describe_input(&options.schemas, options, schemas, &mut warnings, findings);
        warnings.extend(fit.warning(options.schemas.budget));
        let remark = |warning| Diagnostic::warning(self.operation.pointer.clone(), warning);
        warnings.into_iter().map(remark).collect()
    }
}

impl SizedTool for Annotated {
    type Options = AnnotateOptions;
    type Findings = RuleFindings;

    fn describe_input(
        &mut self,
        limits: &SchemaOptions,
        options: &AnnotateOptions,
        schemas: &mut Schemas<'_>,
        warnings: &mut Vec<String>,
        rule_findings: &mut RuleFindings,
    ) -> Fit {
        let shape = (options.files, options.filter);
        let mut completed = complete_input(&self.operation, schemas, limits, shape, warnings);
        let fit = completed.fit;
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
                completed = complete_input(&self.operation, schemas, &whole, shape, &mut Vec::new());
                ruled = rule_schema(&self.operation, &completed);
            }
            rule_findings.note_properties(&ruled);
            self.parts.input = to_json(&ruled.shown);
            self.ruled_properties = ruled.properties;
            self.unruled = Some(Arc::new(completed.schema));
        }
        self.wire = completed.wire.map(|schema| Box::new(WireSchema::new(schema)));
        fit
    }

    fn bytes(&self) -> usize {
        self.bytes_without_input() + self.parts.input.get().len()
    }

    fn bytes_without_input(&self) -> usize {
        /// The hints and the keys around the members.
        const FRAME: usize = 220;
        let own_title = self.tool.annotations.as_ref().and_then(|annotations| annotations.title.as_ref());
        let titles = own_title.into_iter().chain(&self.tool.title).map(String::len).sum::<usize>();
        FRAME + self.tool.name.len() + titles + self.parts.bytes_without_input()
    }

    fn pointer(&self) -> &str {
        &self.operation.pointer
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

//! The output schemas of tools.

use crate::annotate::list::tool_json::to_json;
use crate::annotate::output::{OutputSchemas, ReplyDescriber, strict};
use crate::annotate::overrides::ruled_output::ruled_output;
use crate::annotate::{AnnotateOptions, Annotated, AnnotatedTools};
use crate::spec::schema::Schemas;
use crate::spec::{Diagnostic, Document};

impl AnnotatedTools {
    /// Gives the tools their output schemas, if they are offered.
    pub(crate) fn describe_outputs(&mut self, document: &Document, options: &AnnotateOptions) {
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

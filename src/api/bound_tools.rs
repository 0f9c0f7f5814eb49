//! Conversion of annotated tools to tools that can be called.

use std::sync::OnceLock;

use bytes::Bytes;

use super::bound_tool::{BoundTool, output_contract};
use super::tool_texts::{ToolText, ToolTexts};
use crate::annotate::{Annotated, Hint, OutputSchemas, ToolSummary};
use crate::proxy::{ArgumentRules, Binder, CallRules};
use crate::spec::Operation;
use crate::spec::operation::server::ServerError;

pub(super) struct BoundTools {
    pub(super) tools: Vec<ToolSummary>,
    pub(super) bound: Vec<BoundTool>,
    pub(super) list: Bytes,
    pub(super) first_error: Option<ServerError>,
    pub(super) problems: Vec<String>,
}

/// Returns the problem of an operation whose replies become files, in which its rules could not
/// remove anything.
fn refuse_shaped_files(operation: &Operation) -> Option<String> {
    let rule = operation.rules.response.as_ref()?;
    (rule.file == Some(true) && rule.withholds()).then(|| {
        format!(
            "the rules of `overrides` for {} have `response: {{ file: true }}` beside `fields`, `drop` or `jq`, which do not reach into files; leave out one of them",
            operation.label()
        )
    })
}

/// Returns true if results are replies as the document declares them: not reshaped, collected or of
/// another operation in the end.
fn replies_as_declared(operation: &Operation) -> bool {
    operation.rules.response.is_none() && operation.rules.max_pages == 0 && !operation.may_wait()
}

/// Binds each tool to the calls of its operation. A tool whose operation has no usable server is
/// left out; the first such error is returned as well.
pub(super) fn bind_tools(
    annotated: Vec<Annotated>,
    binder: &mut Binder<'_>,
    output: OutputSchemas,
) -> BoundTools {
    let mut tools = Vec::with_capacity(annotated.len());
    let mut bound = Vec::with_capacity(annotated.len());
    // In the place of each text until the list is complete.
    let unwritten = ToolText::default();
    let bytes = annotated.iter().map(Annotated::bytes).sum();
    let mut texts = ToolTexts::with_capacity(annotated.len(), bytes);
    let mut first_error = None;
    let mut problems = Vec::new();
    for mut annotated in annotated {
        let unfinished = annotated.take_unfinished().map(Box::new);
        let text = unfinished.is_none().then(|| annotated.to_json());
        let rules = CallRules {
            tool: annotated.tool.name.to_string().into_boxed_str(),
            repeats: annotated.hints.effective(Hint::Idempotent),
            is_read_only: annotated.hints.is_read_only(),
            is_destructive: annotated.hints.is_destructive(),
            contract: output_contract(
                annotated.has_output,
                output == OutputSchemas::Strict && replies_as_declared(&annotated.operation),
            ),
        };
        problems.extend(refuse_shaped_files(&annotated.operation));
        let ruled = annotated.unruled.map(|schema| {
            let (names, properties) = (annotated.names.clone(), annotated.ruled_properties);
            ArgumentRules::new(&annotated.operation, schema, names, properties)
        });
        let ruled = ruled.transpose().unwrap_or_else(|wrong| {
            problems.extend(wrong);
            None
        });
        match binder.bind(annotated.operation, rules) {
            Ok(mut target) => {
                texts.push(text.as_deref());
                target.rules = ruled.map(Box::new);
                tools.push(annotated.tool);
                bound.push(BoundTool {
                    target,
                    hints: annotated.hints,
                    wording: annotated.wording,
                    must_confirm: annotated.must_confirm,
                    category: annotated.category.map(String::into_boxed_str),
                    keywords: annotated.keywords.into_boxed_slice(),
                    access: annotated.access.into_boxed_slice(),
                    json: unwritten.clone(),
                    unfinished,
                    names: annotated.names,
                    checks: OnceLock::new(),
                    called: OnceLock::new(),
                });
            }
            Err(error) => {
                first_error.get_or_insert(error);
            }
        }
    }
    let (list, texts) = texts.finish();
    for (tool, text) in bound.iter_mut().zip(texts) {
        tool.json = text;
    }
    BoundTools {
        tools,
        bound,
        list,
        first_error,
        problems,
    }
}

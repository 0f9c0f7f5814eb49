//! A tool, bound to the calls of its operation.

use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use crate::annotate::{AnnotateOptions, Hint, InputSchema, OutputSchemas, Tool, ToolParts};
use crate::call_error::CallError;
use crate::json::JsonObject;
use crate::observe::call::CalledOperation;
use crate::proxy::{
    ArgumentChecks, ArgumentRules, Binder, BoundOperation, CheckedArguments, EmptyArgument,
    with_schema_names, with_wire_names,
};
use crate::results::render::OutputContract;
use crate::spec::Operation;
use crate::spec::operation::server_template::ServerError;
use crate::spec::schema::NewNames;

/// Number of tools whose texts are kept if they are made on use, and of bytes that their JSON may
/// take. Compiled validators take a multiple.
const MAX_TOOLS: usize = 256;
const MAX_BYTES: usize = 4 << 20;

/// A tool that can be called.
pub struct BoundTool {
    tool: Tool,
    /// What is decided about its calls.
    pub(crate) target: BoundOperation,
    pub(crate) input: ToolInput,
    /// Its names for those who observe calls, made on the first call.
    pub(crate) called: OnceLock<Arc<CalledOperation>>,
}

/// Time at which the input schema of a tool is made.
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all tools are made at startup"
)]
pub(crate) enum ToolInput {
    /// The start.
    Ready(ToolText),
    /// The use of the tool; until then it has these parts.
    OnUse(Box<ToolParts>),
}

/// A tool as clients get it.
#[derive(Default)]
pub(crate) struct ToolText {
    /// The tool as JSON.
    pub(crate) json: Bytes,
    /// Compiled on first use: most tools of a large API are never called.
    pub(crate) checks: OnceLock<Option<ArgumentChecks>>,
    /// The names of properties that had to be changed.
    pub(crate) names: Option<Arc<NewNames>>,
}

impl Deref for BoundTool {
    type Target = Tool;

    fn deref(&self) -> &Tool {
        &self.tool
    }
}

impl BoundTool {
    /// The whole tool as clients get it, as JSON; empty if its input schema is made on first use.
    #[must_use]
    pub fn text(&self) -> &str {
        std::str::from_utf8(self.json()).unwrap_or_default()
    }

    /// The same as bytes.
    pub(crate) fn json(&self) -> &[u8] {
        match &self.input {
            ToolInput::Ready(text) => &text.json,
            ToolInput::OnUse(_) => &[],
        }
    }

    /// The security scheme and the scopes with which it is called as the user.
    #[must_use]
    pub fn as_user(&self) -> Option<(&str, Option<&str>)> {
        self.target.asked_as_user()
    }

    /// Checks the arguments, and repairs them if that makes them valid.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn check_arguments(
        &self,
        text: &ToolText,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        // Without the argument, a call that removes things could remove more.
        let empty = if self.hints.is_destructive() {
            EmptyArgument::Kept
        } else {
            EmptyArgument::Dropped
        };
        let Some(checks) = self.checks(text) else {
            return match text.names {
                None => Ok(CheckedArguments::unchecked(arguments)),
                Some(_) => Err(CallError::Arguments(
                    "the input schema nests too deeply to be read; nothing was sent".to_owned(),
                )),
            };
        };
        let arguments = with_schema_names(arguments, text.names.as_deref(), &checks.schema)?;
        let lenient = self.target.rules.as_ref().map(|rules| &rules.lenient);
        checks.check(&self.name, Some(&self.operation), arguments, empty, lenient)
    }

    /// Checks arguments like [`Self::check_arguments`], and gives them the names on the wire.
    /// Rules for arguments use the names of the schema, and give the names on the wire themselves.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn wire_arguments(
        &self,
        text: &ToolText,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        let checked = self.check_arguments(text, arguments)?;
        let Some(checks) = self.checks(text) else {
            return Ok(checked);
        };
        let names = text
            .names
            .as_deref()
            .filter(|_| self.target.rules.is_none());
        Ok(CheckedArguments {
            arguments: with_wire_names(checked.arguments, names, &checks.schema),
            ..checked
        })
    }

    fn checks<'t>(&self, text: &'t ToolText) -> Option<&'t ArgumentChecks> {
        text.checks
            .get_or_init(|| ArgumentChecks::of_tool(&self.name, text.as_str()))
            .as_ref()
    }
}

impl ToolText {
    /// The JSON.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.json).unwrap_or_default()
    }
}

/// Binds each tool to the calls of its operation, and writes those whose input schemas exist: as
/// one text, separated by commas, of which the text of each is a slice, so that a list is sent
/// without a copy. A tool whose operation has no usable server is left out. `problems` are wrong
/// settings, in sentences.
///
/// # Errors
/// The first error of a server, if no tool is left.
pub(super) fn bind_tools(
    tools: Vec<(Tool, ToolParts)>,
    binder: &mut Binder<'_>,
    options: &AnnotateOptions,
    problems: &mut Vec<String>,
) -> Result<(Vec<BoundTool>, Bytes), ServerError> {
    let bytes = tools.iter().map(|(tool, parts)| tool.bytes(parts)).sum();
    let mut list = String::with_capacity(bytes);
    let mut places: Vec<Range<usize>> = Vec::with_capacity(tools.len());
    let mut bound = Vec::with_capacity(tools.len());
    let mut first_error = None;
    for (tool, mut parts) in tools {
        let (operation, mut input) = (&tool.operation, parts.input.take());
        problems.extend(refuse_shaped_files(operation));
        let rules = input.as_mut().and_then(|input| {
            let properties = std::mem::take(&mut input.ruled_properties);
            Some(ArgumentRules::new(
                operation,
                input.unruled.take()?,
                input.names.clone(),
                properties,
            ))
        });
        let rules = rules.transpose().unwrap_or_else(|wrong| {
            problems.extend(wrong);
            None
        });
        let mut target = match binder.bind(Arc::clone(operation), Arc::clone(&tool.name)) {
            Ok(target) => target,
            Err(error) => {
                first_error.get_or_insert(error);
                continue;
            }
        };
        target.repeats = tool.hints.effective(Hint::Idempotent);
        target.is_read_only = tool.hints.is_read_only();
        target.is_destructive = tool.hints.is_destructive();
        target.contract = output_contract(&tool, &parts, options);
        target.rules = rules.map(Box::new);
        let mut start = list.len();
        let input = match input {
            Some(InputSchema { json, names, .. }) => {
                if start > 0 {
                    list.push(',');
                    start += 1;
                }
                list.push_str(&tool.write(&parts, &json, options.max_result_chars));
                ToolInput::Ready(ToolText {
                    names,
                    ..ToolText::default()
                })
            }
            None => ToolInput::OnUse(Box::new(parts)),
        };
        places.push(start..list.len());
        bound.push(BoundTool {
            tool,
            target,
            input,
            called: OnceLock::new(),
        });
    }
    if let Some(error) = first_error.filter(|_| bound.is_empty()) {
        return Err(error);
    }
    list.shrink_to_fit();
    let list = Bytes::from(list);
    for (tool, place) in bound.iter_mut().zip(places) {
        if let ToolInput::Ready(text) = &mut tool.input {
            text.json = list.slice(place);
        }
    }
    Ok((bound, list))
}

/// Returns the contract of a tool for its results. Those that are reshaped, collected or of another
/// operation in the end are not the replies that the document declares.
fn output_contract(tool: &Tool, parts: &ToolParts, options: &AnnotateOptions) -> OutputContract {
    let rules = &tool.operation.rules;
    let is_declared =
        rules.response.is_none() && rules.max_pages == 0 && !tool.operation.may_wait();
    match &parts.output {
        None => OutputContract::None,
        Some(_) if options.output == OutputSchemas::Strict && is_declared => {
            OutputContract::AsDeclared
        }
        Some(_) => OutputContract::AnyObject,
    }
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

/// The texts of the tools that were used last, by their places in the API.
pub(super) struct RecentTexts(Mutex<LruCache<usize, Arc<ToolText>>>);

impl Default for RecentTexts {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl RecentTexts {
    pub(super) fn find(&self, place: usize) -> Option<Arc<ToolText>> {
        self.0.lock().get(&place).cloned()
    }

    pub(super) fn keep(&self, place: usize, text: &Arc<ToolText>) {
        let mut recent = self.0.lock();
        recent.put(place, Arc::clone(text));
        let mut bytes: usize = recent.iter().map(|(_, text)| text.json.len()).sum();
        while recent.len() > MAX_TOOLS || (recent.len() > 1 && bytes > MAX_BYTES) {
            let oldest = recent.pop_lru();
            bytes -= oldest.map_or(0, |(_, text)| text.json.len());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: usize) -> Arc<ToolText> {
        Arc::new(ToolText {
            json: vec![b' '; bytes].into(),
            ..ToolText::default()
        })
    }

    #[test]
    fn the_tools_used_last_stay() {
        let texts = RecentTexts::default();
        for place in 0..MAX_TOOLS {
            texts.keep(place, &text(1));
        }
        assert!(texts.find(0).is_some());
        texts.keep(MAX_TOOLS, &text(1));
        assert!(
            texts.find(0).is_some() && texts.find(1).is_none() && texts.find(MAX_TOOLS).is_some()
        );
        // One that is larger than all may be stays alone.
        texts.keep(7, &text(MAX_BYTES + 1));
        assert!(texts.find(7).is_some() && texts.find(0).is_none());
    }
}

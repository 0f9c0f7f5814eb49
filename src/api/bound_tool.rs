//! A tool, bound to the calls of its operation.

use std::sync::{Arc, OnceLock};

use crate::json::JsonObject;

use super::finished_tools::FinishedTool;
use super::tool_texts::ToolText;
use crate::annotate::input_time::UnfinishedTool;
use crate::annotate::wording::Wording;
use crate::annotate::{Hints, ToolSummary};
use crate::observe::record::CalledOperation;
use crate::proxy::{
    ArgumentChecks, BoundOperation, CallError, CheckedArguments, EmptyArgument, OutputContract,
    with_schema_names, with_wire_names,
};
use crate::spec::Operation;
use crate::spec::schema::NewNames;

/// A tool as it is offered.
#[derive(Clone, Copy)]
pub struct OfferedTool<'a> {
    /// The tool without what is long: name, title and annotations.
    pub tool: &'a ToolSummary,
    /// The operation that a call makes.
    pub operation: &'a Operation,
    /// Its hints, each with its source.
    pub hints: &'a Hints,
    /// The hints of its words.
    pub(crate) wording: &'a Wording,
    /// True if a person must confirm each call.
    pub must_confirm: bool,
    /// Category.
    pub category: Option<&'a str>,
    /// The security scheme and the scopes with which it is called as the user.
    pub as_user: Option<(&'a str, Option<&'a str>)>,
    /// Words by which a search finds it as well, which are never shown.
    pub keywords: &'a [String],
    /// The whole tool as clients get it, as JSON; empty if its input schema is made on first use.
    pub text: &'a str,
}

/// A tool with the parts that clients do not see.
pub(crate) struct BoundTool {
    /// The operation that a call makes, and what is decided about its calls.
    pub(crate) target: BoundOperation,
    pub(crate) hints: Hints,
    pub(crate) wording: Wording,
    /// True if a person must confirm each call.
    pub(crate) must_confirm: bool,
    pub(crate) category: Option<Box<str>>,
    pub(crate) keywords: Box<[String]>,
    /// The rules of `access` that a caller must meet, by their places.
    pub(crate) access: Box<[usize]>,
    /// The tool as clients get it; empty if it is not finished.
    pub(crate) json: ToolText,
    /// The known parts, if its input schema is made on first use.
    pub(crate) unfinished: Option<Box<UnfinishedTool>>,
    /// The names of properties that had to be changed.
    pub(crate) names: Option<Arc<NewNames>>,
    /// Compiled on first use: most tools of a large API are never called.
    pub(crate) checks: OnceLock<Option<ArgumentChecks>>,
    /// Its names for those who observe calls, made on the first call as well.
    pub(crate) called: OnceLock<Arc<CalledOperation>>,
}

impl BoundTool {
    pub(crate) fn offered<'a>(&'a self, tool: &'a ToolSummary) -> OfferedTool<'a> {
        OfferedTool {
            tool,
            operation: &self.target.operation,
            hints: &self.hints,
            wording: &self.wording,
            must_confirm: self.must_confirm,
            category: self.category.as_deref(),
            as_user: self.target.asked_as_user(),
            keywords: &self.keywords,
            text: self.json.as_str(),
        }
    }

    /// Checks the arguments, and repairs them if that makes them valid. `finished` is the tool if
    /// it was made on first use.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(crate) fn check_arguments(
        &self,
        tool: &ToolSummary,
        finished: Option<&FinishedTool>,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        // Without the argument, a call that removes things could remove more.
        let empty = if self.hints.is_destructive() {
            EmptyArgument::Kept
        } else {
            EmptyArgument::Dropped
        };
        let (checks, names) = self.checks(tool, finished);
        let Some(checks) = checks else {
            return match names {
                None => Ok(CheckedArguments::unchecked(arguments)),
                Some(_) => Err(CallError::Arguments(
                    "the input schema nests too deeply to be read; nothing was sent".to_owned(),
                )),
            };
        };
        let arguments = with_schema_names(arguments, names, &checks.schema)?;
        let lenient = self
            .target
            .rules
            .as_ref()
            .map(|rules| rules.lenient_places());
        checks.check(
            &tool.name,
            Some(&self.target.operation),
            arguments,
            empty,
            lenient,
        )
    }

    /// Checks arguments like [`Self::check_arguments`], and gives them the names on the wire.
    /// Rules for arguments use the names of the schema, and give the names on the wire themselves.
    ///
    /// # Errors
    /// All that is wrong with them.
    pub(super) fn wire_arguments(
        &self,
        tool: &ToolSummary,
        finished: Option<&FinishedTool>,
        arguments: JsonObject,
    ) -> Result<CheckedArguments, CallError> {
        let checked = self.check_arguments(tool, finished, arguments)?;
        let (Some(checks), names) = self.checks(tool, finished) else {
            return Ok(checked);
        };
        let names = names.filter(|_| self.target.rules.is_none());
        Ok(CheckedArguments {
            arguments: with_wire_names(checked.arguments, names, &checks.schema),
            ..checked
        })
    }

    /// The compiled input schema, and the names that had to be changed in it.
    fn checks<'t>(
        &'t self,
        tool: &ToolSummary,
        finished: Option<&'t FinishedTool>,
    ) -> (Option<&'t ArgumentChecks>, Option<&'t NewNames>) {
        let (checks, json, names) = match finished {
            Some(tool) => (&tool.checks, tool.json.as_str(), tool.names.as_ref()),
            None => (&self.checks, self.json.as_str(), self.names.as_deref()),
        };
        let checks = checks.get_or_init(|| ArgumentChecks::of_tool(&tool.name, json));
        (checks.as_ref(), names)
    }
}

/// Returns the contract of a tool for its results.
pub(crate) fn output_contract(has_output: bool, is_strict: bool) -> OutputContract {
    match (has_output, is_strict) {
        (false, _) => OutputContract::None,
        (true, true) => OutputContract::AsDeclared,
        (true, false) => OutputContract::AnyObject,
    }
}

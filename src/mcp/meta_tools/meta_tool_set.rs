//! The meta-tools of an endpoint, and their names; and the choice between a list of all operations
//! and a few meta-tools for them.

use std::sync::{Arc, OnceLock};

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::listing::{about_meta_tools, is_there, listed_kinds, write_meta_tool};
use crate::annotate::names;
use crate::annotate::names::MetaToolKind;
use crate::api::{BoundTool, ToolIndex};
use crate::json::JsonObject;
use crate::mcp::api_slot::{ListMode, ListOptions};
use crate::mcp::visible::{ListedTool, VisibleApi, VisibleApis};
use crate::proxy::{ArgumentChecks, CheckedArguments, EmptyArgument};
use crate::results::tool_result::ToolResult;
use crate::text::{MAX_DESCRIPTION_BYTES, one_line, truncate};

/// Meta-tools of an endpoint.
pub(crate) struct MetaTools {
    prefix: String,
    /// The names of the meta-tools that call operations that read, write and are destructive.
    pub(crate) calling_names: Arc<[String; 3]>,
    tools: Vec<MetaTool>,
    /// True in search mode, in which they take the place of all other tools.
    pub(crate) searches: bool,
    /// The operations that are listed beside the meta-tools, each with the index of its API.
    pub(crate) pinned: Vec<(usize, ToolIndex)>,
    /// A sentence that names the APIs of the endpoint that are missing, one of which may have what
    /// a caller means. While there is one, only its own name says which operation is meant.
    pub(super) missing_apis: Option<String>,
}

/// A meta-tool, as clients get it that may list all operations.
struct MetaTool {
    kind: MetaToolKind,
    /// The tool as JSON.
    text: Box<str>,
    /// Compiled on first use.
    checks: OnceLock<Option<ArgumentChecks>>,
}

impl MetaTools {
    /// Makes the meta-tools of an endpoint, for a client that may list all operations. In search
    /// mode, the pins of each API are listed as well.
    pub(crate) fn new(
        all: &VisibleApis,
        prefix: &str,
        searches: bool,
        missing_apis: Option<String>,
    ) -> Self {
        let pinned_of = |(place, api): (usize, &VisibleApi)| {
            let (pins, own) = (&api.api.slot.list.pins, api.api.prefix());
            let is_pinned = |offered: &BoundTool| searches && offered.is_pinned(pins, own);
            let pinned = api.operations().filter(|(_, offered)| is_pinned(offered));
            pinned.map(|(index, _)| (place, index)).collect::<Vec<_>>()
        };
        let calling = [
            MetaToolKind::CallRead,
            MetaToolKind::CallWrite,
            MetaToolKind::CallDestructive,
        ];
        Self {
            prefix: prefix.to_owned(),
            calling_names: Arc::new(calling.map(|kind| format!("{prefix}{}", kind.name()))),
            searches,
            tools: listed_kinds(all, searches)
                .map(|kind| MetaTool {
                    kind,
                    text: write_meta_tool(kind, all, prefix).into(),
                    checks: OnceLock::new(),
                })
                .collect(),
            pinned: all.apis.iter().enumerate().flat_map(pinned_of).collect(),
            missing_apis,
        }
    }

    /// Returns true if a meta-tool exists for the caller: one of its operations does.
    pub(crate) fn exists(&self, kind: MetaToolKind, seen: &VisibleApis) -> bool {
        !seen.is_restricted() || is_there(kind, self.searches, seen.existing())
    }

    /// Returns the meta-tools and the pinned operations that a caller may list.
    pub(crate) fn listed<'c>(&'c self, seen: &'c VisibleApis) -> Vec<ListedTool<'c>> {
        let listed = |kind, text| ListedTool {
            name: self.name_of(kind).into(),
            text,
        };
        let mut all: Vec<_> = if seen.is_restricted() {
            let write = |kind| listed(kind, write_meta_tool(kind, seen, &self.prefix).into());
            listed_kinds(seen, self.searches).map(write).collect()
        } else {
            let written = |tool: &'c MetaTool| listed(tool.kind, (&*tool.text).into());
            self.tools.iter().map(written).collect()
        };
        all.extend(self.pinned.iter().filter_map(|(place, index)| {
            let api = seen.apis.get(*place)?;
            let offered = api.api.tool(*index);
            api.shows(*index).then(|| ListedTool {
                name: (&*offered.name).into(),
                text: offered.text().into(),
            })
        }));
        all
    }

    /// Returns the names of the meta-tools, in the order in which they are listed.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        self.tools.iter().map(|tool| self.name_of(tool.kind))
    }

    /// Checks the arguments of a meta-tool, and repairs them if that makes them valid.
    ///
    /// # Errors
    /// The result that says what is wrong with them.
    pub(crate) fn check(
        &self,
        kind: MetaToolKind,
        arguments: Option<JsonObject>,
    ) -> Result<CheckedArguments, Box<ToolResult>> {
        let (name, arguments) = (self.name_of(kind), arguments.unwrap_or_default());
        let tool = self.tools.iter().find(|tool| tool.kind == kind);
        let checks = tool.and_then(|tool| {
            tool.checks
                .get_or_init(|| ArgumentChecks::of_tool(&name, &tool.text))
                .as_ref()
        });
        match checks {
            Some(checks) => checks
                .check(&name, None, arguments, EmptyArgument::Dropped, None)
                .map_err(|error| Box::new(ToolResult::error(error.to_string()))),
            None => Ok(CheckedArguments::unchecked(arguments)),
        }
    }

    /// Writes the instructions for clients: the three steps, the APIs, the tags.
    pub(crate) fn instructions(&self, all: &VisibleApis) -> String {
        let missing = self.missing_apis.as_deref();
        let instructions = about_meta_tools(all, &self.prefix, missing);
        truncate(&instructions, MAX_DESCRIPTION_BYTES)
    }

    /// Returns the number of listed tools for a client that may list all operations.
    pub(crate) fn count(&self) -> usize {
        self.tools.len() + self.pinned.len()
    }

    /// Returns the meta-tool of that name, if the endpoint has it.
    pub(crate) fn kind_of(&self, name: &str) -> Option<MetaToolKind> {
        let kind = names::kind_of(name.strip_prefix(self.prefix.as_str())?)?;
        self.tools
            .iter()
            .any(|tool| tool.kind == kind)
            .then_some(kind)
    }

    /// Returns the name of the meta-tool that waits, if the endpoint has it.
    pub(crate) fn wait_tool(&self) -> Option<String> {
        let has_it = self
            .tools
            .iter()
            .any(|tool| tool.kind == MetaToolKind::Wait);
        has_it.then(|| self.name_of(MetaToolKind::Wait))
    }

    /// Returns the name of a meta-tool as it is listed.
    pub(crate) fn name_of(&self, kind: MetaToolKind) -> String {
        format!("{}{}", self.prefix, kind.name())
    }
}

/// Reads arguments that fit the input schema of a meta-tool.
///
/// # Errors
/// The result that says what is wrong with them.
pub(super) fn read_request<T: DeserializeOwned>(
    arguments: JsonObject,
) -> Result<T, Box<ToolResult>> {
    let invalid = |error| {
        Box::new(ToolResult::error(format!(
            "The arguments are not valid: {error}."
        )))
    };
    serde_json::from_value(Value::Object(arguments)).map_err(invalid)
}

/// The most keys that a message of a meta-tool repeats.
const MAX_SHOWN_KEYS: usize = 5;

/// The keys of some arguments in backticks, the first of many.
pub(super) fn show_keys(arguments: &JsonObject) -> String {
    let shown = arguments.keys().take(MAX_SHOWN_KEYS);
    let mut shown: Vec<String> = shown
        .map(|key| format!("`{}`", truncate(&one_line(key).replace('`', "'"), 60)))
        .collect();
    let more = arguments.len().saturating_sub(MAX_SHOWN_KEYS);
    if more > 0 {
        shown.push(format!("and {more} more"));
    }
    shown.join(", ")
}

/// Returns true if an endpoint is served in search mode, by the choice for each of its APIs: if one
/// is, all are. The list is only counted until it is too long.
pub(crate) fn decide(all: &VisibleApis) -> bool {
    let options = || all.apis.iter().map(|api| &api.api.slot.list);
    let max_bytes = options().filter_map(ListOptions::longest_list).min();
    // An API whose list was found to be too long has no input schemas to list.
    if max_bytes == Some(0) || all.apis.iter().any(|api| api.api.is_finished_on_use()) {
        return true;
    }
    let mut bytes = 0;
    let is_long = max_bytes.is_some_and(|max_bytes| {
        all.operations().any(|(_, _, offered)| {
            bytes += offered.json().len() + 1;
            bytes > max_bytes
        })
    });
    let auto = options().filter(|options| options.mode == ListMode::Auto);
    let max_tools = auto.filter_map(|options| options.max_tools).min();
    is_long
        || max_tools.is_some_and(|tools| {
            all.operations().count() + listed_kinds(all, false).count() > tools
        })
}

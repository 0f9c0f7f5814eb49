//! The gates of an endpoint: which are listed, under which names.

use rmcp::model::{CallToolResult, ContentBlock, JsonObject};
use serde_json::Value;

use super::listing::{about_gates, effects_of, write_gates};
use crate::annotate::gate_names::{self, GateKind};
use crate::annotate::list::on_use::is_pinned;
use crate::annotate::{Effect, Pattern};
use crate::api::ToolIndex;
use crate::json;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::text::{MAX_DESCRIPTION_BYTES, nearest, one_line, truncate};

/// The gates of an endpoint.
pub(crate) struct Gates {
    prefix: String,
    /// The classes that have operations.
    effects: Vec<Effect>,
    /// The gates as clients get them that see everything, each as JSON.
    texts: Vec<Box<str>>,
    /// The operations that are listed beside the gates, each with the place of its API.
    pinned: Vec<(usize, ToolIndex)>,
    /// Whether an API of the endpoint is missing, which may have what a caller means.
    lacks_apis: bool,
}

impl Gates {
    /// The gates of what an endpoint serves; `pins` are the operations of each API that are listed as well.
    #[must_use]
    pub(crate) fn new(all: &VisibleApis<'_>, prefix: &str, pins: &[&[Pattern]]) -> Self {
        let pinned_of = |(place, api): (usize, &VisibleApi<'_>)| {
            let pins = pins.get(place).copied().unwrap_or_default();
            let own = api.api.prefix();
            let pinned = api
                .operations()
                .filter(move |(_, offered)| is_pinned(pins, &offered.tool.name, own, offered.operation));
            pinned.map(|(index, _)| (place, index)).collect::<Vec<_>>()
        };
        Self {
            prefix: prefix.to_owned(),
            texts: write_gates(all, prefix),
            effects: effects_of(all),
            pinned: all.apis.iter().enumerate().flat_map(pinned_of).collect(),
            lacks_apis: false,
        }
    }

    /// The same, while some of the endpoint's APIs are missing.
    pub(crate) fn lacking_apis(self, lacks_apis: bool) -> Self {
        Self { lacks_apis, ..self }
    }

    /// Whether an API of the endpoint is missing: then only its own name says which operation is meant.
    pub(crate) fn lacks_apis(&self) -> bool {
        self.lacks_apis
    }

    /// The gates as clients get them that see everything.
    pub(crate) fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().map(AsRef::as_ref)
    }

    /// The names of the gates, in the order in which they are listed.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        let names = GateKind::ALL.into_iter().map(move |kind| self.name_of(kind));
        names.filter(move |name| self.kind_of(name).is_some())
    }

    /// The gates as a client gets them that sees this.
    #[must_use]
    pub(crate) fn texts_for(&self, seen: &VisibleApis<'_>) -> Vec<Box<str>> {
        write_gates(seen, &self.prefix)
    }

    /// What a client is told of the server: the APIs, the three steps, the tags.
    #[must_use]
    pub(crate) fn instructions(&self, all: &VisibleApis<'_>) -> String {
        truncate(&about_gates(all, &self.prefix), MAX_DESCRIPTION_BYTES)
    }

    /// The operations that are listed beside the gates, each with the place of its API.
    pub(crate) fn pinned(&self) -> &[(usize, ToolIndex)] {
        &self.pinned
    }

    /// The names of the tools that a client is listed that sees everything.
    #[must_use]
    pub(crate) fn listed_names(&self, all: &VisibleApis<'_>) -> Vec<String> {
        let name_of = |(place, index): &(usize, ToolIndex)| Some(all.apis.get(*place)?.name_of(*index).to_owned());
        self.names().chain(self.pinned.iter().filter_map(name_of)).collect()
    }

    /// How many tools a client is listed that sees everything.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.texts.len() + self.pinned.len()
    }

    /// The gate of that name, where the endpoint has it.
    #[must_use]
    pub(crate) fn kind_of(&self, name: &str) -> Option<GateKind> {
        let kind = gate_names::kind_of(name.strip_prefix(self.prefix.as_str())?)?;
        let is_listed = kind.effect().is_none_or(|effect| self.effects.contains(&effect));
        is_listed.then_some(kind)
    }

    /// The name of a gate as it is listed.
    #[must_use]
    pub(crate) fn name_of(&self, kind: GateKind) -> String {
        format!("{}{}", self.prefix, kind.name())
    }
}

/// A result with `isError` that says what is wrong and what to do.
#[must_use]
pub(crate) fn refused(text: String) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(text)])
}

/// The strings that an argument gives: one, a list of them, or the JSON text of such a list; `None` where it is something else.
pub(super) fn read_strings(value: &Value) -> Option<Vec<String>> {
    let list = |value: &Value| -> Option<Vec<String>> {
        let items = value.as_array()?.iter();
        items.map(|item| item.as_str().map(str::to_owned)).collect()
    };
    match value {
        Value::String(text) => {
            let read = text.trim_start().starts_with('[').then(|| json::parse_text(text).ok()).flatten();
            Some(read.as_ref().and_then(list).unwrap_or_else(|| vec![text.clone()]))
        }
        other => list(other),
    }
}

/// The most keys that a message of a tool of search mode repeats.
const MAX_SHOWN_KEYS: usize = 5;

/// What is wrong with the keys of some arguments that are not among the known ones of a tool of search mode.
pub(super) fn describe_unknown_keys(arguments: &JsonObject, known: &[&str]) -> Vec<String> {
    let unknown = arguments.keys().map(String::as_str).filter(|key| !known.contains(key));
    let mut problems: Vec<String> = unknown
        .clone()
        .take(MAX_SHOWN_KEYS)
        .map(|key| {
            let shown = truncate(&one_line(key), 60);
            let hint = nearest(key, known.iter().copied(), 0.7).map(|near| format!("; did you mean `{near}`?"));
            format!("`{shown}` is not an argument of it{}", hint.unwrap_or_default())
        })
        .collect();
    let more = unknown.count().saturating_sub(MAX_SHOWN_KEYS);
    if more > 0 {
        problems.push(format!("{more} more are not"));
    }
    problems
}

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

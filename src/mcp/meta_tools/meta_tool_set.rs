//! The meta-tools of an endpoint, and their names; and `--tools`: the choice between a list of all
//! operations and a few meta-tools for them.
//!
//! The second part writes them as clients get them, and the instructions for a model.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, OnceLock};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::annotate::names::MetaToolKind;
use crate::annotate::options::MAX_LIST_BYTES;
use crate::annotate::{Effect, Pattern, names};
use crate::api::{BoundTool, ToolIndex};
use crate::json::JsonObject;
use crate::mcp::visible::{Listed, VisibleApi, VisibleApis};
use crate::proxy::{ArgumentChecks, CheckedArguments, EmptyArgument};
use crate::results::tool_result::ToolResult;
use crate::search::as_words;
use crate::text::{MAX_DESCRIPTION_BYTES, TYPICAL_BYTES_PER_TOKEN, counted, one_line, truncate};

/// Meta-tools of an endpoint.
pub(crate) struct MetaTools {
    prefix: String,
    calling_names: Arc<[String; 3]>,
    tools: Vec<MetaTool>,
    /// True in search mode, in which they take the place of all other tools.
    searches: bool,
    /// The operations that are listed beside the meta-tools, each with the index of its API.
    pub(crate) pinned: Vec<(usize, ToolIndex)>,
    /// A sentence that names the APIs of the endpoint that are missing, one of which may have what
    /// a caller means.
    missing_apis: Option<String>,
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
    /// Makes the meta-tools of an endpoint by the options of each API. In search mode, their pins
    /// are listed as well.
    pub(crate) fn new(
        all: &VisibleApis<'_>,
        prefix: &str,
        options: &[&ListOptions],
        searches: bool,
    ) -> Self {
        let pinned_of = |(place, api): (usize, &VisibleApi<'_>)| {
            let pins = options
                .get(place)
                .filter(|_| searches)
                .map(|options| options.pins.as_slice());
            let (pins, own) = (pins.unwrap_or_default(), api.api.prefix());
            let pinned = api
                .operations()
                .filter(move |(_, offered)| offered.is_pinned(pins, own));
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
            missing_apis: None,
        }
    }

    /// The same, while some of the endpoint's APIs are missing, which the sentence names.
    pub(crate) fn lacking_apis(self, missing_apis: Option<String>) -> Self {
        Self {
            missing_apis,
            ..self
        }
    }

    /// A sentence that names the APIs of the endpoint that are missing. While there is one, only
    /// its own name says which operation is meant.
    pub(crate) fn missing_apis(&self) -> Option<&str> {
        self.missing_apis.as_deref()
    }

    /// Returns true in search mode, in which they take the place of all other tools.
    pub(crate) fn searches(&self) -> bool {
        self.searches
    }

    /// Returns true if a meta-tool exists for the caller: one of its operations does.
    pub(crate) fn exists(&self, kind: MetaToolKind, seen: &VisibleApis<'_>) -> bool {
        !seen.is_restricted() || is_there(kind, self.searches, seen.existing())
    }

    /// Returns the meta-tools and the pinned operations that a caller may list.
    pub(crate) fn listed<'c>(&'c self, seen: &VisibleApis<'c>) -> Vec<Listed<'c>> {
        let listed = |kind, text| Listed::Meta(self.name_of(kind), text);
        let mut all: Vec<_> = if seen.is_restricted() {
            let write = |kind| listed(kind, write_meta_tool(kind, seen, &self.prefix).into());
            listed_kinds(seen, self.searches).map(write).collect()
        } else {
            let written = |tool: &'c MetaTool| listed(tool.kind, tool.text.as_ref().into());
            self.tools.iter().map(written).collect()
        };
        all.extend(self.pinned.iter().filter_map(|(place, index)| {
            let api = seen.apis.get(*place)?;
            api.shows(*index).then_some(Listed::Operation(*api, *index))
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
    pub(crate) fn instructions(&self, all: &VisibleApis<'_>) -> String {
        truncate(
            &about_meta_tools(all, &self.prefix, self.missing_apis()),
            MAX_DESCRIPTION_BYTES,
        )
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

    /// The names of the meta-tools that call operations that read, write and are destructive.
    pub(crate) fn calling_names(&self) -> Arc<[String; 3]> {
        Arc::clone(&self.calling_names)
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

/// The operator's choice of a list.
#[derive(
    Debug,
    Clone,
    Copy,
    Default,
    PartialEq,
    Eq,
    clap::ValueEnum,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ListMode {
    /// No choice: every operation is a tool, unless the list is longer than any client takes
    #[default]
    #[value(skip)]
    #[serde(skip)]
    Unset,
    /// Every operation as a tool
    All,
    /// A few tools that search, describe and call the operations
    Search,
    /// search if the list would be longer than `max_list_tokens`, or than the client takes
    Auto,
}

/// Number of tokens above which `auto` means search.
const MAX_LIST_TOKENS: usize = 20_000;

/// Options of the list of tools.
#[derive(Debug, Clone)]
pub(crate) struct ListOptions {
    /// Choice of the list.
    pub(crate) mode: ListMode,
    /// Number of tokens above which `auto` means search.
    pub(crate) max_tokens: usize,
    /// Number of tools that the client takes.
    pub(crate) max_tools: Option<usize>,
    /// Operations that are listed in search mode as well.
    pub(crate) pins: Vec<Pattern>,
    /// Prefix of every name.
    pub(crate) prefix: String,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self {
            mode: ListMode::default(),
            max_tokens: MAX_LIST_TOKENS,
            max_tools: None,
            pins: Vec::new(),
            prefix: String::new(),
        }
    }
}

impl ListOptions {
    /// Returns the longest list in which every operation is a tool, in bytes; `None` if there is no
    /// limit.
    fn longest_list(&self) -> Option<usize> {
        match self.mode {
            ListMode::All => None,
            ListMode::Search => Some(0),
            ListMode::Auto => Some(self.max_tokens.saturating_mul(TYPICAL_BYTES_PER_TOKEN)),
            ListMode::Unset => Some(MAX_LIST_BYTES),
        }
    }
}

/// Returns true if an endpoint is served in search mode, by the choice for each of its APIs: if one
/// is, all are. The list is only counted until it is too long.
pub(crate) fn decide(options: &[&ListOptions], all: &VisibleApis<'_>) -> bool {
    let max_bytes = options
        .iter()
        .filter_map(|options| options.longest_list())
        .min();
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
    let auto = options
        .iter()
        .filter(|options| options.mode == ListMode::Auto);
    let max_tools = auto.filter_map(|options| options.max_tools).min();
    is_long
        || max_tools.is_some_and(|tools| {
            all.operations().count() + listed_kinds(all, false).count() > tools
        })
}

/// The most characters of a query or a tag, as `meta_tools.json` has it: the work of a search grows
/// with its words.
pub(crate) const MAX_QUERY_LENGTH: usize = 2000;
/// Largest number of bytes of tags or nouns in a description.
const MAX_TAGS_BYTES: usize = 700;
/// Number of segments of paths that represent the resources of an API without tags.
const MAX_NOUNS: usize = 60;
/// The longest title of one of several APIs, in bytes.
const MAX_TITLE_BYTES: usize = 60;

/// The classes that have operations, the most harmless first.
fn effects_of(seen: &VisibleApis<'_>) -> Vec<Effect> {
    let has = |effect: &Effect| {
        seen.operations()
            .any(|(_, _, offered)| offered.hints.effect() == *effect)
    };
    Effect::ALL.into_iter().filter(has).collect()
}

/// Returns true if a meta-tool is there for an endpoint, or for a caller, with these operations.
pub(super) fn is_there<'a>(
    kind: MetaToolKind,
    searches: bool,
    mut operations: impl Iterator<Item = &'a BoundTool>,
) -> bool {
    match kind {
        MetaToolKind::Search | MetaToolKind::Describe => searches && operations.next().is_some(),
        MetaToolKind::CallRead | MetaToolKind::CallWrite | MetaToolKind::CallDestructive => {
            searches
                && operations.any(|offered| MetaToolKind::of_effect(offered.hints.effect()) == kind)
        }
        MetaToolKind::Wait => operations.any(|offered| offered.operation.says_how_to_wait()),
    }
}

/// Returns the reason for which a meta-tool is not there, in words that follow its name.
pub(crate) fn why_meta_tool_is_missing(kind: MetaToolKind) -> &'static str {
    match kind {
        MetaToolKind::Wait => "is there if an operation is known to take long, and none is",
        _ => "is a tool of search mode, which --tools search turns on",
    }
}

/// The meta-tools that are listed: in search mode search, describe, and a call for each class that
/// has operations; and one that waits, if an operation may need it.
pub(super) fn listed_kinds(
    seen: &VisibleApis<'_>,
    searches: bool,
) -> impl Iterator<Item = MetaToolKind> {
    let operations = || seen.operations().map(|(_, _, offered)| offered);
    MetaToolKind::ALL
        .into_iter()
        .filter(move |kind| is_there(*kind, searches, operations()))
}

/// Writes a meta-tool as JSON.
pub(super) fn write_meta_tool(kind: MetaToolKind, seen: &VisibleApis<'_>, prefix: &str) -> String {
    static TEXTS: LazyLock<JsonObject> =
        LazyLock::new(|| serde_json::from_str(include_str!("meta_tools.json")).unwrap_or_default());
    let name = |kind: MetaToolKind| format!("{prefix}{}", kind.name());
    let mut tool = JsonObject::from_iter([("name".to_owned(), name(kind).into())]);
    let texts = TEXTS.get(kind.name()).and_then(Value::as_object);
    tool.extend(texts.cloned().unwrap_or_default());
    if let Some(Value::String(text)) = tool.get_mut("description") {
        *text = text
            .replace("{search}", &name(MetaToolKind::Search))
            .replace("{describe}", &name(MetaToolKind::Describe));
        if kind == MetaToolKind::Search {
            let steps = three_steps(prefix, &effects_of(seen));
            let (title, words) = (title_of(seen), vocabulary(seen));
            *text = format!("Finds operations of {title}. {steps} {text} {words}");
        }
    }
    if kind == MetaToolKind::Search
        && seen.names_apis
        && let Some(Value::Object(schema)) = tool.get_mut("inputSchema")
        && let Some(Value::Object(properties)) = schema.get_mut("properties")
    {
        let names: Vec<&str> = seen.apis.iter().filter_map(VisibleApi::label).collect();
        let api = json!({"enum": names, "description": "Only operations of this API"});
        properties.insert("api".into(), api);
    }
    let mut apis = seen.apis.iter();
    if let Some(characters) = apis.find_map(|api| api.api.options.max_result_chars) {
        let meta = json!({ "anthropic/maxResultSizeChars": characters });
        tool.insert("_meta".into(), meta);
    }
    Value::Object(tool).to_string()
}

/// Describes the use of the meta-tools in one sentence.
fn three_steps(prefix: &str, effects: &[Effect]) -> String {
    let calls: Vec<String> = effects
        .iter()
        .map(|effect| format!("{prefix}{}", MetaToolKind::of_effect(*effect).name()))
        .collect();
    let calls = match calls.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "another tool".to_owned(),
    };
    format!(
        "Three steps: {prefix}{} finds operations, {prefix}{} describes their arguments, {calls} calls one, by the effect that its hit shows.",
        MetaToolKind::Search.name(),
        MetaToolKind::Describe.name()
    )
}

/// The title of the only API, or the names of several with theirs.
fn title_of(seen: &VisibleApis<'_>) -> String {
    let title = |api: &crate::api::Api, most| truncate(&as_words(api.title()), most);
    match seen.apis.as_slice() {
        [only] if !seen.names_apis => title(only.api, 100),
        apis => {
            let named = apis.iter().filter_map(|api| {
                Some(format!(
                    "{} ({})",
                    api.label()?,
                    title(api.api, MAX_TITLE_BYTES)
                ))
            });
            let listed = fitting("", named);
            format!(
                "{}: {}",
                counted(apis.len(), "API"),
                listed.trim_end_matches('.')
            )
        }
    }
}

/// Writes the instructions of the server in search mode: the steps and missing APIs first, because
/// some clients cut the rest.
pub(crate) fn about_meta_tools(
    seen: &VisibleApis<'_>,
    prefix: &str,
    missing: Option<&str>,
) -> String {
    // Of a list that depends on the caller, neither counts nor effects: they are the same text for
    // every caller.
    let (count, effects, vocabulary) = if seen.apis.iter().all(|api| api.of.access.is_none()) {
        (
            counted(seen.operations().count(), "operation"),
            effects_of(seen),
            vocabulary(seen),
        )
    } else {
        ("Operations".to_owned(), Vec::new(), String::new())
    };
    format!(
        "{count} behind a few tools; each call makes one HTTP request to its API. {} {}{}They are of {}. {vocabulary}",
        three_steps(prefix, &effects),
        missing.unwrap_or_default(),
        if missing.is_some() { " " } else { "" },
        title_of(seen),
    )
    .trim_end()
    .to_owned()
}

/// Returns the tags with counts, or the most frequent nouns of the paths if there are no tags.
pub(crate) fn vocabulary(seen: &VisibleApis<'_>) -> String {
    let tags = tag_counts(seen);
    if tags.len() > 1 {
        let listed = tags
            .iter()
            .map(|(tag, count)| format!("{} ({count})", as_words(tag)));
        return fitting("Tags: ", listed);
    }
    fitting(
        "The paths speak of: ",
        frequent_nouns(seen).into_iter().map(as_words),
    )
}

/// Returns as many of the words as fit, after `head`.
fn fitting(head: &str, words: impl Iterator<Item = String>) -> String {
    let mut out = head.to_owned();
    let mut left_out = 0;
    for word in words {
        if out.len() + word.len() > MAX_TAGS_BYTES {
            left_out += 1;
            continue;
        }
        if out.len() > head.len() {
            out.push_str(", ");
        }
        out.push_str(&word);
    }
    if left_out > 0 {
        out.push_str(&format!(", and {left_out} more"));
    }
    out.push('.');
    out
}

/// Returns the number of tools of each tag, the most frequent first, equals in the order of the
/// document.
pub(crate) fn tag_counts<'c>(seen: &VisibleApis<'c>) -> Vec<(&'c str, usize)> {
    let tags = seen
        .operations()
        .flat_map(|(_, _, offered)| offered.operation.tags.iter().map(String::as_str));
    counted_words(tags)
}

/// The segments of paths that most operations have.
fn frequent_nouns<'c>(seen: &VisibleApis<'c>) -> Vec<&'c str> {
    let segments = seen
        .operations()
        .flat_map(|(_, _, offered)| offered.operation.path.split('/'));
    let nouns = segments.filter(|segment| segment.len() > 2 && !segment.contains('{'));
    let mut counts = counted_words(nouns);
    counts.truncate(MAX_NOUNS);
    counts.into_iter().map(|(noun, _)| noun).collect()
}

fn counted_words<'a>(words: impl Iterator<Item = &'a str>) -> Vec<(&'a str, usize)> {
    let mut places: HashMap<&str, usize> = HashMap::new();
    let mut counts: Vec<(&str, usize)> = Vec::new();
    for word in words {
        let place = *places.entry(word).or_insert(counts.len());
        match counts.get_mut(place) {
            Some((_, count)) => *count += 1,
            None => counts.push((word, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_meta_tool_has_its_texts() {
        let seen = VisibleApis {
            apis: Vec::new(),
            names_apis: false,
        };
        for kind in MetaToolKind::ALL {
            let tool: Value = serde_json::from_str(&write_meta_tool(kind, &seen, "")).unwrap();
            assert!(tool["title"].is_string() && tool["description"].is_string());
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool["annotations"].as_object().unwrap().len(), 4);
            let longest = tool.pointer("/inputSchema/properties/tag/maxLength");
            assert!(longest.is_none_or(|longest| *longest == MAX_QUERY_LENGTH));
        }
    }
}

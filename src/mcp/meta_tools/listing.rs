//! The meta-tools as clients get them: which are there, their hints, descriptions and schemas, and
//! the instructions for a model.

use std::collections::HashMap;

use serde_json::{Value, json};

use crate::annotate::names::MetaToolKind;
use crate::annotate::{Effect, ToolAnnotations};
use crate::api::BoundTool;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::search::as_words;
use crate::text::{counted, truncate};

/// The most characters of a query or a tag: the work of a search grows with its words.
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
        MetaToolKind::Search
        | MetaToolKind::Describe
        | MetaToolKind::CallRead
        | MetaToolKind::CallWrite
        | MetaToolKind::CallDestructive => {
            "is a tool of search mode, which --tools search turns on"
        }
        MetaToolKind::Wait => "is there if an operation is known to take long, and none is",
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
    let [search, describe] = [MetaToolKind::Search, MetaToolKind::Describe]
        .map(|kind| format!("{prefix}{}", kind.name()));
    // readOnly, destructive, idempotent, openWorld: true of every operation that the meta-tool
    // calls.
    let (hints, title, description, schema) = match kind {
        MetaToolKind::Search => (
            [true, false, true, false],
            "Search operations",
            format!(
                "Finds operations of {}. {} Ask once per step of the task, in the words of this API's reference; if nothing fits, ask \
                 again in other words. In a hit, `needs: id <- operation` names the operation that yields an identifier. {}",
                title_of(seen),
                three_steps(prefix, &effects_of(seen)),
                vocabulary(seen)
            ),
            search_schema(seen),
        ),
        MetaToolKind::Describe => (
            [true, false, true, false],
            "Describe operations",
            format!("Describes the arguments of operations that {search} has found, and the tool that calls each."),
            describe_schema(),
        ),
        MetaToolKind::CallRead => (
            [true, false, true, true],
            "Call an operation that reads",
            format!("Calls an operation whose effect is `read`: it changes nothing. {describe} describes its arguments."),
            call_schema(),
        ),
        MetaToolKind::CallWrite => (
            [false, false, false, true],
            "Call an operation that adds",
            format!(
                "Calls an operation whose effect is `write`: it adds something, and removes nothing. {describe} describes its arguments."
            ),
            call_schema(),
        ),
        MetaToolKind::CallDestructive => (
            [false, true, false, true],
            "Call an operation that changes or removes",
            format!(
                "Calls an operation whose effect is `destructive`: it may change or remove what exists. {describe} describes its arguments."
            ),
            call_schema(),
        ),
        MetaToolKind::Wait => (
            [true, false, true, true],
            "Wait for an operation",
            "Waits for an operation that was accepted and is not done yet, and returns its result. Starts nothing.".to_owned(),
            wait_schema(),
        ),
    };
    let [read_only, destructive, idempotent, open_world] = hints;
    let annotations = ToolAnnotations {
        title: None,
        read_only_hint: Some(read_only),
        destructive_hint: Some(destructive),
        idempotent_hint: Some(idempotent),
        open_world_hint: Some(open_world),
    };
    let mut tool = json!({
        "name": format!("{prefix}{}", kind.name()),
        "title": title,
        "description": description,
        "inputSchema": schema,
        "annotations": annotations,
    });
    let max_result_chars = seen
        .apis
        .iter()
        .find_map(|api| api.api.options.max_result_chars);
    if let (Some(characters), Some(members)) = (max_result_chars, tool.as_object_mut()) {
        members.insert(
            "_meta".into(),
            json!({ "anthropic/maxResultSizeChars": characters }),
        );
    }
    tool.to_string()
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

fn search_schema(seen: &VisibleApis<'_>) -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "queries": {
                "type": "array", "items": {"type": "string", "maxLength": MAX_QUERY_LENGTH}, "maxItems": 5,
                "description": "One question for each step of the task, as \"list open issues of a repository\"; without any, the tags are listed"
            },
            "tag": {"type": "string", "maxLength": MAX_QUERY_LENGTH, "description": "Only operations with this tag"},
            "effect": {"enum": ["read", "write", "destructive"], "description": "Only operations of this class"},
            "limit": {"type": "integer", "minimum": 1, "maximum": 25, "description": "Hits for each query [default: 8 for one query, fewer for several]"},
            "offset": {"type": "integer", "minimum": 0, "description": "How many hits to pass over; with one query only"}
        },
        "additionalProperties": false
    });
    if seen.names_apis
        && let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut)
    {
        let names: Vec<&str> = seen.apis.iter().filter_map(VisibleApi::label).collect();
        properties.insert(
            "api".into(),
            json!({"enum": names, "description": "Only operations of this API"}),
        );
    }
    schema
}

fn describe_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "names": {
                "type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 10,
                "description": "Names of operations, as search shows them"
            },
            "detail": {"enum": ["signature", "schema"], "default": "signature", "description": "A compact form, or the exact JSON Schema"}
        },
        "required": ["names"],
        "additionalProperties": false
    })
}

fn wait_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "handle": {"type": "string", "description": "Exactly as the result of the call has it"},
            "wait": {"type": "boolean", "default": true, "description": "False: returns the status at once"}
        },
        "required": ["handle"],
        "additionalProperties": false
    })
}

fn call_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "operation": {"type": "string", "description": "The name of the operation, as search shows it"},
            "arguments": {"type": "object", "description": "The arguments of the operation"}
        },
        "required": ["operation"]
    })
}

//! The meta-tools as clients get them: which are there, their hints, descriptions and schemas, and
//! the instructions for a model.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde_json::{Value, json};

use crate::annotate::Effect;
use crate::annotate::names::MetaToolKind;
use crate::api::BoundTool;
use crate::json::JsonObject;
use crate::mcp::visible::{VisibleApi, VisibleApis};
use crate::search::as_words;
use crate::text::{counted, truncate};

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
fn effects_of(seen: &VisibleApis) -> Vec<Effect> {
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
    seen: &VisibleApis,
    searches: bool,
) -> impl Iterator<Item = MetaToolKind> {
    let operations = || seen.operations().map(|(_, _, offered)| offered);
    MetaToolKind::ALL
        .into_iter()
        .filter(move |kind| is_there(*kind, searches, operations()))
}

/// Writes a meta-tool as JSON.
pub(super) fn write_meta_tool(kind: MetaToolKind, seen: &VisibleApis, prefix: &str) -> String {
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
fn title_of(seen: &VisibleApis) -> String {
    let title = |api: &crate::api::Api, most| truncate(&as_words(api.title()), most);
    match seen.apis.as_slice() {
        [only] if !seen.names_apis => title(&only.api, 100),
        apis => {
            let named = apis.iter().filter_map(|api| {
                Some(format!(
                    "{} ({})",
                    api.label()?,
                    title(&api.api, MAX_TITLE_BYTES)
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
pub(crate) fn about_meta_tools(seen: &VisibleApis, prefix: &str, missing: Option<&str>) -> String {
    // Of a list that depends on the caller, neither counts nor effects: they are the same text for
    // every caller.
    let (count, effects, vocabulary) = if seen.apis.iter().all(|api| api.api.access.is_none()) {
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
pub(crate) fn vocabulary(seen: &VisibleApis) -> String {
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
pub(crate) fn tag_counts(seen: &VisibleApis) -> Vec<(&str, usize)> {
    let tags = seen
        .operations()
        .flat_map(|(_, _, offered)| offered.operation.tags.iter().map(String::as_str));
    counted_words(tags)
}

/// The segments of paths that most operations have.
fn frequent_nouns(seen: &VisibleApis) -> Vec<&str> {
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

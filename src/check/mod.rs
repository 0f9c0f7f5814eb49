//! `openapi-mcp check`: everything that serving a document would bring to light, as one report.

pub(crate) mod format;

use std::collections::{HashMap, HashSet};

use serde::Serialize;

use crate::annotate::ClientProfile;
use crate::annotate::hint_review::{self, HintSeverity};
use crate::api::{Api, OfferedTool};
use crate::spec::node::Node;
use crate::spec::{Diagnostic, Document, Severity, Span, pointer};

/// How many of the dearest tools are named.
const MAX_LARGEST_TOOLS: usize = 10;
/// About how many bytes of JSON make a token.
const TYPICAL_BYTES_PER_TOKEN: usize = 4;

/// What was found.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// Where the document came from.
    pub source: String,
    /// Its title.
    pub title: String,
    /// How many operations became tools.
    pub tools: usize,
    /// How many of them are marked as read-only.
    pub read_only: usize,
    /// How many bytes the answer of `tools/list` takes.
    pub bytes: usize,
    /// About how many tokens that is.
    pub tokens: usize,
    /// The tools that take the most bytes.
    pub dearest: Vec<Cost>,
    /// Errors first, then warnings, then advice.
    pub findings: Vec<Finding>,
}

/// What one tool takes.
#[derive(Debug, Serialize)]
pub(crate) struct Cost {
    /// The tool's name.
    pub tool: String,
    /// Its bytes in the list.
    pub bytes: usize,
}

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FindingSeverity {
    /// An operation is not served.
    Error,
    /// Something is read differently from how it is written, or a client will not take it.
    Warning,
    /// A thought for whoever decides.
    Note,
}

/// One finding.
#[derive(Debug, Serialize)]
pub(crate) struct Finding {
    /// How much it weighs.
    pub level: FindingSeverity,
    /// What kind it is: `document`, `client` or `annotation`.
    pub rule: &'static str,
    /// What, and what to do.
    pub message: String,
    /// Where, as a JSON Pointer fragment.
    pub pointer: String,
    /// The file, where it is not the document itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<usize>,
}

impl Report {
    /// How many findings have that level.
    #[must_use]
    pub(crate) fn count(&self, level: FindingSeverity) -> usize {
        self.findings.iter().filter(|finding| finding.level == level).count()
    }
}

/// Looks at an API and at what was found while it was built, with the eyes of a client. `local` is the operator's word that
/// the API deals with nothing outside.
#[must_use]
pub(crate) fn check(source: String, api: &Api, diagnostics: &[Diagnostic], profile: &ClientProfile, local: bool) -> Report {
    let document = api.document();
    let at: HashMap<&str, Span> = api
        .iter()
        .filter_map(|offered| Some((offered.operation.pointer.as_str(), offered.operation.span?)))
        .collect();
    let mut found: Vec<(&'static str, Diagnostic)> = diagnostics
        .iter()
        .cloned()
        .chain(twice(document))
        .map(|diagnostic| ("document", diagnostic))
        .collect();
    for OfferedTool {
        tool,
        operation,
        hints,
        text,
        ..
    } in api.iter()
    {
        if tool.name.len() > profile.longest_name {
            let message = format!(
                "the tool name `{}` has {} characters, of which {} may have to cut some; --max-tool-name-length {} shortens it",
                tool.name,
                tool.name.len(),
                profile.name,
                profile.longest_name
            );
            found.push(("client", Diagnostic::warning(operation.pointer.clone(), message)));
        }
        if !profile.knows_references && text.contains("\"$defs\":") {
            let message = format!(
                "the input schema of `{}` refers to `$defs`, which {} does not understand",
                tool.name, profile.name
            );
            found.push(("client", Diagnostic::warning(operation.pointer.clone(), message)));
        }
        for (weight, message) in hint_review::review_hints(operation, hints, document, local) {
            let place = operation.pointer.clone();
            found.push((
                "annotation",
                match weight {
                    HintSeverity::Note => Diagnostic::note(place, message),
                    HintSeverity::Warning => Diagnostic::warning(place, message),
                },
            ));
        }
    }
    for restriction in api.restrictions() {
        let diagnostic = Diagnostic::warning(restriction.pointer.clone(), restriction.explain());
        found.push(("annotation", diagnostic));
    }
    if let Some(most) = profile.most_tools.filter(|most| api.tools().len() > *most) {
        let message = format!(
            "{} takes at most {most} tools, and these are {}; choose some with --tool-include",
            profile.name,
            api.tools().len()
        );
        found.push(("client", Diagnostic::warning("#", message)));
    }
    for (_, diagnostic) in &mut found {
        diagnostic.span = diagnostic.span.or_else(|| at.get(diagnostic.pointer.as_str()).copied());
    }
    let places = document.places_of(&found.iter().map(|(_, diagnostic)| diagnostic).collect::<Vec<_>>());
    let mut findings: Vec<Finding> = found
        .iter()
        .zip(places)
        .map(|((rule, diagnostic), place)| finding(rule, diagnostic, place))
        .collect();
    findings.sort_by_key(|finding| finding.level);
    let bytes = api.texts().map(|text| text.len() + 1).sum::<usize>() + 1;
    let mut dearest: Vec<Cost> = api
        .tools()
        .iter()
        .zip(api.texts())
        .map(|(tool, text)| Cost {
            tool: tool.name.to_string(),
            bytes: text.len(),
        })
        .collect();
    dearest.sort_by_key(|cost| std::cmp::Reverse(cost.bytes));
    dearest.truncate(MAX_LARGEST_TOOLS);
    Report {
        source,
        title: crate::text::one_line(document.title()),
        tools: api.tools().len(),
        read_only: api.iter().filter(|offered| offered.hints.is_read_only()).count(),
        bytes,
        tokens: bytes / TYPICAL_BYTES_PER_TOKEN,
        dearest,
        findings,
    }
}

fn finding(rule: &'static str, diagnostic: &Diagnostic, place: Option<(&str, usize, usize)>) -> Finding {
    let level = match diagnostic.severity {
        Severity::Error => FindingSeverity::Error,
        Severity::Warning => FindingSeverity::Warning,
        Severity::Note => FindingSeverity::Note,
    };
    Finding {
        level,
        rule,
        message: diagnostic.message.clone(),
        pointer: diagnostic.pointer.clone(),
        file: place.map(|(file, ..)| file.to_owned()).filter(|file| !file.is_empty()),
        line: place.map(|(_, line, _)| line),
        column: place.map(|(.., column)| column),
    }
}

/// The keys that an object has twice, in any of the document's files, at their second use.
fn twice(document: &Document) -> Vec<Diagnostic> {
    const MAX_DUPLICATE_KEYS: usize = 100;
    let mut found = Vec::new();
    let mut open: Vec<(String, Node<'_>)> = document.files().iter().rev().map(|file| ("#".to_owned(), file.root())).collect();
    while let Some((place, node)) = open.pop() {
        if found.len() >= MAX_DUPLICATE_KEYS {
            break;
        }
        if let Some(object) = node.object() {
            let mut keys = HashSet::new();
            for (key, inner) in object.iter() {
                let is_second = !keys.insert(key);
                let is_large = inner.text().starts_with(['{', '[']);
                if !is_second && !is_large {
                    continue;
                }
                let mut place = place.clone();
                pointer::push(&mut place, key);
                if is_second {
                    let mut diagnostic = Diagnostic::warning(place.clone(), "this key is written twice; the last one counts");
                    diagnostic.span = Some(inner.span());
                    found.push(diagnostic);
                }
                if is_large {
                    open.push((place, inner));
                }
            }
        } else if let Some(items) = node.array() {
            for (index, inner) in items
                .into_iter()
                .enumerate()
                .filter(|(_, inner)| inner.text().starts_with(['{', '[']))
            {
                let mut place = place.clone();
                pointer::push_index(&mut place, index);
                open.push((place, inner));
            }
        }
    }
    found
}

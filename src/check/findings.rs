//! Findings: in the document, for a client, and in the hints.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use super::cost::list_warnings;
use super::document_faults::{DanglingReferences, add_duplicate_keys, add_misspelled_keys};
use super::walk::{ObjectKind, each_object};
use crate::annotate::ClientProfile;
use crate::annotate::hint_review::{HintAdvice, review_hints};
use crate::api::{Api, BoundTool};
use crate::spec::{Diagnostic, Document, Severity, Span};
use crate::text::counted;

/// One finding.
#[derive(Serialize)]
pub(crate) struct Finding {
    /// Severity.
    pub(crate) level: Severity,
    /// Kind: `document`, `client` or `annotation`.
    pub(crate) rule: &'static str,
    /// Problem and advice.
    pub(crate) message: String,
    /// The rule for `overrides` that follows the advice, as YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suggestion: Option<String>,
    /// Location as a JSON Pointer fragment.
    pub(crate) pointer: String,
    /// The file, if it is not the document itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<String>,
    /// The line, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    /// The column, from 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<usize>,
    /// Its place, if that is known before the line is.
    #[serde(skip)]
    span: Option<Span>,
    /// True if an operation is more dangerous by its name than by its served hints.
    #[serde(skip)]
    pub(crate) is_understated: bool,
    /// The word of the operation that it is about: findings are grouped by it.
    #[serde(skip)]
    pub(crate) word: Option<&'static str>,
}

impl Finding {
    /// A finding whose line and column are still to be looked up.
    fn new(rule: &'static str, diagnostic: Diagnostic) -> Self {
        Self {
            level: diagnostic.severity,
            rule,
            message: diagnostic.message,
            suggestion: None,
            pointer: diagnostic.pointer,
            file: None,
            line: None,
            column: None,
            span: diagnostic.span,
            is_understated: false,
            word: None,
        }
    }

    /// The message with what to do about it, for formats that have no other place for that.
    pub(crate) fn whole_message(&self) -> String {
        match &self.suggestion {
            Some(rule) => format!(
                "{}; if that is right, add this rule to `overrides` in the configuration file: - {rule}",
                self.message
            ),
            None => self.message.clone(),
        }
    }
}

/// Returns findings about the document: values that were read differently from how they are
/// written, repeated and misspelled keys, and references without a target.
pub(super) fn of_document(document: &Document, diagnostics: &[Diagnostic]) -> Vec<Finding> {
    let (mut twice, mut misspelled) = (Vec::new(), Vec::new());
    let mut dangling = DanglingReferences::new(document, diagnostics);
    let version = document.version();
    for (number, file) in document.files.iter().enumerate() {
        let root = (number == 0).then_some(ObjectKind::ROOT);
        each_object(file.root(), root, version, |object| {
            add_duplicate_keys(object, &mut twice);
            add_misspelled_keys(object, version, &mut misspelled);
            dangling.add(object);
        });
    }
    [diagnostics.to_vec(), twice, misspelled, dangling.found]
        .into_iter()
        .flatten()
        .map(|diagnostic| Finding::new("document", diagnostic))
        .collect()
}

/// Returns findings about a tool for the client.
pub(super) fn of_client(offered: &BoundTool, profile: &ClientProfile) -> Vec<Finding> {
    let mut messages = Vec::new();
    let name = &offered.name;
    if name.len() > profile.max_name_bytes {
        messages.push(format!(
            "the tool name `{name}` has {}, and {} may cut it; `max_tool_name_length: {}` shortens it",
            counted(name.len(), "character"),
            profile.name,
            profile.max_name_bytes
        ));
    }
    if !profile.knows_references && offered.text().contains("\"$defs\":") {
        messages.push(format!(
            "the input schema of `{name}` refers to `$defs`, which {} does not understand",
            profile.name
        ));
    }
    let warnings = offered.warnings(messages);
    warnings
        .map(|warning| Finding::new("client", warning))
        .collect()
}

/// Returns contradictions between the name of an operation and its hints, and among the hints.
pub(super) fn of_hints(offered: &BoundTool) -> Vec<Finding> {
    let finding = |advice: HintAdvice| Finding {
        suggestion: advice.rule,
        is_understated: advice.is_understated,
        word: advice.word,
        ..Finding::new("annotation", advice.diagnostic)
    };
    let advice = review_hints(&offered.operation, &offered.hints, &offered.wording);
    advice.into_iter().map(finding).collect()
}

/// The masks of rules, each set of them with how many tools it concerns.
pub(super) fn of_masks(api: &Api) -> Vec<Finding> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for rule in api
        .tools()
        .iter()
        .filter_map(|tool| tool.operation.rules.response.as_ref())
    {
        *counts.entry(rule.mask_names()).or_default() += 1;
    }
    counts.remove("");
    let all = counts.into_iter().map(|(names, count)| {
        let tools = counted(count, "tool");
        let text = format!("the replies of {tools} are masked: {names}");
        Finding::new("document", Diagnostic::note("#", text))
    });
    all.collect()
}

/// Returns the operations that are left out or asked about because of their words.
pub(super) fn of_restrictions(api: &Api) -> Vec<Finding> {
    let all = api.restrictions.iter();
    all.map(|restriction| {
        let diagnostic = Diagnostic::warning(restriction.pointer.clone(), restriction.explain());
        Finding {
            is_understated: true,
            word: restriction.word,
            ..Finding::new("annotation", diagnostic)
        }
    })
    .collect()
}

/// Returns a finding if there is no tool.
pub(super) fn of_missing_tools(api: &Api) -> Option<Finding> {
    api.tools().is_empty().then(|| {
        let message = "there is no tool: the document describes no operation, or --tool-include, --tool-exclude, --read-only, --no-destructive and `overrides` leave all of them out";
        Finding::new("document", Diagnostic::error("#/paths", message))
    })
}

/// Returns findings about the whole list for the client.
pub(super) fn of_list(
    tools: usize,
    tokens: usize,
    profile: &ClientProfile,
) -> impl Iterator<Item = Finding> {
    let warnings = list_warnings(tools, tokens, profile).into_iter();
    warnings.map(|message| Finding::new("client", Diagnostic::warning("#", message)))
}

/// The findings with file, line and column.
pub(super) fn placed(mut found: Vec<Finding>, api: &Api) -> Vec<Finding> {
    let spans: HashMap<&str, Span> = api
        .tools()
        .iter()
        .filter_map(|offered| Some((offered.operation.pointer.as_str(), offered.operation.span?)))
        .collect();
    let place = |found: &Finding| {
        let span = found.span.or(spans.get(found.pointer.as_str()).copied());
        Diagnostic {
            span,
            ..Diagnostic::note(&found.pointer, "")
        }
    };
    let unplaced: Vec<Diagnostic> = found.iter().map(place).collect();
    let unplaced: Vec<&Diagnostic> = unplaced.iter().collect();
    for (found, place) in found.iter_mut().zip(api.document().places_of(&unplaced)) {
        if let Some((file, line, column)) = place {
            found.file = (!file.is_empty()).then(|| file.to_owned());
            (found.line, found.column) = (Some(line), Some(column));
        }
    }
    found
}

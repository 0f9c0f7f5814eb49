//! Advice for the operator on the hints of a tool: contradictions between its name and them, and
//! among them.

use http::Method;

use super::annotations::{Hint, Hints, Reason, Sourced};
use super::selection::literal_path;
use super::wording::Wording;
use crate::spec::{Operation, Severity};
use crate::text::counted;

/// Advice on the hints of one operation.
pub(crate) struct HintAdvice {
    /// A warning is most likely right, a note is a guess.
    pub severity: Severity,
    /// The contradiction.
    pub message: String,
    /// The rule for `overrides` that follows the advice, as YAML, if there is just one.
    pub rule: Option<String>,
    /// True if the operation looks more dangerous than it is served as.
    pub is_understated: bool,
    /// The word of the operation that it is about.
    pub word: Option<&'static str>,
}

impl HintAdvice {
    fn warning(message: String) -> Self {
        Self {
            severity: Severity::Warning,
            message,
            rule: None,
            is_understated: false,
            word: None,
        }
    }
}

/// Advice on the hints of a tool, beside what its words say.
pub(crate) fn review_hints(
    operation: &Operation,
    served: &Hints,
    wording: &Wording,
) -> Vec<HintAdvice> {
    let mut advice = review_sources(operation, served);
    let about_words = understated(operation, served, wording)
        .or_else(|| changed_by_words(operation, served))
        .or_else(|| overstated(operation, served, wording));
    advice.extend(about_words);
    advice
}

/// Advice on contradictions among the hints, and between those of a trusted document and the
/// method.
fn review_sources(operation: &Operation, served: &Hints) -> Vec<HintAdvice> {
    let mut advice = Vec::new();
    let label = operation.label();
    if served.is_contradiction() {
        let by = |hint| {
            served
                .get(hint)
                .map(|sourced| sourced.reason.to_string())
                .unwrap_or_default()
        };
        advice.push(HintAdvice::warning(format!(
                "`{label}` is called read-only ({}) and destructive ({}) at once; it is taken as destructive until one of both is corrected, by a rule in `overrides`: - {} if it only reads, or - {} if it does not",
                by(Hint::ReadOnly),
                by(Hint::Destructive),
                rule_text(operation, [(Hint::Destructive, false)]),
                rule_text(operation, [(Hint::ReadOnly, false)])
        )));
    }
    let method = Hints::of_method(&operation.method);
    for hint in Hint::ALL {
        if let Some(Sourced {
            value,
            reason: Reason::Document(extension),
        }) = served.get(hint)
            && method.would_loosen(hint, value)
        {
            advice.push(HintAdvice::warning(format!(
                "the document's `{extension}` says {}={value} of `{label}`, and is trusted, although the method {} says otherwise",
                hint.word(),
                operation.method
            )));
        }
    }
    advice
}

/// Advice on an operation that the policy `strict` would call destructive.
fn understated(operation: &Operation, served: &Hints, wording: &Wording) -> Option<HintAdvice> {
    let strict = wording.strictly(served);
    let reason = wording.strict()?;
    let stricter: Vec<(Hint, bool)> = [Hint::ReadOnly, Hint::Destructive]
        .into_iter()
        .map(|hint| (hint, strict.effective(hint)))
        .filter(|(hint, value)| served.effective(*hint) != *value)
        .collect();
    let because = match reason {
        Reason::Word(word) => format!("word `{word}`"),
        _ => "no word says that it only adds, starts or reads".to_owned(),
    };
    (!stricter.is_empty()).then(|| HintAdvice {
        severity: if reason.word().is_some() {
            Severity::Warning
        } else {
            Severity::Note
        },
        message: format!(
            "`{}` looks destructive ({because}), and is served as {}, unlike under --annotation-policy strict",
            operation.label(),
            hint_list(stricter.iter().map(|(hint, value)| (*hint, !value)))
        ),
        rule: Some(rule_text(operation, stricter)),
        is_understated: true,
        word: reason.word(),
    })
}

/// Advice on an operation whose words made it look more dangerous than its method.
fn changed_by_words(operation: &Operation, served: &Hints) -> Option<HintAdvice> {
    let by_words = [Hint::ReadOnly, Hint::Destructive];
    let reason = by_words
        .into_iter()
        .find_map(|hint| word_of(served, hint))?;
    let method = Hints::of_method(&operation.method);
    Some(HintAdvice {
        severity: Severity::Note,
        message: format!(
            "`{}` is served as {}, unlike its method {} (word `{reason}`)",
            operation.label(),
            hint_list(
                by_words
                    .into_iter()
                    .map(|hint| (hint, served.effective(hint)))
                    .filter(|(hint, value)| method.effective(*hint) != *value)
            ),
            operation.method
        ),
        rule: None,
        is_understated: false,
        word: Some(reason),
    })
}

/// Advice on an operation that the policy `infer` would call more harmless.
fn overstated(operation: &Operation, served: &Hints, wording: &Wording) -> Option<HintAdvice> {
    let (hint, word) = wording.guess()?;
    if served
        .get(hint)
        .is_some_and(|sourced| sourced.reason.is_operator())
    {
        return None;
    }
    let (looks, implied) = match hint {
        Hint::ReadOnly => (
            "read-only",
            &[
                (Hint::ReadOnly, true),
                (Hint::Destructive, false),
                (Hint::Idempotent, true),
            ][..],
        ),
        _ => ("idempotent", &[(Hint::Idempotent, true)][..]),
    };
    let differing: Vec<(Hint, bool)> = implied
        .iter()
        .copied()
        .filter(|(hint, value)| served.effective(*hint) != *value)
        .collect();
    (!differing.is_empty()).then(|| HintAdvice {
        severity: Severity::Note,
        message: format!(
            "`{}` looks {looks} (word `{word}`), and is served as {}",
            operation.label(),
            hint_list(differing.iter().map(|(hint, value)| (*hint, !value)))
        ),
        rule: Some(rule_text(operation, differing)),
        is_understated: false,
        word: Some(word),
    })
}

/// Counts the hints that words changed; `None` if they changed none.
pub(crate) fn summarize_words<'h>(
    tools: impl Iterator<Item = (&'h Hints, &'h Method)>,
) -> Option<String> {
    let (mut acting, mut harming) = (0, 0);
    for (served, method) in tools {
        let is_safe = Hints::of_method(method).is_read_only();
        if is_safe && word_of(served, Hint::ReadOnly).is_some() {
            acting += 1;
        } else if word_of(served, Hint::Destructive).is_some() {
            harming += 1;
        }
    }
    let clauses: Vec<String> = [
        (
            acting,
            "are not taken as read-only, although their method is safe",
        ),
        (
            harming,
            "are taken as destructive, although their method is POST",
        ),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!clauses.is_empty()).then(|| {
        format!(
            "because of their words, {} (`openapi-mcp check` names them)",
            clauses.join("; ")
        )
    })
}

/// A tool that settings leave out or ask about because of its words.
#[derive(Clone)]
pub(crate) struct Restriction {
    /// The tool's name.
    pub(crate) tool: String,
    /// Method and path.
    pub(crate) label: String,
    /// Location of the operation in the document, as a JSON Pointer fragment.
    pub(crate) pointer: String,
    /// The word; `None` if no word says that the tool is harmless.
    pub(crate) word: Option<&'static str>,
    /// The hint, and the value of it, by which the operator frees the operation.
    pub(crate) frees: (Hint, bool),
    /// True if the operation is left out; else a person must confirm each call.
    pub(crate) is_left_out: bool,
}

impl Restriction {
    /// The sentence for the operator.
    pub(crate) fn explain(&self) -> String {
        let Self { tool, label, .. } = self;
        let (because, if_wrong) = match self.word {
            Some(word) => (
                format!("its name or description says `{word}`"),
                "the word is misleading",
            ),
            None => (
                "no word says that it only adds, starts or reads".to_owned(),
                "it does",
            ),
        };
        let (hint, value) = self.frees;
        let what = if self.is_left_out {
            "is left out"
        } else {
            "is called only after the user agrees"
        };
        format!(
            "`{tool}` ({label}) {what} because {because}; if {if_wrong}, --hint '{tool} {}={value}' ends that",
            hint.word()
        )
    }
}

/// Returns one line for the operator on all restrictions, with the first as the example; `None` if
/// there is none.
pub(crate) fn summarize_restrictions(restrictions: &[Restriction]) -> Option<String> {
    let example = restrictions.first()?.explain();
    let left_out = restrictions
        .iter()
        .filter(|restriction| restriction.is_left_out)
        .count();
    let asked = restrictions.len() - left_out;
    let clauses = [
        (left_out, "left out"),
        (asked, "called only after the user agrees"),
    ];
    let clauses: Vec<String> = clauses
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{} {what}", counted(count, "tool")))
        .collect();
    Some(format!(
        "{} because of their words; for example, {example}; `openapi-mcp check` reports all of them",
        clauses.join(" and ")
    ))
}

/// Returns a line for the operator about tools that the policy `strict` would hold back; `None` if
/// there is none.
pub(crate) fn describe_loosened(count: usize) -> Option<String> {
    (count > 0).then(|| {
        format!(
            "{}: --annotation-policy strict would leave out or ask about {}, by words (`openapi-mcp check` names them)",
            counted(count, "tool"),
            if count == 1 { "it" } else { "them" }
        )
    })
}

/// Returns the word that made a tool look more dangerous by that hint.
pub(super) fn word_of(served: &Hints, hint: Hint) -> Option<&'static str> {
    let sourced = served.get(hint)?;
    let is_careful = sourced.value == hint.default_value();
    sourced.reason.word().filter(|_| is_careful)
}

fn hint_list(hints: impl Iterator<Item = (Hint, bool)>) -> String {
    let hints: Vec<String> = hints
        .map(|(hint, value)| format!("{}={value}", hint.word()))
        .collect();
    hints.join(", ")
}

/// A rule of `overrides` that sets the hints.
fn rule_text(operation: &Operation, hints: impl IntoIterator<Item = (Hint, bool)>) -> String {
    let hints: Vec<String> = hints
        .into_iter()
        .map(|(hint, value)| format!("{}: {value}", hint.key()))
        .collect();
    let quoted = |text: &str| serde_json::Value::String(literal_path(text)).to_string();
    format!(
        "{{match: {{method: {}, path: {}}}, annotations: {{{}}}}}",
        quoted(operation.method.as_str()),
        quoted(&operation.path),
        hints.join(", ")
    )
}

//! Advice for the operator on the hints of a tool: where its name contradicts them, and where they contradict each other.

use super::annotations::{Hint, Hints, Reason, Sourced};
use super::layers::{Policy, policy_hints};
use super::selection::literal;
use crate::spec::{Document, Operation, Severity};

/// Advice on the hints of one operation.
#[derive(Debug)]
pub(crate) struct HintAdvice {
    /// A warning is most likely right, a note is a guess.
    pub severity: Severity,
    /// What contradicts what.
    pub message: String,
    /// The rule for `overrides` that follows the advice, as YAML, where there is just one.
    pub rule: Option<String>,
    /// Whether the operation looks more dangerous than it is served as.
    pub is_understated: bool,
}

impl HintAdvice {
    fn warning(message: String) -> Self {
        Self {
            severity: Severity::Warning,
            message,
            rule: None,
            is_understated: false,
        }
    }
}

/// Advice on the hints that are served for an operation. `local`: the operator says that the API deals with nothing outside.
#[must_use]
pub(crate) fn review_hints(operation: &Operation, served: &Hints, document: &Document, local: bool) -> Vec<HintAdvice> {
    let mut advice = Vec::new();
    let label = operation.label();
    if served.is_contradiction() {
        let by = |hint| served.get(hint).map(|sourced| sourced.reason.to_string()).unwrap_or_default();
        advice.push(HintAdvice::warning(format!(
                "`{label}` is called read-only ({}) and destructive ({}) at once; it counts as destructive until one of both is corrected, by a rule in `overrides`: - {} where it only reads, or - {} where it does not",
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
    let inferred = policy_hints(Policy::Infer, local, operation, document);
    // A hint of the document does not outweigh a careful guess, because it does not in what is enforced either.
    let by_hand = |hint: Hint, sourced: Sourced, guess: Sourced| match sourced.reason {
        Reason::Method | Reason::Evidence(_) | Reason::Default => false,
        Reason::Document(_) => guess.value != hint.default_value(),
        Reason::Word(_) | Reason::ReadOnly | Reason::Rule(_) | Reason::CommandLine => true,
    };
    let differing: Vec<(Hint, Sourced)> = Hint::ALL
        .into_iter()
        .filter_map(|hint| Some((hint, inferred.get(hint)?)))
        .filter(|(hint, guess)| !served.get(*hint).is_some_and(|sourced| by_hand(*hint, sourced, *guess)))
        .filter(|(hint, guess)| guess.value != served.effective(*hint))
        .collect();
    if let Some((first, guess)) = differing.first() {
        let looks = match (first, guess.value) {
            (Hint::ReadOnly, true) => "read-only",
            (Hint::ReadOnly, false) | (Hint::Destructive, true) => "destructive",
            (Hint::Destructive, false) => "harmless to what exists",
            (Hint::Idempotent, true) => "idempotent",
            (Hint::Idempotent, false) => "not idempotent",
            (Hint::OpenWorld, _) => "local",
        };
        let hints = differing.iter().map(|(hint, guess)| (*hint, guess.value));
        // This is what --read-only, --no-destructive and --confirm go by.
        let is_enforced = matches!((first, guess.value), (Hint::ReadOnly, false) | (Hint::Destructive, true));
        advice.push(HintAdvice {
            severity: if is_enforced { Severity::Warning } else { Severity::Note },
            message: format!(
                "`{label}` looks {looks} ({}), and is served as {}{}",
                guess.reason,
                differing
                    .iter()
                    .map(|(hint, guess)| format!("{}={}", hint.word(), !guess.value))
                    .collect::<Vec<_>>()
                    .join(", "),
                if is_enforced {
                    " (--read-only, --no-destructive and --confirm go by its name)"
                } else {
                    ""
                },
            ),
            rule: Some(rule_text(operation, hints)),
            is_understated: is_enforced,
        });
    }
    advice
}

/// A rule of `overrides` that sets the hints.
fn rule_text(operation: &Operation, hints: impl IntoIterator<Item = (Hint, bool)>) -> String {
    let hints: Vec<String> = hints.into_iter().map(|(hint, value)| format!("{}: {value}", hint.key())).collect();
    let quoted = |text: &str| serde_json::Value::String(literal(text)).to_string();
    format!(
        "{{match: {{method: {}, path: {}}}, annotations: {{{}}}}}",
        quoted(operation.method.as_str()),
        quoted(&operation.path),
        hints.join(", ")
    )
}

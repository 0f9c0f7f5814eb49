//! Advice for the operator on the hints of a tool: contradictions between its name and them, and
//! among them.

use http::Method;

use super::annotations::{Hint, Hints, Reason, Sourced};
use super::enforcement::Enforcement;
use super::selection::literal_path;
use crate::spec::{Operation, Severity};

/// Advice on the hints of one operation.
#[derive(Debug)]
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

/// Advice on the hints of a tool that are served, beside what is enforced of it.
#[must_use]
pub(crate) fn review_hints(
    operation: &Operation,
    served: &Hints,
    enforcement: &Enforcement,
) -> Vec<HintAdvice> {
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
                "`{label}` is called read-only ({}) and destructive ({}) at once; it counts as destructive until one of both is corrected, by a rule in `overrides`: - {} if it only reads, or - {} if it does not",
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
    if let Some(reason) = enforcement.reason() {
        let stricter: Vec<(Hint, bool)> = [(Hint::ReadOnly, false), (Hint::Destructive, true)]
            .into_iter()
            .filter(|(hint, value)| served.effective(*hint) != *value)
            .collect();
        advice.push(HintAdvice {
            severity: if reason.word().is_some() {
                Severity::Warning
            } else {
                Severity::Note
            },
            message: format!(
                "`{label}` looks destructive ({reason}), and is served as {} (--read-only, --no-destructive and --confirm go by its words)",
                hint_list(stricter.iter().map(|(hint, value)| (*hint, !value)))
            ),
            rule: Some(rule_text(operation, stricter)),
            is_understated: true,
            word: reason.word(),
        });
    } else if let Some(Sourced { reason, .. }) = served
        .get(Hint::Destructive)
        .filter(|_| is_by_words(served))
    {
        let loosened = method_hints(served, &method);
        advice.push(HintAdvice {
            severity: Severity::Note,
            message: format!(
                "`{label}` is served as {}, unlike its method {} ({reason})",
                hint_list(loosened.iter().map(|(hint, value)| (*hint, !value))),
                operation.method
            ),
            rule: None,
            is_understated: false,
            word: reason.word(),
        });
    } else if let Some((hint, word)) = enforcement.guess()
        && !served
            .get(hint)
            .is_some_and(|sourced| sourced.reason.is_operator())
    {
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
        if !differing.is_empty() {
            advice.push(HintAdvice {
                severity: Severity::Note,
                message: format!(
                    "`{label}` looks {looks} (word `{word}`), and is served as {}",
                    hint_list(differing.iter().map(|(hint, value)| (*hint, !value)))
                ),
                rule: Some(rule_text(operation, differing)),
                is_understated: false,
                word: Some(word),
            });
        }
    }
    advice
}

/// Counts the changes by words of published hints and of enforcement; `None` if they change
/// nothing.
#[must_use]
pub(crate) fn summarize_words<'h>(
    tools: impl Iterator<Item = (&'h Hints, &'h Enforcement, &'h Method)>,
) -> Option<String> {
    let (mut acting, mut harming, mut enforced) = (0, 0, 0);
    for (served, enforcement, method) in tools {
        let reads = Hints::of_method(method).is_read_only();
        match is_by_words(served) {
            true if reads => acting += 1,
            true => harming += 1,
            false => enforced += usize::from(enforcement.reason().is_some()),
        }
    }
    let clauses: Vec<String> = [
        (acting, "do not count as read-only, although their method is safe"),
        (harming, "count as destructive, although their method is POST"),
        (
            enforced,
            "look harmless, and count as destructive for --read-only, --no-destructive and --confirm",
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

/// Returns true if only words made a tool look more dangerous.
pub(super) fn is_by_words(served: &Hints) -> bool {
    let destructive = served.get(Hint::Destructive);
    destructive.is_some_and(|sourced| {
        sourced.value && matches!(sourced.reason, Reason::Word(_) | Reason::NoWord)
    })
}

/// Returns the hints of the method that differ.
fn method_hints(served: &Hints, method: &Hints) -> Vec<(Hint, bool)> {
    let both = [Hint::ReadOnly, Hint::Destructive]
        .into_iter()
        .map(|hint| (hint, method.effective(hint)));
    both.filter(|(hint, value)| served.effective(*hint) != *value)
        .collect()
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

//! Advice for the operator on the hints of a tool: contradictions between its name and them, and
//! among them.

use http::Method;

use super::annotations::{Hint, Hints, Reason, Sourced};
use super::selection::literal_path;
use super::wording::Wording;
use crate::spec::{Diagnostic, Operation};
use crate::text::counted;

/// Advice on the hints of one operation.
pub(crate) struct HintAdvice {
    /// The contradiction. A warning is most likely right, a note is a guess.
    pub(crate) diagnostic: Diagnostic,
    /// The rule for `overrides` that follows the advice, as YAML, if there is just one.
    pub(crate) rule: Option<String>,
    /// True if the operation looks more dangerous than it is served as.
    pub(crate) is_understated: bool,
    /// The word of the operation that it is about.
    pub(crate) word: Option<&'static str>,
}

impl HintAdvice {
    fn new(diagnostic: Diagnostic, word: Option<&'static str>) -> Self {
        Self {
            diagnostic,
            rule: None,
            is_understated: false,
            word,
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
    let mut warn = |message: String| {
        let warning = Diagnostic::warning(&operation.pointer, message);
        advice.push(HintAdvice::new(warning, None));
    };
    if served.is_contradiction() {
        let by = |hint| served.source(hint);
        warn(format!(
            "`{label}` is called read-only ({}) and destructive ({}) at once; it is taken as destructive until one of both is corrected, by a rule in `overrides`: - {} if it only reads, or - {} if it does not",
            by(Hint::ReadOnly),
            by(Hint::Destructive),
            rule_text(operation, &[(Hint::Destructive, false)]),
            rule_text(operation, &[(Hint::ReadOnly, false)])
        ));
    }
    let method = Hints::of_method(&operation.method);
    for hint in Hint::ALL {
        if let Some(Sourced {
            value,
            reason: Reason::Document(extension),
        }) = served.get(hint)
            && method.would_loosen(hint, value)
        {
            warn(format!(
                "the document's `{extension}` says {}={value} of `{label}`, and is trusted, although the method {} says otherwise",
                hint.word(),
                operation.method
            ));
        }
    }
    advice
}

/// Advice on an operation that the policy `strict` would call destructive.
fn understated(operation: &Operation, served: &Hints, wording: &Wording) -> Option<HintAdvice> {
    let strict = wording.strictly(served);
    let word = wording.strict?.word();
    let stricter = [Hint::ReadOnly, Hint::Destructive].map(|hint| (hint, strict.effective(hint)));
    let stricter = differing(&stricter, served)?;
    let because = word.map_or_else(
        || "no word says that it only adds, starts or reads".to_owned(),
        |word| format!("word `{word}`"),
    );
    let message = format!(
        "`{}` looks destructive ({because}), and is served as {}, unlike under --annotation-policy strict",
        operation.label(),
        served_as(served, &stricter)
    );
    let place = &operation.pointer;
    let diagnostic = match word {
        Some(_) => Diagnostic::warning(place, message),
        None => Diagnostic::note(place, message),
    };
    Some(HintAdvice {
        rule: Some(rule_text(operation, &stricter)),
        is_understated: true,
        ..HintAdvice::new(diagnostic, word)
    })
}

/// Returns those of some values of hints that differ from the served ones, if any does.
fn differing(values: &[(Hint, bool)], served: &Hints) -> Option<Vec<(Hint, bool)>> {
    let values: Vec<(Hint, bool)> = values
        .iter()
        .filter(|(hint, value)| served.effective(*hint) != *value)
        .copied()
        .collect();
    (!values.is_empty()).then_some(values)
}

/// Lists the served values of some hints.
fn served_as(served: &Hints, hints: &[(Hint, bool)]) -> String {
    hints
        .iter()
        .map(|(hint, _)| format!("{}={}", hint.word(), served.effective(*hint)))
        .collect::<Vec<_>>()
        .join(", ")
}

/// Advice on an operation whose words made it look more dangerous than its method.
fn changed_by_words(operation: &Operation, served: &Hints) -> Option<HintAdvice> {
    let by_words = [Hint::ReadOnly, Hint::Destructive];
    let word = by_words
        .into_iter()
        .find_map(|hint| word_of(served, hint))?;
    let of_method = Hints::of_method(&operation.method);
    let of_method = by_words.map(|hint| (hint, of_method.effective(hint)));
    let message = format!(
        "`{}` is served as {}, unlike its method {} (word `{word}`)",
        operation.label(),
        served_as(served, &differing(&of_method, served).unwrap_or_default()),
        operation.method
    );
    let note = Diagnostic::note(&operation.pointer, message);
    Some(HintAdvice::new(note, Some(word)))
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
    let implied = differing(implied, served)?;
    let message = format!(
        "`{}` looks {looks} (word `{word}`), and is served as {}",
        operation.label(),
        served_as(served, &implied)
    );
    let note = Diagnostic::note(&operation.pointer, message);
    Some(HintAdvice {
        rule: Some(rule_text(operation, &implied)),
        ..HintAdvice::new(note, Some(word))
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
    let clause = |count, what: &str| (count > 0).then(|| format!("{count} {what}"));
    let clauses = [
        clause(
            acting,
            "are not taken as read-only, although their method is safe",
        ),
        clause(
            harming,
            "are taken as destructive, although their method is POST",
        ),
    ];
    let clauses: Vec<String> = clauses.into_iter().flatten().collect();
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
    let clause = |is_left_out, what: &str| {
        let all = restrictions.iter();
        let count = all.filter(|one| one.is_left_out == is_left_out).count();
        (count > 0).then(|| format!("{} {what}", counted(count, "tool")))
    };
    let clauses = [
        clause(true, "left out"),
        clause(false, "called only after the user agrees"),
    ];
    let clauses: Vec<String> = clauses.into_iter().flatten().collect();
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

/// A rule of `overrides` that sets the hints.
fn rule_text(operation: &Operation, hints: &[(Hint, bool)]) -> String {
    let hints = hints
        .iter()
        .map(|(hint, value)| format!("{}: {value}", hint.key()));
    let hints: Vec<String> = hints.collect();
    let quoted = |text: &str| serde_json::Value::String(literal_path(text)).to_string();
    format!(
        "{{match: {{method: {}, path: {}}}, annotations: {{{}}}}}",
        quoted(operation.method.as_str()),
        quoted(&operation.path),
        hints.join(", ")
    )
}

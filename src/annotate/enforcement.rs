//! Enforcement: the tools that are offered, the calls that a person must confirm, the scope that a
//! call needs, and the requests that are repeated. All of these use this module, never the hints
//! alone.

use super::annotations::{Hint, Hints, Reason};

/// The enforced class of one tool: the more careful of its hints and of what is known about the
/// operation.
#[derive(Debug, Clone, Copy)]
pub struct Enforcement {
    hints: Hints,
    /// Reason for which this is stricter than the hints.
    reason: Option<Reason>,
    /// The hint that the policy `infer` would set although it makes the tool look harmless, and the
    /// word for it.
    guess: Option<(Hint, &'static str)>,
}

/// Effect of a call: the class of a tool, by its enforcement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Effect {
    /// It changes nothing.
    Read,
    /// It adds something, or changes nothing that exists.
    Write,
    /// It may change or remove what exists.
    Destructive,
}

impl Effect {
    /// All of them, the most harmless first.
    pub(crate) const ALL: [Self; 3] = [Self::Read, Self::Write, Self::Destructive];

    /// The word for it.
    #[must_use]
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Destructive => "destructive",
        }
    }
}

impl Enforcement {
    /// The class of the tool. One that is said to be read-only as well as destructive is
    /// destructive.
    #[must_use]
    pub(crate) fn effect(&self) -> Effect {
        if self.is_destructive() {
            Effect::Destructive
        } else if self.is_read_only() {
            Effect::Read
        } else {
            Effect::Write
        }
    }

    /// Takes for each hint the more careful of two values: the one that is `served`, and the one
    /// that the policy `strict` takes from the operation and its words. A hint that the operator
    /// set counts as it is; one of a document that the operator trusts does not. `guess` is the
    /// hint that the policy `infer` would set although it makes the tool look harmless, and the
    /// word for it.
    #[must_use]
    pub(crate) fn new(served: &Hints, strict: &Hints, guess: Option<(Hint, &'static str)>) -> Self {
        let mut enforcement = Self {
            guess,
            ..Self::of_hints(served)
        };
        let is_operators = |hint: Hint| {
            served
                .get(hint)
                .is_some_and(|sourced| sourced.reason.is_operator())
        };
        // Both other hints follow from the operator's readOnlyHint: true.
        let reads = served.effective(Hint::ReadOnly) && is_operators(Hint::ReadOnly);
        for hint in [Hint::ReadOnly, Hint::Destructive, Hint::Idempotent] {
            if let Some(said) = strict.get(hint)
                && said.value == hint.default_value()
                && said.value != served.effective(hint)
                && !reads
                && !is_operators(hint)
            {
                enforcement.hints.set(hint, said.value, said.reason);
                if matches!(said.reason, Reason::Word(_) | Reason::NoWord) {
                    enforcement.reason = Some(said.reason);
                }
            }
        }
        enforcement
    }

    /// Makes the enforcement of the hints alone.
    #[must_use]
    pub(crate) fn of_hints(served: &Hints) -> Self {
        Self {
            hints: *served,
            reason: None,
            guess: None,
        }
    }

    /// Returns true if the tool counts as read-only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.hints.is_read_only()
    }

    /// Returns true if the tool counts as destructive.
    #[must_use]
    pub fn is_destructive(&self) -> bool {
        self.hints.is_destructive()
    }

    /// Returns true if a request may be sent again after a failure: a repeated one must change
    /// nothing more.
    #[must_use]
    pub(crate) fn may_repeat(&self) -> bool {
        self.hints.effective(Hint::Idempotent)
    }

    /// Returns the reason for which this is stricter than the hints.
    #[must_use]
    pub(crate) fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The hint that the policy `infer` would set although it makes the tool look harmless, and the
    /// word for it.
    #[must_use]
    pub(crate) fn guess(&self) -> Option<(Hint, &'static str)> {
        self.guess
    }
}

/// An operation that the operator's settings restrict because of a word in its name, although its
/// hints alone would not.
#[derive(Debug, Clone)]
pub(crate) struct Restriction {
    /// The tool's name.
    pub(crate) tool: String,
    /// Method and path.
    pub(crate) label: String,
    /// Location of the operation in the document, as a JSON Pointer fragment.
    pub(crate) pointer: String,
    /// Reason.
    pub(crate) reason: Reason,
    /// The hint, and the value of it, by which the operator frees the operation.
    pub(crate) frees: (Hint, bool),
    /// True if the operation is left out; else a person must confirm each call.
    pub(crate) is_left_out: bool,
}

impl Restriction {
    /// The sentence for the operator.
    #[must_use]
    pub(crate) fn explain(&self) -> String {
        let Self { tool, label, .. } = self;
        let (because, if_wrong) = match self.reason {
            Reason::Word(word) => (
                format!("its name or description says `{word}`"),
                "the word is misleading",
            ),
            _ => (
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
#[must_use]
pub(crate) fn summarize_restrictions(restrictions: &[Restriction]) -> Option<String> {
    let example = restrictions.first()?.explain();
    let left_out = restrictions
        .iter()
        .filter(|restriction| restriction.is_left_out)
        .count();
    let count = |count: usize| {
        if count == 1 {
            "1 tool".to_owned()
        } else {
            format!("{count} tools")
        }
    };
    let what = match (left_out, restrictions.len() - left_out) {
        (left_out, 0) => format!("{} left out", count(left_out)),
        (0, asked) => format!("{} called only after the user agrees", count(asked)),
        (left_out, asked) => format!(
            "{} left out and {} called only after the user agrees",
            count(left_out),
            count(asked)
        ),
    };
    Some(format!(
        "{what} because of their words, although their hints alone do not ask for it; for example, {example}; `openapi-mcp check` reports all of them"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Method;

    /// Writes the classes of a tool (read-only, destructive, repeatable) as `rdi`, with `-` for
    /// those that do not apply.
    fn enforced(served: &Hints, inferred: &Hints) -> String {
        let enforcement = Enforcement::new(served, inferred, None);
        let counts = [
            (enforcement.is_read_only(), 'r'),
            (enforcement.is_destructive(), 'd'),
            (enforcement.may_repeat(), 'i'),
        ];
        counts
            .map(|(counts, letter)| if counts { letter } else { '-' })
            .iter()
            .collect()
    }

    fn of(method: &str) -> Hints {
        Hints::of_method(&Method::from_bytes(method.as_bytes()).unwrap())
    }

    /// Hints of the word `kill`.
    fn killing(method: &str) -> Hints {
        let mut hints = of(method);
        hints.set(Hint::ReadOnly, false, Reason::Word("kill"));
        hints.set(Hint::Destructive, true, Reason::Word("kill"));
        hints
    }

    #[test]
    fn the_hints_count_where_nothing_more_is_known() {
        for (method, expected) in [
            ("GET", "r-i"),
            ("QUERY", "r-i"),
            ("POST", "---"),
            ("PUT", "-di"),
            ("PATCH", "-d-"),
            ("DELETE", "-di"),
            ("TRACE", "-d-"),
        ] {
            assert_eq!(enforced(&of(method), &of(method)), expected, "{method}");
        }
    }

    #[test]
    fn a_word_of_the_name_counts_unless_the_operator_says_otherwise() {
        assert_eq!(enforced(&of("POST"), &killing("POST")), "-d-");
        assert_eq!(enforced(&of("GET"), &killing("GET")), "-d-");
        for (reason, expected) in [
            (Reason::Document("x-mcp"), "-d-"),
            (Reason::Rule(1), "r-i"),
            (Reason::CommandLine, "r-i"),
        ] {
            let mut served = of("POST");
            served.set(Hint::ReadOnly, true, reason);
            served.settle();
            assert_eq!(enforced(&served, &killing("POST")), expected, "{reason}");
        }
        let mut served = of("GET");
        served.set(Hint::Destructive, false, Reason::CommandLine);
        assert_eq!(
            enforced(&served, &killing("GET")),
            "---",
            "only what the operator said"
        );
    }

    #[test]
    fn a_guess_that_something_is_harmless_does_not_count() {
        let mut inferred = of("POST");
        inferred.set(Hint::ReadOnly, true, Reason::Word("search"));
        inferred.set(Hint::Idempotent, true, Reason::Word("search"));
        assert_eq!(enforced(&of("POST"), &inferred), "---");
        let mut inferred = of("PUT");
        inferred.set(
            Hint::Idempotent,
            false,
            Reason::Evidence("a required `If-Match` header"),
        );
        assert_eq!(enforced(&of("PUT"), &inferred), "-d-");
    }
}

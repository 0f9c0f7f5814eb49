//! The sources of what a tool says about itself, weakest first: the policy, the document as far as
//! it is trusted, the rules of the configuration file, the command line. They are merged field by
//! field.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::annotations::{Hint, Hints, Reason};
use super::descriptions;
use super::extension::{self, Authored};
use super::overrides::Override;
use super::selection::Pattern;
use super::wording::{Wording, apply_evidence};
use crate::spec::operation::rules::AccessDemand;
use crate::spec::{Diagnostic, Document, Operation};

/// Policy by which hints are derived from an operation.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum Policy {
    /// The HTTP method, preconditions that the operation requires, and words that say that
    /// something is removed, ended or moved, or that a GET acts
    Careful,
    /// As careful, and words that say that something is changed; a POST is destructive unless a
    /// word says that it adds or reads
    Strict,
    /// The HTTP method
    Method,
    /// The method, and what the operation requires: preconditions and idempotency keys
    Spec,
    /// As spec and strict, and words that may make a tool look less dangerous, which is a guess
    Infer,
}

/// Trust in the document's own hints.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "lowercase")]
pub enum HintTrust {
    /// They can only make a tool look more dangerous, or hide it
    #[default]
    Tighten,
    /// They are applied; for an API of your own
    Trust,
    /// They are ignored
    Ignore,
}

/// A rule of the operator for some operations: of `overrides`, unless it says something else.
#[derive(Debug, Clone)]
pub struct Rule<S = Override> {
    /// The name of the rule in messages.
    pub name: String,
    /// The setting that marks the rule as optional, for messages.
    pub remedy: String,
    /// True if the rule may match no operation.
    pub optional: bool,
    /// An operation must match one pattern of each group; without a group, every operation matches.
    pub matches: Vec<Vec<Pattern>>,
    /// Values that the rule sets.
    pub says: S,
}

/// Rule of `access`.
pub(crate) type AccessRule = Rule<AccessDemand>;

/// All sources.
#[derive(Debug, Clone, Default)]
pub struct Layers {
    /// Policy by which hints are derived from an operation, if the operator names one; see
    /// [`AnnotateOptions::policy`](super::AnnotateOptions::policy).
    pub policy: Option<Policy>,
    /// Trust in the document's hints.
    pub trust: HintTrust,
    /// The rules of the configuration file; a later one is stronger.
    pub rules: Vec<Rule>,
    /// The rules of the command line.
    pub commands: Vec<Rule>,
}

/// The decision of all sources about a tool.
#[derive(Clone, Default)]
pub(crate) struct Decision {
    /// The hints.
    pub(crate) hints: Hints,
    /// All other settings. Most operations share an empty one.
    pub(crate) said: Arc<Override>,
    /// Hints of the words of the operation.
    pub(crate) wording: Wording,
}

/// An operation that may become a tool: its names, and what was decided about it.
pub(crate) struct Candidate {
    pub(crate) operation: Box<Operation>,
    /// The name of its function, if a framework added path and method to that.
    pub(crate) function: Option<String>,
    /// The name that it has without a requested name, and without the prefix of all names.
    pub(crate) own_name: String,
    /// The name that it has if only the document requests one.
    pub(crate) authored_name: String,
    /// The name of the tool.
    pub(crate) name: String,
    pub(crate) title: String,
    /// The rules of `access` that a caller must meet, by their places.
    pub(crate) access: Vec<usize>,
    pub(crate) decision: Decision,
}

impl Candidate {
    /// An operation without names.
    pub(crate) fn new(operation: Box<Operation>, decision: Decision) -> Self {
        Self {
            function: None,
            own_name: String::new(),
            authored_name: String::new(),
            name: String::new(),
            title: descriptions::title(&operation),
            access: Vec::new(),
            operation,
            decision,
        }
    }

    /// The names by which patterns know it.
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.own_name, &self.name]
    }

    /// All names that it has or had.
    pub(crate) fn all_names(&self) -> [&str; 3] {
        [&self.own_name, &self.name, &self.authored_name]
    }
}

impl<S> Rule<S> {
    /// Returns true if it matches the operation under its names.
    pub(crate) fn matches<const N: usize>(&self, names: [&str; N], operation: &Operation) -> bool {
        let any = |group: &Vec<Pattern>| {
            group
                .iter()
                .any(|pattern| pattern.matches(names, operation))
        };
        self.matches.iter().all(any)
    }
}

impl Layers {
    /// Decides on each operation by the policy and the document.
    pub(crate) fn author(
        &self,
        policy: Policy,
        document: &Document,
        candidates: &mut [Candidate],
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let root = if self.trust == HintTrust::Ignore {
            Vec::new()
        } else {
            extension::of_root(document, diagnostics)
        };
        let nothing = Arc::<Override>::default();
        for candidate in candidates {
            let operation = &candidate.operation;
            let wording = Wording::of(operation);
            let decision = &mut candidate.decision;
            *decision = Decision {
                hints: Self::policy_hints(policy, wording, operation, document),
                said: Arc::clone(&nothing),
                wording,
            };
            if self.trust != HintTrust::Ignore {
                let own = extension::of_operation(document, operation, diagnostics);
                if !root.is_empty() || !own.is_empty() {
                    let authored = root.iter().chain(&own);
                    self.take(decision, authored, operation, diagnostics);
                }
            }
        }
    }

    /// Applies the rules of the operator. A rule knows an operation by its own name, and by the
    /// name that the document has given it.
    pub(crate) fn operate(&self, candidates: &mut [Candidate]) {
        let numbered = |(index, rule)| (rule, Reason::Rule(index + 1));
        let numbered = || self.rules.iter().enumerate().map(numbered);
        for candidate in candidates {
            let commands = self.commands.iter().map(|rule| (rule, Reason::CommandLine));
            for (rule, reason) in numbered().chain(commands) {
                if rule.matches(candidate.names(), &candidate.operation) {
                    for (hint, value) in &rule.says.hints {
                        candidate.decision.hints.set(*hint, *value, reason);
                    }
                    Arc::make_mut(&mut candidate.decision.said).take(rule.says.clone());
                }
            }
            let decision = &mut candidate.decision;
            decision.hints.settle();
            // They are in `decision.hints` now, each with its source.
            if !decision.said.hints.is_empty() {
                Arc::make_mut(&mut decision.said).hints = Vec::new();
            }
        }
    }

    /// The hints that the policy derives from an operation.
    fn policy_hints(
        policy: Policy,
        wording: Wording,
        operation: &Operation,
        document: &Document,
    ) -> Hints {
        let mut hints = Hints::of_method(&operation.method);
        let lets_repeat = matches!(policy, Policy::Spec | Policy::Infer);
        // To find evidence, schemas of bodies are opened.
        if lets_repeat || policy != Policy::Method && hints.effective(Hint::Idempotent) {
            apply_evidence(&mut hints, operation, document);
        }
        match policy {
            Policy::Method | Policy::Spec => {}
            Policy::Careful => wording.apply_careful(&mut hints),
            Policy::Strict => wording.apply_strict(&mut hints),
            Policy::Infer => {
                wording.apply_inference(&mut hints);
                wording.apply_strict(&mut hints);
            }
        }
        hints
    }

    fn take<'a>(
        &self,
        decision: &mut Decision,
        authored: impl Iterator<Item = &'a Authored>,
        operation: &Operation,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        // Everything is collected before it is judged, because a more specific object corrects a
        // more general one.
        let mut hints: Vec<(Hint, bool, &'static str)> = Vec::new();
        for Authored { extension, said } in authored {
            for (hint, value) in &said.hints {
                hints.retain(|(known, ..)| known != hint);
                hints.push((*hint, *value, extension));
            }
            Arc::make_mut(&mut decision.said).take(said.clone());
        }
        // `readOnlyHint` first: the other hints follow from it unless the author says otherwise.
        hints.sort_by_key(|(hint, ..)| *hint != Hint::ReadOnly);
        for (hint, value, extension) in hints {
            if self.trust == HintTrust::Tighten && decision.hints.would_loosen(hint, value) {
                let message = format!(
                    "the document's `{extension}` says {}={value} of {}, which would make it look less dangerous than its method; the hint is not applied (`document_hints: trust` applies it)",
                    hint.word(),
                    operation.label()
                );
                diagnostics.push(Diagnostic::warning(operation.pointer.clone(), message));
            } else if decision.hints.get(hint).map(|sourced| sourced.value) != Some(value) {
                decision.hints.set(hint, value, Reason::Document(extension));
            }
        }
    }
}

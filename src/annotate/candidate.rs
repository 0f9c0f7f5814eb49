//! The operations of a document before they are described: how each is called, and what was decided
//! about it.

use crate::annotate::hint_review::{Restriction, word_of};
use crate::annotate::layers::Decision;
use crate::annotate::overrides::arguments::{RuleFindings, rule_arguments, rules_name_arguments};
use crate::annotate::overrides::unmatched::{self, NamedOperations};
use crate::annotate::{
    AccessRule, AnnotateOptions, DescriptionDetail, Hint, Hints, Policy, Reason, TokenShare,
    descriptions, names, overrides,
};
use crate::spec::paging::may_have_next_page;
use crate::spec::{Diagnostic, Document, Operation};
use crate::text;

/// An operation that may become a tool.
pub(crate) struct Candidate {
    /// The name that it has without a requested name, and without the prefix of all names.
    own_name: String,
    /// The name of the tool.
    pub(crate) name: String,
    pub(crate) title: String,
    pub(crate) operation: Box<Operation>,
    /// The rules of `access` that a caller must meet, by their places.
    pub(crate) access: Vec<usize>,
    pub(crate) decision: Decision,
}

/// The operations of a document, and what was found while they were named and decided about.
pub(crate) struct Candidates {
    /// All candidates, in the order of the document.
    pub(crate) all: Vec<Candidate>,
    /// A sentence for each pattern of the settings that had to match an operation, and matches
    /// none.
    pub(crate) unmatched: Vec<String>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    pub(crate) rule_findings: RuleFindings,
}

impl Candidates {
    /// Names all operations and decides about each.
    pub(crate) fn find(
        document: &Document,
        mut operations: Vec<Box<Operation>>,
        options: &AnnotateOptions,
    ) -> Self {
        // Names come from all operations, so that a selection never changes the name of a tool.
        let mut names = names::names(&operations, &options.names);
        let mut diagnostics = Vec::new();
        let mut rule_findings = RuleFindings::default();
        if rules_name_arguments(&options.layers) {
            let given = given_names(document, &operations, &names, options);
            rule_arguments(
                &mut operations,
                &options.layers,
                [&names, &given],
                &mut rule_findings,
            );
        }
        let mut decisions =
            options
                .layers
                .author(options.policy(), document, &operations, &mut diagnostics);
        // Rules know a tool by the name that it has without them, and by its generated name. The
        // latter has no prefix: a prefix from the name of an API must not change what a pattern
        // matches.
        let own = names::without_prefix(&names, &options.names.prefix);
        names::apply_wished_names(
            &mut names,
            &operations,
            &decisions,
            &options.names,
            &mut diagnostics,
        );
        let authored = names.clone();
        options
            .layers
            .operate(&mut decisions, &own, &names, &operations);
        names::apply_wished_names(
            &mut names,
            &operations,
            &decisions,
            &options.names,
            &mut diagnostics,
        );
        diagnostics.extend(names::function_names_note(&operations, &names));
        let [ruled, selected] =
            [&authored, &names].map(|given| NamedOperations::new(&own, given, &operations));
        let idle = selected.idle_includes(&options.selection.idle(&own, &names, &operations));
        diagnostics.extend(
            idle.into_iter()
                .map(|sentence| Diagnostic::warning("#", sentence)),
        );
        let mut unmatched =
            unmatched::unmatched_patterns(&options.selection, &options.confirm, selected);
        unmatched.extend(unmatched::unmatched_rules(&options.layers, ruled));
        unmatched.extend(unmatched::unmatched_access(
            &options.access,
            selected.or_named(&authored),
        ));
        let access = |own: &str, names: [&str; 2], operation: &Operation| {
            let matches = |rule: &AccessRule| {
                names
                    .iter()
                    .any(|name| rule.matches([own, name], operation))
            };
            let rules = options
                .access
                .iter()
                .enumerate()
                .filter(|(_, rule)| matches(rule));
            rules.map(|(place, _)| place).collect()
        };
        let titles: Vec<String> = operations
            .iter()
            .map(|operation| descriptions::title(operation))
            .collect();
        let said = decisions.iter().map(|decision| decision.said.as_ref());
        diagnostics.extend(overrides::allow_slashes(&mut operations, said));
        let said = decisions.iter().map(|decision| decision.said.as_ref());
        unmatched.extend(overrides::wait::rule_waits(&mut operations, said));
        let of_each = operations.into_iter().zip(decisions);
        let candidates = own
            .into_iter()
            .zip(names.into_iter().zip(authored))
            .zip(titles)
            .zip(of_each);
        let candidates = candidates.map(
            |(((own_name, (name, authored)), title), (operation, decision))| Candidate {
                access: access(&own_name, [&name, &authored], &operation),
                own_name,
                name,
                title,
                operation,
                decision,
            },
        );
        Self {
            all: candidates.collect(),
            unmatched,
            diagnostics,
            rule_findings,
        }
    }
}

impl Candidate {
    /// The names by which patterns know it.
    pub(crate) fn names(&self) -> [&str; 2] {
        [&self.own_name, &self.name]
    }

    /// Returns true if the document or the operator disables the tool.
    pub(crate) fn is_disabled(&self) -> bool {
        self.decision.said.enabled == Some(false)
    }

    /// Returns the restriction that its words cause, which other hints would end.
    pub(crate) fn restriction(&self, options: &AnnotateOptions) -> Option<Restriction> {
        let (names, operation, hints) = (self.names(), &self.operation, &self.decision.hints);
        let is_left_out = |hints: &Hints| !options.selection.admits(names, operation, hints);
        let is_free =
            |hints: &Hints| !is_left_out(hints) && !options.confirm.asks(names, operation, hints);
        let by_no_word = options.policy() != Policy::Careful
            && self.decision.wording.strict() == Some(Reason::Default);
        let is_default = |hint: Hint| {
            hints
                .get(hint)
                .is_some_and(|sourced| sourced.reason == Reason::Default)
        };
        let is_cause =
            |hint: Hint| word_of(hints, hint).is_some() || by_no_word && is_default(hint);
        let mut freeing = [(Hint::Destructive, false), (Hint::ReadOnly, true)]
            .into_iter()
            .filter(|(hint, _)| is_cause(*hint))
            .peekable();
        // Patterns are matched only where words say something.
        freeing.peek()?;
        if is_free(hints) {
            return None;
        }
        let frees = freeing.find(|(hint, value)| {
            let mut freed = *hints;
            freed.set(*hint, *value, Reason::CommandLine);
            freed.settle();
            is_free(&freed)
        })?;
        Some(Restriction {
            tool: self.name.clone(),
            label: text::one_line(&operation.label()),
            pointer: operation.pointer.clone(),
            word: word_of(hints, frees.0),
            frees,
            is_left_out: is_left_out(hints),
        })
    }

    /// Returns the detail of its description.
    fn detail(&self, options: &AnnotateOptions) -> DescriptionDetail {
        self.decision.said.describe.unwrap_or(options.describe)
    }

    /// The description of its tool. `replacement` is the name of the tool that replaces it, if it
    /// is deprecated.
    pub(crate) fn description(
        &self,
        document: &Document,
        replacement: Option<&str>,
        options: &AnnotateOptions,
    ) -> String {
        let words = self.decision.said.description.as_deref();
        descriptions::describe(
            document,
            &self.operation,
            words,
            &self.title,
            replacement,
            self.detail(options),
        )
    }
}

/// Returns for each deprecated tool the name of the one that replaces it, if its description names
/// one. Both change data or both only read, and the other needs nothing that the tool does not
/// need, so a client that may list the one may list the other.
pub(crate) fn replacements(
    offered: &[Candidate],
    options: &AnnotateOptions,
) -> Vec<Option<String>> {
    let has = |share: &TokenShare, candidate: &Candidate| {
        share.has(
            &candidate.name,
            &options.names.prefix,
            &candidate.operation,
            &candidate.decision.hints,
        )
    };
    let reads = |candidate: &Candidate| candidate.decision.hints.is_read_only();
    let replacement = |candidate: &Candidate| {
        if candidate.detail(options) != DescriptionDetail::Brief {
            return None;
        }
        let peers = offered.iter().filter(|other| {
            reads(other) == reads(candidate)
                && other
                    .access
                    .iter()
                    .all(|rule| candidate.access.contains(rule))
                && options
                    .shares
                    .iter()
                    .all(|share| !has(share, candidate) || has(share, other))
        });
        let others = peers.map(|other| (other.operation.as_ref(), other.name.as_str()));
        descriptions::replacement(&candidate.operation, others).map(str::to_owned)
    };
    offered.iter().map(replacement).collect()
}

/// Decides how many pages a call of each tool may collect. The diagnostics are about settings that
/// no tool has a use for.
pub(crate) fn offer_pages(
    document: &Document,
    offered: &mut [Candidate],
    options: &AnnotateOptions,
) -> Vec<Diagnostic> {
    let (mut by_setting, mut by_rules) = ((0, options.collect_pages > 0), (0, false));
    for candidate in offered {
        let (setting, most) = match candidate.decision.said.keys.collect_pages {
            Some(most) => (&mut by_rules, most),
            None => (&mut by_setting, options.collect_pages),
        };
        setting.1 |= most > 0;
        let is_file = candidate.decision.said.response.file == Some(true);
        if most > 0
            && !is_file
            && candidate.decision.hints.is_read_only()
            && may_have_next_page(document, &candidate.operation)
        {
            candidate.operation.rules.max_pages = most;
            setting.0 += 1;
        }
    }
    let settings = [
        ("`collect_pages`", by_setting),
        ("`collect_pages` in `overrides`", by_rules),
    ];
    let idle = settings
        .into_iter()
        .filter(|(_, (tools, is_on))| *is_on && *tools == 0);
    let warning = |name: &str| {
        format!(
            "{name} changes no tool: none that it is for only reads and has a parameter or a `Link` header by which it gets the next page"
        )
    };
    idle.map(|(name, _)| Diagnostic::warning("#", warning(name)))
        .collect()
}

/// The names that the document gives to operations, by which rules know them as well.
fn given_names(
    document: &Document,
    operations: &[Box<Operation>],
    own: &[String],
    options: &AnnotateOptions,
) -> Vec<String> {
    let mut given = own.to_vec();
    let decisions = options
        .layers
        .author(options.policy(), document, operations, &mut Vec::new());
    names::apply_wished_names(
        &mut given,
        operations,
        &decisions,
        &options.names,
        &mut Vec::new(),
    );
    given
}

//! The operations of a document before they are described: how each is called, and what was decided
//! about it.

use crate::annotate::hint_review::{Restriction, word_of};
use crate::annotate::layers::{Candidate, Decision};
use crate::annotate::overrides::arguments::{
    RuleFindings, allow_slashes, rule_arguments, rules_name_arguments,
};
use crate::annotate::overrides::unmatched::{self, NamedOperations};
use crate::annotate::{
    AnnotateOptions, DescriptionDetail, Hint, Hints, Policy, Reason, TokenShare, descriptions,
    names, overrides,
};
use crate::spec::operation::response_rule::ResponseRule;
use crate::spec::paging::may_have_next_page;
use crate::spec::{Diagnostic, Document, Operation};
use crate::text;

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
        operations: Vec<Box<Operation>>,
        options: &AnnotateOptions,
    ) -> Self {
        let nothing = Decision::default();
        let new = |operation| Candidate::new(operation, nothing.clone());
        let mut all: Vec<Candidate> = operations.into_iter().map(new).collect();
        names::find_functions(&mut all);
        // Names come from all operations, so that a selection never changes the name of a tool.
        // Rules know a tool by the name that it has without them, and by its generated name. The
        // latter has no prefix: a prefix from the name of an API must not change what a pattern
        // matches.
        let names = names::names(&all, &options.names);
        for (candidate, name) in all.iter_mut().zip(names) {
            let own = name.strip_prefix(&options.names.prefix).unwrap_or(&name);
            own.clone_into(&mut candidate.own_name);
            candidate.name = name;
        }
        let mut diagnostics = Vec::new();
        let mut rule_findings = RuleFindings::default();
        let author = |all: &mut Vec<Candidate>, diagnostics: &mut Vec<Diagnostic>| {
            let layers = &options.layers;
            layers.author(options.policy(), document, all, diagnostics);
            names::apply_wished_names(all, &options.names, diagnostics);
        };
        if rules_name_arguments(&options.layers) {
            author(&mut all, &mut Vec::new());
            rule_arguments(&mut all, &options.layers, &mut rule_findings);
        }
        author(&mut all, &mut diagnostics);
        for candidate in &mut all {
            candidate.authored_name.clone_from(&candidate.name);
        }
        options.layers.operate(&mut all);
        names::apply_wished_names(&mut all, &options.names, &mut diagnostics);
        diagnostics.extend(names::function_names_note(&all));
        let known_by = |names| NamedOperations { all: &all, names };
        let selected = known_by(|one| [&one.own_name, &one.name, &one.name]);
        let ruled = known_by(|one| [&one.own_name, &one.authored_name, &one.authored_name]);
        let idle = selected.idle_includes(&options.selection);
        diagnostics.extend(idle.map(|sentence| Diagnostic::warning("#", sentence)));
        let mut unmatched =
            unmatched::unmatched_patterns(&options.selection, &options.confirm, selected);
        unmatched.extend(unmatched::unmatched_rules(&options.layers, ruled));
        unmatched.extend(unmatched::unmatched_access(
            &options.access,
            known_by(Candidate::all_names),
        ));
        diagnostics.extend(allow_slashes(&mut all));
        // Copies operations, without what rules say of their replies.
        unmatched.extend(overrides::wait::rule_waits(&mut all));
        for candidate in &mut all {
            let rules = options.access.iter().enumerate();
            let names = candidate.all_names();
            candidate.access = rules
                .filter(|(_, rule)| rule.matches(names, &candidate.operation))
                .map(|(place, _)| place)
                .collect();
            // The description of a reply needs the rule for it.
            let (said, rules) = (&candidate.decision.said, &mut candidate.operation.rules);
            rules.validate = said.keys.validate;
            rules.response =
                (said.response != ResponseRule::default()).then(|| said.response.clone());
        }
        Self {
            all,
            unmatched,
            diagnostics,
            rule_findings,
        }
    }
}

impl Candidate {
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
            && self.decision.wording.strict == Some(Reason::Default);
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
        let detail = self.detail(options);
        descriptions::describe(
            document,
            &self.operation,
            words,
            &self.title,
            replacement,
            detail,
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
        let Candidate {
            name,
            operation,
            decision,
            ..
        } = candidate;
        share.has(name, &options.names.prefix, operation, &decision.hints)
    };
    let reads = |candidate: &Candidate| candidate.decision.hints.is_read_only();
    let replacement = |candidate: &Candidate| {
        if candidate.detail(options) != DescriptionDetail::Brief {
            return None;
        }
        let peers = offered.iter().filter(|other| {
            let (mut rules, mut shares) = (other.access.iter(), options.shares.iter());
            reads(other) == reads(candidate)
                && rules.all(|rule| candidate.access.contains(rule))
                && shares.all(|share| !has(share, candidate) || has(share, other))
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
        let decision = &candidate.decision;
        if most > 0
            && decision.said.response.file != Some(true)
            && decision.hints.is_read_only()
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
    let warning = |(name, (tools, is_on))| {
        let what = format!(
            "{name} changes no tool: none that it is for only reads and has a parameter or a `Link` header by which it gets the next page"
        );
        (is_on && tools == 0).then(|| Diagnostic::warning("#", what))
    };
    settings.into_iter().filter_map(warning).collect()
}

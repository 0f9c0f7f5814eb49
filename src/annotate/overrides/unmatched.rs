//! Rules of the operator that match no operation. A misspelt safety rule would protect nothing,
//! without a message.

use std::collections::BTreeSet;

use crate::annotate::layers::{AccessRule, Candidate, Layers, Rule};
use crate::annotate::options::Confirm;
use crate::annotate::selection::{Pattern, PatternField, Selection};
use crate::spec::Operation;
use crate::spec::operation::reader::METHODS;
use crate::text::{self, is_word_of};

/// All operations of the document, before any is selected, with the names that patterns know them
/// by.
#[derive(Clone, Copy)]
pub(crate) struct NamedOperations<'o> {
    pub(crate) all: &'o [Candidate],
    pub(crate) names: fn(&Candidate) -> [&str; 3],
}

/// A sentence for each pattern of `--tool-exclude` and `--confirm` that matches no operation and is
/// not marked as optional, and for each of `--tool-include` that is the name of a tag or method.
pub(crate) fn unmatched_patterns(
    selection: &Selection,
    confirm: &Confirm,
    named: NamedOperations<'_>,
) -> Vec<String> {
    let levels = &["none", "destructive", "write"][..];
    let mut problems = Vec::new();
    for (setting, words, patterns) in [
        ("--tool-exclude", &[][..], &selection.exclude),
        ("--confirm", levels, &confirm.patterns),
        ("--tool-include", &[][..], &selection.include),
    ] {
        for pattern in patterns.iter().filter(|pattern| named.lacks(pattern)) {
            if setting == "--tool-include" && named.tag_or_method(pattern).is_none() {
                continue;
            }
            let hint = named.describe_nearest(pattern, words);
            problems.push(format!("{setting} `{pattern}` matches no operation of the document{hint}; write `?{pattern}` if it may match nothing"));
        }
    }
    problems
}

/// A sentence for each rule of `overrides` and `--hint` that matches no operation, and for each of
/// its patterns that matches none, unless it is marked as optional.
pub(crate) fn unmatched_rules(layers: &Layers, named: NamedOperations<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in layers.rules.iter().chain(&layers.commands) {
        check_rule(rule, |pattern| named.lacks(pattern), named, &mut problems);
    }
    problems
}

/// The same for rules of `access`, of which one may name methods that the document does not have
/// besides one that it has.
pub(crate) fn unmatched_access(rules: &[AccessRule], named: NamedOperations<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in rules {
        let is_method = |pattern: &Pattern| {
            let glob = pattern.glob_text();
            pattern.field == PatternField::Method && is_word_of(&METHODS.to_ascii_uppercase(), glob)
        };
        check_rule(
            rule,
            |pattern| named.lacks(pattern) && !is_method(pattern),
            named,
            &mut problems,
        );
        if !rule.optional && rule.matches.is_empty() && named.all.is_empty() {
            problems.push(format!(
                "{}: the document has no operation; {} if it may match nothing",
                rule.name, rule.remedy
            ));
        }
    }
    problems
}

fn check_rule<S>(
    rule: &Rule<S>,
    lacks: impl Fn(&Pattern) -> bool,
    named: NamedOperations<'_>,
    problems: &mut Vec<String>,
) {
    let Rule { name, remedy, .. } = rule;
    if rule.optional {
        return;
    }
    let before = problems.len();
    let patterns = || rule.matches.iter().flatten();
    for pattern in patterns().filter(|pattern| lacks(pattern)) {
        let hint = named.describe_nearest(pattern, &[]);
        problems.push(format!(
            "{name}: `{pattern}` matches no operation of the document{hint}; {remedy} if it may match nothing"
        ));
    }
    // Each pattern may match something while nothing matches all of them.
    if before == problems.len()
        && !patterns().any(|pattern| pattern.is_optional)
        && !rule.matches.is_empty()
        && !named.any(|names, operation| rule.matches(names, operation))
    {
        let either = |group: &Vec<Pattern>| {
            let patterns = group.iter().map(|pattern| format!("`{pattern}`"));
            patterns.collect::<Vec<_>>().join(" or ")
        };
        let all: Vec<String> = rule.matches.iter().map(either).collect();
        problems.push(format!(
            "{name}: no operation of the document matches {}{}; {remedy} if it may match nothing",
            all.join(" and "),
            if all.len() > 1 { " together" } else { "" }
        ));
    }
}

impl<'o> NamedOperations<'o> {
    fn any(&self, matches: impl Fn([&str; 3], &Operation) -> bool) -> bool {
        let mut all = self.all.iter();
        all.any(|candidate| matches((self.names)(candidate), &candidate.operation))
    }

    /// Returns true if the pattern must match an operation and matches none.
    fn lacks(&self, pattern: &Pattern) -> bool {
        !pattern.is_optional && !self.any(|names, operation| pattern.matches(names, operation))
    }

    /// Returns a sentence for each pattern of `--tool-include` that matches no operation.
    pub(crate) fn idle_includes(self, selection: &'o Selection) -> impl Iterator<Item = String> {
        let idle = selection
            .include
            .iter()
            .filter(move |pattern| self.lacks(pattern));
        idle.map(move |pattern| {
            let hint = self.describe_nearest(pattern, &[]);
            format!("the pattern `{pattern}` matches no operation{hint}")
        })
    }

    /// Returns `; did you mean …?` if a name in the document, or one of the other words of the
    /// setting, is similar to the pattern.
    fn describe_nearest(&self, pattern: &Pattern, words: &[&str]) -> String {
        let glob = pattern.glob_text();
        let mut values = self.values(pattern.field);
        if pattern.field == PatternField::Operation {
            if glob.starts_with('/') {
                return format!("; did you mean `path:{glob}`?");
            }
            values.extend(words);
        }
        if let Some(meant) = self.tag_or_method(pattern) {
            return format!("; did you mean `{meant}`?");
        }
        if let Some(nearest) = text::nearest(glob, values.iter().copied(), 0.75) {
            return format!("; did you mean `{}{nearest}`?", pattern.prefix());
        }
        String::new()
    }

    /// Returns the pattern that a bare word stands for which is the name of a tag or a method.
    fn tag_or_method(&self, pattern: &Pattern) -> Option<String> {
        let glob = pattern.glob_text();
        let of = |prefix: &str, field| {
            let mut values = self.values(field).into_iter();
            let value = values.find(|value| value.eq_ignore_ascii_case(glob))?;
            Some(format!("{prefix}:{value}"))
        };
        if pattern.field != PatternField::Operation {
            return None;
        }
        of("tag", PatternField::Tag).or_else(|| of("method", PatternField::Method))
    }

    /// Returns the values that patterns of a field can match.
    fn values(&self, field: PatternField) -> BTreeSet<&str> {
        let operations = self.all.iter().map(|candidate| &candidate.operation);
        match field {
            PatternField::Operation => {
                let ids = operations.filter_map(|operation| operation.id.as_deref());
                self.all.iter().flat_map(self.names).chain(ids).collect()
            }
            PatternField::Tag => operations
                .flat_map(|operation| &operation.tags)
                .map(String::as_str)
                .collect(),
            PatternField::Method => operations
                .map(|operation| operation.method.as_str())
                .collect(),
            PatternField::Path => operations
                .map(|operation| operation.path.as_ref())
                .collect(),
        }
    }
}

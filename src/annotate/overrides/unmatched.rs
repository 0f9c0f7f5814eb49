//! Rules of the operator that match no operation. A misspelt safety rule would protect nothing,
//! without a message.

use std::collections::BTreeSet;

use crate::annotate::layers::{AccessRule, Layers, Rule};
use crate::annotate::options::Confirm;
use crate::annotate::selection::{Pattern, PatternField, Selection};
use crate::spec::Operation;
use crate::text;

/// All operations of the document, before any is selected, with the names that patterns know them
/// by.
#[derive(Clone, Copy)]
pub(crate) struct NamedOperations<'o> {
    own: &'o [String],
    given: &'o [String],
    /// Other names that they are known by as well.
    also: &'o [String],
    operations: &'o [Box<Operation>],
}

/// A sentence for each pattern of `--tool-exclude` and `--confirm` that matches no operation and is
/// not marked as optional, and for each of `--tool-include` that is the name of a tag or method.
pub(crate) fn unmatched_patterns(
    selection: &Selection,
    confirm: &Confirm,
    named: NamedOperations<'_>,
) -> Vec<String> {
    let excluded = selection
        .exclude
        .iter()
        .map(|pattern| ("--tool-exclude", &[][..], pattern));
    let levels = &["none", "destructive", "write"][..];
    let confirmed = confirm
        .patterns
        .iter()
        .map(|pattern| ("--confirm", levels, pattern));
    let included = selection
        .include
        .iter()
        .filter(|pattern| named.tag_or_method(pattern).is_some())
        .map(|pattern| ("--tool-include", &[][..], pattern));
    excluded
        .chain(confirmed)
        .chain(included)
        .filter(|(.., pattern)| named.lacks(pattern))
        .map(|(setting, words, pattern)| {
            let hint = named.describe_nearest(pattern, words);
            format!("{setting} `{pattern}` matches no operation of the document{hint}; write `?{pattern}` if it may match nothing")
        })
        .collect()
}

/// A sentence for each rule of `overrides` and `--hint` that matches no operation, and for each of
/// its patterns that matches none, unless it is marked as optional.
pub(crate) fn unmatched_rules(layers: &Layers, named: NamedOperations<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in layers
        .rules
        .iter()
        .chain(&layers.commands)
        .filter(|rule| !rule.optional)
    {
        check_rule(rule, |pattern| named.lacks(pattern), named, &mut problems);
    }
    problems
}

/// The same for rules of `access`, of which one may name methods that the document does not have
/// besides one that it has.
pub(crate) fn unmatched_access(rules: &[AccessRule], named: NamedOperations<'_>) -> Vec<String> {
    let mut problems = Vec::new();
    for rule in rules.iter().filter(|rule| !rule.optional) {
        let is_method = |pattern: &Pattern| {
            pattern.field == PatternField::Method && METHODS.contains(&pattern.glob_text())
        };
        check_rule(
            rule,
            |pattern| named.lacks(pattern) && !is_method(pattern),
            named,
            &mut problems,
        );
        if rule.matches.is_empty() && named.operations.is_empty() {
            problems.push(format!(
                "{}: the document has no operation; {} if it may match nothing",
                rule.name, rule.remedy
            ));
        }
    }
    problems
}

const METHODS: [&str; 8] = [
    "GET", "PUT", "POST", "DELETE", "OPTIONS", "HEAD", "PATCH", "TRACE",
];

fn check_rule<S>(
    rule: &Rule<S>,
    lacks: impl Fn(&Pattern) -> bool,
    named: NamedOperations<'_>,
    problems: &mut Vec<String>,
) {
    let Rule { name, remedy, .. } = rule;
    let before = problems.len();
    for pattern in rule.matches.iter().flatten() {
        if lacks(pattern) {
            let hint = named.describe_nearest(pattern, &[]);
            problems.push(format!(
                "{name}: `{pattern}` matches no operation of the document{hint}; {remedy} if it may match nothing"
            ));
        }
    }
    // Each pattern may match something while nothing matches all of them.
    let is_optional = rule
        .matches
        .iter()
        .flatten()
        .any(|pattern| pattern.is_optional);
    if before == problems.len()
        && !is_optional
        && !rule.matches.is_empty()
        && !named.any(|names, operation| rule.matches(names, operation))
    {
        let groups = rule
            .matches
            .iter()
            .map(|group| group.iter().map(|pattern| format!("`{pattern}`")));
        let all: Vec<String> = groups
            .map(|group| group.collect::<Vec<_>>().join(" or "))
            .collect();
        problems.push(format!(
            "{name}: no operation of the document matches {}{}; {remedy} if it may match nothing",
            all.join(" and "),
            if all.len() > 1 { " together" } else { "" }
        ));
    }
}

impl<'o> NamedOperations<'o> {
    /// The operations with the names that they have by themselves, and those that they were given.
    pub(crate) fn new(
        own: &'o [String],
        given: &'o [String],
        operations: &'o [Box<Operation>],
    ) -> Self {
        Self {
            own,
            given,
            also: &[],
            operations,
        }
    }

    /// The same, which are known by these names as well.
    pub(crate) fn or_named(self, also: &'o [String]) -> Self {
        Self { also, ..self }
    }

    fn any(&self, matches: impl Fn([&str; 2], &Operation) -> bool) -> bool {
        let by = |names: &[String]| {
            let mut all = self.own.iter().zip(names).zip(self.operations);
            all.any(|((own, name), operation)| matches([own, name], operation))
        };
        by(self.given) || by(self.also)
    }

    /// Returns true if the pattern must match an operation and matches none.
    fn lacks(&self, pattern: &Pattern) -> bool {
        !pattern.is_optional && !self.any(|names, operation| pattern.matches(names, operation))
    }

    /// Returns a sentence for each pattern of `--tool-include` that matches no operation.
    pub(crate) fn idle_includes(&self, idle: &[&Pattern]) -> Vec<String> {
        let sentence = |pattern: &&Pattern| {
            format!(
                "the pattern `{pattern}` matches no operation{}",
                self.describe_nearest(pattern, &[])
            )
        };
        idle.iter().map(sentence).collect()
    }

    /// Returns `; did you mean …?` if a name in the document, or one of the other words of the
    /// setting, is similar to the pattern.
    fn describe_nearest(&self, pattern: &Pattern, words: &[&str]) -> String {
        let mut values = self.values(pattern.field);
        values.extend(
            words
                .iter()
                .copied()
                .filter(|_| pattern.field == PatternField::Operation),
        );
        let glob = pattern.glob_text();
        if pattern.field == PatternField::Operation && glob.starts_with('/') {
            return format!("; did you mean `path:{glob}`?");
        }
        if let Some(meant) = self.tag_or_method(pattern) {
            return format!("; did you mean `{meant}`?");
        }
        if let Some(nearest) = text::nearest(glob, values.iter().copied(), 0.75) {
            let prefix = pattern.prefix();
            return format!("; did you mean `{prefix}{nearest}`?");
        }
        String::new()
    }

    /// Returns the pattern that a bare word stands for which is the name of a tag or a method.
    fn tag_or_method(&self, pattern: &Pattern) -> Option<String> {
        let glob = pattern.glob_text();
        let fields = [("tag", PatternField::Tag), ("method", PatternField::Method)];
        let mut fields = fields
            .into_iter()
            .filter(|_| pattern.field == PatternField::Operation);
        fields.find_map(|(prefix, field)| {
            let values = self.values(field);
            let value = values
                .iter()
                .find(|value| value.eq_ignore_ascii_case(glob))?;
            Some(format!("{prefix}:{value}"))
        })
    }

    /// Returns the values that patterns of a field can match.
    fn values(&self, field: PatternField) -> BTreeSet<&str> {
        let operations = self.operations.iter();
        match field {
            PatternField::Operation => {
                let ids = operations.filter_map(|operation| operation.id.as_deref());
                self.own
                    .iter()
                    .chain(self.given)
                    .chain(self.also)
                    .map(String::as_str)
                    .chain(ids)
                    .collect()
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

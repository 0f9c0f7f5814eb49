//! Application of rules for arguments to the operations, before anything else reads them: an
//! argument that no call gives is then not evidence for hints, and no word of it reaches a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;

use super::ruled_schema::RuledSchema;
use crate::annotate::layers::{Candidate, Layers};
use crate::spec::operation::request_body::{BODY, BodySchema, CHOICE, MediaType};
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, FixedParameter, Validation};
use crate::spec::{Diagnostic, Location, MediaKind, Operation, argument_names};

/// Faults of rules for arguments. A rule for an argument that no operation has would otherwise be
/// ignored without a message.
#[derive(Default)]
pub(crate) struct RuleFindings {
    /// True for each rule and argument if an operation has the argument.
    found: BTreeMap<(String, String), bool>,
    problems: Vec<String>,
}

impl RuleFindings {
    /// Notes whether an operation has the argument of a rule.
    fn note(&mut self, rule: &ArgumentRule, is_there: bool) {
        for (origin, _) in rule.origins.iter().filter(|(_, optional)| !optional) {
            *self
                .found
                .entry((origin.clone(), rule.target.to_string()))
                .or_default() |= is_there;
        }
    }

    /// Notes what became of the rules for properties of a body.
    pub(crate) fn note_properties(&mut self, ruled: &RuledSchema) {
        for property in &ruled.properties {
            self.note(&property.rule, true);
        }
        for rule in &ruled.absent {
            self.note(rule, false);
        }
        for problem in &ruled.problems {
            if !self.problems.contains(problem) {
                self.problems.push(problem.clone());
            }
        }
    }

    /// A sentence for each problem.
    pub(crate) fn into_problems(self) -> impl Iterator<Item = String> {
        let missing = self.found.into_iter().filter(|(_, is_there)| !is_there);
        let missing = missing.map(|((origin, target), _)| {
            format!(
                "{origin}: no operation that it matches has the argument `{target}`; add `optional: true` to the rule if none may have it"
            )
        });
        missing.chain(self.problems)
    }
}

/// Returns true if any rule applies to arguments.
pub(crate) fn rules_name_arguments(layers: &Layers) -> bool {
    layers
        .rules
        .iter()
        .any(|rule| !rule.says.arguments.is_empty())
}

/// Notes in each operation what the rules that match it set for its arguments, and takes away those
/// that no call gives.
pub(crate) fn rule_arguments(
    candidates: &mut [Candidate],
    layers: &Layers,
    findings: &mut RuleFindings,
) {
    for candidate in candidates {
        let mut rules: Vec<ArgumentRule> = Vec::new();
        let mut lenient = None;
        for rule in layers
            .rules
            .iter()
            .filter(|rule| rule.matches(candidate.names(), &candidate.operation))
        {
            match rule.says.keys.validate {
                Some(Validation::Lenient) => lenient = Some(rule.name.as_str()),
                Some(Validation::Strict) => lenient = None,
                None => {}
            }
            for later in &rule.says.arguments {
                match rules
                    .iter_mut()
                    .find(|rule| is_same_target(&rule.target, &later.target))
                {
                    Some(rule) => rule.take(later.clone()),
                    None => rules.push(later.clone()),
                }
            }
        }
        let operation = &mut *candidate.operation;
        for rule in rules {
            apply_rule(operation, rule, findings);
        }
        close_body(operation, findings);
        if let (Some(lenient), Some(closed)) = (lenient, closed_property(operation)) {
            findings.problems.push(format!(
                "{lenient}: `validate: lenient` does not go together with `{closed}` of {}, which no call gives: a body that does not fit could hold it in another place",
                operation.label()
            ));
        }
        findings.problems.extend(closed_in_lenient(operation));
    }
}

/// Marks the path parameters whose values may hold slashes. A name that is not a path parameter of
/// any operation of its rule is a finding.
pub(crate) fn allow_slashes(candidates: &mut [Candidate]) -> Vec<Diagnostic> {
    let mut is_known: BTreeMap<&str, bool> = BTreeMap::new();
    for candidate in candidates {
        for name in &candidate.decision.said.keys.slashes {
            let mut parameters = candidate.operation.parameters.iter_mut();
            let found = parameters.find(|parameter| parameter.is(Location::Path, name));
            *is_known.entry(name).or_default() |= found.is_some();
            if let Some(parameter) = found {
                Arc::make_mut(parameter).slashes = true;
            }
        }
    }
    let unknown = is_known.into_iter().filter(|(_, is_known)| !is_known);
    let warning = |name: &str| {
        let what = format!(
            "`slashes` in `overrides` names `{name}`, which is not a path parameter of any operation that its rule matches"
        );
        Diagnostic::warning("#", what)
    };
    unknown.map(|(name, _)| warning(name)).collect()
}

/// A property of the body that no call gives.
fn closed_property(operation: &Operation) -> Option<&ArgumentTarget> {
    let mut targets = operation
        .rules
        .arguments
        .iter()
        .filter(|rule| rule.is_closed());
    let closed = targets.find(|rule| is_of_body(rule));
    closed.map(|rule| &rule.target)
}

fn is_of_body(rule: &ArgumentRule) -> bool {
    matches!(rule.target, ArgumentTarget::Body(_))
}

/// Describes a property that no call gives, but which is within one that takes any value.
fn closed_in_lenient(operation: &Operation) -> Option<String> {
    let rules = &operation.rules.arguments;
    let lenient = rules.iter().filter(|rule| rule.lenient == Some(true));
    let mut pairs = lenient.filter_map(|lenient| {
        let ArgumentTarget::Body(around) = &lenient.target else {
            return None;
        };
        let is_within = |target: &ArgumentTarget| matches!(target, ArgumentTarget::Body(steps) if steps.starts_with(around));
        let mut closed = rules.iter().filter(|rule| rule.is_closed());
        Some((lenient, closed.find(|rule| is_within(&rule.target))?))
    });
    let (lenient, closed) = pairs.next()?;
    Some(format!(
        "{}: `validate: lenient` of `{}` does not go together with `{}` of {}, which no call gives: a value that does not fit could hold it in another place",
        lenient.origin(),
        lenient.target,
        closed.target,
        operation.label()
    ))
}

/// Names of headers have no case (RFC 9110 section 5.1).
fn is_same_target(one: &ArgumentTarget, other: &ArgumentTarget) -> bool {
    match (one, other) {
        (
            ArgumentTarget::Parameter(Location::Header, one),
            ArgumentTarget::Parameter(Location::Header, other),
        ) => one.eq_ignore_ascii_case(other),
        _ => one == other,
    }
}

fn apply_rule(operation: &mut Operation, rule: ArgumentRule, findings: &mut RuleFindings) {
    let label = operation.label();
    let mut problems = Vec::new();
    let mut refuse = |why: &str| problems.push(rule.refusal(&label, why));
    if rule.value.is_some() && rule.default.is_some() {
        let why = "has both `value`, which is always sent, and `default`; leave one of them out";
        refuse(why);
    }
    if rule.is_closed() && rule.required.is_some() {
        let why = "is given by no call, so that `required` says nothing; leave it out";
        refuse(why);
    }
    if rule.is_closed() && rule.lenient == Some(true) {
        let why = "is given by no call, so that `validate: lenient` says nothing; leave it out";
        refuse(why);
    }
    let ArgumentTarget::Parameter(location, name) = &rule.target else {
        findings.problems.append(&mut problems);
        operation.rules.arguments.push(rule);
        return;
    };
    let mut parameters = operation.parameters.iter();
    let index = parameters.position(|parameter| parameter.is(*location, name));
    findings.note(&rule, index.is_some());
    let Some(index) = index else { return };
    if *location == Location::Path && rule.required == Some(false) && rule.default.is_none() {
        let why = "is part of the path: it needs a `default` to be optional";
        refuse(why);
    }
    let repeats_key = *location == Location::Header && name.eq_ignore_ascii_case("idempotency-key");
    let closed = rule.closed_source();
    if repeats_key
        && closed.as_ref().is_some_and(|source| !source.is_of_client())
        && [Method::POST, Method::PATCH].contains(&operation.method)
    {
        let why = "would be the same in every call, so that the API takes every call for a repetition of the first";
        refuse(why);
    }
    if rule.is_closed() {
        let parameter = operation.parameters.remove(index);
        if closed.is_none() && parameter.required && parameter.default.is_none() {
            refuse("is required: hide it only with `value` or `default`");
        }
        operation.rules.fixed.push(FixedParameter {
            parameter,
            source: closed,
        });
    } else {
        let taken = |key: &str| {
            let mut others = operation.all_parameters().enumerate();
            others.any(|(other, parameter)| other != index && parameter.key == key)
                || [BODY, CHOICE].contains(&key)
                || [operation.filter_key(), operation.pages_key()].contains(&key.to_owned())
        };
        let name = rule.name.as_deref().filter(|name| {
            let is_usable = argument_names::is_legal(name) && !taken(name);
            if !is_usable {
                let why = format!(
                    "cannot be called `{name}`: the name is taken, or holds characters that names of arguments cannot have"
                );
                refuse(&why);
            }
            is_usable
        });
        if let Some(parameter) = operation.parameters.get_mut(index).map(Arc::make_mut) {
            if let Some(name) = name {
                name.clone_into(&mut parameter.key);
            }
            parameter.description = rule.description.clone().or(parameter.description.take());
            parameter.default = rule.default.clone().or(parameter.default.take());
            parameter.required = rule.required.unwrap_or(parameter.required);
        }
    }
    findings.problems.append(&mut problems);
    operation.rules.arguments.push(rule);
}

/// Removes the media types in which a property could be given in another way, or not be set. If
/// none is left, the rules for properties match nothing here.
fn close_body(operation: &mut Operation, findings: &mut RuleFindings) {
    if !operation.rules.arguments.iter().any(is_of_body) {
        return;
    }
    let carries = |media_type: &MediaType| {
        matches!(
            media_type.kind,
            MediaKind::Json | MediaKind::Form | MediaKind::Multipart
        ) && matches!(media_type.schema, BodySchema::At(_) | BodySchema::Fields(_))
            && media_type.positions.0.is_empty()
    };
    let Some(body) = operation
        .body
        .as_mut()
        .filter(|body| body.media_types().any(carries))
    else {
        operation.rules.arguments.retain(|rule| {
            if is_of_body(rule) {
                findings.note(rule, false);
            }
            !is_of_body(rule)
        });
        return;
    };
    body.alternatives.retain(carries);
    if !carries(&body.media_type) && !body.alternatives.is_empty() {
        body.media_type = body.alternatives.remove(0);
    }
    if body.alternatives.is_empty() {
        body.choice = String::new();
    }
    let is_left = |name: &String| {
        body.alternatives
            .iter()
            .any(|media_type| media_type.name == *name)
    };
    body.for_lists = body.for_lists.take().filter(is_left);
}

//! Application of rules for arguments to the operations, before anything else reads them: an
//! argument that no call gives is then not evidence for hints, and no word of it reaches a model.

use std::collections::BTreeMap;
use std::sync::Arc;

use http::Method;

use super::ruled_schema::RuledSchema;
use crate::annotate::layers::Layers;
use crate::spec::operation::request_body::{BODY, BodySchema, CHOICE, MediaType};
use crate::spec::operation::rules::{ArgumentRule, ArgumentTarget, FixedParameter, Validation};
use crate::spec::{Location, MediaKind, Operation, argument_names};

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
        ruled
            .properties
            .iter()
            .for_each(|property| self.note(&property.rule, true));
        ruled.absent.iter().for_each(|rule| self.note(rule, false));
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
/// that no call gives. Operations are known by their `own` names, and by those that the document
/// has `given` them.
pub(crate) fn rule_arguments(
    operations: &mut [Box<Operation>],
    layers: &Layers,
    [own, given]: [&[String]; 2],
    findings: &mut RuleFindings,
) {
    for ((operation, own), given) in operations.iter_mut().zip(own).zip(given) {
        let mut rules: Vec<ArgumentRule> = Vec::new();
        let mut lenient = None;
        for rule in layers
            .rules
            .iter()
            .filter(|rule| rule.matches([own, given], operation))
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

/// A property of the body that no call gives.
fn closed_property(operation: &Operation) -> Option<&ArgumentTarget> {
    let mut closed = operation
        .rules
        .arguments
        .iter()
        .filter(|rule| rule.is_closed());
    let is_of_body = |rule: &&ArgumentRule| matches!(rule.target, ArgumentTarget::Body(_));
    closed.find(is_of_body).map(|rule| &rule.target)
}

/// Describes a property that no call gives, but which is within one that takes any value.
fn closed_in_lenient(operation: &Operation) -> Option<String> {
    let steps = |rule: &ArgumentRule| match &rule.target {
        ArgumentTarget::Body(steps) => Some(steps.clone()),
        ArgumentTarget::Parameter(..) => None,
    };
    let rules = &operation.rules.arguments;
    rules.iter().filter(|rule| rule.lenient == Some(true)).find_map(|lenient| {
        let around = steps(lenient)?;
        let is_within = |rule: &&ArgumentRule| rule.is_closed() && steps(rule).is_some_and(|steps| steps.starts_with(&around));
        let closed = rules.iter().find(is_within)?;
        let origin = lenient.origins.last().map(|(origin, _)| origin.as_str()).unwrap_or_default();
        Some(format!(
            "{origin}: `validate: lenient` of `{}` does not go together with `{}` of {}, which no call gives: a value that does not fit could hold it in another place",
            lenient.target,
            closed.target,
            operation.label()
        ))
    })
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
    let mut refuse = |why: &str| {
        let origin = rule
            .origins
            .last()
            .map(|(origin, _)| origin.as_str())
            .unwrap_or_default();
        problems.push(format!("{origin}: `{}` of {label} {why}", rule.target));
    };
    if rule.value.is_some() && rule.default.is_some() {
        refuse("has both `value`, which is always sent, and `default`; leave one of them out");
    }
    if rule.is_closed() && rule.required.is_some() {
        refuse("is given by no call, so that `required` says nothing; leave it out");
    }
    if rule.is_closed() && rule.lenient == Some(true) {
        refuse("is given by no call, so that `validate: lenient` says nothing; leave it out");
    }
    let ArgumentTarget::Parameter(location, name) = &rule.target else {
        findings.problems.append(&mut problems);
        operation.rules.arguments.push(rule);
        return;
    };
    let Some(index) = operation
        .parameters
        .iter()
        .position(|parameter| parameter.is(*location, name))
    else {
        findings.note(&rule, false);
        return;
    };
    findings.note(&rule, true);
    if *location == Location::Path && rule.required == Some(false) && rule.default.is_none() {
        refuse("is part of the path: it needs a `default` to be optional");
    }
    let repeats_key = *location == Location::Header && name.eq_ignore_ascii_case("idempotency-key");
    let closed = rule.closed_source();
    if repeats_key
        && closed.as_ref().is_some_and(|source| !source.is_of_client())
        && [Method::POST, Method::PATCH].contains(&operation.method)
    {
        refuse(
            "would be the same in every call, so that the API takes every call for a repetition of the first",
        );
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
            let others = operation
                .parameters
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != index);
            let keys = others.map(|(_, parameter)| parameter.key.as_str());
            let fixed = operation
                .rules
                .fixed
                .iter()
                .map(|fixed| fixed.parameter.key.as_str());
            let (filter, pages) = (operation.filter_key(), operation.pages_key());
            let reserved = [BODY, CHOICE, filter.as_str(), pages.as_str()];
            keys.chain(fixed).chain(reserved).any(|other| other == key)
        };
        let name = rule.name.as_deref().filter(|name| {
            let is_usable = argument_names::is_legal(name) && !taken(name);
            if !is_usable {
                refuse(&format!(
                    "cannot be called `{name}`: the name is taken, or holds characters that names of arguments cannot have"
                ));
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
    let is_of_body = |rule: &ArgumentRule| matches!(rule.target, ArgumentTarget::Body(_));
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

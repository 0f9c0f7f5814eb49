//! Operations that rules `wait` name: they are looked up among all operations of the document, also
//! those without a tool.

use std::sync::Arc;

use http::Method;

use crate::annotate::layers::Candidate;
use crate::spec::operation::rules::{NamedRead, WaitRule};
use crate::spec::{Location, Operation};
use crate::text::one_line;

/// Notes in each operation what rules say of waiting. Returns a sentence for each named operation
/// that is not there.
pub(crate) fn rule_waits(candidates: &mut [Candidate]) -> Vec<String> {
    let mut problems = Vec::new();
    let said = candidates.iter().enumerate();
    let said = said.filter_map(|(place, one)| Some((place, one.decision.said.wait.clone()?)));
    let said: Vec<(usize, WaitRule)> = said.collect();
    for (place, wait) in said {
        let mut found = Vec::new();
        if let WaitRule::Wait(settings) = &wait {
            for named in settings.named_reads() {
                match find_named(named, candidates) {
                    Ok(operation) => found.push((named.name.clone(), Arc::new(operation.clone()))),
                    Err(problem) if problems.contains(&problem) => {}
                    Err(problem) => problems.push(problem),
                }
            }
        }
        if let Some(Candidate { operation, .. }) = candidates.get_mut(place) {
            operation.rules.wait = Some(wait);
            operation.waits_by = found;
        }
    }
    problems
}

/// Finds the operation that a rule names, with all parameters that the rule names.
///
/// # Errors
/// A sentence that says what is not there.
fn find_named<'o>(named: &NamedRead, candidates: &'o [Candidate]) -> Result<&'o Operation, String> {
    let is_named = |operation: &&Operation| {
        operation.method == Method::GET
            && (operation.id.as_deref() == Some(named.name.as_str())
                || operation.label() == named.name)
    };
    let name = one_line(&named.name);
    let Some(operation) = candidates.iter().map(|one| &*one.operation).find(is_named) else {
        return Err(format!(
            "`wait` in `overrides` names the operation `{name}`, and the document has no GET with that operationId, or that method and path"
        ));
    };
    let is_missing = |(location, name, _): &&(Location, String, String)| {
        let mut parameters = operation.parameters.iter();
        !parameters.any(|parameter| parameter.is(*location, name))
    };
    match named.arguments.iter().find(is_missing) {
        Some((location, argument, _)) => Err(format!(
            "`wait` in `overrides` names the argument `{}:{}` of `{name}`, which it does not have",
            location.as_str(),
            one_line(argument)
        )),
        None => Ok(operation),
    }
}

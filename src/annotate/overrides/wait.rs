//! Operations that rules `wait` name: they are looked up among all operations of the document, also
//! those without a tool.

use std::sync::Arc;

use http::Method;

use super::Override;
use crate::spec::operation::rules::{NamedRead, WaitRule};
use crate::spec::{Location, Operation};
use crate::text::one_line;

/// Notes in each operation what rules say of waiting. Returns a sentence for each named operation
/// that is not there.
pub(crate) fn rule_waits<'s>(
    operations: &mut [Box<Operation>],
    said: impl Iterator<Item = &'s Override>,
) -> Vec<String> {
    let mut problems = Vec::new();
    let said: Vec<(usize, &WaitRule)> = said
        .enumerate()
        .filter_map(|(place, said)| Some((place, said.wait.as_ref()?)))
        .collect();
    for (place, wait) in said {
        let mut found = Vec::new();
        if let WaitRule::Wait(settings) = wait {
            for named in settings.named_reads() {
                match find_named(named, operations) {
                    Ok(operation) => found.push((named.name.clone(), Arc::new(operation.clone()))),
                    Err(problem) if problems.contains(&problem) => {}
                    Err(problem) => problems.push(problem),
                }
            }
        }
        if let Some(operation) = operations.get_mut(place) {
            operation.rules.wait = Some(wait.clone());
            operation.waits_by = found;
        }
    }
    problems
}

/// Finds the operation that a rule names, with all parameters that the rule names.
///
/// # Errors
/// A sentence that says what is not there.
fn find_named<'o>(
    named: &NamedRead,
    operations: &'o [Box<Operation>],
) -> Result<&'o Operation, String> {
    let is_named = |operation: &&Operation| {
        operation.method == Method::GET
            && (operation.id.as_deref() == Some(named.name.as_str())
                || operation.label() == named.name)
    };
    let name = one_line(&named.name);
    let Some(operation) = operations.iter().map(Box::as_ref).find(is_named) else {
        return Err(format!(
            "`wait` in `overrides` names the operation `{name}`, and the document has no GET with that operationId, or that method and path"
        ));
    };
    let has = |location: Location, name: &str| {
        operation
            .parameters
            .iter()
            .any(|parameter| parameter.is(location, name))
    };
    match named
        .arguments
        .iter()
        .find(|(location, name, _)| !has(*location, name))
    {
        Some((location, argument, _)) => Err(format!(
            "`wait` in `overrides` names the argument `{}:{}` of `{name}`, which it does not have",
            location.as_str(),
            one_line(argument)
        )),
        None => Ok(operation),
    }
}

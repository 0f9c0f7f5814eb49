//! Operations that rules `wait` name: they are looked up among all operations of the document, also those without a tool.

use std::sync::Arc;

use http::Method;

use super::Override;
use crate::spec::Operation;
use crate::spec::operation::rules::WaitRule;
use crate::text::one_line;

/// Notes in each operation what rules say of waiting. Returns a sentence for each named operation that is not there.
pub(crate) fn rule_waits<'s>(operations: &mut [Box<Operation>], said: impl Iterator<Item = &'s Override>) -> Vec<String> {
    let mut problems = Vec::new();
    let said: Vec<(usize, &WaitRule)> = said
        .enumerate()
        .filter_map(|(place, said)| Some((place, said.wait.as_ref()?)))
        .collect();
    for (place, wait) in said {
        let mut found = Vec::new();
        if let WaitRule::Wait(settings) = wait {
            for named in settings.named_reads() {
                let is_named = |operation: &&Box<Operation>| {
                    operation.method == Method::GET
                        && (operation.id.as_deref() == Some(named.name.as_str()) || operation.label() == named.name)
                };
                if let Some(operation) = operations.iter().find(is_named) {
                    found.push((named.name.clone(), Arc::new(Operation::clone(operation))));
                    continue;
                }
                let problem = format!(
                    "`wait` in `overrides` names the operation `{}`, and the document has no GET with that operationId, or that method and path",
                    one_line(&named.name)
                );
                if !problems.contains(&problem) {
                    problems.push(problem);
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

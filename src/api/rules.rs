//! Effects of an operator's rules on an API as a whole.

use secrecy::SecretString;

use crate::annotate::Rule;
use crate::spec::operation::rules::ValueSource;
use crate::spec::{Diagnostic, Severity};

/// Returns the values of a rule that only the API may read.
pub(super) fn rule_secrets(rule: &Rule) -> impl Iterator<Item = SecretString> {
    rule.says
        .arguments
        .iter()
        .filter_map(|argument| match &argument.value {
            Some(ValueSource::Secret { value, .. }) => Some(value.clone()),
            _ => None,
        })
}

/// Rules cannot match operations that cannot be read.
pub(super) fn explain_unmatched(
    mut unmatched: Vec<String>,
    diagnostics: &[Diagnostic],
) -> Vec<String> {
    let lost = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count();
    if lost > 0 {
        unmatched.push(format!(
            "{lost} operations of the document are left out, and no rule matches them; `openapi-mcp check` without these rules lists them"
        ));
    }
    unmatched
}

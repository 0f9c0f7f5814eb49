//! The key `response` of a rule of `overrides`: what of a reply a model gets.

use serde_json::Value;

use crate::config::problems::{Disclosure, Problems, join_path, read_all};
use crate::results::filter::check_program;
use crate::spec::operation::response_rule::ResponseRule;

/// Reads the key `response` of the rule at `path`; what is wrong with it is pushed to `problems`.
pub(super) fn read_response(path: &str, value: &Value, problems: &mut Problems) -> ResponseRule {
    let path = join_path(path, "response");
    let read: Option<ResponseRule> = read_all(&path, value, Disclosure::Shown, problems);
    let rule = read.unwrap_or_default();
    if let Some(program) = &rule.jq {
        problems.ok(format!("`{path}.jq`"), check_program(program));
    }
    rule
}

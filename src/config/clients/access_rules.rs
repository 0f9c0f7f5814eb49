//! The rules of `access` in the configuration file, which decide who may list and call which
//! operations of an API.

use serde_json::Value;

use super::claims::{check_scopes, read_wanted_claims};
use crate::annotate::AccessRule;
use crate::config::keys::wrong_value::{Disclosure, FileProblems, join_path};
use crate::config::overrides::{read_match, read_optional};
use crate::config::transport::Transport;
use crate::spec::operation::rules::AccessDemand;

/// Key `access`, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) struct AccessSchema {
    /// Rules of what callers need for the operations that match; all that match must be met. Only
    /// in the configuration file.
    access: Option<Vec<AccessRuleSchema>>,
}

/// Rule of `access`, for the published schema.
#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
#[expect(dead_code, reason = "only its shape counts")]
struct AccessRuleSchema {
    /// The operations that the rule applies to: all that match a glob of each key; without it, all
    /// operations
    #[schemars(rename = "match")]
    matches: Option<crate::config::overrides::MatchSchema>,
    /// True if the rule may match no operation; otherwise that is an error
    optional: Option<bool>,
    /// The scopes of which the token must have one
    scopes: Option<crate::config::overrides::Globs>,
    /// For each claim, by its name or its JSON Pointer, the values of which the token must have one
    claims: Option<std::collections::BTreeMap<String, ClaimValues>>,
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum ClaimValues {
    One(ClaimValue),
    Any(Vec<ClaimValue>),
}

#[cfg(test)]
#[derive(schemars::JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum ClaimValue {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// Reads the rules of the key `access`; errors are pushed to `problems`.
pub(crate) fn read_access(value: &Value, problems: &mut FileProblems<'_>) -> Vec<AccessRule> {
    let Value::Array(rules) = value else {
        problems.push_wrong_value("access", value, "a list of rules", Disclosure::Shown);
        return Vec::new();
    };
    let rules = rules.iter().enumerate();
    rules
        .filter_map(|(index, rule)| read_rule(&format!("access[{index}]"), rule, problems))
        .collect()
}

fn read_rule(path: &str, value: &Value, problems: &mut FileProblems<'_>) -> Option<AccessRule> {
    let Value::Object(members) = value else {
        problems.push_wrong_value(
            path,
            value,
            "a mapping with `match`, and `scopes` or `claims`",
            Disclosure::Shown,
        );
        return None;
    };
    let before = problems.problems.len();
    let (mut matches, mut optional, mut says) = (Vec::new(), false, AccessDemand::default());
    for (key, value) in members {
        match key.as_str() {
            "match" => matches = read_match(path, value, problems),
            "optional" => optional = read_optional(path, value, problems),
            "scopes" => says.scopes = read_scopes(&join_path(path, key), value, problems),
            "claims" => says.claims = read_wanted_claims(&join_path(path, key), value, problems),
            _ => problems.push_unknown_key(path, key, ["match", "optional", "scopes", "claims"]),
        }
    }
    if problems.problems.len() == before && says == AccessDemand::default() {
        problems.push(format!(
            "`{path}` asks for nothing; add `scopes` or `claims`"
        ));
    }
    Some(AccessRule {
        name: format!("`{path}`"),
        remedy: "add `optional: true` to the rule".into(),
        optional,
        matches,
        says,
    })
}

/// Reads a list of scopes, or one.
pub(super) fn read_scopes(
    path: &str,
    value: &Value,
    problems: &mut FileProblems<'_>,
) -> Vec<String> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let read = match value {
        Value::Array(scopes) => scopes.iter().map(text).collect(),
        single => text(single).map(|scope| vec![scope]),
    };
    let Some(scopes): Option<Vec<String>> = read else {
        problems.push_wrong_value(
            path,
            value,
            "a list of scopes, as in [admin]",
            Disclosure::Shown,
        );
        return Vec::new();
    };
    let mut wrong = Vec::new();
    check_scopes(scopes.iter(), &mut wrong);
    wrong
        .into_iter()
        .for_each(|problem| problems.push(format!("`{path}`: {problem}")));
    scopes
}

/// Returns an error if clients of the transport show no token that rules of `access` could compare.
pub(crate) fn check_access(rules: &[AccessRule], transport: &Transport) -> Option<String> {
    let why = match transport {
        _ if rules.is_empty() => return None,
        Transport::Stdio => "--transport http: over stdio, clients show no token",
        Transport::Http { options, .. } if options.access.is_open() => {
            "clients that show a token: add --oauth-issuer URL, or `auth_tokens` with claims"
        }
        Transport::Http { .. } => return None,
    };
    Some(format!("`access` needs {why}"))
}

//! The rules of `access` in the configuration file, which decide who may list and call which
//! operations of an API.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::annotate::AccessRule;
use crate::config::overrides::read_match;
use crate::config::problems::{Disclosure, Problems, join_path, read_all};
use crate::config::transport::Transport;
use crate::config::values::{check_claim, check_scopes, one_or_several};
use crate::spec::operation::rules::AccessDemand;

/// Key `access`, for the published schema.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its shape counts")]
pub(crate) struct AccessSchema {
    /// Rules of what callers need for the operations that match; all that match must be met
    /// (docs/guides/access.md). An operation whose claims a caller does not have does not exist for
    /// it. Only in the configuration file.
    #[schemars(
        example = &"[{ match: { tag: admin }, scopes: [admin], claims: { groups: [ops, sre] } }]"
    )]
    access: Option<Vec<AccessKeys>>,
}

/// Rule of `access`.
#[derive(Default, Deserialize, JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping with `match`, and `scopes` or `claims`"
)]
struct AccessKeys {
    /// The operations that the rule applies to: all that match a glob of each key; without it, all
    /// operations
    #[serde(rename = "match")]
    #[schemars(with = "Option<crate::config::overrides::MatchSchema>")]
    matches: Option<Value>,
    /// True if the rule may match no operation; otherwise that is an error
    optional: Option<bool>,
    /// The scopes of which the token must have one
    #[serde(deserialize_with = "one_or_several")]
    #[schemars(with = "Option<crate::config::overrides::Globs>")]
    scopes: Vec<String>,
    /// For each claim, by its name or its JSON Pointer, the values of which the token must have one
    #[schemars(with = "Option<std::collections::BTreeMap<String, ClaimValues>>")]
    claims: Map<String, Value>,
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum ClaimValues {
    One(ClaimValue),
    Any(Vec<ClaimValue>),
}

#[derive(JsonSchema)]
#[schemars(untagged)]
#[expect(dead_code, reason = "only its shape counts")]
enum ClaimValue {
    Text(String),
    Number(f64),
    Boolean(bool),
}

/// Reads the rules of the key `access`; errors are pushed to `problems`.
pub(crate) fn read_access(value: &Value, problems: &mut Problems) -> Vec<AccessRule> {
    let Value::Array(rules) = value else {
        problems.push_wrong_value("access", value, "a list of rules", Disclosure::Shown);
        return Vec::new();
    };
    let rules = rules.iter().enumerate();
    rules
        .filter_map(|(index, rule)| read_rule(&format!("access[{index}]"), rule, problems))
        .collect()
}

fn read_rule(path: &str, value: &Value, problems: &mut Problems) -> Option<AccessRule> {
    let before = problems.len();
    let keys: AccessKeys = read_all(path, value, Disclosure::Shown, problems)?;
    let matches = keys
        .matches
        .map(|value| read_match(path, &value, problems))
        .unwrap_or_default();
    problems.within(format!("`{path}.scopes`"), |problems| {
        check_scopes(keys.scopes.iter(), problems);
    });
    let says = AccessDemand {
        scopes: keys.scopes,
        claims: read_wanted_claims(&join_path(path, "claims"), keys.claims, problems),
    };
    if problems.len() == before && says == AccessDemand::default() {
        problems.push(format!(
            "`{path}` asks for nothing; add `scopes` or `claims`"
        ));
    }
    Some(AccessRule {
        name: format!("`{path}`"),
        remedy: "add `optional: true` to the rule".into(),
        optional: keys.optional.unwrap_or_default(),
        matches,
        says,
    })
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

/// Reads the claims of a rule, each with the values of which a token must have one.
fn read_wanted_claims(
    path: &str,
    claims: Map<String, Value>,
    problems: &mut Problems,
) -> Vec<(String, Vec<Value>)> {
    let mut wanted = Vec::new();
    for (place, values) in claims {
        let path = join_path(path, &place);
        problems.ok(format!("`{path}`"), check_claim(&place));
        let several = match values {
            Value::Array(values) if !values.is_empty() => values,
            Value::Array(_) => {
                problems.push(format!(
                    "`{path}` is an empty list, which no token meets; list the values of which one is needed"
                ));
                continue;
            }
            single => vec![single],
        };
        for value in several
            .iter()
            .filter(|value| value.is_object() || value.is_array())
        {
            problems.push_wrong_value(
                &path,
                value,
                "texts, numbers or booleans, of which one is needed",
                Disclosure::Shown,
            );
        }
        wanted.push((place, several));
    }
    wanted
}

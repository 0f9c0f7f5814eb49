//! The key `auth_tokens` of the configuration file: static tokens with a name, and the share of the
//! tools that each may call.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::claims::check_scopes;
use crate::annotate::{Pattern, Selection, TokenShare};
use crate::caller::client_grant::{ClientGrant, TokenClaims};
use crate::caller::scopes::Scopes;
use crate::config::auth::references::describe_unset;
use crate::config::keys::path::ConfigPath;
use crate::config::keys::text_list::one_or_several;
use crate::config::keys::wrong_value::{Disclosure, FileProblems, join_path};
use crate::config::variables::read_variable;
use crate::transport::http::{AccessOptions, NamedToken, StaticToken};

const KEYS: [&str; 9] = [
    "name",
    "env",
    "file",
    "tool_include",
    "tool_exclude",
    "read_only",
    "claims",
    "scopes",
    "approve",
];

/// Static token with a name, and with a share of the tools.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub(crate) struct NamedTokenSettings {
    /// Its name in logs: at most 32 of a-z, 0-9 and -
    pub name: String,
    /// The environment variable with the token
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<String>,
    /// The file with the token; it is read again when it changes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<ConfigPath>,
    /// The tools that it may call, by patterns as in `tool_include` of an API; without any, all
    #[cfg_attr(test, schemars(with = "crate::config::overrides::Globs"))]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several"
    )]
    pub tool_include: Vec<String>,
    /// The tools that it may not call
    #[cfg_attr(test, schemars(with = "crate::config::overrides::Globs"))]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several"
    )]
    pub tool_exclude: Vec<String>,
    /// True if it may call only tools that read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// The claims that it has, for rules of `access` alone
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub claims: Map<String, Value>,
    /// The scopes that it has; without any, it has those that tools ask for, and none for rules of
    /// `access`
    #[cfg_attr(test, schemars(with = "crate::config::overrides::Globs"))]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several"
    )]
    pub scopes: Vec<String>,
    /// True if its holder agrees to calls (`confirm_by`); it is then of no other use
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approve: Option<bool>,
}

impl NamedTokenSettings {
    /// Returns true if it says what the token may call.
    fn has_share(&self) -> bool {
        self.read_only.is_some()
            || !(self.tool_include.is_empty()
                && self.tool_exclude.is_empty()
                && self.claims.is_empty()
                && self.scopes.is_empty())
    }
}

/// Returns true if the value of `auth_tokens` can be read; errors are pushed to `problems` and
/// repeat no value that may be a token.
pub(crate) fn check_tokens(value: &Value, problems: &mut FileProblems<'_>) -> bool {
    let before = problems.problems.len();
    let Value::Array(entries) = value else {
        problems.push_wrong_value(
            "auth_tokens",
            value,
            "a list of tokens, each with `name`, and `env` or `file`",
            Disclosure::Hidden,
        );
        return false;
    };
    if entries.is_empty() {
        problems.push("`auth_tokens` is an empty list; list a token, or leave the key out");
    }
    for (index, entry) in entries.iter().enumerate() {
        let place = format!("auth_tokens[{index}]");
        let Value::Object(members) = entry else {
            problems.push_wrong_value(
                &place,
                entry,
                "a mapping with `name`, and `env` or `file`",
                Disclosure::Hidden,
            );
            continue;
        };
        for (key, value) in members {
            let (is_right, expected) = match key.as_str() {
                "name" | "env" | "file" => (value.is_string(), "a text"),
                "tool_exclude" => (is_texts(value), "a text or a list of texts"),
                // Without any, a token may call everything: an empty list would be read as the
                // opposite.
                "tool_include" | "scopes" => (
                    is_texts(value) && value.as_array().is_none_or(|texts| !texts.is_empty()),
                    "a text or a list of texts that is not empty",
                ),
                "read_only" | "approve" => (value.is_boolean(), "true or false"),
                "claims" => (value.is_object(), "a mapping of claims to values"),
                "token" | "value" => {
                    problems.push(format!(
                        "unknown key `{place}.{key}`: this file holds no token; name a variable with `env`, or a file with `file`"
                    ));
                    continue;
                }
                _ => {
                    problems.push_unknown_key(&place, key, KEYS);
                    continue;
                }
            };
            if !is_right {
                problems.push_wrong_value(
                    &join_path(&place, key),
                    value,
                    expected,
                    Disclosure::Hidden,
                );
            }
        }
    }
    problems.problems.len() == before
}

fn is_texts(value: &Value) -> bool {
    value.is_string()
        || value
            .as_array()
            .is_some_and(|texts| texts.iter().all(Value::is_string))
}

/// Reads the tokens with names into `access`; errors are pushed to `problems`.
pub(super) fn resolve_named_tokens(
    settings: &[NamedTokenSettings],
    access: &mut AccessOptions,
    problems: &mut Vec<String>,
) {
    for (index, entry) in settings.iter().enumerate() {
        let place = format!("auth_tokens[{index}]");
        check_name(
            &place,
            entry,
            settings.get(..index).unwrap_or_default(),
            problems,
        );
        let mut wrong = Vec::new();
        check_scopes(entry.scopes.iter(), &mut wrong);
        if entry.approve == Some(true) && entry.has_share() {
            wrong.push("a token with `approve: true` calls nothing: leave out what it may call, its claims and its scopes".into());
        }
        let token = read_token(entry)
            .map_err(|problems| wrong.extend(problems))
            .ok();
        problems.extend(
            wrong
                .into_iter()
                .map(|problem| format!("`{place}`: {problem}")),
        );
        let Some(token) = token else { continue };
        let has_name = |other: &NamedToken| other.token == token;
        if access.all_tokens().contains(&token) || access.named.iter().any(has_name) {
            problems.push(format!(
                "`{place}`: its token is there twice; each client needs its own"
            ));
        }
        access.named.push(NamedToken {
            name: entry.name.clone(),
            token,
            file: entry.file.as_ref().map(|file| file.to_path_buf()),
            approves: entry.approve == Some(true),
            granted: ClientGrant {
                scopes: match entry.scopes.as_slice() {
                    [] => Scopes::All,
                    scopes => Scopes::Granted(Arc::new(scopes.iter().cloned().collect())),
                },
                claims: None,
                token: Some(Arc::new(TokenClaims {
                    place: index,
                    name: entry.name.clone(),
                    claims: entry.claims.clone(),
                })),
            },
        });
    }
}

fn check_name(
    place: &str,
    entry: &NamedTokenSettings,
    before: &[NamedTokenSettings],
    problems: &mut Vec<String>,
) {
    let name = &entry.name;
    let is_legal = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if !(1..=32).contains(&name.len()) || !name.bytes().all(is_legal) {
        problems.push(format!("`{place}.name` must be 1 to 32 of a-z, 0-9 and -"));
    } else if before.iter().any(|other| other.name == *name) {
        problems.push(format!(
            "`{place}.name`: `{name}` is the name of another token; give each its own"
        ));
    }
}

fn read_token(entry: &NamedTokenSettings) -> Result<StaticToken, Vec<String>> {
    match (&entry.env, &entry.file) {
        (Some(variable), None) => {
            let value = read_variable(variable).ok_or_else(|| vec![describe_unset(variable)])?;
            StaticToken::parse(value.trim()).map_err(|problem| {
                vec![format!("the token in the variable `{variable}` {problem}")]
            })
        }
        (None, Some(file)) => NamedToken::in_file(file),
        (Some(_), Some(_)) => Err(vec!["`env` and `file` exclude each other".into()]),
        (None, None) => Err(vec![
            "there is no token; add `env` with a variable, or `file`".into(),
        ]),
    }
}

/// Returns the share of the tools of each token, in the order of `auth_tokens`; errors are pushed
/// to `problems`.
pub(crate) fn resolve_shares(
    settings: &[NamedTokenSettings],
    problems: &mut Vec<String>,
) -> Arc<[TokenShare]> {
    let mut patterns = |place: &str, texts: &[String]| -> Vec<Pattern> {
        let read = texts.iter().filter_map(|text| {
            let read = Pattern::parse(text);
            read.map_err(|error| problems.push(format!("`{place}`: {error}")))
                .ok()
        });
        read.collect()
    };
    let share = |(index, entry): (usize, &NamedTokenSettings)| TokenShare {
        name: entry.name.clone(),
        selection: Selection {
            include: patterns(
                &format!("auth_tokens[{index}].tool_include"),
                &entry.tool_include,
            ),
            exclude: patterns(
                &format!("auth_tokens[{index}].tool_exclude"),
                &entry.tool_exclude,
            ),
            read_only: entry.read_only.unwrap_or_default(),
            no_destructive: false,
        },
    };
    settings.iter().enumerate().map(share).collect()
}

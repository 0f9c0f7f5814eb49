//! The key `auth_tokens` of the configuration file: static tokens with a name, and the share of the
//! tools that each may call.

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::{Deserializer, Error as _};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::annotate::{Pattern, Selection, TokenShare};
use crate::caller::client_grant::{ClientGrant, Scopes, TokenClaims};
use crate::config::auth::references::describe_unset;
use crate::config::problems::{Disclosure, Problems, can_be_read};
use crate::config::values::{check_scopes, one_or_several};
use crate::config::variables::read_variable;
use crate::transport::http::{AccessOptions, NamedToken, StaticToken};

/// Static token with a name, and with a share of the tools.
#[derive(Clone, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(
    default,
    deny_unknown_fields,
    expecting = "a mapping with `name`, and `env` or `file`"
)]
pub(crate) struct NamedTokenSettings {
    /// Its name in logs: at most 32 of a-z, 0-9 and -
    pub(crate) name: String,
    /// The environment variable with the token
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) env: Option<String>,
    /// The file with the token; it is read again when it changes
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) file: Option<PathBuf>,
    /// The tools that it may call, by patterns as in `tool_include` of an API; without any, all
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_least_one"
    )]
    pub(crate) tool_include: Vec<String>,
    /// The tools that it may not call
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "one_or_several"
    )]
    pub(crate) tool_exclude: Vec<String>,
    /// True if it may call only tools that read
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) read_only: Option<bool>,
    /// The claims that it has, for rules of `access` alone
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub(crate) claims: Map<String, Value>,
    /// The scopes that it has; without any, it has those that tools ask for, and none for rules of
    /// `access`
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "at_least_one"
    )]
    pub(crate) scopes: Vec<String>,
    /// True if its holder agrees to calls (`confirm_by`); it is then of no other use
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) approve: Option<bool>,
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
pub(crate) fn check_tokens(value: &Value, problems: &mut Problems) -> bool {
    let before = problems.len();
    let mut rest = value.clone();
    if rest.as_array().is_some_and(Vec::is_empty) {
        problems.push("`auth_tokens` is an empty list; list a token, or leave the key out");
    }
    for (index, entry) in rest.as_array_mut().into_iter().flatten().enumerate() {
        let Value::Object(members) = entry else {
            continue;
        };
        for key in ["token", "value"] {
            if members.shift_remove(key).is_some() {
                problems.push(format!(
                    "unknown key `auth_tokens[{index}].{key}`: this file holds no token; name a variable with `env`, or a file with `file`"
                ));
            }
        }
    }
    let is_read =
        can_be_read::<Vec<NamedTokenSettings>>("auth_tokens", &rest, Disclosure::Hidden, problems);
    is_read && problems.len() == before
}

/// A text, or a list of texts that is not empty: without any, a token may call everything, and an
/// empty list would be read as the opposite.
fn at_least_one<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<String>, D::Error> {
    let texts = one_or_several(deserializer).ok();
    texts
        .filter(|texts| !texts.is_empty())
        .ok_or_else(|| D::Error::custom("expected a text or a list of texts that is not empty"))
}

/// Reads the tokens with names into `access`; errors are pushed to `problems`.
pub(super) fn resolve_named_tokens(
    settings: &[NamedTokenSettings],
    access: &mut AccessOptions,
    problems: &mut Problems,
) {
    for (index, entry) in settings.iter().enumerate() {
        let place = format!("auth_tokens[{index}]");
        check_name(
            &place,
            entry,
            settings.get(..index).unwrap_or_default(),
            problems,
        );
        let token = problems.within(format!("`{place}`"), |problems| {
            check_scopes(entry.scopes.iter(), problems);
            if entry.approve == Some(true) && entry.has_share() {
                problems.push("a token with `approve: true` calls nothing: leave out what it may call, its claims and its scopes");
            }
            read_token(entry)
                .map_err(|wrong| problems.extend(wrong))
                .ok()
        });
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
            file: entry.file.clone(),
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
    problems: &mut Problems,
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
    problems: &mut Problems,
) -> Arc<[TokenShare]> {
    let mut patterns = |place: &str, texts: &[String]| -> Vec<Pattern> {
        let read = texts
            .iter()
            .filter_map(|text| problems.ok(format!("`{place}`"), Pattern::parse(text)));
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

//! Credentials of an API: the values for its security schemes, OAuth clients, and signatures.

use std::collections::BTreeMap;
use std::ffi::OsString;

use secrecy::SecretString;
use url::Origin;

use crate::api::about::ApiName;
use crate::config::auth::oauth_client::oauth_client;
use crate::config::auth::references::parse_secret;
use crate::config::auth::settings::{
    CredentialSettings, SchemeSettings, check_part, scheme_values,
};
use crate::config::problems::{Problems, join_path};
use crate::config::values::{UrlForm, plain_url};
use crate::config::variables::counts_as_unset;
use crate::credentials::credential_part::CredentialPart;
use crate::credentials::tokens::token_store::TokenStore;
use crate::credentials::values::{Credentials, PREFIX, RESERVED_SUFFIXES};
use crate::shared_state::keys::StateKeys;

pub(crate) mod oauth_client;
pub(crate) mod references;
pub(crate) mod settings;
mod signature;

/// The credentials with their values, those of `variables` by what follows the fixed part of their
/// names. `keys` encrypt tokens that are stored. Problems are pushed to `problems`, without values.
pub(crate) fn resolve_credentials(
    settings: &CredentialSettings,
    variables: BTreeMap<String, SecretString>,
    keys: Option<&StateKeys>,
    problems: &mut Problems,
) -> Credentials {
    Credentials {
        origins: origins(settings, problems),
        optional: settings.allow_missing_credentials.unwrap_or(false),
        variables,
        token_store: settings
            .token_store
            .as_ref()
            .and_then(|path| problems.ok("`token_store`", TokenStore::open(path, keys.cloned()))),
        ..resolve_auth("auth", &settings.auth, problems)
    }
}

/// The credentials of the schemes at `path` in the file. Problems are pushed to `problems`, without
/// values.
pub(crate) fn resolve_auth(
    path: &str,
    schemes: &BTreeMap<String, SchemeSettings>,
    problems: &mut Problems,
) -> Credentials {
    let mut credentials = Credentials::default();
    for (name, own) in schemes {
        let key = join_path(path, name);
        let values = scheme_values(&key, own, problems);
        let client = oauth_client(&key, own, problems);
        let signature = own.signature(&key, problems);
        credentials.schemes.insert(name.clone(), values);
        credentials
            .clients
            .extend(client.map(|client| (name.clone(), client)));
        credentials
            .signatures
            .extend(signature.map(|signature| (name.clone(), signature)));
    }
    credentials
}

/// The origins of `credential_origin`.
fn origins(settings: &CredentialSettings, problems: &mut Problems) -> Vec<Origin> {
    let origin = |text: &String| {
        let wrong =
            || "`credential_origin` must be a scheme and a host, as in https://uploads.example";
        let url = problems.some(plain_url(text, UrlForm::Origin), wrong);
        url.map(|url| url.origin())
    };
    settings
        .credential_origin
        .iter()
        .filter_map(origin)
        .collect()
}

/// The values of one API, by what follows its name.
pub(crate) type VariablesOfApi = BTreeMap<String, SecretString>;

/// The values of the variables `OPENAPI_MCP_AUTH_…` of each API, or of the only one if there are no
/// `names`. One that could belong to two APIs, or belongs to none, is a problem.
pub(crate) fn credential_variables(
    names: &[ApiName],
    problems: &mut Problems,
) -> BTreeMap<Option<ApiName>, VariablesOfApi> {
    let mut by_api: BTreeMap<Option<ApiName>, VariablesOfApi> = BTreeMap::new();
    for (name, value) in std::env::vars_os() {
        let Some(suffix) = name.to_str().and_then(|name| name.strip_prefix(PREFIX)) else {
            continue;
        };
        if value.to_str().is_some_and(counts_as_unset) {
            continue;
        }
        match owner(suffix, names) {
            Ok(None) => {}
            Ok(Some((api, rest))) => match read_credential(rest, value) {
                Ok(value) => {
                    let values = by_api.entry(api.cloned()).or_default();
                    values.insert(rest.to_owned(), value);
                }
                Err(why) => problems.push(format!("the variable {PREFIX}{suffix} {why}")),
            },
            Err(problem) => problems.push(problem),
        }
    }
    by_api
}

/// The value of a variable for a scheme and part of that name.
///
/// # Errors
/// The fault, as the end of a sentence.
fn read_credential(suffix: &str, value: OsString) -> Result<SecretString, &'static str> {
    let value = value.into_string().map_err(|_| "is not valid UTF-8")?;
    check_part(CredentialPart::of_variable(suffix), parse_secret(&value)?)
}

/// The API that a variable belongs to, without a name if there are no `names`, with what follows
/// its name; `None` for a setting of the server.
fn owner<'n, 's>(
    suffix: &'s str,
    names: &'n [ApiName],
) -> Result<Option<(Option<&'n ApiName>, &'s str)>, String> {
    let rest_of = |name: &'n ApiName| {
        let rest = suffix
            .strip_prefix(name.in_variables().as_str())?
            .strip_prefix('_')?;
        (!rest.is_empty()).then_some((name, rest))
    };
    let owners: Vec<(&ApiName, &str)> = names.iter().filter_map(rest_of).collect();
    let readings = || {
        let reading = |(name, rest): &(&ApiName, &str)| {
            format!("`{}` of the API `{name}`", rest.to_ascii_lowercase())
        };
        owners.iter().map(reading).collect::<Vec<_>>().join(" or ")
    };
    let way_out = "unset it, and name the credential with `auth` under the API in `apis`";
    match owners.as_slice() {
        [_, ..] if RESERVED_SUFFIXES.contains(&suffix) => Err(format!(
            "the variable {PREFIX}{suffix} is a setting of the server, and could be the scheme {}; {way_out}, or use the server's flag",
            readings()
        )),
        [] if RESERVED_SUFFIXES.contains(&suffix) => Ok(None),
        [] if names.is_empty() => Ok(Some((None, suffix))),
        [] => {
            let known: Vec<&str> = names.iter().map(ApiName::as_str).collect();
            Err(format!(
                "the variable {PREFIX}{suffix} belongs to none of the APIs ({}); with several, a credential is in {PREFIX}<API>_<SCHEME>",
                known.join(", ")
            ))
        }
        [(name, rest)] => Ok(Some((Some(name), rest))),
        _ => Err(format!(
            "the variable {PREFIX}{suffix} could be the scheme {}, and is given to neither; {way_out}",
            readings()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_could_belong_to_two_apis_belongs_to_neither() {
        let names = ["a", "a_b", "pets", "token"].map(|name| ApiName::parse(name).unwrap());
        let owner = |suffix: &str| {
            owner(suffix, &names)
                .map(|owner| owner.map(|(name, rest)| format!("{}:{rest}", name.unwrap())))
        };
        assert_eq!(owner("PETS_API_KEY"), Ok(Some("pets:API_KEY".into())));
        assert_eq!(owner("A_C"), Ok(Some("a:C".into())));
        for (suffix, words) in [
            ("A_B_C", ["`b_c` of the API `a`", "`c` of the API `a_b`"]),
            (
                "TOKEN_ENV",
                ["a setting of the server", "`env` of the API `token`"],
            ),
            ("API_KEY", ["belongs to none", "(a, a_b, pets, token)"]),
            ("PETS", ["belongs to none", "OPENAPI_MCP_AUTH_PETS "]),
        ] {
            let problem = owner(suffix).unwrap_err();
            assert!(
                words.iter().all(|words| problem.contains(words)),
                "{problem}"
            );
        }
        assert_eq!(super::owner("TOKEN_FILE", &names[..3]), Ok(None));
        assert_eq!(super::owner("A_B", &[]), Ok(Some((None, "A_B"))));
    }
}

//! Credentials of an API: the values for its security schemes, OAuth clients, and signatures.

pub(crate) mod oauth_client;
pub(crate) mod references;
pub(crate) mod settings;
mod signature;

use std::collections::BTreeMap;

use secrecy::SecretString;
use url::{Origin, Url};

use self::oauth_client::oauth_client;
use self::settings::{CredentialSettings, SchemeSettings, scheme_values};
use super::keys::wrong_value::join_path;
use crate::credentials::tokens::token_store::TokenStore;
use crate::credentials::values::Credentials;
use crate::shared_state::keys::StateKeys;

/// The credentials with their values, those of `variables` by what follows the fixed part of their
/// names. `keys` encrypt tokens that are stored. Problems are pushed to `problems`, without values.
pub(crate) fn resolve_credentials(
    settings: &CredentialSettings,
    variables: BTreeMap<String, SecretString>,
    keys: Option<&StateKeys>,
    problems: &mut Vec<String>,
) -> Credentials {
    Credentials {
        origins: origins(settings, problems),
        optional: settings.allow_missing_credentials.unwrap_or(false),
        variables,
        token_store: settings.token_store.as_ref().and_then(|path| {
            let opened = TokenStore::open(path, keys.cloned());
            opened
                .map_err(|problem| problems.push(format!("`token_store`: {problem}")))
                .ok()
        }),
        ..resolve_auth("auth", &settings.auth, problems)
    }
}

/// The credentials of the schemes at `path` in the file. Problems are pushed to `problems`, without
/// values.
pub(crate) fn resolve_auth(
    path: &str,
    schemes: &BTreeMap<String, SchemeSettings>,
    problems: &mut Vec<String>,
) -> Credentials {
    let keyed = || {
        schemes
            .iter()
            .map(|(name, own)| (name.clone(), join_path(path, name), own))
    };
    let values = keyed()
        .map(|(name, key, own)| (name, scheme_values(&key, own, problems)))
        .collect();
    let clients =
        keyed().filter_map(|(name, key, own)| Some((name, oauth_client(&key, own, problems)?)));
    let clients = clients.collect();
    let signatures =
        keyed().filter_map(|(name, key, own)| Some((name, own.signature(&key, problems)?)));
    Credentials {
        schemes: values,
        clients,
        signatures: signatures.collect(),
        ..Credentials::default()
    }
}

/// The origins of `credential_origin`.
fn origins(settings: &CredentialSettings, problems: &mut Vec<String>) -> Vec<Origin> {
    let origin = |text: &String| match Url::parse(text) {
        Ok(url)
            if matches!(url.scheme(), "http" | "https")
                && url.path() == "/"
                && url.query().is_none() =>
        {
            Some(url.origin())
        }
        _ => {
            problems.push(
                "`credential_origin` must be a scheme and a host, as in https://uploads.example"
                    .into(),
            );
            None
        }
    };
    settings
        .credential_origin
        .iter()
        .filter_map(origin)
        .collect()
}

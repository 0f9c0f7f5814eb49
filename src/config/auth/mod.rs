//! Credentials of an API: the values for its security schemes, OAuth clients, and signatures.

pub(crate) mod oauth_client;
pub(crate) mod references;
pub(crate) mod settings;
mod signature;

use std::collections::BTreeMap;

use secrecy::SecretString;
use url::Origin;

use self::oauth_client::oauth_client;
use self::settings::{CredentialSettings, SchemeSettings, scheme_values};
use super::problems::join_path;
use super::urls::{UrlForm, plain_url};
use crate::config::problems::Problems;
use crate::credentials::tokens::token_store::TokenStore;
use crate::credentials::values::Credentials;
use crate::shared_state::keys::StateKeys;

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
fn origins(settings: &CredentialSettings, problems: &mut Problems) -> Vec<Origin> {
    let origin = |text: &String| {
        let url = plain_url(text, UrlForm::Origin);
        if url.is_none() {
            problems.push(
                "`credential_origin` must be a scheme and a host, as in https://uploads.example",
            );
        }
        Some(url?.origin())
    };
    settings
        .credential_origin
        .iter()
        .filter_map(origin)
        .collect()
}

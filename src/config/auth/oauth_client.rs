//! Settings of the OAuth client of a scheme: its key, and the exchange of users' tokens.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use etcetera::base_strategy::{BaseStrategy as _, choose_native_strategy};
use http::header::AUTHORIZATION;

use super::references::{Reference, parse_file, parse_variable};
use super::settings::SchemeSettings;
use crate::config::problems::Problems;
use crate::config::tables::to_map;
use crate::config::transport::Transport;
use crate::config::values::{UrlForm, plain_url};
use crate::credentials::forward::Forwarding;
use crate::credentials::tokens::oauth_client::{
    ClientKeyOptions, ClientSigner, ExchangeOptions, GrantKind,
};
use crate::credentials::tokens::token_store::TokenStore;
use crate::credentials::values::OauthClientOptions;
use crate::shared_state::keys::StateKeys;

/// Keys of a scheme, each with the one that it needs.
const NEEDS: [(&str, &str); 6] = [
    ("client_key_id", "client_key"),
    ("client_certificate", "client_key"),
    ("assertion_audience", "client_key"),
    ("resource", "grant"),
    ("operation_scopes", "grant"),
    ("subject_token_type", "grant"),
];

/// Resolves the OAuth client of the scheme at `key` in the file; faults are pushed to `problems`.
pub(super) fn oauth_client(
    key: &str,
    settings: &SchemeSettings,
    problems: &mut Problems,
) -> Option<OauthClientOptions> {
    let given = to_map(settings);
    for (name, needed) in NEEDS {
        if given.contains_key(name) && !given.contains_key(needed) {
            problems.push(format!("`{key}.{name}` needs `{key}.{needed}`"));
        }
    }
    let signer = signer(key, settings, problems);
    let exchange = exchange(key, settings, problems);
    // A query stays a part of these addresses (RFC 6749 section 3.1).
    let mut login_url = |member: &str, text: &Option<String>| {
        problems.some(plain_url(text.as_deref()?, UrlForm::Confidential), || {
            format!(
                "`{key}.{member}` is not an https URL, or one of this machine, without user and fragment"
            )
        })
    };
    let client = OauthClientOptions {
        signer,
        exchange,
        authorization_url: login_url("authorization_url", &settings.authorization_url),
        device_authorization_url: login_url(
            "device_authorization_url",
            &settings.device_authorization_url,
        ),
    };
    if client.exchange.is_some() && client.logs_in() {
        problems.push(format!(
            "`{key}` has a `grant` and an address for logins: with a grant, the API is called as the user of each call"
        ));
    }
    (client.signer.is_some() || client.exchange.is_some() || client.logs_in()).then_some(client)
}

/// The storage of logins: the one that is named, else over stdio the one of the system's user. Over
/// HTTP, everybody would act as the person who has signed in, so a store counts only if it is
/// named.
pub(crate) fn login_store(
    named: Option<&TokenStore>,
    transport: &Transport,
    keys: Option<&StateKeys>,
) -> Option<TokenStore> {
    match (named, transport) {
        (Some(store), _) => Some(store.clone()),
        (None, Transport::Stdio) => {
            let folders = choose_native_strategy().ok()?;
            // On Windows, data moves to other machines, where a refresh token must not be used as
            // well.
            let local = || {
                if cfg!(windows) {
                    folders.cache_dir()
                } else {
                    folders.data_dir()
                }
            };
            let folder = folders.state_dir().unwrap_or_else(local);
            Some(TokenStore::at(
                folder.join("openapi-mcp").join("tokens.json"),
                keys.cloned(),
            ))
        }
        (None, Transport::Http { .. }) => None,
    }
}

fn signer(
    key: &str,
    settings: &SchemeSettings,
    problems: &mut Problems,
) -> Option<Arc<ClientSigner>> {
    let reference = settings.client_key.as_ref()?;
    if settings.client_secret.is_some() {
        problems.push(format!(
            "`{key}` has both `client_secret` and `client_key`; one is enough"
        ));
    }
    let certificate = settings.client_certificate.as_ref();
    let certificate = certificate.map(std::fs::read_to_string).transpose();
    let place = format!("`{key}.client_certificate`: the file cannot be read");
    let certificate = problems.ok(place, certificate)?;
    let options = ClientKeyOptions {
        key_id: settings.client_key_id.as_deref(),
        certificate: certificate.as_deref(),
        audience: settings.assertion_audience.as_deref(),
    };
    let parse = |pem: &str| ClientSigner::read(pem, options);
    let read = match reference {
        Reference::Env(variable) => parse_variable(variable, parse),
        Reference::File(path) if is_open_to_others(path) => Err(format!(
            "the file `{}` can be read by all users of this machine; `chmod 600` it",
            path.display()
        )),
        Reference::File(path) => parse_file(path, parse),
    };
    problems.ok(format!("`{key}.client_key`"), read.map(Arc::new))
}

#[cfg(unix)]
fn is_open_to_others(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::metadata(path)
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o004 != 0)
}

#[cfg(not(unix))]
fn is_open_to_others(_path: &Path) -> bool {
    false
}

fn exchange(
    key: &str,
    settings: &SchemeSettings,
    problems: &mut Problems,
) -> Option<ExchangeOptions> {
    if settings.grant.is_none() && settings.audience.len() > 1 {
        problems.push(format!(
            "`{key}.audience` is a list, which needs `{key}.grant`"
        ));
    }
    let grant = settings.grant?;
    if grant == GrantKind::OnBehalfOf
        && !(settings.audience.is_empty() && settings.resource.is_empty())
    {
        problems.push(format!(
            "`{key}`: the grant on-behalf-of takes neither `audience` nor `resource`; its `scopes` name the API"
        ));
    }
    Some(ExchangeOptions {
        grant,
        audiences: settings.audience.clone(),
        resources: settings.resource.clone(),
        operation_scopes: settings.operation_scopes.unwrap_or(false),
        subject_token_type: settings.subject_token_type.as_deref().map(token_type),
    })
}

/// `jwt` and the like are names of RFC 8693 section 3.
fn token_type(text: &str) -> String {
    if text.contains(':') {
        text.to_owned()
    } else {
        format!("urn:ietf:params:oauth:token-type:{text}")
    }
}

/// Checks a server whose API is called as the user, because of the grant of a `scheme`: it needs
/// tokens of users, and no other credential in their place.
pub(crate) fn check_grants(
    scheme: Option<&str>,
    forward: &Forwarding,
    transport: &Transport,
) -> Problems {
    let Some(name) = scheme else {
        return Problems::default();
    };
    let key = format!("`auth.{name}.grant`");
    let mut problems = Problems::default();
    match transport {
        Transport::Stdio => problems.push(format!(
            "{key} needs --transport http: over stdio, there is no token of the user who calls"
        )),
        Transport::Http { options, .. } if options.access.oauth.is_none() => problems.push(format!(
            "{key} needs --oauth-issuer: it exchanges the tokens with which users call this server"
        )),
        Transport::Http { .. } => {}
    }
    if forward
        .headers
        .iter()
        .any(|(ours, theirs)| [ours, theirs].contains(&&AUTHORIZATION))
    {
        problems.push(format!(
            "{key} and a forwarded `Authorization` exclude each other: the API gets the exchanged token"
        ));
    }
    problems
}

/// The first of these schemes whose credential is exchanged for the token of the user who calls.
pub(crate) fn scheme_with_grant(clients: &BTreeMap<String, OauthClientOptions>) -> Option<&str> {
    clients
        .iter()
        .find(|(_, client)| client.exchange.is_some())
        .map(|(name, _)| name.as_str())
}

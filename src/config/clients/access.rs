//! Settings of which HTTP clients may call, and how much.

use clap::Args;
use serde::{Deserialize, Serialize};
use url::Url;

use super::claims::check_scopes;
use super::introspection::{IntrospectionSettings, introspection};
use super::named_tokens::{NamedTokenSettings, resolve_named_tokens};
use super::scopes::ScopeSettings;
use crate::config::auth::references::describe_unset;
use crate::config::keys::path::ConfigPath;
use crate::config::layer::given_settings;
use crate::config::variables::read_variable;
use crate::outbound;
use crate::transport::http::{AccessOptions, Limits, OauthOptions, StaticToken, Tls, ToolScopes};

/// Settings of which HTTP clients may call, and how much.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
pub(crate) struct AccessSettings {
    /// An environment variable with a bearer token that HTTP clients must send (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "VARIABLE",
        help_heading = "Authentication"
    )]
    pub auth_token_env: Vec<String>,

    /// A file with such tokens, one per line; it is read again when it changes (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FILE",
        help_heading = "Authentication"
    )]
    pub auth_token_file: Vec<ConfigPath>,

    /// Static tokens with a name and their own share of the tools. Only in the configuration file.
    #[arg(skip)]
    pub auth_tokens: Vec<NamedTokenSettings>,

    /// The URL that clients use for /mcp, if it differs from that of --bind
    #[arg(long, value_name = "URL", help_heading = "HTTP")]
    pub public_url: Option<String>,

    /// Accept HTTP clients with access tokens (JWT) of this OAuth 2.1 issuer
    #[arg(long, value_name = "URL", help_heading = "Authentication")]
    pub oauth_issuer: Option<String>,

    /// The audience that tokens must name (repeatable: any of them) [default: the public URL]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "URI",
        help_heading = "Authentication"
    )]
    pub oauth_audience: Vec<String>,

    /// The URL of the issuer's keys [default: the one in its metadata]
    #[arg(long, hide = true, value_name = "URL", help_heading = "Authentication")]
    pub oauth_jwks_url: Option<String>,

    /// A scope that every request requires (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    pub oauth_scope: Vec<String>,

    /// The scope of those tokens of the issuer whose users agree to calls (--confirm-by link)
    #[arg(
        long,
        hide = true,
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    pub approver_scope: Option<String>,

    /// Introspection of tokens.
    #[command(flatten)]
    #[serde(flatten)]
    pub introspection: IntrospectionSettings,

    /// Scopes that calls require.
    #[command(flatten)]
    #[serde(flatten)]
    pub scopes: ScopeSettings,

    /// A PEM file with the certificate to serve HTTPS with; it is read again when it changes
    #[arg(long, hide = true, value_name = "FILE", help_heading = "HTTP")]
    pub tls_cert: Option<ConfigPath>,

    /// A PEM file with the private key of that certificate
    #[arg(long, hide = true, value_name = "FILE", help_heading = "HTTP")]
    pub tls_key: Option<ConfigPath>,

    /// The maximum number of connections at the same time; further ones wait to be accepted
    /// [default: 1024]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "HTTP")]
    pub max_connections: Option<usize>,

    /// The maximum number of requests per second of one client, known by its token, else by its
    /// address [default: no limit]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "HTTP")]
    pub client_rate_limit: Option<f64>,
}

impl AccessSettings {
    /// Returns true if clients need no credentials.
    pub(crate) fn is_open(&self) -> bool {
        self.auth_token_env.is_empty()
            && self.auth_token_file.is_empty()
            && (self.auth_tokens.iter()).all(|token| token.approve == Some(true))
            && self.oauth_issuer.is_none()
    }
}

/// Reads the authentication of clients; `is_local` is true if only this machine can reach the
/// server.
pub(crate) fn access(
    settings: &AccessSettings,
    is_local: bool,
    problems: &mut Vec<String>,
) -> AccessOptions {
    let mut access = AccessOptions {
        public_url: settings
            .public_url
            .as_deref()
            .and_then(|text| public_url(text, problems)),
        oauth: oauth(settings, is_local, problems),
        approver_scope: approver_scope(settings, problems),
        ..AccessOptions::default()
    };
    for variable in &settings.auth_token_env {
        match read_variable(variable) {
            Some(value) => match StaticToken::in_text(&value) {
                Ok(tokens) => access.tokens.extend(tokens),
                Err(wrong) => problems.extend(wrong.iter().map(|problem| {
                    format!("--auth-token-env: the variable `{variable}`: {problem}")
                })),
            },
            None => problems.push(format!("--auth-token-env: {}", describe_unset(variable))),
        }
    }
    for path in &settings.auth_token_file {
        match StaticToken::in_file(path) {
            Ok(tokens) => access.token_files.push((path.to_path_buf(), tokens)),
            Err(wrong) => problems.extend(
                wrong
                    .iter()
                    .map(|problem| format!("--auth-token-file: {problem}")),
            ),
        }
    }
    resolve_named_tokens(&settings.auth_tokens, &mut access, problems);
    access
}

/// The scope of those who agree to calls. No client may get it without asking for it.
fn approver_scope(settings: &AccessSettings, problems: &mut Vec<String>) -> Option<String> {
    let scope = settings.approver_scope.as_ref()?;
    check_scopes(std::iter::once(scope), problems);
    if settings.oauth_issuer.is_none() {
        problems.push("`approver_scope` needs --oauth-issuer".into());
    }
    let of_calls = [
        &settings.scopes.oauth_read_scope,
        &settings.scopes.oauth_write_scope,
    ];
    if of_calls
        .into_iter()
        .chain([&settings.oauth_scope])
        .any(|scopes| scopes.contains(scope))
    {
        problems.push(format!("`approver_scope`: `{scope}` is a scope that calls need too, so that every client would have it"));
    }
    Some(scope.clone())
}

fn public_url(text: &str, problems: &mut Vec<String>) -> Option<Url> {
    let url = Url::parse(text).ok().filter(|url| {
        let plain = url.query().is_none()
            && url.fragment().is_none()
            && url.username().is_empty()
            && url.password().is_none();
        plain && url.has_host() && matches!(url.scheme(), "http" | "https")
    });
    let Some(mut url) = url else {
        problems.push("--public-url is not a plain URL; write it as clients use it, as in https://mcp.example/mcp".into());
        return None;
    };
    // /mcp is the only path for clients.
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    Some(url)
}

fn oauth(
    settings: &AccessSettings,
    is_local: bool,
    problems: &mut Vec<String>,
) -> Option<OauthOptions> {
    let Some(issuer) = &settings.oauth_issuer else {
        let given = given_settings(settings).into_iter();
        for setting in given.filter(|setting| setting.key.starts_with("oauth_")) {
            problems.push(format!("{setting} needs --oauth-issuer"));
        }
        return None;
    };
    let before = problems.len();
    let jwks_url = settings.oauth_jwks_url.as_ref().and_then(|text| {
        let url = Url::parse(text).ok().filter(|url| {
            url.has_host() && matches!(url.scheme(), "http" | "https") && !has_user(url)
        });
        if url.is_none() {
            problems
                .push("`oauth_jwks_url` is not an http(s) URL without user and password".into());
        }
        url
    });
    // An attacker who can change the keys in transit can forge tokens. If the URL of the keys is
    // given, the issuer is only a name.
    match Url::parse(issuer) {
        Ok(url)
            if url.query().is_some()
                || url.fragment().is_some()
                || !url.has_host()
                || has_user(&url) =>
        {
            problems.push("--oauth-issuer is not the URL of an issuer: it has no host, or it has a user, a query or a fragment".into());
        }
        Ok(url) if url.scheme() == "https" || jwks_url.is_some() || outbound::is_loopback(&url) => {
        }
        _ => problems.push(format!(
            "--oauth-issuer: `{issuer}` must be an https URL, as in https://login.example/tenant"
        )),
    }
    if !is_local && settings.public_url.is_none() {
        problems.push("--oauth-issuer needs --public-url URL, so that clients and tokens can name this server".into());
    }
    check_scopes(settings.oauth_scope.iter(), problems);
    let tool_scopes = tool_scopes(&settings.scopes, problems);
    let introspection = introspection(&settings.introspection, problems);
    for audience in settings
        .oauth_audience
        .iter()
        .filter(|audience| audience.trim().is_empty())
    {
        problems.push(format!("--oauth-audience: `{audience}` is empty"));
    }
    (problems.len() == before).then(|| OauthOptions {
        issuer: issuer.clone(),
        audiences: settings.oauth_audience.clone(),
        jwks_url,
        scopes: settings.oauth_scope.clone(),
        tool_scopes,
        introspection,
        keeps_tokens: false,
    })
}

/// The scopes that calls require; what is wrong with them is pushed to `problems`.
pub(crate) fn tool_scopes(settings: &ScopeSettings, problems: &mut Vec<String>) -> ToolScopes {
    check_scopes(
        settings
            .oauth_read_scope
            .iter()
            .chain(&settings.oauth_write_scope),
        problems,
    );
    ToolScopes {
        read: settings.oauth_read_scope.clone(),
        write: settings.oauth_write_scope.clone(),
    }
}

/// Returns true if a URL has credentials, which would be shown with the URL.
fn has_user(url: &Url) -> bool {
    !url.username().is_empty() || url.password().is_some()
}

/// The certificate and its key.
pub(crate) fn tls_files(settings: &AccessSettings, problems: &mut Vec<String>) -> Option<Tls> {
    match (&settings.tls_cert, &settings.tls_key) {
        (None, None) => None,
        (Some(certificate), Some(key)) => Tls::load(certificate, key)
            .map_err(|problem| problems.push(format!("`tls_cert`: {problem}")))
            .ok(),
        (Some(_), None) => {
            problems.push(
                "`tls_cert` needs `tls_key`, the file of the certificate's private key".into(),
            );
            None
        }
        (None, Some(_)) => {
            problems.push("`tls_key` needs `tls_cert`, the file of its certificate".into());
            None
        }
    }
}

/// Reads the limits of clients.
pub(crate) fn client_limits(settings: &AccessSettings, problems: &mut Vec<String>) -> Limits {
    let mut limits = Limits::default();
    match settings.max_connections {
        Some(0) => problems.push("`max_connections` must be more than 0".into()),
        Some(connections) => {
            limits.connections = connections.min(tokio::sync::Semaphore::MAX_PERMITS);
        }
        None => {}
    }
    match settings.client_rate_limit {
        Some(rate) if !(0.001..=1e6).contains(&rate) => {
            problems.push(
                "`client_rate_limit` must be between 0.001 and 1000000 requests a second".into(),
            );
        }
        rate => limits.rate = rate,
    }
    limits
}

//! Settings of HTTP: who may call, and how often.

pub(crate) mod access_rules;
pub(crate) mod named_tokens;

use std::path::PathBuf;

use clap::Args;
use schemars::JsonSchema;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};
use url::Url;

use crate::config::auth::references::{describe_unset, resolve_secret};
use crate::config::clients::named_tokens::{NamedTokenSettings, resolve_named_tokens};
use crate::config::headers::ForwardSettings;
use crate::config::problems::Problems;
use crate::config::tables::given_settings;
use crate::config::values::{UrlForm, check_scopes, one_or_several, plain_url, read_seconds};
use crate::config::variables::read_variable;
use crate::outbound;
use crate::transport::http::page::PageKind;
use crate::transport::http::{
    AccessOptions, IntrospectionOptions, Limits, OauthOptions, StaticToken, Tls, ToolScopes,
};

/// Settings of which HTTP clients may call, and how much.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct AccessSettings {
    /// An environment variable with a bearer token that HTTP clients must send (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "VARIABLE",
        help_heading = "Authentication"
    )]
    pub(crate) auth_token_env: Vec<String>,

    /// A file with such tokens, one per line; it is read again when it changes (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "FILE",
        help_heading = "Authentication"
    )]
    pub(crate) auth_token_file: Vec<PathBuf>,

    /// Tokens with a name, which logs show and limits count by, and their own share of the tools
    /// (docs/guides/access.md). Only in the configuration file.
    #[arg(skip)]
    #[schemars(
            example = &"[{ name: nightly-report, env: REPORT_TOKEN, tool_include: [\"tag:reports\"], read_only: true }]"
        )]
    pub(crate) auth_tokens: Vec<NamedTokenSettings>,

    /// The URL that clients use for /mcp, if it differs from that of --bind
    #[arg(long, value_name = "URL", help_heading = "HTTP")]
    #[schemars(example = &"https://mcp.example/mcp")]
    pub(crate) public_url: Option<String>,

    /// Accept HTTP clients with access tokens (JWT) of this OAuth 2.1 issuer
    #[arg(long, value_name = "URL", help_heading = "Authentication")]
    #[schemars(example = &"https://login.example/tenant")]
    pub(crate) oauth_issuer: Option<String>,

    /// The audience that tokens must name (repeatable: any of them) [default: the public URL]
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "URI",
        help_heading = "Authentication"
    )]
    pub(crate) oauth_audience: Vec<String>,

    /// The URL of the issuer's keys, as in `https://login.example/tenant/keys` [default: the one in its metadata]
    #[arg(long, hide = true, value_name = "URL", help_heading = "Authentication")]
    pub(crate) oauth_jwks_url: Option<String>,

    /// A scope that every request requires (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    pub(crate) oauth_scope: Vec<String>,

    /// The scope of those tokens of the issuer whose users agree to calls (--confirm-by link)
    #[arg(
        long,
        hide = true,
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    pub(crate) approver_scope: Option<String>,

    /// Introspection of tokens.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) introspection: IntrospectionSettings,

    /// Scopes that calls require.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) scopes: ScopeSettings,

    /// A PEM file with the certificate to serve HTTPS with; it is read again when it changes
    #[arg(long, hide = true, value_name = "FILE", help_heading = "HTTP")]
    pub(crate) tls_cert: Option<PathBuf>,

    /// A PEM file with the private key of that certificate
    #[arg(long, hide = true, value_name = "FILE", help_heading = "HTTP")]
    pub(crate) tls_key: Option<PathBuf>,

    /// The maximum number of connections at the same time; further ones wait to be accepted
    /// [default: 1024]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "HTTP")]
    pub(crate) max_connections: Option<usize>,

    /// The maximum number of requests per second of one client, known by its token, else by its
    /// address [default: no limit]
    #[arg(long, hide = true, value_name = "NUMBER", help_heading = "HTTP")]
    pub(crate) client_rate_limit: Option<f64>,
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
    problems: &mut Problems,
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
            Ok(tokens) => access.token_files.push((path.clone(), tokens)),
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
fn approver_scope(settings: &AccessSettings, problems: &mut Problems) -> Option<String> {
    let scope = settings.approver_scope.as_ref()?;
    check_scopes(std::iter::once(scope), problems);
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

fn public_url(text: &str, problems: &mut Problems) -> Option<Url> {
    let mut url = problems.some(plain_url(text, UrlForm::Base), || {
        "--public-url is not a plain URL; write it as clients use it, as in https://mcp.example/mcp"
    })?;
    // /mcp is the only path for clients.
    if url.path() == "/" {
        url.set_path("/mcp");
    }
    Some(url)
}

fn oauth(
    settings: &AccessSettings,
    is_local: bool,
    problems: &mut Problems,
) -> Option<OauthOptions> {
    let Some(issuer) = &settings.oauth_issuer else {
        // Over stdio, they have no effect.
        let given = given_settings(settings).into_iter();
        for (name, _) in given.filter(|(_, key)| key.starts_with("oauth_")) {
            problems.push(format!("{name} needs --oauth-issuer"));
        }
        return None;
    };
    let before = problems.len();
    let jwks_url = settings.oauth_jwks_url.as_ref().and_then(|text| {
        problems.some(
            plain_url(text, UrlForm::Address),
            || "`oauth_jwks_url` is not an http(s) URL without user and password",
        )
    });
    // An attacker who can change the keys in transit can forge tokens. If the URL of the keys is
    // given, the issuer is only a name.
    match plain_url(issuer, UrlForm::Base) {
        Some(url) if url.scheme() == "https" || jwks_url.is_some() || outbound::is_loopback(&url) => {}
        _ => problems.push("--oauth-issuer must be an https URL without user, query and fragment, as in https://login.example/tenant"),
    }
    if !is_local && settings.public_url.is_none() {
        problems.push("--oauth-issuer needs --public-url URL, so that clients and tokens can name this server");
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
pub(crate) fn tool_scopes(settings: &ScopeSettings, problems: &mut Problems) -> ToolScopes {
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

/// The certificate and its key.
pub(crate) fn tls_files(settings: &AccessSettings, problems: &mut Problems) -> Option<Tls> {
    let (certificate, key) = (settings.tls_cert.as_ref()?, settings.tls_key.as_ref()?);
    problems.ok("`tls_cert`", Tls::load(certificate, key))
}

/// The limits of clients.
pub(crate) fn client_limits(settings: &AccessSettings) -> Limits {
    let usual = Limits::default();
    Limits {
        connections: settings.max_connections.map_or(usual.connections, |most| {
            most.min(tokio::sync::Semaphore::MAX_PERMITS)
        }),
        rate: settings.client_rate_limit,
    }
}

/// Settings of the introspection of access tokens that are not JWTs.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[expect(
    clippy::struct_field_names,
    reason = "they are the names of the settings"
)]
pub(crate) struct IntrospectionSettings {
    /// The issuer's introspection endpoint (RFC 7662) for tokens that are not JWTs, as in
    /// `https://login.example/tenant/introspect`
    #[arg(long, hide = true, value_name = "URL", help_heading = "Authentication")]
    pub(crate) oauth_introspection_url: Option<String>,

    /// The client that asks the introspection endpoint
    #[arg(long, hide = true, value_name = "ID", help_heading = "Authentication")]
    pub(crate) oauth_client_id: Option<String>,

    /// An environment variable with the secret of that client
    #[arg(
        long,
        hide = true,
        value_name = "VARIABLE",
        help_heading = "Authentication"
    )]
    pub(crate) oauth_client_secret_env: Option<String>,

    /// A file with the secret of that client
    #[arg(
        long,
        hide = true,
        value_name = "FILE",
        help_heading = "Authentication"
    )]
    pub(crate) oauth_client_secret_file: Option<PathBuf>,
}

/// Reads the settings; `None` if there is no introspection. What is wrong with them is pushed to
/// `problems`.
pub(super) fn introspection(
    settings: &IntrospectionSettings,
    problems: &mut Problems,
) -> Option<IntrospectionOptions> {
    let secret = resolve_secret(
        ["`oauth_client_secret_env`", "`oauth_client_secret_file`"],
        settings.oauth_client_secret_env.as_deref(),
        settings.oauth_client_secret_file.as_deref(),
        |text| Ok(SecretString::from(text)),
        problems,
    );
    let id = settings.oauth_client_id.as_ref();
    let text = settings.oauth_introspection_url.as_ref()?;
    // The token and the secret are sent there.
    let url = problems.some(
        plain_url(text, UrlForm::Confidential),
        || "`oauth_introspection_url` is not an https URL without user and password",
    );
    Some(IntrospectionOptions {
        url: url?,
        client_id: id?.clone(),
        client_secret: secret?,
    })
}

/// Scopes that calls require of a client's token. Of several, one is enough: a broader one may
/// imply a narrower one.
#[derive(Clone, Default, PartialEq, Eq, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct ScopeSettings {
    /// A scope that calls of read-only tools require (a list: any of them)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) oauth_read_scope: Vec<String>,

    /// A scope that calls of all other tools require (a list: any of them)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "SCOPE",
        help_heading = "Authentication"
    )]
    #[schemars(with = "crate::config::overrides::Globs")]
    #[serde(deserialize_with = "one_or_several")]
    pub(crate) oauth_write_scope: Vec<String>,
}

/// Settings that only HTTP uses; over stdio each of them is reported, because it would have no
/// effect.
#[derive(Clone, Default, Args, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct HttpSettings {
    /// The address to listen on with --transport http; port 0 takes a free port [default:
    /// 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", help_heading = "HTTP")]
    pub(crate) bind: Option<String>,

    /// A host name, or name:port, that clients may ask for besides loopback (repeatable)
    #[arg(
        long,
        value_delimiter = ',',
        value_name = "NAME",
        help_heading = "HTTP"
    )]
    pub(crate) allow_host: Vec<String>,

    /// A web origin besides loopback whose pages may call, as in `https://app.example` (a list)
    #[arg(
        long,
        hide = true,
        value_delimiter = ',',
        value_name = "ORIGIN",
        help_heading = "HTTP"
    )]
    pub(crate) allow_origin: Vec<String>,

    /// Listen on an address that others can reach, although clients need no credentials
    #[arg(long, help_heading = "Authentication")]
    pub(crate) allow_unauthenticated: Option<bool>,

    /// Time for which requests are still answered after SIGTERM while /readyz answers 503, so that
    /// a balancer stops sending before the listener closes, in seconds [default: 0]
    #[arg(long, value_parser = read_seconds, value_name = "SECONDS", help_heading = "Operations")]
    pub(crate) drain_delay: Option<f64>,

    /// Answer to a browser at / and /mcp: a page with the tools, one with only the steps to
    /// connect, or none [default: full on loopback if clients need no token, else public]
    #[arg(long, hide = true, value_name = "WHICH", help_heading = "HTTP")]
    pub(crate) page: Option<PageKind>,

    /// The text that OpenAI gives to verify the domain of an app; it is answered at
    /// `/.well-known/openai-apps-challenge` without a token. Only in the configuration file.
    #[arg(skip)]
    #[schemars(example = &"abc123")]
    pub(crate) openai_apps_challenge: Option<String>,

    /// Headers that are forwarded from a client's request to the API.
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) forward: ForwardSettings,

    /// Admission and limits of clients over HTTP
    #[command(flatten)]
    #[serde(flatten)]
    pub(crate) access: AccessSettings,
}

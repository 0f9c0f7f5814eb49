//! Transports by which clients reach the server, and their admission.

use std::net::SocketAddr;
use std::time::Duration;

use clap::Args;
use serde::Serialize;

use super::clients;
use super::clients::HttpSettings;
use super::headers::ForwardSettings;
use super::problems::Problems;
use super::settings::{ServerSettings, TransportKind};
use super::tables::given_settings;
use super::values::{UrlForm, plain_url, read_address};
use crate::caller::memory_budget::MemoryBudget;
use crate::transport::http::page::{PageKind, PageOptions};
use crate::transport::http::{Allowed, HttpOptions};

const TOKEN_PASSTHROUGH: &str = "`forward_authorization` cannot be used with --auth-token-env, --auth-token-file, `auth_tokens` or --oauth-issuer: the token that opens this server is not meant for the API (MCP, \"Token Passthrough\")";

/// Transport by which clients reach the server.
#[derive(Clone)]
pub(crate) enum Transport {
    /// Over standard input and output.
    Stdio,
    /// Over streamable HTTP.
    Http {
        /// The address to listen on.
        bind: SocketAddr,
        /// Admission and limits of clients.
        options: Box<HttpOptions>,
    },
}

impl Transport {
    /// Returns the source of a value of clients that this transport does not have: a claim of a
    /// verified token, or a header, which there is none of over stdio.
    pub(crate) fn lacks_value_of_client(&self, is_claim: bool) -> Option<&'static str> {
        Some(match (self, is_claim) {
            (Self::Stdio, false) => "a header of the client, which there is only over HTTP",
            (Self::Stdio, true) => "a claim of the client's token, which there is only over HTTP",
            (Self::Http { options, .. }, true) if options.access.oauth.is_none() => {
                "a claim of the client's token, and no token is verified without --oauth-issuer"
            }
            (Self::Http { .. }, _) => return None,
        })
    }
}

/// Resolves the transport; faults of the settings are pushed to `problems`.
pub(crate) fn resolve_transport(settings: &ServerSettings, problems: &mut Problems) -> Transport {
    match settings.transport {
        Some(TransportKind::Http) => resolve_http(&settings.http, problems),
        // Chosen explicitly, perhaps over a file that serves HTTP otherwise: not an error, but not
        // silent either.
        Some(TransportKind::Stdio) => {
            let given = given_settings(&settings.http);
            if !given.is_empty() {
                let names: Vec<String> = given.into_iter().map(|(name, _)| name).collect();
                tracing::warn!(
                    "over stdio, these settings have no effect: {}",
                    names.join(", ")
                );
            }
            Transport::Stdio
        }
        None => {
            need_http(&settings.http, problems);
            Transport::Stdio
        }
    }
}

fn resolve_http(settings: &HttpSettings, problems: &mut Problems) -> Transport {
    let mut allowed = resolve_allowed(settings, problems);
    let limits = clients::client_limits(&settings.access);
    let tls = clients::tls_files(&settings.access, problems);
    let usual = "127.0.0.1:8080";
    let bind = settings.bind.as_deref().unwrap_or(usual);
    let bind = read_address("--bind", bind, usual, problems);
    let is_local = bind.is_none_or(|bind| bind.ip().is_loopback());
    let access = clients::access(&settings.access, is_local, problems);
    // Clients may ask for the name that they use.
    let public = access
        .public_url
        .as_ref()
        .and_then(|url| Some((url.host_str()?, url.port())));
    allowed.hosts.extend(
        public.map(|(name, port)| {
            port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"))
        }),
    );
    if settings.forward.forward_authorization == Some(true) && !settings.access.is_open() {
        problems.push(TOKEN_PASSTHROUGH);
    }
    let app_challenge = settings.openai_apps_challenge.as_deref();
    let app_challenge = app_challenge.and_then(|text| resolve_challenge(text, problems));
    let drain_delay = Duration::from_secs_f64(settings.drain_delay.unwrap_or_default());
    let usual = if is_local && settings.access.is_open() {
        PageKind::Full
    } else {
        PageKind::Public
    };
    let page = PageOptions {
        kind: settings.page.unwrap_or(usual),
        ..PageOptions::default()
    };
    let Some(bind) = bind else {
        return Transport::Stdio;
    };
    if !is_local {
        check_exposure(bind, settings, &allowed, problems);
    }
    let options = Box::new(HttpOptions {
        allowed,
        access,
        limits,
        tls,
        page,
        drain_delay,
        app_challenge,
        shared_state: None,
        memory: MemoryBudget::default(),
        files: None,
    });
    Transport::Http { bind, options }
}

/// The text that verifies the domain of an app.
fn resolve_challenge(text: &str, problems: &mut Problems) -> Option<String> {
    const MAX_BYTES: usize = 1024;
    let text = text.trim();
    let is_right =
        (1..=MAX_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    problems.some(is_right.then(|| text.to_owned()), || {
        format!(
            "`openai_apps_challenge` must be the text that OpenAI shows, without spaces, of at most {MAX_BYTES} characters"
        )
    })
}

/// Refuses headers that an API among several cannot forward: any over stdio, and an Authorization
/// that authenticates at this server.
pub(crate) fn refuse_forwarding(
    forward: &ForwardSettings,
    server: &ServerSettings,
    problems: &mut Problems,
) {
    match server.transport {
        Some(TransportKind::Http)
            if forward.forward_authorization == Some(true) && !server.http.access.is_open() =>
        {
            problems.push(TOKEN_PASSTHROUGH);
        }
        Some(TransportKind::Http | TransportKind::Stdio) => {}
        None => need_http(forward, problems),
    }
}

/// Reports each of these settings that is given, because only HTTP uses them.
fn need_http<T: Args + Serialize>(settings: &T, problems: &mut Problems) {
    let given = given_settings(settings).into_iter();
    problems.extend(given.map(|(name, _)| format!("{name} needs --transport http")));
}

/// The hosts and origins of `--allow-host` and `allow_origin`.
fn resolve_allowed(settings: &HttpSettings, problems: &mut Problems) -> Allowed {
    let allowed = Allowed {
        hosts: settings.allow_host.clone(),
        origins: settings.allow_origin.clone(),
    };
    for host in allowed.hosts.iter().filter(|host| !Allowed::is_host(host)) {
        problems.push(format!(
            "--allow-host: `{host}` is not a host name; write it as clients ask for it, as in mcp.example or mcp.example:8443"
        ));
    }
    let is_origin = |text: &String| plain_url(text, UrlForm::Origin).is_some();
    if !allowed.origins.iter().all(is_origin) {
        problems.push("`allow_origin` has a text that is not an origin; write scheme and host, as in https://app.example");
    }
    allowed
}

/// Checks the settings that an address needs if other machines can reach it.
fn check_exposure(
    bind: SocketAddr,
    settings: &HttpSettings,
    allowed: &Allowed,
    problems: &mut Problems,
) {
    if allowed.hosts.is_empty() {
        problems.push(format!(
            "--bind {bind} can be reached by others; name the hosts that clients ask for with --allow-host NAME, or --public-url URL"
        ));
    }
    if settings.access.is_open() && settings.allow_unauthenticated != Some(true) {
        problems.push(format!("--bind {bind} can be reached by others, and clients need no credentials; require a token with --auth-token-env VARIABLE or --oauth-issuer URL, or, behind a proxy that authenticates clients, add --allow-unauthenticated, or bind to 127.0.0.1"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::tables::{keys, to_map};

    #[test]
    fn every_setting_of_http_is_refused_without_http() {
        let values = [json!(true), json!("full"), json!(1), json!(["1"])];
        for key in keys::<HttpSettings>() {
            let read = |value| serde_json::from_value::<HttpSettings>(json!({ &key: value })).ok();
            let settings = ServerSettings {
                http: values.clone().into_iter().find_map(read).unwrap(),
                ..ServerSettings::default()
            };
            assert_eq!(to_map(&settings.http).len(), 1);
            let mut problems = Problems::default();
            resolve_transport(&settings, &mut problems);
            let flag = format!("--{} needs --transport http", key.replace('_', "-"));
            let names = [flag, format!("`{key}` needs --transport http")];
            assert!(
                problems.len() == 1 && names.contains(&problems[0]),
                "{problems:?}"
            );
        }
    }
}

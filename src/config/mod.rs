//! Settings become what each floor needs: flag over variable over file over default, all problems told at once. The one
//! place that reads the environment.

mod access;
mod annotate;
pub(crate) mod credentials;
mod file;
pub(crate) mod forward;
mod headers;
pub(crate) mod settings;
mod transport;
pub(crate) mod upstream;
pub(crate) mod variables;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderMap;
use thiserror::Error;
use tokio::sync::Semaphore;
use url::Url;

use self::settings::{ApiSettings, ExternalRefs, LogFormat, LogLevel, ResponseFilter, ServerSettings};
pub(crate) use self::transport::Transport;
use crate::annotate::{AnnotateOptions, ClientProfile};
use crate::outbound::OutboundOptions;
use crate::proxy::request::body::file_root::FileRoot;
use crate::proxy::response::sandbox::MAX_PARALLEL_FILTERS;
use crate::proxy::{CallOptions, Credentials, Forwarding, Sandbox, UpstreamOptions};
use crate::spec::operation::server::{self, Choice, Pick};
use crate::spec::{ExternalReferences, Source};
use crate::text::MIN_BYTES_PER_TOKEN;

/// Clients give a call up after a minute; ours must have answered by then.
const LONGEST_TIMEOUT: f64 = 3600.0;
/// Less than this no reply can be cut to, in tokens.
const MIN_RESULT_TOKENS: usize = 100;

/// Everything that is wrong with the settings.
#[derive(Debug, Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct ConfigError(pub Vec<String>);

/// What the API is to be.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    /// Where the document comes from.
    pub source: Source,
    /// Headers for fetching the document, marked as sensitive.
    pub source_headers: HeaderMap,
    /// Overlays, in the order in which they are applied.
    pub overlays: Vec<Source>,
    /// Which references into other files are followed.
    pub external_references: ExternalReferences,
    /// `--base-url`.
    pub base_url: Option<Url>,
    /// Which of the document's servers, where there is no `--base-url`.
    pub server: Choice,
    /// `--mock`.
    pub mock: bool,
    /// Headers of every request, marked as sensitive.
    pub headers: HeaderMap,
    /// Credentials for the document's security schemes.
    pub credentials: Credentials,
    /// Headers of clients that go upstream.
    pub forward: Forwarding,
    /// How tools look and which there are.
    pub annotate: AnnotateOptions,
    /// What the client makes of the tools.
    pub profile: ClientProfile,
    /// Whether a document of which anything is read loosely is refused.
    pub strict: bool,
    /// Limits of a call.
    pub call: CallOptions,
    /// What runs filters of replies, where they are offered.
    pub sandbox: Option<Sandbox>,
    /// Limits of an upstream.
    pub upstream: UpstreamOptions,
    /// Outgoing connections.
    pub outbound: OutboundOptions,
    /// How clients reach the server.
    pub transport: Transport,
    /// How often a server looks whether the document changed.
    pub reload: Option<Duration>,
}

/// How logs are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions {
    /// How much.
    pub level: Option<LogLevel>,
    /// How it looks.
    pub format: LogFormat,
}

/// Reads the file, where there is one, and puts the flags (and with them the variables) over it.
pub(crate) fn layered(
    api: &ApiSettings,
    server: &ServerSettings,
    path: Option<&Path>,
    problems: &mut Vec<String>,
) -> (ApiSettings, ServerSettings) {
    let Some(path) = path else { return (api.clone(), server.clone()) };
    match std::fs::read_to_string(path) {
        Ok(text) => {
            let (mut file_api, file_server) = file::parse(&text, problems);
            // What a file names lies where the file does, from wherever the program is started.
            for text in file_api.spec.iter_mut().chain(&mut file_api.overlay) {
                *text = resolve_path(path, text);
            }
            let folder = path.parent().unwrap_or(Path::new(""));
            for named in file_api.upstream.files().chain(file_api.credentials.files()) {
                // An absolute path stays what it is.
                *named = folder.join(&named);
            }
            (file::layer(api, &file_api), file::layer(server, &file_server))
        }
        Err(error) => {
            problems.push(format!("the configuration file `{}` cannot be read: {error}", path.display()));
            (api.clone(), server.clone())
        }
    }
}

/// A relative path as one from the folder of `file`; a URL, `-` and an absolute path as they are.
fn resolve_path(file: &Path, text: &str) -> String {
    let path = match Source::parse(text) {
        Ok(Source::Path(path)) if path.is_relative() => file.parent().map(|folder| folder.join(path)),
        _ => None,
    };
    path.and_then(|path| path.into_os_string().into_string().ok())
        .unwrap_or_else(|| text.to_owned())
}

/// How logs are to be written, as far as the settings can be understood.
#[must_use]
pub(crate) fn log_options(api: &ApiSettings) -> LogOptions {
    LogOptions {
        level: api.log_level,
        format: api.log_format.unwrap_or(LogFormat::Text),
    }
}

/// The settings as what each floor needs.
///
/// # Errors
/// [`ConfigError`] with all problems; `problems` are those that were found on the way here.
pub(crate) fn resolve_config(
    api: &ApiSettings,
    server_settings: &ServerSettings,
    mut problems: Vec<String>,
) -> Result<Config, ConfigError> {
    let source = match api.spec.as_deref() {
        None => Err("no document is given; add --spec FILE, --spec URL, or --spec - (standard input, where no client needs it)".to_owned()),
        Some(spec) => Source::parse(spec).map_err(|error| format!("--spec: {error}")),
    };
    let source = source.map_err(|problem| problems.push(problem)).ok();
    let base_url = api
        .base_url
        .as_deref()
        .and_then(|text| read_base_url(text).map_err(|problem| problems.push(problem)).ok());
    let headers = headers::read_headers(["--header", "--header-env"], &api.header, &api.header_env, &mut problems);
    let source_headers = headers::read_headers(
        ["--spec-header", "--spec-header-env"],
        &api.spec_header,
        &api.spec_header_env,
        &mut problems,
    );
    let overlays: Vec<Source> = api
        .overlay
        .iter()
        .filter_map(|text| {
            Source::parse(text)
                .map_err(|error| problems.push(format!("--overlay: {error}")))
                .ok()
        })
        .collect();
    let outbound = upstream::outbound(&api.upstream, &mut problems);
    let limits = upstream::upstream_limits(&api.upstream, &mut problems);
    let mut credentials = credentials::resolve_credentials(&api.credentials, &mut problems);
    credentials.client_certificate = outbound.identity.is_some();
    let mut annotate = annotate::options(api, &mut problems);
    annotate.confirm = annotate::confirm(&server_settings.confirm, &mut problems);
    let call = call_options(api, &mut problems);
    if api.mock == Some(true) && api.base_url.is_some() {
        problems.push("--mock and --base-url exclude each other: a mocked call goes to no API".into());
    }
    let server = server_choice(api, &mut problems);
    let transport = transport::resolve_transport(server_settings, &mut problems);
    let forward = match transport {
        // A file that serves HTTP otherwise may say it; over stdio there are no headers.
        Transport::Stdio => Forwarding::default(),
        Transport::Http { .. } => forward::resolve_forwarding(&server_settings.forward, &mut problems),
    };
    let reload = reload_interval(server_settings, source.as_ref(), &mut problems);
    match source {
        Some(source) if problems.is_empty() => {
            // Only where every address is known beforehand can TLS be done without.
            let plain = |url: &Url| url.scheme() == "http";
            let needs_tls = overlays.iter().any(|overlay| overlay.url().is_some())
                || api.external_refs == Some(ExternalRefs::Any)
                || credentials.wants_tls()
                || outbound.proxy.as_ref().is_some_and(|proxy| !plain(&proxy.url))
                || !(source.url().as_ref().is_none_or(plain) && (base_url.as_ref().is_some_and(plain) || api.mock == Some(true)));
            Ok(Config {
                source,
                source_headers,
                overlays,
                external_references: match api.external_refs {
                    Some(ExternalRefs::None) => ExternalReferences::None,
                    Some(ExternalRefs::Any) => ExternalReferences::Any,
                    Some(ExternalRefs::Local) | None => ExternalReferences::Local,
                },
                base_url,
                server,
                mock: api.mock.unwrap_or(false),
                headers,
                credentials,
                forward,
                annotate,
                profile: annotate::known_client(api).profile(),
                strict: api.strict.unwrap_or(false),
                sandbox: sandbox(api, call.max_response_bytes),
                call,
                upstream: limits,
                outbound: OutboundOptions {
                    tls: needs_tls,
                    ..outbound
                },
                transport,
                reload,
            })
        }
        _ => Err(ConfigError(problems)),
    }
}

/// What runs filters: this program again.
fn sandbox(api: &ApiSettings, limit: usize) -> Option<Sandbox> {
    (api.response_filter == Some(ResponseFilter::Jq)).then_some(())?;
    // The file may have been replaced since the start; what runs is what was started.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() {
        running.to_owned()
    } else {
        std::env::current_exe().ok()?
    };
    let places = Arc::new(Semaphore::new(MAX_PARALLEL_FILTERS));
    Some(Sandbox { program, limit, places })
}

/// `--server` and `--server-var`.
fn server_choice(api: &ApiSettings, problems: &mut Vec<String>) -> Choice {
    let pick = api.server.as_deref().map(|text| match text.trim().parse() {
        Ok(number) => Pick::Number(number),
        Err(_) => Pick::Url(text.trim().to_owned()),
    });
    let mut choice = Choice { pick, ..Choice::default() };
    if choice.pick == Some(Pick::Number(0)) {
        problems.push("--server counts from 1".into());
    }
    for text in &api.server_var {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() => {
                choice.variables.insert(name.trim().to_owned(), value.to_owned());
            }
            _ => problems.push(format!("--server-var `{text}` wants `name=value`")),
        }
    }
    choice
}

fn read_base_url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text)
        .map_err(|error| format!("--base-url is no URL: {error}; write it with its scheme, as in https://api.example/v1"))?;
    server::usable(url).map_err(|error| format!("--base-url: {error}"))
}

fn call_options(api: &ApiSettings, problems: &mut Vec<String>) -> CallOptions {
    let mut call = CallOptions::default();
    if let Some(seconds) = api.timeout {
        if seconds > 0.0 && seconds <= LONGEST_TIMEOUT {
            call.timeout = Duration::from_secs_f64(seconds);
        } else {
            problems.push(format!("--timeout must be more than 0 and at most {LONGEST_TIMEOUT} seconds"));
        }
    }
    if let Some(tokens) = api.max_result_tokens {
        if tokens == 0 || tokens >= MIN_RESULT_TOKENS {
            call.max_result_bytes = tokens.saturating_mul(MIN_BYTES_PER_TOKEN);
        } else {
            problems.push(format!("--max-result-tokens must be 0 (no limit) or at least {MIN_RESULT_TOKENS}"));
        }
    }
    if let Some(bytes) = api.max_response_bytes {
        if bytes > 0 {
            call.max_response_bytes = bytes;
        } else {
            problems.push("--max-response-bytes must be more than 0".into());
        }
    }
    if let Some(path) = &api.allow_file_args {
        match FileRoot::new(Path::new(path)) {
            Ok(folder) => call.files = Some(folder),
            Err(error) => problems.push(format!("--allow-file-args: `{path}` is no folder that can be read: {error}")),
        }
    }
    call
}

fn reload_interval(settings: &ServerSettings, source: Option<&Source>, problems: &mut Vec<String>) -> Option<Duration> {
    /// A day.
    const MAX_INTERVAL_SECONDS: f64 = 86_400.0;
    const MIN_INTERVAL_SECONDS: f64 = 0.1;
    let seconds = settings.reload.filter(|seconds| *seconds != 0.0)?;
    if !(MIN_INTERVAL_SECONDS..=MAX_INTERVAL_SECONDS).contains(&seconds) {
        problems.push(format!(
            "--reload must be 0 (never) or between {MIN_INTERVAL_SECONDS} and {MAX_INTERVAL_SECONDS} seconds"
        ));
        return None;
    }
    if source == Some(&Source::Stdin) {
        problems.push("--reload needs a file or a URL: standard input is read once".into());
        return None;
    }
    Some(Duration::from_secs_f64(seconds))
}

#[cfg(test)]
mod tests {
    use super::settings::TransportKind;
    use super::*;

    fn problems(api: &ApiSettings, server: &ServerSettings) -> String {
        resolve_config(api, server, Vec::new()).map_or_else(|error| error.to_string(), |_| String::new())
    }

    #[test]
    fn all_problems_are_told_at_once() {
        let api = ApiSettings {
            base_url: Some("https://user:hunter2@h.example".into()),
            header: vec!["hunter2".into(), "Host: x".into(), "X-A: a\r\nb".into()],
            header_env: vec!["X-Key=SURELY_NOT_SET_ANYWHERE".into()],
            tool_include: vec!["taq:x".into()],
            timeout: Some(0.0),
            ..ApiSettings::default()
        };
        let server = ServerSettings {
            transport: Some(TransportKind::Http),
            bind: Some("0.0.0.0:80".into()),
            ..ServerSettings::default()
        };
        let text = problems(&api, &server);
        for expected in [
            "--spec",
            "--base-url",
            "`Name: value`",
            "`host`",
            "`x-a`",
            "SURELY_NOT_SET_ANYWHERE",
            "`taq`",
            "--timeout",
            "--allow-host",
            "--allow-unauthenticated",
        ] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        assert!(!text.contains("hunter2"), "{text}");
    }

    #[test]
    fn only_loopback_is_bound_without_more_words() {
        let api = ApiSettings {
            spec: Some("a.yaml".into()),
            ..ApiSettings::default()
        };
        let http = |bind: &str, host: &[&str], open: bool| ServerSettings {
            transport: Some(TransportKind::Http),
            bind: Some(bind.into()),
            allow_host: host.iter().map(|host| (*host).to_owned()).collect(),
            allow_unauthenticated: Some(open),
            ..ServerSettings::default()
        };
        for (bind, host, open, fine) in [
            ("127.0.0.1:0", &[][..], false, true),
            ("localhost:0", &[], false, true),
            ("[::1]:8080", &[], false, true),
            ("0.0.0.0:8080", &["h.example"], true, true),
            ("0.0.0.0:8080", &["h.example"], false, false),
            ("0.0.0.0:8080", &[], true, false),
            ("[::]:8080", &[], false, false),
            ("h.example:80", &[], false, false),
            ("127.0.0.1:99999", &[], false, false),
        ] {
            assert_eq!(problems(&api, &http(bind, host, open)).is_empty(), fine, "{bind}");
        }
    }
}

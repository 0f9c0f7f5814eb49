//! The configuration of one API: its document, its tools, and its calls.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use http::header::HeaderMap;
use secrecy::{ExposeSecret as _, SecretString};
use tokio::sync::Semaphore;
use url::Url;

use super::about::resolve_about;
use super::auth::oauth_client::{login_store, scheme_with_grant};
use super::auth::settings::SchemeSettings;
use super::auth::{VariablesOfApi, resolve_credentials};
use super::documents::{DocumentOptions, resolve_document};
use super::problems::Problems;
use super::process::ProcessConfig;
use super::settings::{ApiSettings, ResponseFilter, ServerSettings};
use super::several::NamedSettings;
use super::tenants::resolve_tenants;
use super::transport::Transport;
use super::variables::counts_as_unset;
use super::{annotate, clients, headers, overrides, upstream, values};
use crate::annotate::{AnnotateOptions, ClientProfile};
use crate::api::ApiOptions;
use crate::api::about::ApiName;
use crate::credentials::credential_part::basic_forms;
use crate::credentials::forward::Forwarding;
use crate::credentials::values::{Credentials, PREFIX};
use crate::mcp::api_slot::ListOptions;
use crate::outbound::OutboundOptions;
use crate::proxy::request::body::file_argument::FileRoot;
use crate::proxy::{CallOptions, Destination, UpstreamOptions};
use crate::redact::words_of_secret_header;
use crate::results::filter::Sandbox;
use crate::spec::Source;
use crate::spec::operation::server::{Choice, Pick};
use crate::text::MIN_BYTES_PER_TOKEN;
use crate::transport::http::ToolScopes;

/// Configuration of one API.
#[derive(Clone)]
pub(crate) struct ApiConfig {
    /// Settings of its calls and tools; the destination of calls is decided when the document is
    /// loaded.
    pub(crate) options: ApiOptions,
    /// The document, and how it is read.
    pub(crate) document: DocumentOptions,
    /// `--base-url`.
    pub(crate) base_url: Option<Url>,
    /// The document's server that is used, if there is no `--base-url`.
    pub(crate) server: Choice,
    /// `--mock`.
    pub(crate) mock: bool,
    /// Options of the list of tools.
    pub(crate) list: ListOptions,
    /// Profile of the client.
    pub(crate) profile: ClientProfile,
    /// True if a document with a part that is read loosely is refused.
    pub(crate) strict: bool,
    /// Outgoing connections.
    pub(crate) outbound: OutboundOptions,
    /// Interval at which a server checks for changes of the document.
    pub(crate) reload: Option<Duration>,
    /// Scopes that calls need of a client's token, besides those of the whole server.
    pub(crate) scopes: ToolScopes,
    /// Warnings about settings that are valid but probably not intended, in sentences.
    pub(crate) warnings: Vec<String>,
}

/// Resolves the settings of an API; faults are pushed to `problems`. `None` if there is no
/// document. `variables` are the credentials in variables, by what follows the fixed part of their
/// names.
pub(crate) fn resolve_api(
    settings: &NamedSettings,
    variables: VariablesOfApi,
    server_settings: &ServerSettings,
    process: &ProcessConfig,
    problems: &mut Problems,
) -> Option<ApiConfig> {
    let (name, api) = (settings.name.as_ref(), &settings.api);
    let mut warnings = Vec::new();
    let document = resolve_document(&api.document, name, &mut warnings, problems);
    let base_url = api.base_url.as_deref().and_then(|text| {
        let read = values::read_base_url("--base-url", text);
        read.map_err(|problem| problems.push(problem)).ok()
    });
    let headers = resolve_headers(api, &mut warnings, problems);
    let server = server_choice(api, problems, &mut warnings);
    let tenants = resolve_tenants(api, &headers, problems);
    if tenants.is_some() {
        warnings.extend(unused_variables(api, name, &variables));
    }
    let outbound = upstream::outbound(&api.upstream, problems);
    let mut credentials = resolve_credentials(
        &api.credentials,
        variables,
        process.state_keys.as_ref(),
        problems,
    );
    credentials.login_store = login_store(
        credentials.token_store.as_ref(),
        &process.transport,
        process.state_keys.as_ref(),
    );
    credentials.client_certificate = outbound.identity.is_some();
    credentials.api = name.map(ApiName::in_variables);
    let shared_state = process
        .shared_state
        .as_ref()
        .map(|state| state.of_api(name.map(ApiName::as_str)));
    credentials.shared.clone_from(&shared_state);
    let call = call_options(api, process, problems);
    let forward = match process.transport {
        // A file that is also used for HTTP may set it; over stdio there are no headers.
        Transport::Stdio => Forwarding::default(),
        Transport::Http { .. } => headers::resolve_forwarding(&settings.forward, problems),
    };
    let annotate = AnnotateOptions {
        confirm: match name {
            Some(_) => process.confirm.of_one_of_several(),
            None => process.confirm.clone(),
        },
        shares: Arc::clone(&process.shares),
        ..annotate::options(api, &settings.rules, name, problems)
    };
    let list = annotate::list_options(api, problems);
    let upstream = UpstreamOptions {
        propagates_trace: server_settings
            .observability
            .propagate_trace
            .unwrap_or(false),
        shared: shared_state,
        ..upstream::upstream_limits(&api.upstream)
    };
    let reload = reload_interval(server_settings, document.as_ref(), problems);
    problems.extend(overrides::check_set_headers(
        &annotate.layers.rules,
        &headers,
        &forward,
    ));
    let options = ApiOptions {
        annotate,
        destination: Destination::default(),
        headers,
        credentials: Some(credentials),
        forward,
        secrets: outbound
            .proxy
            .iter()
            .filter_map(|proxy| proxy.credential.clone())
            .collect(),
        sandbox: sandbox(
            settings,
            call.max_response_bytes,
            Arc::clone(&process.filters),
        ),
        call,
        upstream,
        about: resolve_about(&api.about, problems),
        name: name.cloned(),
        secrets_of_all: Vec::new(),
        tenants,
    };
    let mut config = ApiConfig {
        options,
        document: document?,
        base_url,
        server,
        mock: api.common.mock.unwrap_or(false),
        list,
        profile: annotate::client_profile(api),
        strict: api.strict.unwrap_or(false),
        outbound,
        reload,
        scopes: clients::tool_scopes(&settings.scopes, problems),
        warnings,
    };
    config.outbound.tls = config.needs_tls();
    Some(config)
}

impl ApiConfig {
    /// A security scheme whose operations are called as the user.
    pub(crate) fn scheme_with_grant(&self) -> Option<&str> {
        let tenants = self
            .options
            .tenants
            .iter()
            .flat_map(|tenants| tenants.entries.values());
        let of_tenants = tenants.map(|tenant| &tenant.credentials);
        of_tenants
            .chain(&self.options.credentials)
            .find_map(|credentials| scheme_with_grant(&credentials.clients))
    }

    /// Returns true if any connection may need TLS: it can be left out only if every address is
    /// known to be plain HTTP.
    fn needs_tls(&self) -> bool {
        let plain = |url: &Url| url.scheme() == "http";
        let tenants_are_plain = self.options.tenants.as_ref().is_some_and(|tenants| {
            let mut tenants = tenants.entries.values();
            tenants.all(|tenant| plain(&tenant.base_url) && !tenant.credentials.wants_tls())
        });
        let calls_are_plain =
            self.mock || self.base_url.as_ref().is_some_and(plain) || tenants_are_plain;
        self.document.may_connect(|url| !plain(url))
            || self
                .options
                .credentials
                .as_ref()
                .is_some_and(Credentials::wants_tls)
            || self
                .outbound
                .proxy
                .as_ref()
                .is_some_and(|proxy| !plain(&proxy.url))
            || !calls_are_plain
    }
}

/// The headers of requests; what is most likely not meant about them is pushed to `warnings`.
fn resolve_headers(
    api: &ApiSettings,
    warnings: &mut Vec<String>,
    problems: &mut Problems,
) -> HeaderMap {
    let flags = ["--header", "--header-env"];
    let mut headers = headers::read_headers(flags, &api.header, &api.header_env, problems);
    headers::read_files(&api.header_file, &mut headers, problems);
    warnings.extend(headers::warn_about_missing_scheme(flags, &headers));
    headers
}

/// Returns the sandbox of filters, which runs this program again.
fn sandbox(settings: &NamedSettings, limit: usize, places: Arc<Semaphore>) -> Option<Sandbox> {
    let has_program = settings
        .rules
        .overrides
        .iter()
        .any(|rule| rule.says.response.jq.is_some());
    (has_program || settings.api.response_filter == Some(ResponseFilter::Jq)).then_some(())?;
    // The file may have been replaced since the start; what runs is what was started.
    let running = Path::new("/proc/self/exe");
    let program = if running.exists() {
        running.to_owned()
    } else {
        std::env::current_exe().ok()?
    };
    Some(Sandbox {
        program,
        limit,
        places,
    })
}

/// `server` and `--server-var`. A value that is empty or a placeholder counts as not set: a
/// bundle hands one over for each field that its user left blank.
fn server_choice(api: &ApiSettings, problems: &mut Problems, warnings: &mut Vec<String>) -> Choice {
    let pick = api.server.as_deref().map(|text| match text.trim().parse() {
        Ok(number) => Pick::Number(number),
        Err(_) => Pick::Url(text.trim().to_owned()),
    });
    let mut choice = Choice {
        pick,
        ..Choice::default()
    };
    if choice.pick == Some(Pick::Number(0)) {
        problems.push("`server` begins with 1");
    }
    for text in &api.server_var {
        match text.split_once('=') {
            Some((name, value)) if !name.trim().is_empty() && counts_as_unset(value.trim()) => warnings.push(format!(
                "--server-var {}: the value is empty or a placeholder that the client did not fill, and is ignored",
                name.trim()
            )),
            Some((name, value)) if !name.trim().is_empty() => {
                choice.variables.insert(name.trim().to_owned(), value.to_owned());
            }
            _ => problems.push(format!("--server-var `{text}` must be `name=value`")),
        }
    }
    choice
}

/// Returns a sentence if variables give credentials of an API whose tenants have their own alone.
fn unused_variables(
    api: &ApiSettings,
    name: Option<&ApiName>,
    variables: &BTreeMap<String, SecretString>,
) -> Option<String> {
    let tenants = api
        .tenants
        .iter()
        .flat_map(|tenants| tenants.entries.values());
    let named: HashSet<String> = tenants
        .flat_map(|tenant| tenant.auth.values())
        .flat_map(SchemeSettings::variables)
        .collect();
    let prefix = name.map_or_else(
        || PREFIX.to_owned(),
        |name| format!("{PREFIX}{}_", name.in_variables()),
    );
    let names = variables.keys().map(|suffix| format!("{prefix}{suffix}"));
    let names: Vec<String> = names.filter(|name| !named.contains(name)).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} is sent to no tenant: name it with `{{ env: … }}` under `auth` of an entry of `tenants`",
            names.join(", ")
        )
    })
}

fn call_options(
    api: &ApiSettings,
    process: &ProcessConfig,
    problems: &mut Problems,
) -> CallOptions {
    let memory = &process.memory;
    let profile = annotate::client_profile(api);
    let max_result_bytes = profile.result_tokens.saturating_mul(MIN_BYTES_PER_TOKEN);
    let mut call = CallOptions {
        max_result_bytes: if profile.reads_max_result_size {
            max_result_bytes.min(annotate::MAX_ANNOUNCED_BUDGET)
        } else {
            max_result_bytes
        },
        hides_images: (profile.shows_images == Some(false)).then_some(profile.name),
        memory: memory.clone(),
        delivery: process.delivery.clone(),
        ..CallOptions::default()
    };
    if let Some(seconds) = api.timeout {
        call.timeout = Duration::from_secs_f64(seconds);
    }
    if let Some(bytes) = api.max_response_bytes {
        let share = memory.share();
        if bytes > share {
            problems.push(format!(
                "--max-response-bytes must be at most half of --max-memory, which is {share}, because a client may take no more"
            ));
        }
        call.max_response_bytes = bytes;
    }
    if let Some(path) = &api.allow_file_args {
        let folder = FileRoot::new(path)
            .map_err(|error| format!("the folder `{}` cannot be read: {error}", path.display()));
        call.files = problems.ok("--allow-file-args", folder);
    }
    call
}

fn reload_interval(
    settings: &ServerSettings,
    document: Option<&DocumentOptions>,
    problems: &mut Problems,
) -> Option<Duration> {
    let seconds = settings.reload.filter(|seconds| *seconds != 0.0)?;
    if document.is_some_and(|document| document.source == Source::Stdin) {
        problems.push("--reload needs a file or a URL: standard input is read once");
        return None;
    }
    Some(Duration::from_secs_f64(seconds))
}

/// The shortest secret of another API that is looked for, in bytes. Shorter ones would be found in
/// data that has nothing to do with them.
const MIN_FOREIGN_SECRET_BYTES: usize = 12;

/// Gives each of several APIs the secrets of all, those of their tenants included.
pub(crate) fn share_secrets(apis: &mut [ApiConfig]) {
    if apis.len() < 2 && apis.iter().all(|api| api.options.tenants.is_none()) {
        return;
    }
    let mut all: Vec<Vec<u8>> = apis.iter().flat_map(static_secrets).collect();
    all.retain(|secret| secret.len() >= MIN_FOREIGN_SECRET_BYTES);
    all.sort_unstable();
    all.dedup();
    let secrets: Vec<SecretString> = all
        .into_iter()
        .filter_map(|secret| String::from_utf8(secret).ok().map(SecretString::from))
        .collect();
    for api in apis {
        api.options.secrets_of_all.clone_from(&secrets);
    }
}

/// Returns the secrets of the operator's settings of one API, in each form in which they are sent.
fn static_secrets(api: &ApiConfig) -> Vec<Vec<u8>> {
    let tenants = api
        .options
        .tenants
        .iter()
        .flat_map(|tenants| tenants.entries.values());
    let all = api
        .options
        .credentials
        .iter()
        .chain(tenants.map(|tenant| &tenant.credentials));
    let given = all.flat_map(Credentials::exposed);
    let headers = api.options.headers.iter().chain(&api.document.headers);
    let of_headers = headers
        .filter(|(_, value)| value.is_sensitive())
        .flat_map(|(name, value)| words_of_secret_header(name, value));
    let proxy = api
        .outbound
        .proxy
        .iter()
        .filter_map(|proxy| proxy.credential.as_ref());
    let of_proxy = proxy.flat_map(|pair| {
        let pair = pair.expose_secret();
        let encoded = basic_forms(pair)
            .into_iter()
            .flatten()
            .map(String::into_bytes);
        std::iter::once(pair.as_bytes().to_vec()).chain(encoded)
    });
    given.chain(of_headers).chain(of_proxy).collect()
}

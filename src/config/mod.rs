//! Resolves settings for the other parts: flag over variable over file over default. All problems are reported at once. Only this part
//! reads the environment.
//!
//! # Adding a setting
//!
//! - A field of `ApiSettings` in `config/settings.rs` if it concerns one API, or of `ServerSettings` there. Flag, variable and key of
//!   the file follow from it.
//! - `resolve_api` in `config/api.rs` or `resolve_process` in `config/process.rs`, through the file of its topic.
//! - `api_options` in `cli/load.rs` hands it to the API.
//! - Its section of the help: `SECTIONS` in `cli/help.rs`.
//!
//! The tests name the pages that lack it; `just update` writes those that are generated.

mod access;
mod annotate;
pub(crate) mod api;
pub(crate) mod apis;
mod choices;
pub(crate) mod credentials;
mod file;
pub(crate) mod forward;
mod headers;
mod http_settings;
mod layer;
pub(crate) mod operations;
pub(crate) mod overrides;
mod path;
pub(crate) mod process;
pub(crate) mod settings;

mod transport;
pub(crate) mod upstream;
pub(crate) mod variables;
mod wrong_value;

use std::path::Path;
use std::sync::Arc;

use thiserror::Error;
use tokio::sync::Semaphore;

pub(crate) use self::api::ApiConfig;
use self::api::ApiSources;
pub(crate) use self::apis::choice::ApiChoice;
use self::apis::choice::keep_chosen;
use self::apis::keys::refuse_settings_of_one_api;
use self::apis::named::{NamedSettings, under_name};
use self::apis::scopes::ScopeSettings;
use self::apis::secrets::share_secrets;
use self::apis::variables::credential_variables_by_api;
use self::file::FileSettings;
use self::forward::ForwardSettings;
pub(crate) use self::headers::{named_variables, secret_headers};
use self::operations::shared_state::{SharedStateConfig, resolve_shared_state};
pub(crate) use self::process::ProcessConfig;
use self::settings::{ApiSettings, LogFormat, LogLevel, ServerSettings, TransportKind};
pub(crate) use self::transport::Transport;
use self::wrong_value::FileProblems;
use crate::api::name::ApiName;
use crate::proxy::response::sandbox::MAX_PARALLEL_FILTERS;
use crate::transport::http::ToolScopes;

/// Everything that is wrong with the settings.
#[derive(Debug, Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct ConfigError(pub Vec<String>);

/// The names of several APIs, of which a command takes one.
#[derive(Debug)]
pub(crate) struct TooManyApis(pub(crate) Vec<ApiName>);

impl TooManyApis {
    /// How many there are, with their names.
    pub(crate) fn counted(&self) -> String {
        let names: Vec<&str> = self.0.iter().map(ApiName::as_str).collect();
        format!("{} ({})", names.len(), names.join(", "))
    }
}

impl ConfigError {
    /// The problems of one API among several, each with its place.
    pub(crate) fn under(name: &ApiName, problems: Vec<String>) -> impl Iterator<Item = String> + use<> {
        under_name(name, problems)
    }
}

/// How logs are written.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogOptions {
    /// How much.
    pub level: Option<LogLevel>,
    /// How it looks.
    pub format: LogFormat,
}

/// Settings from all sources, the stronger over the weaker, before they are checked.
#[derive(Debug, Default)]
pub(crate) struct LayeredSettings {
    /// Of one API, and what every command takes.
    pub(crate) api: ApiSettings,
    pub(crate) server: ServerSettings,
    /// Of several APIs, in the order of their names, and which of them are wanted.
    pub(crate) apis: Vec<NamedSettings>,
    chosen: Vec<ApiName>,
    /// Whether there are several, although none may be readable.
    is_several: bool,
    /// What is wrong with the configuration file, and with `--api`.
    pub(crate) problems: Vec<String>,
}

/// The settings of a command, checked.
#[derive(Debug)]
pub(crate) struct Config {
    pub(crate) process: ProcessConfig,
    /// One without a name, or all that have one.
    pub(crate) apis: Vec<ApiConfig>,
}

impl LayeredSettings {
    /// Reads the file, where there is one, and puts the flags (and with them the variables) over it.
    pub(crate) fn read(api: &ApiSettings, server: &ServerSettings, choice: &ApiChoice, path: Option<&Path>) -> Self {
        let mut layered = Self::default();
        let file = path.map(|path| read_file(path, &mut layered.problems)).unwrap_or_default();
        layered.apis = file.several.apis;
        layered.chosen = choice.add_to(&mut layered.apis, &mut layered.problems);
        layered.apis.sort_by(|one, other| one.name.cmp(&other.name));
        layered.is_several = file.several.given || !choice.api.is_empty();
        if layered.is_several {
            if !file.several.given {
                refuse_settings_of_one_api(&file.api, &file.server.http.forward, &mut layered.problems);
            }
            layered.separate(api, &server.http.forward, &file.api);
        }
        if path.is_none() {
            (layered.api, layered.server) = (api.clone(), server.clone());
            return layered;
        }
        layered.server = layer::layer(server, &file.server);
        layered.api = layer::layer(api, &file.api);
        layered.api.overrides = file.api.overrides;
        layered
    }

    /// For a command that serves nothing: what the file says of the server does not count.
    pub(crate) fn forget_server(&mut self) {
        self.server = ServerSettings {
            // Nothing else is in flight.
            max_memory: Some(usize::MAX),
            ..ServerSettings::default()
        };
        for api in &mut self.apis {
            api.forward = ForwardSettings::default();
            api.scopes = ScopeSettings::default();
        }
    }

    /// The settings of each API; of a single one, without a name.
    pub(crate) fn each_api_mut(&mut self) -> Vec<(Option<ApiName>, &mut ApiSettings)> {
        if self.is_several {
            let named = self.apis.iter_mut();
            named.map(|api| (Some(api.name.clone()), &mut api.api)).collect()
        } else {
            vec![(None, &mut self.api)]
        }
    }

    /// For a command that takes one API and gives it no name: of several, the chosen one becomes the only one.
    ///
    /// # Errors
    /// None of several is chosen, or more than one.
    pub(crate) fn keep_one_without_name(&mut self) -> Result<(), TooManyApis> {
        if !self.is_several {
            return Ok(());
        }
        let is_kept = |api: &&NamedSettings| self.chosen.is_empty() || self.chosen.contains(&api.name);
        let kept: Vec<&NamedSettings> = self.apis.iter().filter(is_kept).collect();
        match kept.as_slice() {
            // What is wrong with the names is told when the settings are resolved.
            [] => Ok(()),
            [only] => {
                let mut settings = only.api.clone();
                (settings.log_level, settings.log_format) = (self.api.log_level, self.api.log_format);
                self.server.http.forward = only.forward.clone();
                self.api = settings;
                self.is_several = false;
                Ok(())
            }
            _ => Err(TooManyApis(self.apis.iter().map(|api| api.name.clone()).collect())),
        }
    }

    /// For a server: it serves all, and chooses none.
    pub(crate) fn refuse_choice(&mut self) {
        for name in std::mem::take(&mut self.chosen) {
            self.problems.push(format!(
                "--api {name} names no document; write --api {name}=FILE (all APIs of the configuration file are served)"
            ));
        }
    }

    /// Gives each of several APIs what is its own: the flags of one API to the one that is chosen, and what may stand at the top
    /// to all that do not say otherwise.
    fn separate(&mut self, flags: &ApiSettings, forward: &ForwardSettings, file: &ApiSettings) {
        match self.chosen.as_slice() {
            [name] => {
                if let Some(api) = self.apis.iter_mut().find(|api| api.name == *name) {
                    api.put_over(flags);
                }
            }
            _ => refuse_settings_of_one_api(flags, forward, &mut self.problems),
        }
        for api in &mut self.apis {
            api.api.client = api.api.client.or(flags.client).or(file.client);
            let of_all = flags.max_result_tokens.or(file.max_result_tokens);
            api.api.max_result_tokens = api.api.max_result_tokens.or(of_all);
            api.api.tools = api.api.tools.or(flags.tools).or(file.tools);
            api.api.max_list_tokens = api.api.max_list_tokens.or(flags.max_list_tokens).or(file.max_list_tokens);
            if flags.mock.or(file.mock) == Some(true) {
                api.api.mock = Some(true);
                // Nothing leaves.
                api.api.base_url = None;
            }
        }
    }

    /// How logs are to be written, as far as the settings can be understood.
    #[must_use]
    pub(crate) fn log_options(&self) -> LogOptions {
        LogOptions {
            level: self.api.log_level,
            format: self.api.log_format.unwrap_or(LogFormat::Text),
        }
    }

    /// The settings as what each floor needs.
    ///
    /// # Errors
    /// [`ConfigError`] with all problems, those of the file first.
    pub(crate) fn resolve(mut self) -> Result<Config, ConfigError> {
        let mut problems = std::mem::take(&mut self.problems);
        // Of several APIs, none decides which certificates are trusted for what all of them use.
        let authorities = if self.is_several {
            &[][..]
        } else {
            self.api.upstream.ca_cert.as_slice()
        };
        let shared = resolve_shared_state(&self.api.shared_state, authorities, &mut problems);
        let mut process = process::resolve_process(&self.server, shared.state.as_ref(), &mut problems);
        self.check_own_files(&mut problems);
        let apis = if self.is_several {
            self.resolve_several(&process, &shared, &mut problems)
        } else {
            let variables = credentials::credential_variables(&mut problems);
            let sources = ApiSources {
                name: None,
                api: &self.api,
                forward: &self.server.http.forward,
                scopes: ToolScopes::default(),
                variables,
                confirm: process.confirm.clone(),
                filters: Arc::new(Semaphore::new(MAX_PARALLEL_FILTERS)),
                memory: &process.memory,
                shared: &shared,
            };
            let mut single: Vec<ApiConfig> = api::resolve_api(sources, &self.server, &process.transport, &mut problems)
                .into_iter()
                .collect();
            share_secrets(&mut single);
            single
        };
        if let Transport::Http { options, .. } = &mut process.transport
            && let Some(oauth) = &mut options.access.oauth
        {
            oauth.keeps_tokens = apis.iter().any(|api| api.scheme_with_grant().is_some());
        }
        if problems.is_empty() {
            Ok(Config { process, apis })
        } else {
            Err(ConfigError(problems))
        }
    }

    /// An audit log and a token store in one file would destroy each other.
    fn check_own_files(&mut self, problems: &mut Vec<String>) {
        let Some(log) = self.server.operations.audit_log.clone() else {
            return;
        };
        let mut apis = self.each_api_mut().into_iter();
        if apis.any(|(_, api)| api.credentials.token_store.as_ref() == Some(&log)) {
            problems.push(format!(
                "--audit-log and --token-store name one file, `{}`; each needs its own",
                log.display()
            ));
        }
    }

    fn resolve_several(&mut self, process: &ProcessConfig, shared: &SharedStateConfig, problems: &mut Vec<String>) -> Vec<ApiConfig> {
        let names: Vec<ApiName> = self.apis.iter().map(|api| api.name.clone()).collect();
        // Of all, so that it does not depend on what is chosen to whom a variable belongs.
        let mut variables = credential_variables_by_api(&names, problems);
        keep_chosen(&mut self.apis, &self.chosen, problems);
        let filters = Arc::new(Semaphore::new(MAX_PARALLEL_FILTERS));
        let mut resolved = Vec::with_capacity(self.apis.len());
        for named in &self.apis {
            let mut own = Vec::new();
            let sources = ApiSources {
                name: Some(&named.name),
                api: &named.api,
                forward: &named.forward,
                scopes: access::tool_scopes(&named.scopes, &mut own),
                variables: variables.remove(&named.name).unwrap_or_default(),
                confirm: process.confirm.of_one_of_several(),
                filters: Arc::clone(&filters),
                memory: &process.memory,
                shared,
            };
            transport::refuse_forwarding(&named.forward, &self.server, &mut own);
            resolved.extend(api::resolve_api(sources, &self.server, &process.transport, &mut own));
            let told = under_name(&named.name, own).filter(|problem| !problems.contains(problem));
            problems.extend(told.collect::<Vec<_>>());
        }
        if named_oauth_is_missing(&self.apis, &self.server) {
            problems.push("`oauth_read_scope` and `oauth_write_scope` of an API need --oauth-issuer".into());
        }
        share_secrets(&mut resolved);
        resolved
    }
}

/// Whether an API asks for scopes where no token has any.
fn named_oauth_is_missing(apis: &[NamedSettings], server: &ServerSettings) -> bool {
    let asks = |api: &NamedSettings| api.scopes != ScopeSettings::default();
    server.http.access.oauth_issuer.is_none() && server.transport == Some(TransportKind::Http) && apis.iter().any(asks)
}

/// What the file says; what is wrong with it is pushed to `problems`.
fn read_file(path: &Path, problems: &mut Vec<String>) -> FileSettings {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(format!("the configuration file `{}` cannot be read: {error}", path.display()));
            return FileSettings::default();
        }
    };
    let mut problems = FileProblems {
        file: &path.display().to_string(),
        section: None,
        problems,
    };
    // What a file names is where the file is, from wherever the program is started.
    let folder = path.parent().unwrap_or(Path::new(""));
    path::read_relative_to(folder, || file::parse(&text, &mut problems))
}

#[cfg(test)]
mod tests {
    use super::http_settings::HttpSettings;
    use super::*;

    fn problems(api: &ApiSettings, server: &ServerSettings) -> String {
        let layered = LayeredSettings::read(api, server, &ApiChoice::default(), None);
        layered.resolve().map_or_else(|error| error.to_string(), |_| String::new())
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
            http: HttpSettings {
                bind: Some("0.0.0.0:80".into()),
                ..HttpSettings::default()
            },
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
            http: HttpSettings {
                bind: Some(bind.into()),
                allow_host: host.iter().map(|host| (*host).to_owned()).collect(),
                allow_unauthenticated: Some(open),
                ..HttpSettings::default()
            },
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

//! Resolves settings for the other parts: flag over variable over file over default. All problems
//! are reported at once. Only this part reads the environment.
//!
//! # Adding a setting
//!
//! - A field of `ApiSettings` in `config/settings.rs` if it concerns one API, of `CommonSettings`
//!   if it may be given for all of several, of `ProcessSettings` if every command has it, or of
//!   `ServerSettings`. Flag, variable and key of the file follow from it, and `help_heading` is its
//!   section in `--help` and in the reference.
//! - `resolve_api` in `config/api.rs` or `resolve_process` in `config/process.rs`, through the file
//!   of its topic.
//! - `api_options` in `cli/load.rs` hands it to the API.
//!
//! The tests name the pages that lack it; `just update` writes those that are generated.

pub(crate) mod about;
mod annotate;
pub(crate) mod api;
pub(crate) mod auth;
pub(crate) mod clients;
mod documents;
mod file;
pub(crate) mod headers;
#[cfg(test)]
mod mutated_tests;
pub(crate) mod observability;
pub(crate) mod overrides;
mod paths;
mod problems;
pub(crate) mod process;
pub(crate) mod saved_files;
#[cfg(test)]
pub(crate) mod schema_tests;
pub(crate) mod settings;
mod several;
pub(crate) mod tables;
pub(crate) mod tenants;
mod transport;
pub(crate) mod upstream;
pub(crate) mod values;
pub(crate) mod variables;

use std::path::Path;

use self::about::{AboutSettings, resolve_about};
pub(crate) use self::api::ApiConfig;
use self::api::share_secrets;
use self::auth::credential_variables;
use self::clients::ScopeSettings;
use self::file::FileSettings;
use self::headers::ForwardSettings;
pub(crate) use self::headers::{named_variables, secret_headers};
pub(crate) use self::paths::change_path;
pub(crate) use self::problems::Problems;
pub(crate) use self::process::ProcessConfig;
use self::settings::{
    ApiSettings, CommandSettings, CommonSettings, FileRules, ProcessSettings, ServerSettings,
    TransportKind,
};
pub(crate) use self::several::{ConfigFile, NamedSettings};
use self::several::{keep_chosen, refuse_settings_of_one_api};
pub(crate) use self::tables::to_map as given_settings;
use self::tables::{check_tables, layer};
pub(crate) use self::transport::Transport;
use crate::api::about::ApiName;

/// Settings from all sources, the stronger over the weaker, before they are checked.
#[derive(Default)]
pub(crate) struct LayeredSettings {
    pub(crate) process: ProcessSettings,
    pub(crate) server: ServerSettings,
    /// The only API, or several in the order of their names; none if `apis` cannot be read.
    pub(crate) apis: Vec<NamedSettings>,
    /// The introduction of several APIs as a whole.
    about: AboutSettings,
    /// The chosen ones of several.
    chosen: Vec<ApiName>,
    /// The problems of the configuration file, and of `--api`.
    pub(crate) problems: Problems,
}

/// The settings of a command, checked.
pub(crate) struct Config {
    pub(crate) process: ProcessConfig,
    /// One without a name, or all that have one.
    pub(crate) apis: Vec<ApiConfig>,
}

impl LayeredSettings {
    /// Reads the file, if there is one, and puts the flags (and with them the variables) over it.
    pub(crate) fn read(
        flags: &CommandSettings,
        server: &ServerSettings,
        given: &ConfigFile,
    ) -> Self {
        let mut problems = Problems::default();
        let file = given
            .config
            .as_deref()
            .map(|path| read_file(path, &mut problems))
            .unwrap_or_default();
        let mut layered = Self {
            process: layer(&flags.process, &file.command.process),
            server: layer(server, &file.server),
            problems,
            ..Self::default()
        };
        if file.apis.is_none() && given.api.is_empty() {
            layered.apis = vec![NamedSettings {
                api: layer(&flags.api, &file.command.api),
                rules: file.rules,
                forward: layered.server.http.forward.clone(),
                ..NamedSettings::default()
            }];
            return layered;
        }
        layered.about = file.command.api.about.clone();
        if file.apis.is_none() {
            refuse_settings_of_one_api(
                &file.command.api,
                &file.rules,
                &file.server.http.forward,
                &mut layered.problems,
            );
        }
        layered.apis = file.apis.unwrap_or_default();
        layered.chosen = given.add_to(&mut layered.apis, &mut layered.problems);
        layered.apis.sort_by(|one, other| one.name.cmp(&other.name));
        layered.separate(&flags.api, &server.http.forward, &file.command.api.common);
        layered
    }

    /// Returns true if the APIs have names, even if none can be read.
    fn is_several(&self) -> bool {
        self.apis.iter().all(|api| api.name.is_some())
    }

    /// Removes the server's settings of the file, for a command that serves nothing.
    pub(crate) fn forget_server(&mut self) {
        self.server = ServerSettings {
            // Nothing else is in flight.
            max_memory: Some(usize::MAX),
            // The policy of hints depends on it.
            confirm: std::mem::take(&mut self.server.confirm),
            ..ServerSettings::default()
        };
        for api in &mut self.apis {
            api.forward = ForwardSettings::default();
        }
    }

    /// Makes the chosen one of several APIs the only one, without a name, and returns it, for a
    /// command that takes one API. Its tools keep their names, which rules and patterns match. If
    /// none is chosen, the names are reported when the settings are resolved.
    ///
    /// # Errors
    /// None of several is chosen, or more than one: their number and their names.
    pub(crate) fn keep_one_without_name(&mut self) -> Result<Option<&mut NamedSettings>, String> {
        let Self { apis, chosen, .. } = self;
        let is_kept = |api: &NamedSettings| {
            api.name
                .as_ref()
                .is_none_or(|name| chosen.is_empty() || chosen.contains(name))
        };
        match apis.iter().filter(|api| is_kept(api)).count() {
            0 => Ok(None),
            1 => {
                apis.retain(is_kept);
                let mut only = apis.first_mut();
                if let Some(only) = &mut only
                    && let Some(name) = only.name.take()
                {
                    let prefix = &mut only.api.tool_prefix;
                    prefix.get_or_insert_with(|| format!("{name}_"));
                }
                Ok(only)
            }
            _ => {
                let names: Vec<&str> = apis
                    .iter()
                    .filter_map(|api| api.name.as_ref().map(ApiName::as_str))
                    .collect();
                Err(format!("{} ({})", names.len(), names.join(", ")))
            }
        }
    }

    /// Refuses a choice of APIs, for a server, which serves all.
    pub(crate) fn refuse_choice(&mut self) {
        for name in std::mem::take(&mut self.chosen) {
            self.problems.push(format!(
                "--api {name} names no document; write --api {name}=FILE (all APIs of the configuration file are served)"
            ));
        }
    }

    /// Gives each of several APIs its own settings: the flags of one API to the chosen one, and the
    /// settings for all to those that do not say otherwise.
    fn separate(&mut self, flags: &ApiSettings, forward: &ForwardSettings, file: &CommonSettings) {
        if let [name] = self.chosen.as_slice() {
            let mut apis = self.apis.iter_mut();
            if let Some(api) = apis.find(|api| api.name.as_ref() == Some(name)) {
                api.api = layer(flags, &api.api);
            }
        } else {
            let no_rules = FileRules::default();
            refuse_settings_of_one_api(flags, &no_rules, forward, &mut self.problems);
        }
        let of_all = layer(&flags.common, file);
        for NamedSettings { api, .. } in &mut self.apis {
            api.common = layer(&api.common, &of_all);
            if of_all.mock == Some(true) {
                api.common.mock = Some(true);
                // Nothing leaves.
                api.base_url = None;
            }
        }
    }

    /// The settings as what each floor needs.
    ///
    /// # Errors
    /// All problems, those of the file first.
    pub(crate) fn resolve(mut self) -> Result<Config, Problems> {
        let mut problems = std::mem::take(&mut self.problems);
        self.process = check_tables(&self.process, &mut problems);
        self.server = check_tables(&self.server, &mut problems);
        // Of several APIs, none decides which certificates are trusted for what all of them use.
        let authorities = match self.apis.as_slice() {
            [only] if only.name.is_none() => only.api.upstream.ca_cert.as_slice(),
            _ => &[],
        };
        let mut process =
            process::resolve_process(&self.process, &self.server, authorities, &mut problems);
        process.about = resolve_about(&self.about, &mut problems);
        self.check_own_files(&mut problems);
        // Of all, so that it does not depend on what is chosen to whom a variable belongs.
        let names = self.apis.iter().filter_map(|api| api.name.clone());
        let mut variables = credential_variables(&names.collect::<Vec<_>>(), &mut problems);
        if self.is_several() {
            keep_chosen(&mut self.apis, &self.chosen, &mut problems);
        }
        let mut apis = Vec::with_capacity(self.apis.len());
        for settings in &mut self.apis {
            let own_variables = variables.remove(&settings.name).unwrap_or_default();
            let name = settings.name.clone();
            apis.extend(problems.of_api(name.as_ref(), |problems| {
                if settings.name.is_some() {
                    transport::refuse_forwarding(&settings.forward, &self.server, problems);
                }
                settings.api = check_tables(&settings.api, problems);
                api::resolve_api(settings, own_variables, &self.server, &process, problems)
            }));
        }
        if named_oauth_is_missing(&self.apis, &self.server) {
            problems
                .push("`oauth_read_scope` and `oauth_write_scope` of an API need --oauth-issuer");
        }
        share_secrets(&mut apis);
        if let Transport::Http { options, .. } = &mut process.transport
            && let Some(oauth) = &mut options.access.oauth
        {
            oauth.keeps_tokens = apis.iter().any(|api| api.scheme_with_grant().is_some());
        }
        problems.check()?;
        Ok(Config { process, apis })
    }

    /// An audit log and a token store in one file would destroy each other.
    fn check_own_files(&self, problems: &mut Problems) {
        let Some(log) = &self.server.observability.audit_log else {
            return;
        };
        let mut stores = self
            .apis
            .iter()
            .filter_map(|api| api.api.credentials.token_store.as_ref());
        if stores.any(|store| store == log) {
            problems.push(format!(
                "--audit-log and `token_store` name one file, `{}`; each needs its own",
                log.display()
            ));
        }
    }
}

/// Returns true if an API requires scopes although no token has any.
fn named_oauth_is_missing(apis: &[NamedSettings], server: &ServerSettings) -> bool {
    let asks = |api: &NamedSettings| api.scopes != ScopeSettings::default();
    server.http.access.oauth_issuer.is_none()
        && server.transport == Some(TransportKind::Http)
        && apis.iter().any(asks)
}

/// Reads the file; faults are pushed to `problems`.
fn read_file(path: &Path, problems: &mut Problems) -> FileSettings {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) => {
            problems.push(format!(
                "the configuration file `{}` cannot be read: {error}",
                path.display()
            ));
            return FileSettings::default();
        }
    };
    let place = format!("the configuration file `{}`", path.display());
    // Paths in a file are relative to its folder, independent of the working directory.
    let folder = path.parent().unwrap_or(Path::new(""));
    problems.within(place, |problems| file::parse(&text, folder, problems))
}

#[cfg(test)]
mod tests {
    use super::clients::HttpSettings;
    use super::documents::DocumentSettings;
    use super::*;

    fn problems(api: &ApiSettings, server: &ServerSettings) -> String {
        let flags = CommandSettings {
            api: api.clone(),
            ..CommandSettings::default()
        };
        let layered = LayeredSettings::read(&flags, server, &ConfigFile::default());
        layered
            .resolve()
            .map_or_else(|error| error.to_string(), |_| String::new())
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
            document: DocumentSettings {
                spec: Some("a.yaml".into()),
                ..DocumentSettings::default()
            },
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
            assert_eq!(
                problems(&api, &http(bind, host, open)).is_empty(),
                fine,
                "{bind}"
            );
        }
    }
}

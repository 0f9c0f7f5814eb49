//! Settings become what each floor needs: flag over variable over file over default, all problems told at once. The one
//! place that reads the environment.

mod access;
mod annotate;
pub(crate) mod api;
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
mod seconds;
pub(crate) mod settings;
mod transport;
pub(crate) mod upstream;
pub(crate) mod variables;
mod wrong_value;

use std::path::Path;

use thiserror::Error;

pub(crate) use self::api::ApiConfig;
pub(crate) use self::headers::secret_headers;
pub(crate) use self::process::ProcessConfig;
use self::settings::{ApiSettings, LogFormat, LogLevel, ServerSettings};
pub(crate) use self::transport::Transport;
use self::wrong_value::FileProblems;

/// Everything that is wrong with the settings.
#[derive(Debug, Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct ConfigError(pub Vec<String>);

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
    pub(crate) api: ApiSettings,
    pub(crate) server: ServerSettings,
    /// What is wrong with the configuration file.
    pub(crate) problems: Vec<String>,
}

impl LayeredSettings {
    /// Reads the file, where there is one, and puts the flags (and with them the variables) over it.
    pub(crate) fn read(api: &ApiSettings, server: &ServerSettings, path: Option<&Path>) -> Self {
        let mut layered = Self {
            api: api.clone(),
            server: server.clone(),
            problems: Vec::new(),
        };
        let Some(path) = path else { return layered };
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) => {
                let problem = format!("the configuration file `{}` cannot be read: {error}", path.display());
                layered.problems.push(problem);
                return layered;
            }
        };
        let mut problems = FileProblems {
            file: &path.display().to_string(),
            problems: &mut layered.problems,
        };
        // What a file names is where the file is, from wherever the program is started.
        let folder = path.parent().unwrap_or(Path::new(""));
        let (file_api, file_server) = path::read_relative_to(folder, || file::parse(&text, &mut problems));
        layered.api = layer::layer(api, &file_api);
        layered.api.overrides = file_api.overrides;
        layered.server = layer::layer(server, &file_server);
        layered
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
    pub(crate) fn resolve(self) -> Result<(ProcessConfig, ApiConfig), ConfigError> {
        let Self { api, server, mut problems } = self;
        let process = process::resolve_process(&server, &mut problems);
        let api = api::resolve_api(&api, &server, &process.transport, &mut problems);
        match api {
            Some(api) if problems.is_empty() => Ok((process, api)),
            _ => Err(ConfigError(problems)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::http_settings::HttpSettings;
    use super::settings::TransportKind;
    use super::*;

    fn problems(api: &ApiSettings, server: &ServerSettings) -> String {
        let layered = LayeredSettings::read(api, server, None);
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

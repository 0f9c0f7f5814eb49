//! The logins that settings and documents allow.

use std::sync::Arc;

use crate::api::ApiName;
use crate::cli::ConfigFile;
use crate::cli::each_api::load_each;
use crate::cli::load::{self, LoadPurpose};
use crate::config::settings::{CommandSettings, LogLevel};
use crate::config::{ApiConfig, ConfigError, Transport};
use crate::credentials::login::Login;
use crate::error::Failure;
use crate::text::one_line;

/// Login for a security scheme of an API.
pub(super) struct FoundLogin {
    api: Option<ApiName>,
    login: Arc<Login>,
}

impl FoundLogin {
    pub(super) fn login(&self) -> &Login {
        &self.login
    }

    /// The scheme, with its API if there are several.
    pub(super) fn label(&self) -> String {
        label_of(self.api.as_ref(), self.login.scheme())
    }
}

fn label_of(api: Option<&ApiName>, scheme: &str) -> String {
    let scheme = one_line(scheme);
    api.map_or_else(
        || format!("`{scheme}`"),
        |api| format!("`{scheme}` of the API `{api}`"),
    )
}

/// The security schemes of OAuth of all APIs: those for which people can sign in, and the reasons
/// for which others are not among them.
pub(super) struct FoundLogins {
    found: Vec<FoundLogin>,
    impossible: Vec<ImpossibleLogin>,
    is_over_http: bool,
}

struct ImpossibleLogin {
    api: Option<ApiName>,
    scheme: String,
    why: String,
}

impl ImpossibleLogin {
    fn describe(&self) -> String {
        format!(
            "nobody can sign in to {}: {}",
            label_of(self.api.as_ref(), &self.scheme),
            self.why
        )
    }
}

/// Reads the documents, and finds their logins.
///
/// # Errors
/// The settings or the documents cannot be used.
pub(super) async fn find_logins(
    settings: &CommandSettings,
    file: &ConfigFile,
) -> Result<FoundLogins, Failure> {
    let config = load::chosen_settings(settings, file, LogLevel::Warn)?;
    refuse_mocks_and_tenants(&config.apis)?;
    let is_over_http = matches!(config.process.transport, Transport::Http { .. });
    let loaded = load_each(config.apis, LoadPurpose::Serve).await?;
    let (mut found, mut impossible) = (Vec::new(), Vec::new());
    for (_, loaded) in loaded.apis {
        let name = loaded.api.name().cloned();
        for (scheme, login) in loaded.api.logins() {
            match login {
                Ok(login) => found.push(FoundLogin {
                    api: name.clone(),
                    login: Arc::clone(login),
                }),
                Err(why) => impossible.push(ImpossibleLogin {
                    api: name.clone(),
                    scheme: scheme.clone(),
                    why: why.clone(),
                }),
            }
        }
    }
    Ok(FoundLogins {
        found,
        impossible,
        is_over_http,
    })
}

fn refuse_mocks_and_tenants(apis: &[ApiConfig]) -> Result<(), Failure> {
    let mut problems = Vec::new();
    for api in apis {
        let problem = if api.mock {
            "--mock needs no credential, so there is nothing to sign in to"
        } else if api.options.tenants.is_some() {
            "`tenants` have credentials of their own, and a login is that of one person"
        } else {
            continue;
        };
        match &api.options.name {
            Some(name) => problems.extend(ConfigError::under(name, vec![problem.to_owned()])),
            None => problems.push(problem.to_owned()),
        }
    }
    if problems.is_empty() {
        Ok(())
    } else {
        Err(Failure::Settings(ConfigError(problems)))
    }
}

impl FoundLogins {
    /// Returns true if a server with these settings has clients over HTTP.
    pub(super) fn is_over_http(&self) -> bool {
        self.is_over_http
    }

    /// The logins of a scheme, or all of them.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn all(&self, scheme: Option<&str>) -> Result<Vec<&FoundLogin>, Failure> {
        let is_meant = |name: &str| scheme.is_none_or(|scheme| scheme == name);
        let found: Vec<&FoundLogin> = self
            .found
            .iter()
            .filter(|found| is_meant(found.login.scheme()))
            .collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let why = self
            .impossible
            .iter()
            .filter(|impossible| is_meant(&impossible.scheme));
        let mut why: Vec<String> = why.map(ImpossibleLogin::describe).collect();
        if why.is_empty() {
            let all = self.found.iter().map(FoundLogin::label);
            let all = all.chain(
                self.impossible
                    .iter()
                    .map(|other| label_of(other.api.as_ref(), &other.scheme)),
            );
            let all: Vec<String> = all.collect();
            why.push(match (scheme, all.is_empty()) {
                (_, true) => {
                    "the document has no security scheme of the type oauth2 or openIdConnect, so there is nothing to sign in to".into()
                }
                (scheme, false) => format!(
                    "`{}` is no security scheme of the type oauth2 or openIdConnect; there is {}",
                    one_line(scheme.unwrap_or_default()),
                    all.join(", ")
                ),
            });
        }
        Err(Failure::Settings(ConfigError(why)))
    }

    /// The login that is meant.
    ///
    /// # Errors
    /// There is none, or several.
    pub(super) fn one(&self, scheme: Option<&str>) -> Result<&FoundLogin, Failure> {
        match self.all(scheme)?.as_slice() {
            [only] => Ok(only),
            several => {
                let labels: Vec<String> = several.iter().map(|found| found.label()).collect();
                let has_apis = several.iter().any(|found| found.api.is_some());
                let how = if has_apis {
                    "choose an API with --api NAME, or name a scheme"
                } else {
                    "name one of them, as in `openapi-mcp login SCHEME`"
                };
                Err(Failure::setting(format!(
                    "there is more than one login ({}); {how}",
                    labels.join(", ")
                )))
            }
        }
    }
}

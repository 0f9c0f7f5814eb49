//! The logins that settings and documents allow.

use std::sync::Arc;

use crate::api::ApiName;
use crate::cli::ConfigFile;
use crate::cli::each_api::load_each;
use crate::cli::load::{self, LoadPurpose, SettingsUse};
use crate::config::settings::{CommandSettings, LogLevel, ServerSettings};
use crate::config::{ApiConfig, Problems, Transport};
use crate::credentials::login::Login;
use crate::error::Failure;
use crate::text::one_line;

/// The security schemes of OAuth of all APIs, with their logins.
pub(super) struct FoundLogins {
    all: Vec<SchemeLogin>,
    /// True if a server with these settings has clients over HTTP.
    pub(super) is_over_http: bool,
}

/// A login that a person can use.
#[derive(Clone, Copy)]
pub(super) struct FoundLogin<'l> {
    /// The scheme, with its API if there are several.
    pub(super) label: &'l str,
    pub(super) login: &'l Login,
}

struct SchemeLogin {
    api: Option<ApiName>,
    scheme: String,
    label: String,
    /// The login, or the reason why no one can sign in.
    login: Result<Arc<Login>, String>,
}

/// Reads the documents, and finds their logins.
///
/// # Errors
/// The settings or the documents cannot be used.
pub(super) async fn find_logins(
    settings: &CommandSettings,
    file: &ConfigFile,
) -> Result<FoundLogins, Failure> {
    let config = load::settings(
        settings,
        &ServerSettings::default(),
        file,
        SettingsUse::Prepare,
        LogLevel::Warn,
    )?;
    refuse_mocks_and_tenants(&config.apis)?;
    let is_over_http = matches!(config.process.transport, Transport::Http { .. });
    let loaded = load_each(config.apis, LoadPurpose::Serve).await?;
    let mut all = Vec::new();
    for (_, loaded) in &loaded.apis {
        let api = loaded.api.name();
        for (scheme, login) in loaded.api.logins() {
            let mut label = format!("`{}`", one_line(scheme));
            if let Some(api) = api {
                label.push_str(&format!(" of the API `{api}`"));
            }
            all.push(SchemeLogin {
                api: api.cloned(),
                scheme: scheme.clone(),
                label,
                login: login.clone(),
            });
        }
    }
    Ok(FoundLogins { all, is_over_http })
}

fn refuse_mocks_and_tenants(apis: &[ApiConfig]) -> Result<(), Failure> {
    let mut problems = Problems::default();
    for api in apis {
        let problem = if api.mock {
            "--mock needs no credential, so there is nothing to sign in to"
        } else if api.options.tenants.is_some() {
            "`tenants` have credentials of their own, and a login is that of one person"
        } else {
            continue;
        };
        problems.of_api(api.options.name.as_ref(), |own| own.push(problem));
    }
    Ok(problems.check()?)
}

impl FoundLogins {
    /// The logins of a scheme, or all of them.
    ///
    /// # Errors
    /// There is none.
    pub(super) fn all(&self, scheme: Option<&str>) -> Result<Vec<FoundLogin<'_>>, Failure> {
        let (mut found, mut why) = (Vec::new(), Vec::new());
        let is_meant = |known: &&SchemeLogin| scheme.is_none_or(|scheme| scheme == known.scheme);
        for SchemeLogin { label, login, .. } in self.all.iter().filter(is_meant) {
            match login {
                Ok(login) => found.push(FoundLogin { label, login }),
                Err(problem) => why.push(format!("nobody can sign in to {label}: {problem}")),
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
        if why.is_empty() {
            let all: Vec<&str> = self.all.iter().map(|known| known.label.as_str()).collect();
            why.push(if all.is_empty() {
                "the document has no security scheme of the type oauth2 or openIdConnect, so there is nothing to sign in to".into()
            } else {
                format!(
                    "`{}` is no security scheme of the type oauth2 or openIdConnect; there is {}",
                    one_line(scheme.unwrap_or_default()),
                    all.join(", ")
                )
            });
        }
        Err(Failure::Settings(why.into()))
    }

    /// The login that is meant.
    ///
    /// # Errors
    /// There is none, or several.
    pub(super) fn one(&self, scheme: Option<&str>) -> Result<FoundLogin<'_>, Failure> {
        match self.all(scheme)?.as_slice() {
            [only] => Ok(*only),
            several => {
                let labels: Vec<&str> = several.iter().map(|found| found.label).collect();
                let how = if self.all.iter().any(|known| known.api.is_some()) {
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

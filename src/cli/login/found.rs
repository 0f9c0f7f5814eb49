//! The logins that settings and documents allow.

use std::sync::Arc;

use crate::cli::ConfigFile;
use crate::cli::each_api::load_each;
use crate::cli::load::LoadPurpose;
use crate::cli::settings::{self, SettingsUse};
use crate::config::settings::{CommandSettings, LogLevel};
use crate::config::{ApiConfig, Problems, Transport};
use crate::credentials::login::Login;
use crate::error::Failure;
use crate::text::one_line;

/// The logins that are meant.
pub(super) struct FoundLogins {
    /// The security schemes, each with its API if there are several, and their logins.
    pub(super) logins: Vec<(String, Arc<Login>)>,
    /// True if there are several APIs.
    has_names: bool,
    /// True if a server with these settings has clients over HTTP.
    pub(super) is_over_http: bool,
}

/// Reads the documents, and finds the logins of a scheme, or all of them.
///
/// # Errors
/// The settings or the documents cannot be used, or there is no such login.
pub(super) async fn find_logins(
    settings: &CommandSettings,
    file: &ConfigFile,
    scheme: Option<&str>,
) -> Result<FoundLogins, Failure> {
    let config = settings::read(settings, file, SettingsUse::Prepare, LogLevel::Warn)?;
    refuse_mocks_and_tenants(&config.apis)?;
    let is_over_http = matches!(config.process.transport, Transport::Http { .. });
    let loaded = load_each(config.apis, LoadPurpose::SERVE).await?;
    let (mut logins, mut labels, mut why) = (Vec::new(), Vec::new(), Vec::new());
    for (_, loaded) in &loaded.apis {
        for (own, login) in &loaded.api.logins {
            let mut label = format!("`{}`", one_line(own));
            if let Some(api) = loaded.api.name() {
                label.push_str(&format!(" of the API `{api}`"));
            }
            labels.push(label.clone());
            match login {
                _ if scheme.is_some_and(|scheme| scheme != own) => {}
                Ok(login) => logins.push((label, Arc::clone(login))),
                Err(problem) => why.push(format!("nobody can sign in to {label}: {problem}")),
            }
        }
    }
    if !logins.is_empty() {
        return Ok(FoundLogins {
            logins,
            has_names: loaded
                .apis
                .iter()
                .any(|(_, loaded)| loaded.api.name().is_some()),
            is_over_http,
        });
    }
    if why.is_empty() {
        why.push(if labels.is_empty() {
            "the document has no security scheme of the type oauth2 or openIdConnect, so there is nothing to sign in to".into()
        } else {
            format!(
                "`{}` is not a security scheme of the type oauth2 or openIdConnect; there is {}",
                one_line(scheme.unwrap_or_default()),
                labels.join(", ")
            )
        });
    }
    Err(Failure::Settings(why.into()))
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
    /// The only login, with its scheme.
    ///
    /// # Errors
    /// There are several.
    pub(super) fn one(&self) -> Result<(&str, &Login), Failure> {
        if let [(label, login)] = self.logins.as_slice() {
            return Ok((label, login));
        }
        let labels: Vec<&str> = self
            .logins
            .iter()
            .map(|(label, _)| label.as_str())
            .collect();
        let how = if self.has_names {
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

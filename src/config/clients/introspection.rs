//! Settings of the introspection of access tokens that are not JWTs.

use std::path::PathBuf;

use clap::Args;
use secrecy::SecretString;
use serde::{Deserialize, Serialize};

use crate::config::observability::secret_settings::resolve_secret;
use crate::config::problems::Problems;
use crate::config::urls::{UrlForm, plain_url};
use crate::transport::http::IntrospectionOptions;

/// Settings of the introspection of access tokens that are not JWTs.
#[derive(Debug, Clone, Default, Args, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(default)]
#[expect(
    clippy::struct_field_names,
    reason = "they are the names of the settings"
)]
pub(crate) struct IntrospectionSettings {
    /// The issuer's introspection endpoint (RFC 7662) for tokens that are not JWTs
    #[arg(long, hide = true, value_name = "URL", help_heading = "Authentication")]
    pub oauth_introspection_url: Option<String>,

    /// The client that asks the introspection endpoint
    #[arg(long, hide = true, value_name = "ID", help_heading = "Authentication")]
    pub oauth_client_id: Option<String>,

    /// An environment variable with the secret of that client
    #[arg(
        long,
        hide = true,
        value_name = "VARIABLE",
        help_heading = "Authentication"
    )]
    pub oauth_client_secret_env: Option<String>,

    /// A file with the secret of that client
    #[arg(
        long,
        hide = true,
        value_name = "FILE",
        help_heading = "Authentication"
    )]
    pub oauth_client_secret_file: Option<PathBuf>,
}

/// Reads the settings; `None` if there is no introspection. What is wrong with them is pushed to
/// `problems`.
pub(super) fn introspection(
    settings: &IntrospectionSettings,
    problems: &mut Problems,
) -> Option<IntrospectionOptions> {
    let (variable, file) = (
        settings.oauth_client_secret_env.as_deref(),
        settings.oauth_client_secret_file.as_ref(),
    );
    let secret = resolve_secret(
        ["`oauth_client_secret_env`", "`oauth_client_secret_file`"],
        variable,
        file,
        |text| Ok(SecretString::from(text)),
        problems,
    );
    let id = settings.oauth_client_id.as_ref();
    let text = settings.oauth_introspection_url.as_ref()?;
    // The token and the secret are sent there.
    let url = plain_url(text, UrlForm::Confidential);
    if url.is_none() {
        problems.push("`oauth_introspection_url` is not an https URL without user and password");
    }
    Some(IntrospectionOptions {
        url: url?,
        client_id: id?.clone(),
        client_secret: secret?,
    })
}

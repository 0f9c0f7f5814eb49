//! `openapi-mcp logout`.

use std::process::ExitCode;

use super::found::{FoundLogin, find_logins};
use crate::cli::{ConfigFile, output};
use crate::config::settings::CommandSettings;
use crate::credentials::login::LogoutOutcome;
use crate::error::Failure;

#[derive(Debug, clap::Args)]
pub(crate) struct LogoutCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// The security scheme [default: all of them]
    scheme: Option<String>,
}

pub(crate) async fn run(command: &LogoutCommand) -> Result<ExitCode, Failure> {
    let logins = find_logins(&command.settings, &command.config).await?;
    let mut code = ExitCode::SUCCESS;
    for found in logins.all(command.scheme.as_deref())? {
        if !end_login(found).await? {
            code = ExitCode::FAILURE;
        }
    }
    Ok(code)
}

/// Ends a login. Returns false if the refresh token may still be valid.
async fn end_login(found: FoundLogin<'_>) -> Result<bool, Failure> {
    let label = found.label;
    let (text, is_over) = match found.login.log_out().await.map_err(Failure::setting)? {
        LogoutOutcome::NobodySignedIn => (format!("{label}: nobody was signed in\n"), true),
        LogoutOutcome::Revoked => (
            format!("{label}: the refresh token is revoked and removed\n"),
            true,
        ),
        LogoutOutcome::Removed => (
            format!(
                "{label}: the refresh token is removed; the authorization server names no usable endpoint to revoke it, and it may still be valid\n"
            ),
            false,
        ),
        LogoutOutcome::NotRevoked(why) => {
            output::print_remark(&format!(
                "error: {label}: the refresh token could not be revoked, and may still be valid: {why}"
            ));
            (format!("{label}: the refresh token is removed\n"), false)
        }
    };
    output::print_result(&text)?;
    Ok(is_over)
}

//! `openapi-mcp health`: the question a container asks, without a shell or curl in the image.

use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use crate::error::Failure;
use crate::outbound::{self, OutboundOptions};

#[derive(Debug, clap::Args)]
pub(super) struct HealthCommand {
    /// Where the server answers
    #[arg(default_value = "http://127.0.0.1:8080/healthz")]
    url: Url,
}

pub(super) async fn run(command: &HealthCommand) -> Result<ExitCode, Failure> {
    let client = outbound::client(&OutboundOptions {
        connect_timeout: Duration::from_secs(3),
        tls: command.url.scheme() == "https",
        ..OutboundOptions::default()
    })
    .map_err(Failure::Outbound)?;
    let answer = client.get(command.url.clone()).timeout(Duration::from_secs(5)).send().await;
    let well = answer.is_ok_and(|response| response.status().is_success());
    Ok(if well { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

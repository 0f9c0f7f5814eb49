//! `openapi-mcp health`: the question a container asks, without a shell or curl in the image.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use super::load;
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
    let ill = match answer {
        Ok(response) if response.status().is_success() => return Ok(ExitCode::SUCCESS),
        Ok(response) => format!("it answers {}", response.status()),
        Err(error) => load::in_a_line(&error.without_url()),
    };
    // A closed stderr is no reason to be well.
    let _ = writeln!(
        std::io::stderr(),
        "{} is not well: {ill}",
        crate::spec::source::redacted(&command.url)
    );
    Ok(ExitCode::FAILURE)
}

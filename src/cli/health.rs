//! `openapi-mcp health`: the question a container asks, without a shell or curl in the image.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use url::Url;

use super::output;
use crate::config::{Problems, upstream};
use crate::error::Failure;
use crate::outbound::{self, OutboundOptions};
use crate::text;

#[derive(clap::Args)]
pub(crate) struct HealthCommand {
    /// Address of the server
    #[arg(default_value = "http://127.0.0.1:8080/readyz")]
    url: Url,

    /// PEM file of authorities to trust besides those of the system (repeatable)
    #[arg(long, value_name = "FILE")]
    ca_cert: Vec<PathBuf>,
}

pub(crate) async fn run(command: &HealthCommand) -> Result<ExitCode, Failure> {
    let mut problems = Problems::default();
    let authorities = upstream::read_authorities("--ca-cert", &command.ca_cert, &mut problems);
    problems.check()?;
    let client = outbound::http_client(&OutboundOptions {
        connect_timeout: Duration::from_secs(3),
        tls: command.url.scheme() == "https",
        authorities,
        ..OutboundOptions::default()
    })?;
    let request = client
        .get(command.url.clone())
        .timeout(Duration::from_secs(5));
    let answer = outbound::send(request).await;
    let ill = match answer {
        Ok(response) if response.status().is_success() => return Ok(ExitCode::SUCCESS),
        Ok(response) => format!("it answers {}", response.status()),
        Err(error) => text::error_in_a_line(&error.without_url()),
    };
    output::print_remark(&format!(
        "{} is not ready: {ill}",
        crate::spec::document::source::redacted(&command.url)
    ));
    Ok(ExitCode::FAILURE)
}

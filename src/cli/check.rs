//! `openapi-mcp check`: reads a document exactly as `serve` would, and reports.

use std::process::ExitCode;

use clap::ValueEnum;

use super::load::{self, LoadPurpose, Loaded};
use super::{ConfigFile, help, output};
use crate::check::{self, format};
use crate::config::settings::{ApiSettings, LogLevel};
use crate::error::Failure;
use crate::spec::operation::server;
use crate::spec::{Diagnostic, Severity, Source};

#[derive(Debug, clap::Args)]
#[command(after_help = help::CHECK_EXAMPLES)]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    api: ApiSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// How the report is written
    #[arg(long, value_enum, default_value = "text")]
    format: CheckFormat,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum CheckFormat {
    /// For people
    Text,
    /// Everything, for programs
    Json,
    /// For code scanning
    Sarif,
    /// Annotations of a GitHub workflow
    Github,
}

pub(crate) async fn run(command: &CheckCommand) -> Result<ExitCode, Failure> {
    let config = load::api_settings(&command.api, command.config.config.as_deref(), LogLevel::Error)?;
    let Loaded { api, mut diagnostics, .. } = load::load_api(&config, LoadPurpose::Inspect).await?;
    // A look calls nobody; `serve` would ask for this at once.
    let root = server::root_url(
        &server::declared_servers(api.document()),
        api.document().url.as_ref(),
        &config.server,
    );
    if config.base_url.is_none() && !config.mock && api.iter().any(|offered| offered.operation.servers.is_empty()) {
        diagnostics.extend(root.err().map(|error| Diagnostic::warning("#/servers", error.to_string())));
    }
    let source = match &config.source {
        Source::Path(path) => path.display().to_string(),
        Source::Url(url) => crate::spec::document::source::redacted(url),
        Source::Stdin => "stdin".into(),
    };
    let mut report = check::check(source, &api, &diagnostics, &config.profile, config.annotate.layers.local);
    for finding in report.findings.iter_mut().filter(|finding| finding.file.is_none()) {
        // What an overlay wrote stands at no line of the file, and what concerns the whole at no line at all.
        if !config.overlays.is_empty() || finding.pointer == "#" {
            (finding.line, finding.column) = (None, None);
        }
    }
    let text = match command.format {
        CheckFormat::Text => format::report_as_text(&report),
        CheckFormat::Json => format::report_as_json(&report),
        CheckFormat::Sarif => format::sarif(&report),
        CheckFormat::Github => format::github(&report),
    };
    output::print_result(&text)?;
    let is_loose = config.strict && report.count(Severity::Warning) > 0;
    Ok(if report.tools == 0 || report.count(Severity::Error) > 0 || is_loose {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

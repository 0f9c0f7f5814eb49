//! `openapi-mcp check`: reads a document exactly as `serve` would, and reports.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;

use super::each_api::{LoadedApis, UNREADABLE, load_each};
use super::load::{LoadPurpose, Loaded};
use super::log::Spinner;
use super::settings::{self, SettingsUse};
use super::{ConfigFile, help, output};
use crate::api::{Api, ApiName};
use crate::check::{self, Report, format};
use crate::config::ApiConfig;
use crate::config::settings::{CommandSettings, LogLevel};
use crate::config::tenants::describe_tenants;
use crate::error::Failure;
use crate::json::JsonObject;
use crate::mcp::api_slot::ListMode;
use crate::spec::operation::server;
use crate::spec::operation::server_template::ServerError;
use crate::spec::{Diagnostic, Severity, Source};

#[derive(clap::Args)]
#[command(after_help = help::CHECK_EXAMPLES)]
#[command(mut_arg("strict", |strict| strict.hide(false)))]
pub(crate) struct CheckCommand {
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// Format of the report
    #[arg(long, value_enum, default_value = "text")]
    format: CheckFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum CheckFormat {
    /// For people
    Text,
    /// Everything, for programs
    Json,
    /// For code scanning
    Sarif,
    /// Annotations of a GitHub workflow
    Github,
    /// The rules that it suggests, for the configuration file
    Rules,
}

pub(crate) async fn run(command: &CheckCommand) -> Result<ExitCode, Failure> {
    let config = settings::read(
        &command.settings,
        &command.config,
        SettingsUse::Inspect,
        LogLevel::Error,
    )?;
    let spinner = Spinner::start("reading and checking the document");
    let LoadedApis { apis, is_complete } = load_each(config.apis, LoadPurpose::Inspect).await?;
    // Of several APIs, one that is served in search mode is enough for all.
    let searches = apis
        .iter()
        .any(|(config, _)| config.list.mode == ListMode::Search);
    let reports: Vec<ApiReport> = apis
        .into_iter()
        .map(|(config, loaded)| report(&config, loaded, searches))
        .collect();
    drop(spinner);
    output::print_result(&written(&reports, command.format))?;
    let is_bad = |report: &ApiReport| {
        let is_loose = report.is_strict && report.report.count(Severity::Warning) > 0;
        report.report.tools == 0 || report.report.count(Severity::Error) > 0 || is_loose
    };
    Ok(match (is_complete, reports.iter().any(is_bad)) {
        (false, _) => ExitCode::from(UNREADABLE),
        (true, true) => ExitCode::FAILURE,
        (true, false) => ExitCode::SUCCESS,
    })
}

/// The report on one API.
struct ApiReport {
    name: Option<ApiName>,
    is_strict: bool,
    report: Report,
}

fn report(config: &ApiConfig, loaded: Loaded, searches: bool) -> ApiReport {
    let Loaded {
        api,
        mut diagnostics,
        ..
    } = loaded;
    // This command makes no calls; `serve` would report this at once.
    diagnostics.extend(match require_server(config, &api) {
        Ok(None) => None,
        Ok(Some(error)) => Some(Diagnostic::warning(
            "#/servers",
            format!(
                "`serve` leaves out operations that name no server of their own, because {error}"
            ),
        )),
        Err(failure) => Some(Diagnostic::error(
            "#/servers",
            format!("`serve` does not start, because {failure}"),
        )),
    });
    let source = match &config.document.source {
        Source::Path(path) => path.display().to_string(),
        Source::Url(url) => crate::spec::document::source::redacted(url),
        Source::Stdin => "stdin".into(),
    };
    let mut report = check::check(source, &api, &diagnostics, &config.profile, searches);
    report.tenants = config
        .options
        .tenants
        .as_ref()
        .filter(|_| !config.mock)
        .map(describe_tenants)
        .unwrap_or_default();
    for finding in report
        .findings
        .iter_mut()
        .filter(|finding| finding.file.is_none())
    {
        // A value of an overlay has no line in the file, and a diagnostic about the whole document
        // has no line.
        if !config.document.overlays.is_empty() || finding.pointer == "#" {
            (finding.line, finding.column) = (None, None);
        }
    }
    ApiReport {
        name: config.options.name.clone(),
        is_strict: config.strict,
        report,
    }
}

/// Refuses a document of which `serve` could call no operation. What some operations miss is
/// returned; nothing is missed if the settings name the server.
///
/// # Errors
/// [`Failure::Server`], as from `serve`.
pub(crate) fn require_server(
    config: &ApiConfig,
    api: &Api,
) -> Result<Option<ServerError>, Failure> {
    if config.base_url.is_some() || config.options.tenants.is_some() || config.mock {
        return Ok(None);
    }
    let document = api.document();
    let servers = server::declared_servers(document);
    let Err(error) = server::root_url(&servers, document.url.as_ref(), &config.server) else {
        return Ok(None);
    };
    let all = api.tools().iter();
    let without_server = all.filter(|offered| offered.operation.servers.is_empty());
    match without_server.count() {
        0 => Ok(None),
        count if count == api.tools().len() => Err(Failure::Server(error)),
        _ => Ok(Some(error)),
    }
}

/// The reports as one text: of several APIs, those for people one after the other, those for
/// programs in one document.
fn written(reports: &[ApiReport], format: CheckFormat) -> String {
    let write = match format {
        CheckFormat::Text => format::report_as_text,
        CheckFormat::Github => format::github,
        CheckFormat::Rules => format::rules,
        CheckFormat::Sarif => {
            let reports = reports.iter().map(|own| &own.report);
            return format!("{:#}\n", format::sarif(reports));
        }
        CheckFormat::Json => {
            let named = |own: &ApiReport| Some((own.name.as_ref()?.to_string(), json!(own.report)));
            let all: Option<JsonObject> = reports.iter().map(named).collect();
            let whole = match (all, reports) {
                (None, [only]) => json!(only.report),
                (all, _) => json!({ "apis": all }),
            };
            return format!("{whole:#}\n");
        }
    };
    let mut text = String::new();
    for ApiReport { name, report, .. } in reports {
        match (name, format) {
            (Some(name), CheckFormat::Rules) => text.push_str(&format!("# API {name}\n")),
            (Some(name), CheckFormat::Text) => {
                let gap = if text.is_empty() { "" } else { "\n" };
                text.push_str(&format!("{gap}API {name}\n\n"));
            }
            _ => {}
        }
        text.push_str(&write(report));
    }
    text
}

//! `openapi-mcp diff OLD NEW`: which tools a new version of a document changes, and what of it
//! breaks a client.

use std::process::ExitCode;

use clap::ValueEnum;
use serde_json::json;

use super::load::{self, LoadPurpose};
use super::log::Spinner;
use super::output;
use super::settings::{self, SettingsUse};
use crate::annotate::OutputSchemas;
use crate::check::diff::{Impact, ToolChange, ToolFacts, compare, facts_of};
use crate::config::settings::{CommandSettings, LogLevel, ServerSettings};
use crate::config::{ConfigFile, LayeredSettings, Problems};
use crate::error::Failure;
use crate::text::counted;

#[derive(clap::Args)]
#[command(
    after_help = "Exit codes: 0 nothing breaks, 1 something does, 2 wrong settings, 3 a document cannot be read."
)]
pub(crate) struct DiffCommand {
    /// The document before: a file or an http(s) URL
    old: String,
    /// The document after
    new: String,
    #[command(flatten)]
    settings: CommandSettings,
    #[command(flatten)]
    config: ConfigFile,
    /// Format of the changes
    #[arg(long, value_enum, default_value = "text")]
    format: DiffFormat,
}

#[derive(Clone, Copy, ValueEnum)]
enum DiffFormat {
    /// For people
    Text,
    /// For programs
    Json,
    /// For a comment on a pull request
    Markdown,
}

pub(crate) async fn run(command: &DiffCommand) -> Result<ExitCode, Failure> {
    let given = [
        (
            "--spec (or OPENAPI_MCP_SPEC)",
            command.settings.api.document.spec.is_some(),
        ),
        ("--api (or OPENAPI_MCP_API)", !command.config.api.is_empty()),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given);
    let refused = |(flag, _)| format!("diff takes two documents, OLD and NEW; leave {flag} out");
    Problems::from(given.map(refused).collect::<Vec<_>>()).check()?;
    let spinner = Spinner::start("reading both documents");
    let old = tools_of(command, &command.old).await?;
    let new = tools_of(command, &command.new).await?;
    drop(spinner);
    let changes = compare(&old, &new);
    let count = |impact| {
        changes
            .iter()
            .filter(|change| change.impact == impact)
            .count()
    };
    let (breaking, risks) = (count(Impact::Breaking), count(Impact::Risk));
    let summary = format!(
        "{} before, {} after: {}, {}, {} in all",
        counted(old.len(), "tool"),
        new.len(),
        counted(breaking, "breaking change"),
        counted(risks, "risk"),
        counted(changes.len(), "change")
    );
    let text = match command.format {
        DiffFormat::Text => as_text(&changes, &summary),
        DiffFormat::Markdown => as_markdown(&changes, &summary),
        DiffFormat::Json => {
            let report = json!({ "before": old.len(), "after": new.len(), "breaking": breaking, "risks": risks, "changes": changes });
            format!("{report:#}\n")
        }
    };
    output::print_result(&text)?;
    Ok(if breaking > 0 {
        ExitCode::FAILURE
    } else {
        ExitCode::SUCCESS
    })
}

/// The tools of one document, under the same settings as the other's.
async fn tools_of(command: &DiffCommand, document: &str) -> Result<Vec<ToolFacts>, Failure> {
    let mut settings = command.settings.clone();
    settings.api.document.spec = Some(document.into());
    let layered = LayeredSettings::read(&settings, &ServerSettings::default(), &command.config);
    let (_, mut config) =
        settings::resolve_one_api(layered, SettingsUse::Inspect, LogLevel::Error)?;
    // The usual output schemas describe replies and promise nothing; what the document promises is
    // compared.
    if config.options.annotate.output != OutputSchemas::Off {
        config.options.annotate.output = OutputSchemas::Strict;
    }
    let loaded = load::load_api(&config, LoadPurpose::Inspect).await?;
    Ok(facts_of(&loaded.api))
}

fn word(impact: Impact) -> &'static str {
    match impact {
        Impact::Breaking => "breaking",
        Impact::Risk => "risk",
        Impact::Compatible => "change",
    }
}

fn as_text(changes: &[ToolChange], summary: &str) -> String {
    let widest = changes
        .iter()
        .map(|change| change.tool.len())
        .max()
        .unwrap_or_default();
    let line = |change: &ToolChange| {
        format!(
            "{:<9} {:<widest$}  {}\n",
            word(change.impact),
            change.tool,
            change.change
        )
    };
    let lines: String = changes.iter().map(line).collect();
    let gap = if changes.is_empty() { "" } else { "\n" };
    format!("{lines}{gap}{summary}\n")
}

fn as_markdown(changes: &[ToolChange], summary: &str) -> String {
    let mut text = format!("{summary}\n");
    if !changes.is_empty() {
        text.push_str("\n| impact | tool | change |\n|---|---|---|\n");
    }
    for change in changes {
        let change_text = change.change.replace('|', "\\|").replace('<', "&lt;");
        text.push_str(&format!(
            "| {} | `{}` | {change_text} |\n",
            word(change.impact),
            change.tool
        ));
    }
    text
}
